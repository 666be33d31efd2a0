"""Vocabularies: counted utterances, order, rejected words, released lists, the comparison, damaged input."""

import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projects import rows_of

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, SourceError
from hatchery.settings.base import RefusedError
from hatchery.vocabulary.settings import VocabularySettings
from hatchery.vocabulary.word_lists import SUFFIXES, cleaned_words, rejection

HEADER = "id,gloss,num_tokens,speaker_role,target_child_age,collection_name\n"
APPENDED = ("okay", "gonna", "youre", "im", "wanna")
Register = Callable[..., Path]
Build = Callable[..., Path]


def words(folder: Path) -> list[tuple[str, int]]:
    return [(row["word"], int(row["frequency"])) for row in rows_of(folder / "vocabulary.csv")]


def test_utterances_are_dropped_by_age_tokens_role_and_collection(
    tmp_path: Path, register: Register, build: Build
) -> None:
    table = HEADER + "".join(
        f"{number},{line}\n"
        for number, line in enumerate(
            [
                "one,1,Mother,2190,Eng-NA",
                "two,1,Mother,2190.5,Eng-NA",
                "three,1,Mother,NA,Eng-NA",
                "four,0,Mother,700,Eng-NA",
                "five,1,Target_Child,700,Eng-NA",
                "six,1,Child,700,Eng-NA",
                "seven,1,Father,700,Eng-UK",
                "eight,1,Father,,NA",
                "NA,1,Father,700,Eng-NA",
            ]
        )
    )
    folder = build(tmp_path / "v", register("childes", {"a.csv": table}))
    assert words(folder) == [("one", 1), ("three", 1), ("eight", 1)]
    measures = read_manifest(folder / "manifest.json").measures
    assert {key: value for key, value in measures.items() if key.startswith("dropped")} == {
        "dropped_older_child": 1,
        "dropped_no_tokens": 1,
        "dropped_child_speech": 2,
        "dropped_other_collection": 1,
        "dropped_no_text": 1,
    }
    assert (measures["rows"], measures["utterances"]) == (9, 3)


def test_words_stand_by_first_occurrence_with_the_appended_ones_last(
    tmp_path: Path, register: Register, build: Build
) -> None:
    table = HEADER + '1,okay mama zebra dog mama,5,Mother,NA,NA\n2,"dog, gonna",2,Mother,NA,NA\n'
    source = register("childes", {"a.csv": table})
    dictionary = register("words", {"en": "dog\nzebra\n", "README": "mama\n"})
    folder = build(tmp_path / "v", source, dictionary, appended_words=APPENDED)
    assert words(folder) == [("zebra", 1), ("dog", 2), ("okay", 1), ("gonna", 1), ("youre", 0), ("im", 0), ("wanna", 0)]
    assert rows_of(folder / "rejected.csv") == [
        {"word": "mama", "frequency": "2", "reason": "neither_in_dictionary_nor_suffix"}
    ]
    measures = read_manifest(folder / "manifest.json").measures
    counted = {key: measures[key] for key in ("words", "tokens", "rejected_words", "rejected_tokens")}
    assert counted == {"words": 7, "tokens": 5, "rejected_words": 1, "rejected_tokens": 2}


def test_published_reading_repeats_the_damage_of_spreadsheet_and_pandas(
    tmp_path: Path, register: Register, build: Build
) -> None:
    source = register("childes", {"a.csv": HEADER + "1,true nan dog,3,Mother,NA,NA\n"})
    assert words(build(tmp_path / "a", source, reading="as_published")) == [("TRUE", 1), ("dog", 1)]
    assert words(build(tmp_path / "b", source)) == [("true", 1), ("nan", 1), ("dog", 1)]


def test_a_released_list_is_taken_as_it_is_or_repaired(tmp_path: Path, register: Register, build: Build) -> None:
    source = register("list", {"list.csv": ",word,frequency\r\n0,dog,7\r\n1,TRUE,5\r\n2,nan,3\r\n3,t\ufffdged,1\r\n"})
    published = build(tmp_path / "a", source, kind="word_list", reading="as_published")
    assert words(published) == [("dog", 7), ("TRUE", 5), ("t\ufffdged", 1)]
    assert rows_of(published / "rejected.csv")[0]["reason"] == "missing_value_for_pandas"
    corrected = build(tmp_path / "b", source, kind="word_list")
    assert words(corrected) == [("dog", 7), ("true", 5), ("nan", 3)]
    assert rows_of(corrected / "rejected.csv")[0]["reason"] == "replacement_character"
    # A repeated word keeps its first frequency.
    again = register("again", {"list.csv": "word,frequency\ndog,7\ncat,2\ndog,4\n"})
    folder = build(tmp_path / "c", again, kind="word_list")
    assert words(folder) == [("dog", 7), ("cat", 2)]
    assert rows_of(folder / "rejected.csv") == [{"word": "dog", "frequency": "4", "reason": "repeated"}]


