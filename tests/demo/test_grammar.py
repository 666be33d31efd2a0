"""The grammar: forms that agree, and overrides that break exactly one thing."""

import random
from itertools import pairwise

import pytest

from demo.documents import MAKERS
from demo.grammar import Clause, NounPhrase, noun_phrase, realise, sentence, text_of
from demo.lexicon import (
    NOUNS,
    REFLEXIVE_PRONOUNS,
    VERBS,
    Noun,
    Number,
    Verb,
)

EAT = Verb("eat", "eats", "ate", "eaten", "eating", ("fruit",))
APPLE = Noun("apple", "apples", "fruit")
CHILD = Noun("child", "children", "person", irregular=True)


def said(number: Number = "singular", **features: object) -> str:
    subject = noun_phrase("the", CHILD, number)
    clause = Clause(subject, EAT, noun_phrase("a", APPLE, "singular").words, **features)  # type: ignore[arg-type]
    return text_of(sentence(realise(clause), "?" if features.get("question") else "."))


@pytest.mark.parametrize(
    ("features", "text"),
    [
        ({}, "The child eats an apple."),
        ({"number": "plural"}, "The children eat an apple."),
        ({"tense": "past"}, "The child ate an apple."),
        ({"tense": "perfect", "adverb": "already"}, "The child has already eaten an apple."),
        ({"tense": "progressive", "number": "plural"}, "The children are eating an apple."),
        ({"negated": True}, "The child does not eat an apple."),
        ({"negated": True, "contracted": True}, "The child doesn't eat an apple."),
        ({"negated": True, "tense": "past", "adverb": "ever"}, "The child did not ever eat an apple."),
        ({"adverb": "never"}, "The child never eats an apple."),
        ({"question": True, "number": "plural"}, "Do the children eat an apple?"),
        ({"question": True, "tense": "perfect", "adverb": "ever"}, "Has the child ever eaten an apple?"),
        ({"question": True, "negated": True, "contracted": True}, "Doesn't the child eat an apple?"),
        ({"agreement": "plural"}, "The child eat an apple."),
        ({"tense": "perfect", "verb_form": "past"}, "The child has ate an apple."),
        ({"tense": "past", "verb_form": "participle"}, "The child eaten an apple."),
    ],
)
def test_a_clause_is_realised_with_its_features(features: dict, text: str) -> None:
    assert said(**features) == text


def test_the_article_fits_the_word_behind_it() -> None:
    assert noun_phrase("a", APPLE, "singular", ["red"]).words == ("a", "red", "apple")
    assert noun_phrase("a", CHILD, "singular", ["ugly"]).words == ("an", "ugly", "child")


def test_a_broken_noun_form_leaves_the_number_of_the_phrase() -> None:
    phrase = noun_phrase("these", APPLE, "plural", noun_number="singular")
    assert phrase == NounPhrase(("these", "apple"), "plural")


def test_the_vocabulary_has_a_few_hundred_words_and_no_ambiguous_forms_among_nouns() -> None:
    forms = [form for noun in NOUNS for form in (noun.singular, noun.plural)]
    assert len(set(forms)) == len(forms)
    rng = random.Random(0)
    words = {
        word.lower() for make in MAKERS.values() for _ in range(600) for words in make(rng).sentences for word in words
    }
    assert 400 <= len(words) <= 600
    assert {form for verb in VERBS for form in (verb.third, verb.past)} <= words


DETERMINED = {"this": 0, "that": 0, "every": 0, "each": 0, "a": 0, "an": 0} | dict.fromkeys(
    ("these", "those", "many", "few", "several", "two", "three"), 1
)


def test_documents_hold_no_broken_agreement() -> None:
    """An independent check by surface patterns: determiner before noun, auxiliary behind subject, reflexives."""
    number_of = {noun.singular: 0 for noun in NOUNS} | {noun.plural: 1 for noun in NOUNS}
    rng = random.Random(1)
    checked = 0
    for make in MAKERS.values():
        for _ in range(300):
            for words in make(rng).sentences:
                lower = [word.lower() for word in words]
                for determiner, noun in pairwise(lower):
                    if determiner in DETERMINED and noun in number_of:
                        assert DETERMINED[determiner] == number_of[noun], words
                        checked += 1
                if lower[0] == "the" and lower[1] in number_of and lower[2] in ("is", "has", "are", "have"):
                    assert (lower[2] in ("are", "have")) == bool(number_of[lower[1]]), words
                    checked += 1
                if "any" in lower or "ever" in lower:
                    assert words[-1] == "?" or {"not", "n't", "no", "never"} & set(lower), words
                if REFLEXIVE_PRONOUNS["plural"] in lower and "that" not in lower:
                    assert lower[1] != "has", words
    assert checked > 3000
