"""Surprisal of words: the tokens of each word, their sums, long texts, and words without surprisal."""

import math

import polars as pl
import pytest
import torch
from baseline_cases import build
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence
from hatchery.evaluation.runtime import load_sentence_model
from hatchery.evaluation.surprisal.reading import surprisals_of
from hatchery.evaluation.surprisal.splitting import Words, split_words
from hatchery.evaluation.surprisal.words import windows, word_surprisals

CPU = torch.device("cpu")
TEXTS = ["The dog's  house,\u00a0an old one.", " Donaudampfschiffe schlafen überall ", "no", "The dogs sleep \t."]


@pytest.fixture(scope="session")
def model_of(manifest_of, make_model_manifest):
    def get(name: str):
        path = make_model_manifest(name == "causal") if name in ("causal", "masked") else manifest_of(name)
        return load_sentence_model(path, CPU)

    return get


@pytest.mark.parametrize("name", ["causal", "masked", "gpt2", "opt", "bert", "roberta"])
@pytest.mark.parametrize("blank", [False, True])
def test_the_sum_over_the_words_of_a_text_is_its_score(model_of, name, blank):
    model = model_of(name)
    found = word_surprisals(model, TEXTS, leading_blank=blank)
    assert [rows["word"].to_list() for _, rows in found.group_by("sentence", maintain_order=True)] == [
        text.split() for text in TEXTS
    ]
    scores = sentence_scores(token_scores(model, model.encode([" " * blank + text for text in TEXTS])))
    sums = found.group_by("sentence", maintain_order=True).agg(pl.col("surprisal").sum())["surprisal"].to_list()
    assert sums == pytest.approx([-score / math.log(2) for score in scores], rel=1e-12)
    assert found["surprisal"].min() > 0
    assert found["position"].to_list() == [number for text in TEXTS for number in range(1, len(text.split()) + 1)]


def test_blanks_belong_to_the_word_behind_them_and_all_bytes_of_a_letter_to_its_word(model_of):
    # One token per byte.
    found = word_surprisals(model_of("gpt2"), [" no  Tür isn't\t", "no"], leading_blank=False)
    assert found["tokens"].to_list() == [3, 2 + 4, 1 + 5 + 1, 2]
    with_blank = word_surprisals(model_of("gpt2"), ["no"], leading_blank=True)
    assert with_blank["tokens"].to_list() == [3]
    # A model's own setting precedes the setting of the texts.
    for own, tokens in ((True, 3), (False, 2)):
        model = model_of("gpt2")
        model.leading_blank = own
        assert word_surprisals(model, ["no"], leading_blank=not own)["tokens"].to_list() == [tokens]


def test_a_separator_says_what_a_word_is_where_blanks_do_not(model_of):
    found = word_surprisals(model_of("gpt2"), ["黒|猫が|", "New York| is| big"], separator="|")
    assert found["word"].to_list() == ["黒", "猫が", "New York", "is", "big"]
    assert found["tokens"].to_list() == [3, 6, 8, 3, 4]
    whole = word_surprisals(model_of("gpt2"), ["黒猫が"])
    assert whole["surprisal"].to_list() == pytest.approx([found["surprisal"][:2].sum()])


def test_a_token_across_words_is_that_of_the_word_that_it_begins_in(model_of):
    # The tokens are un ##happ ##ily.
    found = word_surprisals(model_of("bert"), ["unha|pp|ily| xyz"], separator="|")
    assert found.select("word", "tokens", "unknown").rows() == [
        ("unha", 2, False),
        ("pp", 0, False),
        ("ily", 1, False),
        ("xyz", 1, True),
    ]
    assert found["surprisal"].is_null().to_list() == [False, True, False, False]
    # An unknown word has no byte tokens.
    assert found["in_bytes"].to_list() == [False] * 4


@given(st.integers(1, 60), st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_windows_score_every_token_once_behind_at_least_half_of_a_window(length, longest):
    parts = list(windows(EncodedSentence(tuple(range(length)), tuple(range(length))), longest))
    assert [token for part in parts for token in part.ids[part.given :]] == list(range(length))
    assert all(len(part.ids) <= longest and part.words == part.ids for part in parts)
    assert parts[0].given == 0 and all(part.given >= longest // 2 for part in parts[1:])


@torch.no_grad()
def test_a_text_that_is_longer_than_an_input_of_a_causal_model_is_scored_piece_by_piece(model_of):
    tokenizer, network = build("gpt2")
    text = "the dogs sleep " * 8
    found = word_surprisals(model_of("gpt2"), [text])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    # EOS takes one of the 64 positions.
    assert len(ids) == 120 and found["tokens"].sum() == 120
    bits = 0.0
    for at in range(120):
        first = 0 if at < 63 else 32 * ((at - 63) // 32 + 1)
        logits = network(torch.tensor([[tokenizer.eos_token_id, *ids[first:at]]])).logits[0, -1]
        bits -= float(logits.log_softmax(-1)[ids[at]]) / math.log(2)
    assert found["surprisal"].sum() == pytest.approx(bits, rel=1e-5)


def test_a_line_of_ten_thousand_words_has_them_all_or_one_clear_error(model_of):
    line = "the old dogs sleep near a house . " * 1250
    found = word_surprisals(model_of("causal"), [line])
    assert len(found) == 10_000 and found["surprisal"].is_finite().all()
    with pytest.raises(
        EvaluationError, match=r"^stories.txt:1: becomes .* tokens, expected at most 1,022 for a masked"
    ):
        word_surprisals(model_of("masked"), [line], place=lambda index: f"stories.txt:{index + 1}")


def test_what_has_no_word_and_what_has_no_probability_of_words_is_said(model_of):
    with pytest.raises(EvaluationError, match=r"^text 2: the text has no word"):
        word_surprisals(model_of("causal"), ["a", " \u00a0"])
    with pytest.raises(ConfigError, match="got an encoder-decoder"):
        word_surprisals(model_of("t5"), ["a dog"])
    with pytest.raises(ConfigError, match="'left_to_right' needs a causal"):
        word_surprisals(model_of("masked"), ["a dog"], scoring="left_to_right")
    assert word_surprisals(model_of("masked"), []).is_empty()


def test_offsets_outside_all_words_are_those_of_the_last_one():
    assert split_words("ab  c ").spans == ((0, 2), (4, 5))
    assert Words("ab  c ", ((0, 2), (4, 5))).of_tokens([(0, 0), (0, 2), (2, 3), (3, 5), (5, 6)]) == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("name", ["causal", "masked"])
def test_words_that_were_read_are_asked_of_our_models_behind_their_frame(model_of, name):
    model = model_of(name)
    its = model.tokenizer
    pieces = its.backend.encode("unhappily", add_special_tokens=False).ids
    assert len(pieces) > 2
    expected, text = 0.0, "The old"
    for number, piece in enumerate(pieces):
        spelled = its.decode([piece])
        target = piece if number == 0 else its.backend.encode(spelled, add_special_tokens=False).ids[0]
        context = its.backend.encode(text, add_special_tokens=False).ids
        masks = [] if name == "causal" else [its.mask_id] * 3
        ids = [its.cls_id, *context, *masks, *model.frame.after]
        at = len(context) + (name == "masked")
        logits = model.logits_at(torch.tensor([ids]), torch.tensor([at]))[0]
        expected -= float(logits.log_softmax(-1)[target])
        text += spelled
    assert surprisals_of(model, [("The old", "unhappily")]) == pytest.approx([expected], rel=1e-5)
