"""Edge probing: words as spans of subwords, layers of a frozen encoder, probes on random features, majority
baseline."""

import string
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from hatchery.errors import ConfigError, EvaluationError, ModelError
from hatchery.evaluation.probing import frozen_layers
from hatchery.evaluation.probing.encoding import PlacedWords, encode_spans, place_words, span_of_subwords
from hatchery.evaluation.probing.formats import majority_baseline
from hatchery.evaluation.probing.frozen_layers import FrozenLayers, can_be_kept
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.tasks.example import SpanExample, SpanTarget
from hatchery.evaluation.tasks.settings import HeadSettings
from hatchery.evaluation.tasks.texts import detokenise
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanClassifier, SpanHead, layer_vectors
from hatchery.modeling.heads.targets import IndependentLabels
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.tokenization.tokenizer_file import Tokenizer

WORDS = st.text(string.ascii_letters + string.digits + "'\"`.,;:?!()[]{}$%£-–—…’“\u00a0é&", min_size=1, max_size=6)


def example(text: str, *targets: tuple[tuple[tuple[int, int], ...], tuple[int, ...]]) -> SpanExample:
    return SpanExample(tuple(text.split(" ")), tuple(SpanTarget(*target) for target in targets), "here:1")


def test_words_are_found_in_the_running_text() -> None:
    words = ["He", "said", ",", "``", "I", "ca", "n't", "pay", "$", "5", "-LRB-", "or", "6", "%", "-RRB-", ".", "''"]
    placed = place_words(words, "ltg_detokenised")
    assert placed.text == 'He said, "I can\'t pay $5 (or 6%)."'
    found = [placed.text[start:end] for start, end in placed.places]
    assert found == ["He", "said", ",", '"', "I", "ca", "n't", "pay", "$", "5", "(", "or", "6", "%", ")", ".", '"']


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_every_visible_character_belongs_to_one_word_in_order(words: list[str]) -> None:
    placed = place_words(words, "ltg_detokenised")
    assert placed.text == detokenise(" ".join(words))
    assert len(placed.places) == len(words)
    edges = [edge for place in placed.places for edge in place]
    assert edges == sorted(edges)
    inside = {index for start, end in placed.places for index in range(start, end)}
    assert all(character.isspace() for index, character in enumerate(placed.text) if index not in inside)


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_without_normalisation_words_are_joined_by_blanks(words: list[str]) -> None:
    placed = place_words(words, "none")
    assert placed.text == " ".join(words)
    assert [placed.text[start:end] for start, end in placed.places] == words


def test_texts_that_are_normalised_whole_have_no_words_to_mark() -> None:
    with pytest.raises(ConfigError, match="normalisation: got 'ltg'"):
        place_words(["a"], "ltg")


PLACED = PlacedWords("can't stop", ((0, 2), (2, 5), (6, 10)))


@pytest.mark.parametrize(
    ("offsets", "word", "expected"),
    [
        # "can't" is one subword, which belongs to both words.
        ([(0, 5), (5, 10)], (0, 1), (1, 2)),
        ([(0, 5), (5, 10)], (1, 2), (1, 2)),
        ([(0, 5), (5, 10)], (2, 3), (2, 3)),
        # A subword over the edge of two words belongs to both.
        ([(0, 1), (1, 3), (3, 5), (6, 10)], (0, 1), (1, 3)),
        ([(0, 1), (1, 3), (3, 5), (6, 10)], (1, 2), (2, 4)),
        # A subword that is only the space belongs to no word, but is part of a longer span.
        ([(0, 2), (2, 5), (5, 6), (6, 10)], (1, 2), (2, 3)),
        ([(0, 2), (2, 5), (5, 6), (6, 10)], (1, 3), (2, 5)),
        # Two bytes of one character have the same offsets.
        ([(0, 2), (2, 5), (6, 10), (6, 10)], (2, 3), (3, 5)),
        # If the tokenizer drops a word, the next subword is used, at the end of the text the last subword.
        ([(0, 2), (6, 10)], (1, 2), (2, 3)),
        ([(0, 2), (2, 5)], (2, 3), (2, 3)),
    ],
)
def test_a_span_holds_every_subword_that_overlaps_it(offsets, word, expected) -> None:
    assert span_of_subwords(np.array(offsets), PLACED, word) == expected


