"""Scoring methods other than plain pseudo-log-likelihood: within words, from left to right, and their allowed models.

Log-probabilities that are computed in tiles equal those of a softmax over the whole vocabulary.
"""

import itertools
import math
from dataclasses import replace
from importlib import import_module

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.minimal_pairs.items import Candidate, Item, minimal_pair
from hatchery.evaluation.minimal_pairs.likelihoods import (
    ITEMS_PER_TILE,
    ROWS_PER_TILE,
    expand,
    tiled_log_probabilities,
)
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.scoring import (
    LOGITS_PER_BATCH,
    TOKENS_PER_BATCH,
    scoring_name,
    sentence_scores,
    token_scores,
    tokens_per_batch_for,
)
from hatchery.evaluation.minimal_pairs.sentence_model import (
    EncodedSentence,
    Frame,
    HatcheryModel,
    given_tokens,
    word_numbers,
)
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.settings import SuiteSettings
from hatchery.evaluation.ways_of_scoring import WAYS
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build

CPU = torch.device("cpu")
MASK, CONTEXT = 1, 2
VOCABULARY = 20
SENTENCES = st.lists(
    st.lists(st.tuples(st.integers(5, VOCABULARY - 1), st.booleans()), min_size=1, max_size=8), min_size=1, max_size=9
)


class Whispering:
    """A model whose logits depend on every visible token, so that any wrong input changes the scores."""

    device = CPU
    vocabulary_size = VOCABULARY
    longest_input = None
    mask_id = MASK
    predicted_before = 0
    shares_prefixes = False

    def __init__(self, architecture):
        self.architecture = architecture
        self.frame = Frame((CONTEXT,), (3,)) if architecture == "masked" else Frame((CONTEXT,), ())
        generator = torch.Generator().manual_seed(1)
        self.weights = torch.randn(30, VOCABULARY, VOCABULARY, generator=generator)
        self.batches = []

    def logits_at(self, input_ids, rows):
        self.batches.append(input_ids)
        assert input_ids.ndim == 2 and input_ids.dtype == torch.int64
        length = input_ids.shape[1]
        positions = torch.arange(length)
        distance = positions[:, None] - positions[None, :]
        logits = self.weights[distance % 30][None].expand(len(input_ids), -1, -1, -1, -1)
        chosen = input_ids[:, None, :, None, None].expand(-1, length, -1, 1, VOCABULARY)
        seen = logits.gather(3, chosen).squeeze(3)
        if self.architecture == "causal":
            seen = seen * (distance >= 0)[None, :, :, None]
        return seen.sum(dim=2).flatten(0, 1)[rows]

    def one(self, row, position, target):
        logits = self.logits_at(torch.tensor([row]), torch.tensor([position]))
        return float(torch.log_softmax(logits[0], dim=-1)[target])


def encoded(sentences):
    result = []
    for sentence in sentences:
        starts = [index == 0 or start for index, (_, start) in enumerate(sentence)]
        words = tuple(count - 1 for count in itertools.accumulate(starts))
        result.append(EncodedSentence(tuple(token for token, _ in sentence), words))
    return result


@settings(max_examples=40, deadline=None)
@given(SENTENCES, st.integers(1, 50))
def test_within_words_the_later_pieces_of_the_word_are_masked_too(sentences, tokens_per_batch):
    model = Whispering("masked")
    scores = token_scores(model, encoded(sentences), "pll_within_word_l2r", tokens_per_batch)
    for sentence, values in zip(encoded(sentences), scores, strict=True):
        for position, target in enumerate(sentence.ids):
            row = list(sentence.ids)
            for later in range(position, len(row)):
                if sentence.words[later] == sentence.words[position]:
                    row[later] = MASK
            assert values[position] == pytest.approx(model.one([CONTEXT, *row, 3], position + 1, target), abs=1e-5)


def test_words_of_one_piece_make_both_masked_ways_the_same():
    model = Whispering("masked")
    sentences = encoded([[(7, True), (8, True), (9, True)], [(9, True), (5, True)]])
    plain, within = (token_scores(model, sentences, way, 64) for way in ("pll", "pll_within_word_l2r"))
    assert [values.tolist() for values in plain] == [values.tolist() for values in within]


def test_the_same_ids_in_other_words_are_other_sentences():
    rows = expand(encoded([[(7, True), (8, False)], [(7, True), (8, True)]]), Frame((2,), (3,)), MASK, within_word=True)
    assert rows.ids[rows.of[0]].tolist() == [2, MASK, MASK, 3]
    assert rows.ids[rows.of[2]].tolist() == [2, MASK, 8, 3]
    model = Whispering("masked")
    one, other = token_scores(model, encoded([[(7, True), (8, False)], [(7, True), (8, True)]]), "pll_within_word_l2r")
    assert one[0] != other[0] and one[1] == other[1]


