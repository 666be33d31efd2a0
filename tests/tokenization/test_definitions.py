import json
import unicodedata

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models

from hatchery.tokenization.definitions import normalizer, post_processor, pre_tokenizer
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

BNC = {
    "kind": "wordpiece",
    "vocabulary_size": 400,
    "min_frequency": 0,
    "special_tokens": "bnc",
    "normalizer": "ltg_bnc",
    "pre_tokenizer": "ltg_bnc",
    "continuing_subword_prefix": "@@",
}
LINES = ["I don't know, they're 25", "wait... ### x", "SHE'S naïve and she's 'sad'", "end. of it all"] * 5
# As in docs/papers/ltg-bert.md, "Tokenizer".
PRE_TOKENS = {
    "I don't know, they're 25": ["I", "do", "n't", "know", ",", "they", "'re", "2", "5"],
    "£1,000 (50%)": ["£", "1", ",", "0", "0", "0", "(", "5", "0", "%", ")"],
    "wait... ### x": ["wait", "...", "###", "x"],
    "it's 'sad'": ["it", "'s", "'", "sad", "'"],
    "Shouldn't've": ["Should", "n't", "'ve"],
    "x_y": ["x_y"],
    "she's": ["she", "'s"],
}


def cut(text: str, reading: str) -> list[str]:
    part = pre_tokenizer("ltg_bnc", reading, True, True, 100)  # type: ignore[arg-type]
    return [piece for piece, _ in part.pre_tokenize_str(text)]


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
@pytest.mark.parametrize("text", PRE_TOKENS)
def test_bnc_pre_tokens_are_the_published_ones_in_both_readings(text: str, reading: str) -> None:
    assert cut(text, reading) == PRE_TOKENS[text]


@pytest.mark.parametrize(("reading", "pieces"), [("as_published", ["SHE", "'", "S"]), ("corrected", ["SHE", "'S"])])
def test_the_upper_case_possessive_is_cut_in_two_as_published_only(reading: str, pieces: list[str]) -> None:
    assert cut("SHE'S", reading) == pieces


@pytest.mark.parametrize("reading", ["as_published", "corrected"])
def test_other_upper_case_contractions_stay_whole_in_both_readings(reading: str) -> None:
    assert cut("DON'T I'LL WE'RE I'VE I'M HE'D", reading) == [
        *("DO", "N'T", "I", "'LL", "WE", "'RE", "I", "'VE", "I", "'M", "HE", "'D")
    ]


def test_contractions_followed_by_a_letter_or_digit_are_not_isolated() -> None:
    assert cut("'sad rock'n'roll o'dear", "corrected") == [
        *("'", "sad", "rock", "'", "n", "'", "roll", "o", "'", "dear")
    ]


def byte_level_pieces(text: str, reading: str) -> list[str]:
    part = pre_tokenizer("byte_level", reading, True, True, 100)  # type: ignore[arg-type]
    decode = decoders.ByteLevel().decode
    return [decode([piece]) for piece, _ in part.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("text", "corrected", "published"),
    [
        ("don't 19 cats.", [" don", "'t", " ", "1", "9", " cats", "."], [" don", "'t", " ", "1", "9", " cats", "."]),
        ("für", [" für"], [" f\ufffd", "\ufffd", "r"]),
        ("٣٤", [" ", "٣", "٤"], [" ٣٤"]),
        ("हिन्दी", [" हिन्दी"], [" \ufffd", "\ufffd", "ि", "न", "्", "द", "ी"]),
        ("می\u200cروم", [" می\u200cروم"], [" می", "\u200c", "روم"]),
        ("oʻ o'tdi they'd", [" oʻ", " o", "'", "tdi", " they", "'d"], [" oʻ", " o", "'t", "di", " they", "'d"]),
    ],
)
def test_digits_and_words_of_bytes_are_those_of_the_text_but_as_published(
    text: str, corrected: list[str], published: list[str]
) -> None:
    assert byte_level_pieces(text, "corrected") == corrected
    assert byte_level_pieces(text, "as_published") == published


def test_no_letter_is_cut_and_every_digit_is_alone_in_any_script() -> None:
    characters = [chr(code) for code in range(0x110000)]
    letters = [f" a{letter}b" for letter in characters if unicodedata.category(letter)[0] == "L"]
    assert len(letters) > 100_000
    assert byte_level_pieces("".join(letters), "corrected") == letters
    digits = [digit for digit in characters if unicodedata.category(digit) == "Nd"]
    assert byte_level_pieces(f"a{''.join(digits)}", "corrected") == [" a", *digits]