@pytest.mark.parametrize("has_first", [True, False])
def test_the_tokens_of_a_span_spell_its_words(tokenizer: Tokenizer, has_first: bool) -> None:
    words = ["The", "old", "dogs", "chases", "houses", "."]
    targets = [(((i, j),), (0,)) for i in range(6) for j in range(i + 1, 7)]
    framing = {"backend": tokenizer.backend, "end_ids": [tokenizer.sep_id], "pad_id": tokenizer.pad_id}
    framed: Any = SimpleNamespace(**framing, cls_id=tokenizer.cls_id if has_first else None)
    data = encode_spans([example(" ".join(words), *targets)], framed, 64, 1, False)
    ids = data.sequences.ids.tolist()
    assert (ids[0] == tokenizer.cls_id) == has_first and ids[-1] == tokenizer.sep_id
    for (((i, j),), _), ((start, end),) in zip(targets, data.spans.tolist(), strict=True):
        decoded = tokenizer.decode(ids[start:end]).replace(" ", "")
        assert decoded.lower() == "".join(words[i:j]).lower()


def test_sentences_over_the_limit_are_dropped_and_counted(tokenizer: Tokenizer) -> None:
    short, long = example("The dogs", (((0, 1),), (0,))), example("The dogs " * 9 + ".", (((0, 1),), (0,)))
    n_short = len(tokenizer.encode_sentences(["The dogs"])[0]) + 2
    data = encode_spans([long, short, long], tokenizer, n_short, 1, False)
    assert (data.dropped, data.n_units, data.lengths.tolist()) == (2, 1, [n_short])
    assert data.examples == (short,)
    assert encode_spans([short], tokenizer, n_short - 1, 1, False).n_units == 0


def test_sentences_without_a_subword_are_dropped_and_counted() -> None:
    def encode_batch(texts: list[str], add_special_tokens: bool) -> list[SimpleNamespace]:
        """Return one token for each letter; other characters have no token."""
        places = [[(i, i + 1) for i, character in enumerate(text) if character.isalpha()] for text in texts]
        return [SimpleNamespace(ids=[7] * len(offsets), offsets=offsets) for offsets in places]

    framed: Any = SimpleNamespace(backend=SimpleNamespace(encode_batch=encode_batch), cls_id=1, end_ids=[2], pad_id=0)
    data = encode_spans([example("…", (((0, 1),), (0,))), example("ab", (((0, 1),), (0,)))], framed, 8, 1, False)
    assert (data.dropped, data.sequences.ids.tolist()) == (1, [1, 7, 7, 2])


@pytest.fixture
def encoded(tokenizer: Tokenizer):
    rows = [
        example("The old dogs sleep .", (((0, 1), (1, 3)), (0,)), (((3, 4), (0, 3)), (1, 2))),
        example("A cat .", (((1, 2), (0, 1)), (2,))),
        example("The old dogs sleep .", (((4, 5), (4, 5)), (-1, -1))),
    ]
    return encode_spans(rows, tokenizer, 64, 3, True)


def test_equal_sentences_are_stored_once(encoded) -> None:
    assert len(encoded.sequences.lengths) == 2 and encoded.sequence_of.tolist() == [0, 1, 0]


def test_independent_labels_are_multi_hot_without_the_unknown_ones(encoded) -> None:
    hot = [[True, False, False], [False, True, True], [False, False, True], [False, False, False]]
    assert encoded.labels.tolist() == hot


def test_a_batch_holds_the_sentences_in_the_order_asked_for(encoded) -> None:
    batch = encoded.batch(np.array([1, 0]))
    ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"]
    assert ids.shape == (2, encoded.lengths[[0, 1]].max()) and mask.sum(1).tolist() == encoded.lengths[[1, 0]].tolist()
    assert (ids[~mask] == encoded.sequences.pad_id).all()
    assert batch.units.tolist() == [2, 0, 1] and batch.inputs["sentences"].tolist() == [0, 1, 1]
    assert batch.inputs["spans"].tolist() == encoded.spans[[2, 0, 1]].tolist()
    assert batch.labels.tolist() == encoded.labels[[2, 0, 1]].tolist()
    spans = batch.inputs["spans"]
    assert batch.inputs["widest"] == (spans[..., 1] - spans[..., 0]).max()