def test_columns_and_encoding_of_a_list_are_those_of_the_settings(
    tmp_path: Path, register: Register, build: Build
) -> None:
    table = "word,frequency,form,n\nwrong,9,caf\u00e9,7\nworse,8,dog,2\n".encode("latin-1")
    source = register("list", {"list.csv": table})
    columns = {"kind": "word_list", "encoding": "latin-1", "word_column": "form"}
    assert words(build(tmp_path / "a", source, frequency_column="n", **columns)) == [("caf\u00e9", 7), ("dog", 2)]
    assert words(build(tmp_path / "b", source, frequency_column=None, **columns)) == [("caf\u00e9", 0), ("dog", 0)]
    # Transcripts, their dictionary and the published list are read in this encoding, too.
    speech = register("childes", {"a.csv": (HEADER + "1,na\u00efve dog cat,3,Mother,NA,NA\n").encode("latin-1")})
    dictionary = register("words", {"en": "na\u00efve\ndog\n".encode("latin-1")})
    released = register("released", {"list.csv": "word,frequency\nna\u00efve,1\n".encode("latin-1")})
    folder = build(tmp_path / "c", speech, dictionary, released, encoding="latin-1", reading="as_published")
    assert words(folder) == [("na\u00efve", 1), ("dog", 1)]
    assert {row["measure"]: row["value"] for row in rows_of(folder / "comparison.csv")}["found"] == "1"


def test_the_comparison_counts_words_and_frequencies(tmp_path: Path, register: Register, build: Build) -> None:
    source = register("childes", {"a.csv": HEADER + "1,dog dog cat pig cow,5,Mother,NA,NA\n"})
    released = register("released", {"list.csv": "word,frequency\ndog,2\ncat,5\npig,0\nhen,1\n"})
    folder = build(tmp_path / "v", source, None, released)
    found = {row["measure"]: int(row["value"]) for row in rows_of(folder / "comparison.csv")}
    assert found == {
        "released_words": 4,
        "built_words": 4,
        "found": 3,
        "missing": 1,
        "extra": 1,
        "equal_frequency": 1,
        "lower_frequency": 1,
        "higher_frequency": 1,
        "released_tokens": 8,
        "built_tokens": 5,
        "released_tokens_of_found_words": 7,
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", r"a\.csv: line 1: the table is empty"),
        (HEADER + "1,dog,1,Mother,old,NA\n", r"a\.csv: line 2: target_child_age: expected a number or NA, got 'old'"),
        (HEADER + "1,dog,1\n", r"a\.csv: line 2: the number of cells in this row differs"),
        (HEADER + "1,...,1,Mother,NA,NA\n", "all words were rejected"),
    ],
)
def test_damaged_tables_are_one_error_that_names_the_place(
    tmp_path: Path, register: Register, build: Build, table: bytes | str, message: str
) -> None:
    source = register("childes", {"a.csv": table, "b.txt": "x"})
    with pytest.raises(SourceError, match=message):
        build(tmp_path / "v", source)
    assert not list((tmp_path / "v").iterdir())


def test_damaged_lists_are_one_error_that_names_the_place(tmp_path: Path, register: Register, build: Build) -> None:
    source = register("list", {"list.csv": "word,frequency\ndog,many\n"})
    with pytest.raises(SourceError, match=r"list\.csv: line 2: frequency: expected a whole number, got 'many'"):
        build(tmp_path / "v", source, kind="word_list")


def test_a_dictionary_beside_a_word_list_is_refused(tmp_path: Path, register: Register, build: Build) -> None:
    source = register("list", {"list.csv": "word,frequency\ndog,1\n"})
    with pytest.raises(ConfigError, match="dictionary"):
        build(tmp_path / "v", source, source, kind="word_list")