@settings(max_examples=40, deadline=None)
@given(SENTENCES, st.integers(1, 50))
def test_from_left_to_right_each_token_sees_the_context_and_those_before_it(sentences, tokens_per_batch):
    model = Whispering("causal")
    scores = token_scores(model, encoded(sentences), "left_to_right", tokens_per_batch)
    for batch in model.batches:
        assert bool((batch[:, 0] == CONTEXT).all()) and (batch.numel() <= tokens_per_batch or len(batch) == 1)
    for sentence, values in zip(encoded(sentences), scores, strict=True):
        assert len(values) == len(sentence.ids), "no term for an end of the sentence"
        for position, target in enumerate(sentence.ids):
            row = [CONTEXT, *sentence.ids[:position]]
            assert values[position] == pytest.approx(model.one(row, position, target), abs=1e-5)


@pytest.mark.parametrize(("architecture", "way"), [("masked", "pll_within_word_l2r"), ("causal", "left_to_right")])
@settings(max_examples=15, deadline=None)
@given(sentences=SENTENCES, random=st.randoms(use_true_random=False))
def test_the_order_of_the_sentences_changes_no_bit(architecture, way, sentences, random):
    order = list(range(len(sentences)))
    random.shuffle(order)
    model = Whispering(architecture)
    straight = sentence_scores(token_scores(model, encoded(sentences), way, 30))
    shuffled = sentence_scores(token_scores(model, encoded([sentences[i] for i in order]), way, 30))
    assert shuffled.tolist() == straight[order].tolist()


def test_a_model_that_cannot_be_scored_in_a_way_is_refused_in_one_line():
    assert scoring_name("auto", "masked") == "pll" and scoring_name("auto", "causal") == "left_to_right"
    with pytest.raises(
        ConfigError, match=r"'left_to_right' needs a causal language model, but this model is masked; use pll"
    ):
        scoring_name("left_to_right", "masked")
    for way in ("pll", "pll_within_word_l2r"):
        with pytest.raises(ConfigError, match=f"'{way}' needs a masked .* but this model is causal; use left_to_right"):
            token_scores(Whispering("causal"), [EncodedSentence((7,))], way)
    with pytest.raises(ConfigError, match="allowed are: auto, pll"):
        scoring_name("best", "masked")
    assert scoring_name("auto", "encoder_decoder") == "left_to_right"
    with pytest.raises(ConfigError, match="by the rules of 2025 predicts the masked tokens of an encoder-decoder"):
        scoring_name("auto", "encoder_decoder", edition=2025)


def test_every_way_has_a_function_and_can_be_named_in_the_settings():
    for name, way in WAYS.items():
        assert callable(getattr(import_module(f"hatchery.evaluation.minimal_pairs.{way.module}"), way.tokens))
        assert way.rows(1) == {"fused": 2, "diffusion": 4}.get(name, 1)
        assert build(SuiteSettings, {"scoring": name}).scoring == name


def test_batches_of_a_large_vocabulary_shrink_to_bound_the_logits():
    model = Whispering("causal")
    model.vocabulary_size = 250_000
    assert tokens_per_batch_for(model, 1 << 20) == LOGITS_PER_BATCH // 250_000
    assert tokens_per_batch_for(Whispering("causal"), None) == TOKENS_PER_BATCH["cpu"]


@pytest.mark.parametrize("architecture", ["masked", "causal"])
def test_logits_that_are_not_finite_are_one_clear_error(architecture):
    model = Whispering(architecture)
    model.weights[:] = float("nan")
    with pytest.raises(EvaluationError, match="log-probabilities that are not finite: its weights are damaged"):
        token_scores(model, [EncodedSentence((7, 8))])


@pytest.mark.parametrize("way", ["pll", "pll_within_word_l2r", "left_to_right"])
def test_given_tokens_are_seen_and_not_scored(way):
    model = Whispering("causal" if way == "left_to_right" else "masked")
    sentences = encoded([[(7, True), (8, False), (9, True), (10, False)], [(9, True), (8, True), (7, True), (6, True)]])
    whole = token_scores(model, sentences, way, 30)
    for counts in ((1, 0), (3, 2), (2, 2)):
        some = [replace(sentence, given=count) for sentence, count in zip(sentences, counts, strict=True)]
        for scores, every, count in zip(token_scores(model, some, way, 30), whole, counts, strict=True):
            assert scores.tolist() == pytest.approx(every[count:].tolist(), abs=1e-6)
    with pytest.raises(EvaluationError, match="a sentence has no tokens"):
        token_scores(model, [replace(sentences[0], given=4)], way)


def test_a_token_that_ends_behind_the_prefix_is_scored():
    offsets = [(0, 3), (3, 5), (5, 9)]
    assert [given_tokens(offsets, characters) for characters in (0, 2, 3, 4, 5, 9)] == [0, 0, 1, 1, 2, 3]