def test_units_of_a_subset_count_from_its_own_first_sentence(encoded) -> None:
    part = encoded.subset([2, 0])
    assert part.n_units == 3 and part.labels.tolist() == encoded.labels[[3, 0, 1]].tolist()
    batch, whole = part.batch(np.array([1])), encoded.batch(np.array([0]))
    assert batch.units.tolist() == [1, 2]
    assert batch.inputs["input_ids"].equal(whole.inputs["input_ids"])
    assert batch.inputs["spans"].equal(whole.inputs["spans"])


def test_a_head_with_one_class_takes_one_label(tokenizer: Tokenizer) -> None:
    one = encode_spans([example("A cat", (((0, 1),), (1,)), (((1, 2),), (-1,)))], tokenizer, 64, 2, False)
    assert one.labels.tolist() == [1, -1] and one.labels.dtype == np.int64
    with pytest.raises(EvaluationError, match="here:1: a target has 2 labels"):
        encode_spans([example("A cat", (((0, 1),), (0, 1)))], tokenizer, 64, 2, False)


def test_targets_of_one_task_have_the_same_number_of_spans(tokenizer: Tokenizer) -> None:
    with pytest.raises(EvaluationError, match="1 and 2 spans"):
        encode_spans([example("A cat", (((0, 1),), (0,)), (((0, 1), (1, 2)), (0,)))], tokenizer, 64, 1, False)


CPU = torch.device("cpu")
TEXTS = ["The old dogs near the house sleep .", "A cat chases the dogs .", "She sleeps .", "A cat chases the dogs ."]


@pytest.fixture
def probe(model_manifest: Path):
    """Return a probe for pairs of spans, and sentences with tokens outside all targets."""
    network, tokenizer = load_pretrained(model_manifest)
    examples = []
    for number, text in enumerate(TEXTS):
        words = tuple(text.split(" "))
        last = len(words) - 1
        targets = [SpanTarget(((0, 1), (last, last + 1)), (0,)), SpanTarget(((last - 1, last + 1), (0, 1)), (1,))]
        examples.append(SpanExample(words, tuple(targets[: 1 + number % 2])))
    data = encode_spans(examples, tokenizer, 64, 2, True)
    model = SpanClassifier(network.encoder, HeadContext(2, 0.0, 1, 3), ProbeOptions(n_spans=2, probe_size=16))
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.fresh_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, data


def scores_and_gradients(model, data, items):
    model.zero_grad()
    batch = data.batch(np.array(items))
    scores = model(**batch.inputs)
    model.loss(scores, batch.labels).mean.backward()
    return batch, scores.detach(), [parameter.grad.clone() for parameter in model.fresh_parameters()]


def n_tokens_in_spans(data):
    inside = set()
    for item, sequence in enumerate(data.sequence_of.tolist()):
        for start, end in data.spans[data.units_of(np.array([item]))].reshape(-1, 2).tolist():
            inside |= {(sequence, position) for position in range(start, end)}
    return len(inside)


def kept_bytes(model, n_tokens):
    return n_tokens * len(model.encoder.layers) * model.encoder.config.hidden_size * 4


