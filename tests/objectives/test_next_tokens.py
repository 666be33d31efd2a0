"""Next-token examples, alone and mixed with masked examples: their inputs, targets and frequencies."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, LanguageModelOutput, initialise_
from hatchery.objectives.examples import TwoKinds
from hatchery.objectives.label_counts import label_counts, next_token_counts
from hatchery.settings.base import RefusedError
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.batches import TrainingBatches
from hatchery.training.curriculum import order_of
from hatchery.training.loop import loss_of
from hatchery.training.objectives import ObjectiveSettings, objective_of
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.hybrid import HybridObjective, HybridSettings
from hatchery.training.settings import TrainingSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS
from hatchery.typed import build

LENGTHS = st.lists(st.lists(st.integers(1, 40), max_size=3), max_size=12)
CLS, SEP, PAD, NOTHING = 1, 2, 3, -100


def examples_of(collection, sequence_length, **changes):
    return objective_of(CausalSettings(**changes)).examples(collection, sequence_length)


@settings(deadline=None, max_examples=150)
@given(documents=LENGTHS, sequence_length=st.integers(4, 40))
def test_packed_sequences_ask_for_every_token_once_and_for_every_end(make_traceable, documents, sequence_length):
    collection = make_traceable(documents)
    examples = examples_of(collection, sequence_length)
    asked = []
    for index in range(len(examples)):
        batch = examples.batch(0, 0, [index])
        (ids,), (labels,) = batch["input_ids"].tolist(), batch["labels"].tolist()
        for position, label in enumerate(labels):
            assert label in (NOTHING, [*ids, PAD][position + 1])
        asked += [label for label in labels if label != NOTHING]
    expected = [[*document.ids.tolist(), SEP] for document in collection.documents if len(document.ids)]
    assert asked == [token for document in expected for token in document]


def test_the_counts_of_the_labels_are_those_of_the_whole_corpus(make_collection):
    collection = make_collection([[7, 90, 3], [2], [], [300], [55] * 9], vocab_size=300)
    counted = label_counts(examples_of(collection, 32), 7, 300, None, show=False)
    documents = [document.ids for document in collection.documents if len(document.ids)]
    assert np.array_equal(counted, next_token_counts(documents, SEP, CLS, 300))
    assert counted[SEP] == 4 and counted[CLS] == counted[PAD] == 0


def test_a_cut_document_ends_without_a_label_and_begins_again_behind_a_start(make_traceable):
    collection = make_traceable([[4], [9]])
    examples = examples_of(collection, 12)
    batch = examples.batch(0, 0, [0, 1])
    assert examples.n_tokens(batch) == 12 + 7
    assert batch["input_ids"].tolist() == [
        [CLS, 7, 8, 9, 10, SEP, CLS, 11, 12, 13, 14, SEP],
        [CLS, 15, 16, 17, 18, 19, SEP, PAD, PAD, PAD, PAD, PAD],
    ]
    assert batch["labels"].tolist() == [
        [7, 8, 9, 10, SEP, NOTHING, 11, 12, 13, 14, NOTHING, NOTHING],
        [15, 16, 17, 18, 19, SEP] + [NOTHING] * 6,
    ]
    blocks = batch["attention_mask"][0]
    assert blocks[:6, :6].all() and blocks[6:, 6:].all() and not blocks[6:, :6].any()


def test_documents_see_those_before_them_where_attention_is_not_reset(make_traceable):
    batch = examples_of(make_traceable([[4], [9]]), 12, reset_attention=False).batch(0, 0, [0, 1])
    assert batch["attention_mask"].tolist() == [[True] * 12, [True] * 7 + [False] * 5]


@pytest.mark.parametrize("segments", ["babylm", "documents", "bnc"])
def test_other_ways_of_cutting_predict_an_end_only_where_the_document_has_one(make_traceable, segments):
    collection = make_traceable([[3, 3, 30], [5]])
    examples = examples_of(collection, 16, segments=segments)
    last = {int(document.ids[-1]) for document in collection.documents}
    for index in range(len(examples)):
        example = examples.example(0, 0, index)
        assert len(example.input_ids) <= 16
        ends = [int(i) for i, label in zip(example.input_ids, example.labels, strict=True) if label == SEP]
        assert ends == [token for token in example.input_ids.tolist() if token in last]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"reset_attention": False},
            "reset_attention: unknown key here: it belongs to task causal; allowed are: at_least_",
        ),
        (
            {"task": "causal", "segments": "bnc", "reset_attention": False},
            "reset_attention: got false, expected true with segments bnc, because only packed sequences",
        ),
    ],
)
def test_a_setting_that_means_nothing_to_the_objective_is_refused_in_a_line(written, message):
    with pytest.raises(Exception, match=f"^objective.{message}") as error:
        build(ObjectiveSettings, written, "objective")
    assert len(str(error.value).splitlines()) == 1


def test_an_objective_without_a_task_is_a_masked_one():
    assert build(ObjectiveSettings, {"mask_probability": 0.2}, "objective").task == "masked"
    with pytest.raises(RefusedError, match="reset_attention"):
        CausalSettings(segments="documents", reset_attention=False)


MASK = 4
DOCUMENTS = [[7, 9, 3], [2], [30, 41], [5] * 9, [11]]


def hybrid_examples(collection: Any, length: int = 24, **changes: Any) -> TwoKinds:
    return HybridObjective(HybridSettings(**changes)).examples(collection, length)


@pytest.mark.parametrize("segments", ["packed", "babylm", "documents"])
def test_a_hidden_token_is_asked_for_at_the_position_before_it(make_traceable: Any, segments: str) -> None:
    changes = {"kind": "subword", "mask_probability": 0.4, "random_probability": 0.0, "keep_probability": 0.0}
    examples = hybrid_examples(make_traceable(DOCUMENTS), segments=segments, **changes)
    plain = CausalObjective(CausalSettings(segments=segments)).examples(make_traceable(DOCUMENTS), 24)
    hidden = 0
    for index in range(len(examples)):
        ids, labels, *_ = examples.example(3, 1, index)
        whole = plain.example(0, 0, index).input_ids
        for position, label in enumerate(labels):
            following = ids[position + 1] if position + 1 < len(ids) else None
            assert (label != UNLABELLED) == (following == MASK)
            if label != UNLABELLED:
                assert label == whole[position + 1]
                hidden += 1
    assert hidden > 20


def test_from_the_number_of_sequences_on_they_are_those_of_a_causal_model(make_traceable: Any) -> None:
    collection = make_traceable(DOCUMENTS)
    examples, plain = hybrid_examples(collection), CausalObjective(CausalSettings()).examples(collection, 24)
    for index in range(len(examples)):
        found, expected = examples.example(3, 1, len(examples) + index), plain.example(0, 0, index)
        for ours, theirs in zip(found[:-1], expected[:-1], strict=True):
            assert np.array_equal(ours, theirs)


def test_every_batch_has_as_many_causal_sequences_and_each_kind_reads_all_text(make_traceable: Any) -> None:
    objective, examples = (
        HybridObjective(HybridSettings(causal_share=0.25)),
        hybrid_examples(make_traceable(DOCUMENTS * 4)),
    )
    seen: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    plan = StepPlan(TrainingSettings(steps=40, batch_size=8, sequence_length=24, objective=objective.settings))
    order_at = order_of(objective, plan, 7, lambda length: examples)
    for step in map(plan.at, range(40)):
        order = order_at(step)
        drawn = [(part.epoch, int(index)) for part in order for index in part.indices]
        assert [index >= len(examples) for _, index in drawn] == [False] * 6 + [True] * 2
        for epoch, index in drawn:
            seen[index >= len(examples)].append((epoch, index % len(examples)))
    for found in seen.values():
        whole = [index for epoch, index in found if epoch == 0]
        assert sorted(whole) == list(range(len(examples))) and len(set(found)) == len(found)
    assert max(epoch for epoch, _ in seen[False]) > max(epoch for epoch, _ in seen[True])
    # At least one sequence of each kind, however small the share.
    assert HybridSettings(causal_share=0.01).sequences_of_kinds(4) == (3, 1)


@pytest.mark.parametrize(("share", "column"), [(0.0, "masked_accuracy"), (1.0, "next_token_accuracy")])
@pytest.mark.parametrize("segments", ["packed", "blocks"])
def test_all_sequences_can_be_of_one_kind(make_collection: Any, share: float, column: str, segments: Any) -> None:
    objective = HybridObjective(HybridSettings(causal_share=share, segments=segments))
    collection = make_collection(DOCUMENTS, vocab_size=300)
    examples = objective.examples(collection, 24)
    plan = StepPlan(TrainingSettings(steps=4, batch_size=6, sequence_length=24, objective=objective.settings))
    batches = TrainingBatches(plan, 1, SINGLE_PROCESS, None, lambda length: examples, partial(order_of, objective))
    batch = batches.at(3)
    (part,) = batch.micro_batches
    assert objective.columns == (("loss", column),)
    assert part["causal"].tolist() == [bool(share)] * 6 and len(batch.counted) == 1 and batch.labelled > 0
    output = predicted(part)
    (term,) = objective.terms(output, part)
    assert term.weight == 1 and torch.isclose(term.loss_sum, output.loss_sum)
    # Held-out text is of the same kind: a model trained without masked tokens is evaluated without masked tokens.
    assert objective.settings.asked_as == ("causal" if share else "hybrid")
    held_out = examples.batch(0, 0, np.arange(len(examples)))
    assert held_out["causal"].tolist() == [bool(share)] * len(examples)
    if share:
        alone = CausalObjective(CausalSettings(segments=segments)).examples(collection, 24)
        assert torch.equal(held_out["labels"], alone.batch(0, 0, np.arange(len(examples)))["labels"])


def predicted(batch: dict[str, torch.Tensor]) -> LanguageModelOutput:
    """Return random logits at the labelled positions of a batch."""
    labels = batch["labels"].flatten()
    positions = (labels != UNLABELLED).nonzero().squeeze(1)
    logits = torch.randn(len(positions), 300, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return LanguageModelOutput(logits, labels[positions], positions)


def test_the_squares_of_the_mass_are_learned_from_beside_each_loss_and_not_reported(make_collection: Any) -> None:
    settings = HybridSettings(causal_share=0.5, causal_weight=0.25, z_loss=1e-2)
    objective = HybridObjective(settings)
    examples = objective.examples(make_collection(DOCUMENTS, vocab_size=300), 24)
    batch = examples.batch(5, 0, np.array([0, 1, len(examples), len(examples) + 1]))
    output, counts = predicted(batch), examples.counted(batch)
    terms = objective.terms(output, batch)
    losses = -output.logits.log_softmax(dim=-1).gather(1, output.targets[:, None]).squeeze(1)
    squares = output.logits.logsumexp(dim=-1) ** 2
    causal = batch["causal"][output.positions // batch["labels"].shape[1]]
    expected = 0.75 * (losses + 1e-2 * squares)[~causal].mean() + 0.25 * (losses + 1e-2 * squares)[causal].mean()
    assert torch.isclose(loss_of(terms, tuple(map(float, counts))), expected)
    assert torch.isclose(terms[0].loss_sum, losses[~causal].sum())


@pytest.mark.parametrize("padded", [False, True])
def test_the_loss_is_the_share_of_the_causal_mean_and_the_rest_of_the_other(make_collection: Any, padded: bool) -> None:
    collection, length = make_collection(DOCUMENTS, vocab_size=300), 24
    objective = HybridObjective(HybridSettings(causal_share=0.25, segments="documents" if padded else "packed"))
    examples = objective.examples(collection, length)
    sizes = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LanguageModel(model_config({**sizes, "vocab_size": 300, "position_bucket_size": 8})).double().eval()
    initialise_(model, 1)
    indices = np.array([0, 1, 2, len(examples), len(examples) + 3])
    batch = examples.batch(5, 0, indices)
    counted = examples.counted(batch)
    loss = loss_of(objective.terms(model(**batch), batch), tuple(map(float, counted)))

    sums, counts = [0.0, 0.0], [0, 0]
    for index in indices:
        found = examples.example(5, 0, int(index))
        causal, n = int(index) >= len(examples), len(found.labels)
        mask = torch.zeros(1, n, n, dtype=torch.bool)
        end = 0
        for piece in found.piece_lengths or [n]:
            mask[:, end : end + piece, end : end + piece] = True
            end += piece
        if causal:
            mask = mask.tril()
        hidden = model.encoder(torch.from_numpy(found.input_ids)[None], mask)[-1][0]
        targets = torch.from_numpy(found.labels)
        sums[causal] += F.cross_entropy(model.logits_at(hidden), targets, reduction="sum")
        counts[causal] += int((targets != UNLABELLED).sum())
    assert counts == list(counted)
    assert float(loss.detach()) == pytest.approx(
        float(0.75 * sums[0] / counts[0] + 0.25 * sums[1] / counts[1]), abs=1e-9
    )


def test_held_out_text_is_asked_hidden_tokens(make_collection: Any) -> None:
    examples = hybrid_examples(make_collection(DOCUMENTS, vocab_size=300))
    batch = examples.batch(5, 0, np.arange(len(examples)))
    assert not batch["causal"].any() and examples.counted(batch)[1] == 0
