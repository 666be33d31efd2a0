"""A card's measures of texts: words, the vocabulary, lengths, and the shown texts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.views.cards.measure_corpus import SampleChoice, excerpt, facts_of_lengths, shortened
from hatchery.views.cards.vocabulary import PieceTable, Vocabulary, count_pre_tokens, facts_of, running_word


@pytest.mark.parametrize(
    ("piece", "word"),
    [
        ("Cat", "cat"),
        ("“Don’t!”", "don’t"),
        ("(well-known),", "well-known"),
        ("--", ""),
        ("#", ""),
        ("3.14", "3.14"),
        ("$5", "5"),
        ("[UNK]", ""),
        ("[UNK]'s", "s"),
        ("[TAB]Hello", "hello"),
        ("\u200bword\ufeff", "word"),
        ("ÉTÉ", "été"),
        # A vowel sign is part of its word, not punctuation.
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_a_running_word_is_the_piece_without_what_surrounds_it(piece: str, word: str) -> None:
    assert running_word(piece) == word


@pytest.mark.parametrize(
    ("text", "pre_tokens"),
    [
        ("I don't know, they're 25", "I|do|n't|know|,|they|'re|2|5"),
        ("£1,000 (50%)", "£|1|,|0|0|0|(|5|0|%|)"),
        ("wait... ### x", "wait|...|###|x"),
        ("it's 'sad'", "it|'s|'|sad|'"),
        ("Shouldn't've", "Should|n't|'ve"),
        ("x_y", "x_y"),
        ("SHE'S", "SHE|'|S"),
        ("YOU'RE", "YOU|'RE"),
        ("[UNK] said", "[UNK]|said"),
        ("[unk] said", "[unk]|said"),
        ("[UNK]x", "[|UNK|]|x"),
    ],
)
def test_pre_tokens_are_those_of_the_published_tokenizer(text: str, pre_tokens: str) -> None:
    assert sum(map(count_pre_tokens, text.split())) == len(pre_tokens.split("|"))


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40))
def test_a_word_neither_begins_nor_ends_with_punctuation_and_stays_the_same(text: str) -> None:
    for piece in text.split():
        assert count_pre_tokens(piece) >= 1
        word = running_word(piece)
        if word and word.lower() == word:
            assert running_word(word) == word


@given(st.lists(st.text(min_size=1, max_size=4), max_size=60))
def test_a_small_table_of_pieces_changes_no_result(pieces: list[str]) -> None:
    table = PieceTable(limit=3)
    for start in range(0, len(pieces), 7):
        some = pieces[start : start + 7]
        assert table.words(some) == [word for word in map(running_word, some) if word]
        assert table.pre_tokens(some) == sum(map(count_pre_tokens, some))


WORDS = st.lists(st.sampled_from("abcdefghij"), max_size=200)


@given(WORDS, st.integers(min_value=1, max_value=30), st.integers(min_value=1, max_value=3))
def test_words_are_counted_however_the_text_is_cut_and_shared_by_sources(words: list[str], size: int, n: int) -> None:
    vocabularies = [Vocabulary(max_types=1000) for _ in range(n)]
    for start in range(0, len(words), size):
        vocabularies[start % n].add(words[start : start + size])
    facts, counted = facts_of(vocabularies, top=3), Counter(words)
    assert (facts.running_words, facts.types, facts.complete) == (len(words), len(counted), True)
    assert facts.hapaxes == sum(1 for count in counted.values() if count == 1)
    assert facts.top == sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:3]


def test_measuring_stops_at_the_limit_of_types_and_says_on_how_many_words() -> None:
    vocabulary = Vocabulary(max_types=3)
    vocabulary.add(["a", "b", "a"])
    vocabulary.add(["c", "d"])
    vocabulary.add(["e"] * 100)
    facts = facts_of([vocabulary, Vocabulary(max_types=3)], top=1)
    assert (facts.complete, facts.running_words, facts.types) == (False, 5, 4)


@given(st.lists(st.integers(min_value=0, max_value=5000)))
def test_quantiles_are_those_of_the_sorted_list(values: list[int]) -> None:
    known = sorted(value for value in values if value)
    facts = facts_of_lengths(Counter(values))
    if not known:
        assert facts is None
        return
    assert facts is not None
    assert facts.number == len(known)
    assert facts.median == known[(len(known) + 1) // 2 - 1]
    assert facts.percentile_95 == known[-(-95 * len(known) // 100) - 1]
    assert (facts.longest, facts.mean) == (known[-1], pytest.approx(sum(known) / len(known)))


@given(st.permutations([f"d{i}" for i in range(12)]))
def test_the_choice_depends_on_names_only(order: list[str]) -> None:
    choice, whole = SampleChoice(3, 50), SampleChoice(100, 50)
    for doc_id in order:
        choice.offer(doc_id, "train", f"Text of {doc_id}.")
        whole.offer(doc_id, "train", f"Text of {doc_id}.")
    assert choice.chosen() == whole.chosen()[:3]
    assert len({sample.doc_id for sample in whole.chosen()}) == 12


def test_blank_documents_and_more_samples_than_documents_do_no_harm() -> None:
    choice = SampleChoice(5, 50)
    choice.offer("a", "train", " \n")
    choice.offer("b", "dev", "Yes.")
    assert [(s.doc_id, s.split, s.text) for s in choice.chosen()] == [("b", "dev", "Yes.")]
    none = SampleChoice(0, 50)
    none.offer("b", "dev", "Yes.")
    assert none.chosen() == []


def test_an_excerpt_begins_with_a_paragraph_and_ends_between_words() -> None:
    text = "First one.\nMore of it.\n\nSecond paragraph here.\n\nThird and last paragraph of this text."
    assert excerpt(text, 1, 30) == "Second paragraph here.\n\nThird …"
    assert excerpt(text, 3, 200) == text
    # The last paragraph alone would be too short.
    assert excerpt(text, 2, 50).startswith("Second")
    # The last paragraph has two characters, and exactly eight characters follow the start of the second paragraph.
    assert excerpt("aaaa\n\nbbbb\n\ncc", 2, 8) == "bbbb\n\ncc"


@pytest.mark.parametrize(
    ("text", "characters", "shown"),
    [("abcd\nefgh", 6, "abcd …"), ("abcd efgh", 6, "abcd …"), ("a bcdefghij", 8, "a bcdefg …"), ("abc\n", 4, "abc")],
)
def test_a_shown_text_ends_at_white_space_in_its_second_half(text: str, characters: int, shown: str) -> None:
    assert shortened(text, characters) == shown


@given(st.text(max_size=80), st.integers(min_value=20, max_value=60), st.integers(min_value=0))
def test_an_excerpt_is_never_longer_than_asked_for(text: str, characters: int, number: int) -> None:
    assert len(excerpt(text, number, characters)) <= characters + 2
    assert len(shortened(text, characters)) <= characters + 2