@pytest.mark.parametrize("share", ["all", "some", "none"])
def test_kept_layers_give_the_scores_and_gradients_of_computed_ones(probe, share: str) -> None:
    model, data = probe
    layers = FrozenLayers(model.encoder, "differences", 1 if share != "none" else 0, CPU)
    if share == "some":
        layers.bytes_left = kept_bytes(model, n_tokens_in_spans(data) - 1)
    wrapped = layers.wrap(data)
    assert {"all": wrapped.share_kept == 1, "some": 0 < wrapped.share_kept < 1, "none": wrapped.share_kept == 0}[share]
    for items in ([0, 1, 2, 3], [3, 0], [2]):
        plain, scores, gradients = scores_and_gradients(model, data, items)
        batch, kept_scores, kept_gradients = scores_and_gradients(model, wrapped, items)
        assert batch.units.tolist() == plain.units.tolist() and batch.labels.equal(plain.labels)
        # Scores differ by rounding only, because a sentence's batch differs.
        torch.testing.assert_close(kept_scores, scores, atol=1e-5, rtol=1e-5)
        for kept, computed in zip(kept_gradients, gradients, strict=True):
            torch.testing.assert_close(kept, computed, atol=1e-5, rtol=1e-4)


def test_the_same_sentences_computed_together_are_kept_bit_for_bit(probe) -> None:
    model, data = probe
    kept = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).kept
    order = np.argsort(data.sequences.lengths, kind="stable")
    ids, mask = data.sequences.padded(order)
    with torch.no_grad():
        vectors = layer_vectors(model.encoder, model.encoder(ids, mask), "differences")
    for row, sequence in enumerate(order.tolist()):
        start, end = data.sequences.starts[sequence : sequence + 2].tolist()
        inside = torch.from_numpy(kept.inside[start:end])
        place, size = int(kept.places[sequence]), int(kept.sizes[sequence])
        assert kept.vectors[:, place : place + size].equal(vectors[:, row, : end - start][:, inside])


def test_kept_layers_are_never_computed_again(probe, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = probe
    wrapped = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data)

    def refuse(*arguments: object) -> None:
        raise AssertionError("the encoder ran")

    monkeypatch.setattr(model.encoder, "forward", refuse)
    for part in (wrapped, wrapped.subset([3, 1])):
        assert model(**part.batch(np.array([0, 1])).inputs).isfinite().all()


def test_only_tokens_in_spans_take_memory_and_equal_sentences_take_it_once(probe) -> None:
    model, data = probe
    wrapped = FrozenLayers(model.encoder, "outputs", 1, CPU).wrap(data)
    assert wrapped.kept.vectors.shape[1] == n_tokens_in_spans(data) < len(data.sequences.ids)


def test_the_data_sets_of_a_job_share_the_memory(probe) -> None:
    model, data = probe
    layers = FrozenLayers(model.encoder, "differences", 1, CPU)
    assert layers.bytes_left == 1024 * 1024, "the limit is in MiB"
    layers.bytes_left = kept_bytes(model, n_tokens_in_spans(data))
    assert layers.wrap(data).share_kept == 1 and layers.wrap(data).share_kept == 0


def test_a_training_model_keeps_the_dropout_of_its_frozen_encoder_out(probe) -> None:
    model, data = probe
    model.encoder.set_dropout(0.5)
    wrapped = FrozenLayers(model.encoder, "differences", 0, CPU).wrap(data)
    model.encoder.train()
    first, second = (wrapped.batch(np.array([0, 1])).inputs["layers"] for _ in range(2))
    assert first.equal(second)


@pytest.mark.parametrize("mode", ["trained", "frozen_with_dropout"])
def test_layers_that_change_cannot_be_kept(probe, mode: str) -> None:
    model, data = probe
    assert not can_be_kept(HeadSettings("span_classification", {"encoder_mode": mode}))
    assert can_be_kept(HeadSettings("span_classification", {"n_spans": 2}))
    assert not can_be_kept(HeadSettings("sequence_classification"))
    batch = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).batch(np.array([0]))
    changing = SpanClassifier(
        model.encoder, HeadContext(2, 0.0, 1, 3), ProbeOptions(n_spans=2, probe_size=16, encoder_mode=mode)
    )
    with pytest.raises(ModelError, match="got precomputed states"):
        changing.train()(**batch.inputs)


def test_sentences_are_computed_in_groups_without_changing_them(probe, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = probe
    whole = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).kept.vectors
    monkeypatch.setattr(frozen_layers, "SEQUENCES_AT_A_TIME", 1)
    single = FrozenLayers(model.encoder, "differences", 1, CPU).wrap(data).kept.vectors
    torch.testing.assert_close(single, whole, atol=1e-5, rtol=1e-5)