def test_real_transcripts_give_released_words_only_and_reject_no_released_word(
    tmp_path: Path, real_data: Path, register: Register, build: Build
) -> None:
    source = register("childes", real_data / "aochildes.zip")
    dictionary = register("words", real_data / "nltk" / "words.zip")
    released = register("released", real_data / "aochildes_word_frequency.csv")
    folder = build(tmp_path / "v", source, dictionary, released, reading="as_published", appended_words=APPENDED)
    found = {row["measure"]: int(row["value"]) for row in rows_of(folder / "comparison.csv")}
    # The source has 21 of the 37 corpora, so it has a subset of the words, and no frequency is higher than in all 37.
    assert found["found"] == found["built_words"] > 8000
    assert found["extra"] == found["higher_frequency"] == 0
    # The dictionary is the study's: it rejects no word of the released list.
    known = {row["word"] for row in rows_of(real_data / "aochildes_word_frequency.csv")}
    rejected = {row["word"] for row in rows_of(folder / "rejected.csv")}
    assert rejected & known == {"nan"} & rejected
    assert len(rejected) > 2000


DICTIONARY = frozenset({"dog", "have", "to"})


def cleaned(text: str, reading: str) -> list[str]:
    return list(cleaned_words(text, reading))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "as_published", "corrected"),
    [
        ("What's that", ["whats", "that"], ["whats", "that"]),
        ("don’t", ["don’t"], ["dont"]),
        ("have_to bye_bye", ["haveto", "byebye"], ["have", "to", "bye", "bye"]),
        ("choo+choo x-ray", ["choochoo", "xray"], ["choo", "choo", "x", "ray"]),
        ("Room 12b", ["room", "b"], ["room", "b"]),
        ("a  b", ["a", "b"], ["a", "b"]),
        ("tab\tbed", ["tab\tbed"], ["tabbed"]),
        ("50% R&B {oh} ~ah", ["%", "r&b", "{oh}", "~ah"], ["rb", "oh", "ah"]),
        (
            'what? (no): a/b; "c" [d] e^f `g`',
            ["what", "no", "ab", "c", "d", "ef", "g"],
            ["what", "no", "ab", "c", "d", "ef", "g"],
        ),
        ("123 - ...", [], []),
    ],
)
def test_words_of_an_utterance(text: str, as_published: list[str], corrected: list[str]) -> None:
    assert cleaned(text, "as_published") == as_published
    assert cleaned(text, "corrected") == corrected


def test_published_class_deletes_the_range_from_apostrophe_to_backtick_and_four_signs_more() -> None:
    kept = [
        sign for sign in string.printable if sign not in string.ascii_letters + " " and cleaned(sign, "as_published")
    ]
    assert sorted(kept) == sorted("%&{|}~\t\n\r\x0b\x0c")


@given(st.text())
def test_published_words_hold_no_sign_that_the_class_deletes(text: str) -> None:
    for word in cleaned(text, "as_published"):
        assert word and not set(word) & set("'()*+,-./0123456789:;<=>?@[\\]^_`!#$\" ")


@given(st.text())
def test_corrected_words_hold_nothing_else_of_ascii_than_lower_case_letters(text: str) -> None:
    for word in cleaned(text, "corrected"):
        assert word and all(sign in string.ascii_lowercase for sign in word if sign.isascii())


@pytest.mark.parametrize("word", ["dog", *(f"xq{suffix}" for suffix in SUFFIXES)])
def test_words_of_the_dictionary_or_with_a_suffix_enter(word: str) -> None:
    assert rejection(word, DICTIONARY, "as_published") is None
    assert rejection(word, DICTIONARY, "corrected") is None


def test_other_words_are_rejected_with_a_reason() -> None:
    assert rejection("mama", DICTIONARY, "as_published") == "neither_in_dictionary_nor_suffix"
    assert rejection("xxx", None, "corrected") == "unintelligible"
    assert rejection("déjàs", DICTIONARY, "corrected") == "other_characters"


def test_published_reading_keeps_damaged_words_and_codes_that_pass_the_rule() -> None:
    assert rejection("\ufffdves", DICTIONARY, "as_published") is None
    assert rejection("xxx", None, "as_published") is None


def test_without_a_dictionary_every_word_enters() -> None:
    assert rejection("mama", None, "corrected") is None


def test_published_reading_lets_two_letters_with_an_s_first_enter() -> None:
    assert [rejection(word, DICTIONARY, "as_published") for word in ("su", "sk")] == [None, None]
    assert rejection("su", DICTIONARY, "corrected") == "neither_in_dictionary_nor_suffix"
    assert rejection("suq", DICTIONARY, "as_published") == "neither_in_dictionary_nor_suffix"


def test_words_cannot_be_appended_to_a_word_list() -> None:
    with pytest.raises(RefusedError, match=r"got \['okay'\], which cannot be combined with `kind: word_list`"):
        VocabularySettings(kind="word_list", appended_words=("okay",))