@pytest.mark.parametrize("text", ["中" * 120, "a" * 250, "\n" * 300, "é😀" * 90])
def test_long_words_are_cut_between_characters(text: str) -> None:
    pieces = byte_level_pieces(text, "corrected")
    assert "".join(pieces) == f" {text}"
    assert all(len(piece.encode()) <= 100 for piece in pieces)


@pytest.mark.parametrize("name", ["byte_level", "metaspace", "bert", "ltg_bnc"])
def test_a_text_without_spaces_is_cut_into_words_that_training_can_take(name: str) -> None:
    part = pre_tokenizer(name, "corrected", True, True, 100)  # type: ignore[arg-type]
    pieces = [piece for piece, _ in part.pre_tokenize_str("acgt" * 50_000)]
    assert max(map(len, pieces)) <= 1000 and len(pieces) >= 200


def test_unknown_spelled_out_is_one_piece() -> None:
    assert cut("he [UNK] said", "as_published") == ["he", "[UNK]", "said"]


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("Café NAÏVE", "Cafe NAIVE"),
        ("ﬁne ½ x² …", "fine 1⁄2 x2 ..."),
        ("a   b", "a b"),
        ("a\u2581b\u200bc", "a b c"),
        ("x中y", "x 中 y"),
    ],
)
def test_the_bnc_normaliser_strips_accents_and_keeps_case(text: str, normalised: str) -> None:
    part = normalizer("ltg_bnc")
    assert part is not None
    assert part.normalize_str(text) == normalised


def test_special_tokens_are_found_before_normalisation_and_cut_the_text() -> None:
    backend = train(LINES, TokenizerSettings(**BNC | {"vocabulary_size": 100}))  # type: ignore[arg-type]
    encoding = backend.encode("end.[PAR]", add_special_tokens=False)
    assert encoding.tokens[-2:] == [".", "[PAR]"]
    assert encoding.ids[-1] == 5
    assert backend.encode("aéb [UNK]", add_special_tokens=False).ids[-1] == 0


def test_decoding_joins_continuations_of_the_bnc_tokenizer() -> None:
    backend = train(LINES, TokenizerSettings(**BNC | {"vocabulary_size": 80}))  # type: ignore[arg-type]
    ids = backend.encode("they know naïve wait", add_special_tokens=False).ids
    assert len(ids) > 4
    assert backend.decode(ids) == "they know naive wait"


@pytest.mark.parametrize(
    ("name", "single", "pair", "types"),
    [
        ("babylm", "[CLS] a [SEP]", "[CLS] a [SEP] b [SEP]", [0, 0, 0, 1, 1]),
        ("bnc", "[CLS] a [SEP]", "[CLS] a [SEP] b [SEP]", [0, 0, 0, 1, 1]),
        ("roberta", "<s> a </s>", "<s> a </s> </s> b </s>", [0] * 6),
    ],
)
def test_templates_add_the_special_tokens_of_each_set(name: str, single: str, pair: str, types: list[int]) -> None:
    special = SPECIAL_SETS[name]
    entries = [*special.order, "a", "b"]
    backend = Backend(models.WordLevel({entry: i for i, entry in enumerate(entries)}, special.unknown))
    backend.post_processor = post_processor(special)
    assert backend.encode("a").tokens == single.split()
    assert backend.encode("a", "b").tokens == pair.split()
    assert backend.encode("a", "b").type_ids == types
    assert backend.encode("a", "b").ids == [entries.index(token) for token in pair.split()]


def test_without_a_post_processor_nothing_is_added() -> None:
    settings = TokenizerSettings(**BNC | {"vocabulary_size": 80, "post_processor": "none"})  # type: ignore[arg-type]
    backend = train(LINES, settings)
    assert json.loads(backend.to_str())["post_processor"] is None
    assert "[CLS]" not in backend.encode("know").tokens


def test_roberta_tokens_have_no_prefix_space_and_babylm_tokens_have_one() -> None:
    roberta = TokenizerSettings("byte_bpe", 300, 0, special_tokens="roberta", individual_digits=False)
    assert train(LINES, roberta).encode("know", add_special_tokens=False).tokens[0][0] == "k"
    assert train(LINES, TokenizerSettings("byte_bpe", 300, 0)).encode("know").tokens[1][0] == "Ġ"


def test_the_roberta_layout_is_special_tokens_then_bytes_then_merges() -> None:
    backend = train(LINES, TokenizerSettings("byte_bpe", 280, 0, special_tokens="roberta", individual_digits=False))
    tokens = [backend.id_to_token(index) for index in range(280)]
    assert tokens[:5] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert all(len(token) == 1 for token in tokens[5:261])
    assert all(len(token) > 1 for token in tokens[261:])
    assert backend.decode(backend.encode("naïve 中文 😀").ids) == "naïve 中文 😀"
