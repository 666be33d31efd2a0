"""Properties of GPT-BERT's training whose violation raises no error but gives a bad model."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from demo.grammar import text_of
from demo.paradigms import PARADIGMS
from demo.rows import draw_pairs
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, HatcheryModel
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, build_language_model, initialise_
from hatchery.objectives.blocks import BlockExamples
from hatchery.objectives.masking import MaskingSettings, masking_rule
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.tokenization.token_shards import Document
from hatchery.training.batches import StepBatch
from hatchery.training.learning_rates import learning_rate
from hatchery.training.loop import divisors, loss_of
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.hybrid import HybridObjective, HybridSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer
from hatchery.training.settings import ScheduleSettings
from hatchery.training.topology import SINGLE_PROCESS

CPU = torch.device("cpu")
SPECIAL = SpecialIds.of(SPECIAL_SETS["gpt_bert"])
VOCABULARY, LENGTH, STEPS = 60, 16, 300
WAYS: dict[str, Architecture] = {"mntp": "masked", "left_to_right": "causal"}
SIZES: dict[str, Any] = {
    "family": "gpt_bert",
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "position_bucket_size": 8,
    "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


class Texts:
    """Documents of the given ids."""

    split = "train"

    def __init__(self, ids: Sequence[Sequence[int]]) -> None:
        self.ids, self.n_documents = [np.array(each, dtype=np.uint16) for each in ids], len(ids)

    def document(self, index: int) -> Document:
        ids = self.ids[index]
        return Document(ids, np.zeros(1, dtype=np.int32), np.zeros(len(ids) // 8 + 1, dtype=np.uint8), 0)

    def document_lengths(self) -> np.ndarray:
        return np.array([len(ids) for ids in self.ids], dtype=np.int64)


def sentences() -> Texts:
    """Return a hundred short sentences in which each token determines the next one."""
    starts = np.random.default_rng(0).integers(16, VOCABULARY, size=100)
    return Texts([16 + (start - 16 + 7 * np.arange(4 + start % 9)) % (VOCABULARY - 16) for start in starts])


def examples(
    rate: float | None, texts: Texts | None = None, length: int = LENGTH, vocabulary: int = VOCABULARY
) -> BlockExamples:
    """Return examples with tokens masked at this rate, or causal sequences if the rate is None."""
    settings = None if rate is None else MaskingSettings("short_span", "corrected", rate)
    rule = None if settings is None else masking_rule(settings, 0, vocabulary, SPECIAL)
    return BlockExamples(texts or sentences(), length, SPECIAL, rule, fills=True)


@pytest.fixture
def model() -> LanguageModel:
    torch.manual_seed(0)
    made = build_language_model(model_config(SIZES))
    for parameter in made.parameters():
        parameter.data.normal_(0, 0.2)
    return made.eval()


@pytest.mark.parametrize("rate", [None, 0.5], ids=["causal", "masked"])
def test_the_label_of_a_position_is_the_token_to_its_right_for_both_objectives(rate: float | None) -> None:
    made, firsts, random = examples(rate), 0, []
    for index in range(len(made)):
        sample = made.example(0, 0, index)
        originals = np.concatenate([np.append(SPECIAL.cls, text.tokens) for text in sample.texts])
        labelled = np.flatnonzero(sample.labels != UNLABELLED)
        assert (sample.labels[labelled] == originals[labelled + 1]).all()
        # A target token is masked at its own position, not at the position that predicts it.
        visible = labelled[labelled + 1 < len(sample.input_ids)] + 1
        shown = sample.input_ids[visible]
        hidden = np.setdiff1d(np.arange(len(sample.input_ids)), visible)
        assert (sample.input_ids[hidden] == originals[hidden]).all()
        assert (shown == originals[visible]).all() or rate is not None
        assert SPECIAL.cls not in sample.labels and SPECIAL.sep not in sample.input_ids
        starts = np.cumsum([0, *[1 + len(text) for text in sample.texts][:-1]])
        firsts += int((sample.labels[starts[starts < len(sample.labels)]] != UNLABELLED).sum())
        random += shown[(shown != SPECIAL.mask) & (shown != originals[visible])].tolist()
    # Both objectives predict the first token of a block from its start token. Random replacements are never special
    # tokens.
    assert firsts > 50 and all(number >= 16 for number in random) and bool(random) == (rate is not None)


def test_with_hidden_tokens_a_model_sees_what_follows_and_as_a_causal_one_it_does_not(model: LanguageModel) -> None:
    ids = torch.randint(16, VOCABULARY, (2, 12), generator=torch.Generator().manual_seed(3))
    other = ids.clone()
    other[:, 7] = 16 + (other[:, 7] - 15) % (VOCABULARY - 16)
    with torch.no_grad():
        for causal in (True, False):
            first, second = (model.logits_at(model.encoder(each, causal=causal)[-1])[:, :7] for each in (ids, other))
            assert torch.equal(first, second) == causal


def test_both_losses_are_one_where_nothing_is_hidden_and_nothing_behind_is_seen(model: LanguageModel) -> None:
    batch = examples(None).batch(0, 0, range(6))
    following = CausalObjective(CausalSettings(segments="blocks")).terms(model(**batch), batch)
    # The same sequences count as masked sequences, under an attention mask that hides later tokens.
    below = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()[
        : batch["input_ids"].shape[1], : batch["input_ids"].shape[1]
    ]
    hidden = {**batch, "causal": torch.zeros(6, dtype=torch.bool), "attention_mask": batch["attention_mask"] & below}
    terms = HybridObjective(HybridSettings(segments="blocks", causal_share=0.5)).terms(model(**hidden), hidden)
    assert terms[1].loss_sum.item() == 0
    assert terms[0].loss_sum.item() == pytest.approx(following[0].loss_sum.item(), rel=1e-5)


@torch.no_grad()
def test_a_mixed_batch_has_the_mean_of_sixteen_devices_that_have_as_many_targets(model: LanguageModel) -> None:
    made, kinds = examples(0.3), examples(None)
    # Choose masked sequences with equal numbers of targets; the causal sequence is the sixteenth device.
    masked = [made.example(0, 0, index) for index in range(len(made))]
    wanted = int((masked[0].labels != UNLABELLED).sum())
    chosen = [sample for sample in masked if (sample.labels != UNLABELLED).sum() == wanted][:15]
    batch = made.padding.batch([*chosen, kinds.example(0, 0, 0)])
    objective = HybridObjective(HybridSettings(segments="blocks", causal_share=1 / 16, z_loss=1e-4))

    def loss(of: Any, rows: slice) -> float:
        part = {name: tensor[rows] for name, tensor in batch.items()}
        labelled = (part["labels"] != UNLABELLED).sum(dim=1)
        both = tuple(int(labelled[part["causal"] == kind].sum()) for kind in (False, True))
        counted = (sum(both),) if of.settings.one_kind else both
        return float(
            loss_of(
                of.terms(model(**part), part), divisors(StepBatch([part], counted, 0), "tokens", SINGLE_PROCESS, CPU)
            )
        )

    alone = [
        HybridObjective(HybridSettings(segments="blocks", causal_share=share, z_loss=1e-4))
        for share in [0.0] * 15 + [1.0]
    ]
    assert len(chosen) == 15
    devices = [loss(one, slice(row, row + 1)) for row, one in enumerate(alone)]
    assert loss(objective, slice(None)) == pytest.approx(np.mean(devices), rel=1e-5)


def test_rates_begin_at_nothing_and_end_there() -> None:
    schedule, steps, cooled = ScheduleSettings(cooldown_fraction=0.016), 15_625, 250
    rates = {step: learning_rate(0.01, schedule, step, steps) for step in (0, 250, steps - cooled, steps - 1)}
    assert rates[0] == 0 and rates[250] == pytest.approx(0.01)
    assert rates[steps - cooled] == pytest.approx(0.001, rel=0.01)
    assert rates[steps - 1] == pytest.approx(0.001 / cooled)


def trained(
    hidden: BlockExamples,
    following: BlockExamples,
    share: float,
    steps: int,
    sizes: dict[str, Any],
    schedule: ScheduleSettings,
    peak: float = 0.01,
) -> tuple[LanguageModel, list[list[float]]]:
    """Return a model after `steps` steps of 16 sequences, `share` of them causal, and the losses of each kind."""
    network = build_language_model(model_config(sizes))
    initialise_(network, seed=1)
    settings = HybridSettings(
        segments="blocks", kind="short_span", causal_share=share, mask_probability=0.3, z_loss=1e-4
    )
    objective = HybridObjective(settings)
    optimizer = build_optimizer(network, OptimizerSettings(decay="weights", epsilon=1e-8))
    (of_hidden, _), generator, losses = settings.sequences_of_kinds(16), np.random.default_rng(2), []
    for step in range(steps):
        drawn = generator.integers(len(hidden), size=16)
        samples = [hidden.example(0, step, int(index)) for index in drawn[:of_hidden]]
        samples += [following.example(0, step, int(index)) for index in drawn[of_hidden:]]
        batch = hidden.padding.batch(samples)
        labelled = (batch["labels"] != UNLABELLED).sum(dim=1)
        both = tuple(int(labelled[batch["causal"] == kind].sum()) for kind in (False, True))
        counted = (sum(both),) if settings.one_kind else both
        terms = objective.terms(network(**batch), batch)
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(peak, schedule, step, steps)
        loss_of(terms, divisors(StepBatch([batch], counted, 0), "tokens", SINGLE_PROCESS, CPU)).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimizer.step()
        losses.append([term.loss_sum.item() / count for term, count in zip(terms, counted, strict=True)])
    return network.eval(), losses


@pytest.mark.slow
def test_a_tiny_model_learns_a_hundred_sentences_both_ways() -> None:
    constant = ScheduleSettings("constant", warmup_fraction=0.0)
    _, losses = trained(examples(0.3), examples(None), 0.25, 200, SIZES, constant)
    assert min(losses[0]) > 3 and max(np.mean(losses[-20:], axis=0)) < 1


def shares_right(network: LanguageModel, pairs: Sequence[Sequence[Sequence[int]]]) -> dict[str, float]:
    """Return the share of pairs whose grammatical sentence scores higher, for each way of scoring."""
    tokenizer: Any = SimpleNamespace(cls_id=SPECIAL.cls, end_ids=(), mask_id=SPECIAL.mask, unknown_id=None)
    found = {}
    for way, architecture in WAYS.items():
        model = HatcheryModel(network, tokenizer, CPU, architecture, predicted_before=1)
        asked = [EncodedSentence(tuple(sentence)) for pair in pairs for sentence in pair]
        scores = sentence_scores(token_scores(model, asked, way)).reshape(-1, 2)
        found[way] = float((scores[:, 0] > scores[:, 1]).mean())
    return found


@pytest.mark.slow
def test_a_tiny_hybrid_model_is_better_both_ways_than_a_model_of_one_objective_on_its_weaker_side() -> None:
    """Train on three paradigms of agreement, where a model of one objective is worse at the other's scoring."""
    chosen = [paradigm for paradigm in PARADIGMS if paradigm.term == "subject_verb_agreement"][:3]
    text = [pair.good for paradigm in chosen for pair in draw_pairs(paradigm, 1000, 1, ())]
    seen = {text_of(words) for words in text}
    pairs = [(pair.good, pair.bad) for paradigm in chosen for pair in draw_pairs(paradigm, 100, 0, seen)]
    words = sorted({word for sentence in (*text, *(one for pair in pairs for one in pair)) for word in sentence})
    number = {word: SPECIAL.n_special + place for place, word in enumerate(words)}
    vocabulary, length = SPECIAL.n_special + len(words), 24
    texts = Texts([[number[word] for word in sentence] for sentence in text])
    asked = [[[number[word] for word in sentence] for sentence in pair] for pair in pairs]
    hidden, following = (examples(rate, texts, length, vocabulary) for rate in (0.3, None))
    sizes = SIZES | {"vocab_size": vocabulary, "hidden_size": 64, "intermediate_size": 128}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 4, "position_bucket_size": 16}
    schedule = ScheduleSettings(warmup_fraction=0.05, cooldown_fraction=0.05)
    masked, hybrid, causal = (
        shares_right(trained(hidden, following, share, STEPS, sizes, schedule, 0.02)[0], asked)
        for share in (0.0, 0.75, 1.0)
    )
    assert min(hybrid.values()) > 0.9
    assert hybrid["left_to_right"] > masked["left_to_right"] + 0.05
    assert hybrid["mntp"] > causal["mntp"], (masked, hybrid, causal)
