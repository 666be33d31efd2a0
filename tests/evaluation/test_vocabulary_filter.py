import pytest

from hatchery.evaluation.tasks.settings import VocabularyFilter
from hatchery.evaluation.tasks.texts import make_filter

WORDS = "the a dog runs dont freefall free fall was born in is st th percent i nothing and it"
VOCABULARY = frozenset(WORDS.split())


def within(reading, *texts):
    return make_filter(VocabularyFilter(("sentence",), reading), VOCABULARY)(texts)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the dog runs", True),
        ("the cat runs", False),
        # The very first token is looked up in lower case, later ones with a capital are names.
        ("The dog runs", True),
        ("Rex runs", False),
        ("the dog Rex runs", True),
        ("the iPhone runs", True),
        ("the dog runs . Xylophones runs", True),
        # Listed symbols are deleted wherever they stand.
        ("“the” dog; runs!? (a_dog) @the #dog $ & — -", False),
        ("“the” dog; runs!? (dog) @the #dog $ & — -", True),
        ("free-fall", True),
        ("free - fall", True),
        # Others make the example fail.
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
        # Digits are deleted, so numerals alone leave nothing.
        ("the dog was born in 1999", True),
        ("1st 4th", True),
        ("2nd", False),
        ("3rd", False),
        # Contractions: the joined form, or a leftover piece.
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
        # Only single blanks divide.
        ("the  dog", True),
        ("the\tdog", False),
        ("the\ndog", False),
        # No rule for links.
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
        # A sentence's first word is no name because of its capital.
        ("The dog runs. Xylophones runs.", False),
        ("The dog runs. The dog runs.", True),
        # Hyphens separate; a name with a tail leaves the tail.
        ("free-fall", True),
        ("the Rex-free dog", True),
        ("the Rex-made dog", False),
        # Symbols separate too.
        ("the dog / a dog % … ‘dog’", True),
        ("the\tdog\nruns", True),
        # Contractions are known by their stem.
        ("don't", True),
        ("isn't", True),
        ("isn’t", True),
        ("it'll", True),
        ("it've", True),
        # Numerals and ordinals are never looked up.
        ("the 2nd and 3rd dog was born in the 1990s", True),
        ("1,000.5", True),
        # Links reject.
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