def test_candidates_behind_prefixes_are_scored_alone(model_manifest):
    model = HatcheryModel(*load_pretrained(model_manifest), CPU)
    texts = ("The old dogs", "A cat"), ("sleep .", "sleeps .", "chases dogs .")
    shared = Item("p", "f", "0", tuple(Candidate(text, f"{texts[0][0]} ") for text in texts[1]))
    own = Item("p", "f", "1", tuple(Candidate(texts[1][0], f"{prefix} ") for prefix in texts[0]))
    found = candidate_scores([shared, own], model, tokens_per_batch=64)
    assert [len(scores) for scores in found.of([shared, own])] == [3, 2] and math.isnan(found.scores[1, 2])
    for item, scores, tokens in zip((shared, own), found.scores, found.tokens, strict=True):
        for candidate, score, count in zip(item.candidates, scores, tokens, strict=False):
            prefix, whole = model.encode([candidate.prefix.strip(), candidate.text])
            assert whole.ids[: len(prefix.ids)] == prefix.ids and count == len(whole.ids) - len(prefix.ids)
            (each,) = token_scores(model, [whole], tokens_per_batch=64)
            assert score == pytest.approx(float(each[-count:].sum()), abs=1e-5)


def test_word_numbers_follow_the_pre_tokens():
    assert word_numbers([0, 0, 1, 2, 2]) == (0, 0, 1, 2, 2)
    assert word_numbers([5, None, None, 6]) == (0, 1, 2, 3)
    assert word_numbers([]) == ()


def test_our_tokenizers_tell_the_pieces_of_a_word_and_keep_punctuation_apart(model_manifest):
    model = HatcheryModel(*load_pretrained(model_manifest), CPU)
    plain, (sentence,) = model.encode(["She sleeps ."]), model.encode(["She sleeps ."], words=True)
    assert plain[0].words is None and plain[0].ids == sentence.ids
    pieces = {}
    for token, word in zip(sentence.ids, sentence.words, strict=True):
        pieces.setdefault(word, []).append(token)
    assert [model.tokenizer.decode(ids).strip() for ids in pieces.values()] == ["She", "sleeps", "."]


def test_a_leading_blank_changes_no_id_of_our_tokenizers(model_manifest, golden_directory):
    files = [model_manifest.parent / "tokenizer.json", *sorted((golden_directory / "tokenizers").glob("*.json"))]
    sentences = ["The cat sleeps.", "Who did she see?", "12 dogs' houses aren't old.", "What?\nNothing."]
    for file in files:
        tokenizer = load_tokenizer(file, recognise=())
        blanks = tokenizer.encode_sentences([f" {sentence}" for sentence in sentences])
        assert blanks == tokenizer.encode_sentences(sentences), file.name


def test_the_leading_blank_reaches_the_tokenizer_and_identity_is_that_of_the_texts(model_manifest):
    model = HatcheryModel(*load_pretrained(model_manifest), CPU)
    asked = []

    def encode(sentences, words=False, given=None, official=False):
        asked.extend(sentences)
        return HatcheryModel.encode(model, sentences, words, given)

    model.encode = encode
    pairs = [minimal_pair("p", "f", "0", "The dogs sleep .", "The dogs sleeps .")]
    with_blank = candidate_scores(pairs, model, leading_blank=True)
    assert asked == [" The dogs sleep .", " The dogs sleeps ."]
    assert with_blank.scores.tolist() == candidate_scores(pairs, model).scores.tolist()


def layer(n_rows: int, n_items: int, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n_rows + n_items)
    features, weight = torch.randn(n_rows, 16, generator=generator), torch.randn(n_items, 16, generator=generator)
    return features, weight * scale, torch.randn(n_items, generator=generator)


@pytest.mark.parametrize("n_rows", [1, ROWS_PER_TILE, 2 * ROWS_PER_TILE + 3])
@pytest.mark.parametrize("n_items", [5, ITEMS_PER_TILE, 2 * ITEMS_PER_TILE + 1])
@pytest.mark.parametrize("with_bias", [True, False])
def test_they_are_those_of_a_softmax_in_double_precision(n_rows: int, n_items: int, with_bias: bool) -> None:
    features, weight, bias = layer(n_rows, n_items)
    # Some positions have several targets in random order, others have no target.
    generator = torch.Generator().manual_seed(0)
    of = torch.randint(n_rows, (2 * n_rows,), generator=generator)
    targets = torch.randint(n_items, (2 * n_rows,), generator=generator)
    found = tiled_log_probabilities(features, weight, bias if with_bias else None, of, targets)
    logits = features.double() @ weight.double().T + (bias.double() if with_bias else 0)
    expected = torch.log_softmax(logits, dim=-1)[of, targets].float()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-6)


def test_logits_far_beyond_the_range_of_the_exponential_stay_finite() -> None:
    features, weight, bias = layer(9, ITEMS_PER_TILE + 10, scale=1000.0)
    of, targets = torch.arange(9), torch.arange(9)
    logits = features.double() @ weight.double().T + bias.double()
    expected = torch.log_softmax(logits, dim=-1)[of, targets].float()
    assert expected.abs().max() > 1000
    found = tiled_log_probabilities(features, weight, bias, of, targets)
    torch.testing.assert_close(found, expected, atol=1e-2, rtol=1e-5)


def test_one_weight_that_is_not_a_number_shows_wherever_it_lies() -> None:
    features, weight, bias = layer(3, 2 * ITEMS_PER_TILE)
    weight[ITEMS_PER_TILE + 7, 0] = float("nan")
    found = tiled_log_probabilities(features, weight, bias, torch.arange(3), torch.tensor([0, 1, 2]))
    assert found.isnan().all()