N_LABELS, WIDTH, LAYERS = 4, 16, 3


def trained_predictions(features: Tensor, labels: Tensor, n_train: int, steps: int) -> np.ndarray:
    """Return a probe's predictions for the rows after `n_train`; `features` are [L, n, D], one token per span."""
    torch.manual_seed(3)
    head = SpanHead(WIDTH, LAYERS, N_LABELS, ProbeOptions(probe_size=32))
    optimizer = torch.optim.AdamW(head.parameters(), lr=6e-3, weight_decay=0.01)
    target, hot = IndependentLabels(), torch.nn.functional.one_hot(labels, N_LABELS)

    def scores(rows: Tensor) -> Tensor:
        spans = torch.stack([torch.arange(len(rows)), torch.arange(len(rows)) + 1], dim=-1).unsqueeze(1)
        return head(features[:, rows].unsqueeze(1), torch.zeros(len(rows), dtype=torch.int64), spans, 1)

    for step in range(steps):
        rows = torch.arange(step * 64, step * 64 + 64) % n_train
        optimizer.zero_grad()
        target.loss(scores(rows), hot[rows]).mean.backward()
        optimizer.step()
    with torch.no_grad():
        return target.predictions(scores(torch.arange(n_train, len(labels)))).numpy()


@pytest.fixture
def labels() -> Tensor:
    """Labels, about 70 % of which are the first label."""
    random = np.random.default_rng(1)
    return torch.from_numpy(random.choice(N_LABELS, size=1600, p=[0.7, 0.1, 0.1, 0.1]))


def test_a_probe_on_random_features_does_not_beat_the_majority_by_more_than_chance(labels: Tensor) -> None:
    features = torch.randn(LAYERS, len(labels), WIDTH, generator=torch.Generator().manual_seed(2))
    # With these steps, the probe sees each training row about once and cannot memorise rows.
    found = trained_predictions(features, labels, 1200, steps=18)
    hot = torch.nn.functional.one_hot(labels, N_LABELS).bool().numpy()
    baseline = majority_baseline(hot[:1200], hot[1200:])
    assert f1_score(hot[1200:], found, average="micro") == pytest.approx(baseline.micro_f1, abs=0.03)
    assert (found & hot[1200:]).any(axis=1).mean() == pytest.approx(baseline.accuracy, abs=0.03)


def test_a_probe_on_the_labels_themselves_is_always_right(labels: Tensor) -> None:
    features = torch.zeros(LAYERS, len(labels), WIDTH)
    features[1, torch.arange(len(labels)), labels] = 3.0
    found = trained_predictions(features, labels, 1200, steps=120)
    assert found.tolist() == torch.nn.functional.one_hot(labels[1200:], N_LABELS).bool().tolist()


def test_the_majority_is_that_of_the_training_rows() -> None:
    found = majority_baseline(np.array([2, 2, 0, -1]), np.array([0, 0, 2, -1]))
    assert found == (2, 0.25, 0.25)


def test_the_baseline_of_independent_labels_agrees_with_scikit_learn() -> None:
    random = np.random.default_rng(5)
    train, scored = random.random((50, 4)) < [0.2, 0.6, 0.3, 0.1], random.random((70, 4)) < 0.4
    scored[np.arange(70), random.integers(0, 4, 70)] = True
    found = majority_baseline(train, scored)
    answers = np.zeros_like(scored)
    answers[:, 1] = True
    assert found.label == 1
    assert found.accuracy == pytest.approx(accuracy_score(scored[:, 1], answers[:, 1]))
    assert found.micro_f1 == pytest.approx(f1_score(scored, answers, average="micro"))


def test_a_label_that_no_column_stands_for_is_missed() -> None:
    train, scored = np.array([[True, False]]), np.array([[True, False], [False, False]])
    assert majority_baseline(train, scored) == (0, 0.5, 0.5)


def test_a_baseline_needs_rows() -> None:
    with pytest.raises(EvaluationError, match="got 0 training and 1 scored"):
        majority_baseline(np.zeros(0, np.int64), np.zeros(1, np.int64))
