"""The texts of a task: their normalisation, and the rows within a vocabulary."""

import ftfy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer

from hatchery.evaluation.tasks.settings import VocabularyFilter
from hatchery.evaluation.tasks.texts import NORMALISATIONS, detokenise, make_filter, normalise, repair_free_quotes

MOSES = MosesPunctNormalizer(lang="en", penn=False)


@given(st.text("aB1 .,;:'\"()%`´‘’“”„–—…\u00a0«»é\n", max_size=40))
def test_the_normalisation_is_that_of_the_libraries(text):
    if text.strip() in ("``", "''"):
        return
    assert normalise(text) == ftfy.fix_text(MOSES.normalize(text.strip())).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-LRB-", "("),
        (" -RRB- ", ")"),
        ("``", '"'),
        ("''", '"'),
        ("a -LRB- b", "a -LRB- b"),
        ("“a” — b", '"a" - b'),
        ("  caf&eacute; ", "café"),
    ],
)
def test_treebank_symbols_are_mapped_only_where_they_are_the_whole_text(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("it 's a charming and often affecting journey . ", "it's a charming and often affecting journey."),
        ("you do n't know , do you ?", "you don't know, do you?"),
        ("it does n't", "it does n't"),
        ("-LRB- see below -RRB- , please", "(see below), please"),
        ("`` a good film , '' he said", '"a good film," he said'),
        ("he said ' yes ' to Tom 's dog", "he said 'yes' to Tom's dog"),
        ("it cost $ 5 or 50 % less", "it cost $5 or 50% less"),
        ("a well - known film", "a well - known film"),
        ("the dogs ' bones", "the dogs ' bones"),
        ("", ""),
    ],
)
def test_tokens_become_running_text(tokens, text):
    assert detokenise(tokens) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ' b ' c", "a 'b' c"),
        ("'a' don't", "'a' don't"),
        ("' a ' b ' c", "' a ' b ' c"),
        ("don't", "don't"),
        ("x' y 'z", "x 'y' z"),
        ("'", "'"),
    ],
)
def test_only_quotes_at_a_blank_or_an_edge_are_paired(text, expected):
    assert repair_free_quotes(text, "'") == expected


def test_without_a_normalisation_a_text_stays_as_it_is():
    assert NORMALISATIONS["none"](" a ``  ") == " a ``  "


WORDS = "the a dog runs dont freefall free fall was born in is st th percent i nothing and it"
VOCABULARY = frozenset(WORDS.split())


def within(reading, *texts):
    return make_filter(VocabularyFilter(("sentence",), reading), VOCABULARY)(texts)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the dog runs", True),
        ("the cat runs", False),
        # The first token is looked up in lower case. Later capitalised tokens are names.
        ("The dog runs", True),
        ("Rex runs", False),
        ("the dog Rex runs", True),
        ("the iPhone runs", True),
        ("the dog runs . Xylophones runs", True),
        # Listed symbols are deleted everywhere.
        ("“the” dog; runs!? (a_dog) @the #dog $ & — -", False),
        ("“the” dog; runs!? (dog) @the #dog $ & — -", True),
        ("free-fall", True),
        ("free - fall", True),
        # Other symbols reject the example.
        ("the dog runs %", False),
        ("the dog / dog", False),
        ("the * dog", False),
        ("the + dog", False),
        ("a = a", False),
        ("a < dog", False),
        ("a > dog", False),
        ("a ` dog", False),
        ("a [ dog", False),
        ("a dog]", False),
        ("the dog …", False),
        ("the ‘dog’", False),
        # Digits are deleted, so a number has no letters left.
        ("the dog was born in 1999", True),
        ("1st 4th", True),
        ("2nd", False),
        ("3rd", False),
        # Contractions: the joined form, or the remaining piece.
        ("don't", True),
        ("isn't", False),
        ("is n't", True),
        ("it 's", True),
        ("it 're", True),
        ("it 'd", True),
        ("it 'll", True),
        ("the t", True),
        ("it 've", False),
        ("it'll", False),
        # Only single spaces separate words.
        ("the  dog", True),
        ("the\tdog", False),
        ("the\ndog", False),
        # The filter has no rule for links.
        ("http", False),
    ],
)
def test_the_published_filter_of_glue(text, kept):
    assert within("as_published", text) is kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the dog runs", True),
        ("the cat runs", False),
        ("The dog runs.", True),
        ("Rex runs.", False),
        ("the dog Rex runs", True),
        ('"The dog runs."', True),
        # The capital of a sentence's first word does not make a name.
        ("The dog runs. Xylophones runs.", False),
        ("The dog runs. The dog runs.", True),
        # Hyphens separate words. A name with a suffix leaves the suffix.
        ("free-fall", True),
        ("the Rex-free dog", True),
        ("the Rex-made dog", False),
        # Symbols separate words, too.
        ("the dog / a dog % … ‘dog’", True),
        ("the\tdog\nruns", True),
        # Contractions are looked up by their stem.
        ("don't", True),
        ("isn't", True),
        ("isn’t", True),
        ("it'll", True),
        ("it've", True),
        # Numerals and ordinals are never looked up.
        ("the 2nd and 3rd dog was born in the 1990s", True),
        ("1,000.5", True),
        # Links reject the example.
        ("the dog http://dog", False),
        ("the dog HTTP://dog", False),
    ],
)
def test_the_corrected_filter_of_glue(text, kept):
    assert within("corrected", text) is kept


def test_texts_are_joined_so_that_only_the_very_first_token_of_a_pair_is_looked_up_as_published():
    assert within("as_published", "the dog", "Rex runs") is True
    assert within("as_published", "Rex runs", "the dog") is False


def test_the_corrected_filter_looks_up_the_first_word_of_every_text():
    assert within("corrected", "the dog", "Rex runs") is False
    assert within("corrected", "the dog", "The dog Rex runs") is True


def test_an_empty_text_lies_within_every_vocabulary():
    assert within("as_published", "") and within("corrected", "")


@pytest.mark.parametrize("word", ["TRUE", "true"])
def test_words_that_a_spreadsheet_capitalised_are_never_met_as_published(word):
    settings = VocabularyFilter(("sentence",), "as_published")
    assert make_filter(settings, frozenset({"it", "is", "TRUE"}))([f"{word} it is"]) is False
