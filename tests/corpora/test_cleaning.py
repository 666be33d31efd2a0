"""The cleaning against golden strings, against the published right-to-left procedure, and by its properties."""

import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.corpora.cleaning import (
    BABYLM_PUBLISHED_RULES,
    BABYLM_RULES,
    BNC_RULES,
    clean,
    clean_minimal,
    collapse_spaces,
    join_contractions,
    repair_quotes,
    repair_spaces,
)
from hatchery.corpora.typography import normalise_punctuation, repair_encoding

SPACED = st.text(alphabet=" .,;:?!…’‘()[]{}%$£a1B\n", max_size=24)


def inserts(text: str, i: int) -> bool:
    """Rules 1-6: whether a space goes behind position `i`."""
    current, following, previous = text[i], text[i + 1], text[i - 1] if i else ""
    opens = following in "‘([{"
    if current == "." and (following.isupper() or opens):
        return True
    if i > 2 and text[i - 2 : i + 1] == "..." and not following.isspace():
        return True
    if current == "," and (following.isalpha() or opens):
        return True
    if current == ":":
        return opens or (following.isalnum() and not (following.isnumeric() and previous.isnumeric()))
    return current in "?!…’;)]}%" and (following.isalnum() or opens)


def deletes(text: str, i: int) -> bool:
    """Rules 8-10: whether the space at position `i` goes."""
    previous, following = text[i - 1] if i else "", text[i + 1]
    if text[i] != " ":
        return False
    if following in ".;:?!…,’)]":
        return True
    return i > 0 and ((previous in "$£€" and following.isnumeric()) or (previous.isnumeric() and following == "%"))


def right_to_left(text: str) -> str:
    """The whitespace repair as LTG-BERT's reference describes it (section 1.6 a), one edit at a time."""
    text = collapse_spaces(text).strip()
    for i in range(len(text) - 2, -1, -1):
        if i + 1 >= len(text):
            continue
        if inserts(text, i):
            text = text[: i + 1] + " " + text[i + 1 :]
        elif text[i] in "([{" and text[i + 1] == " ":
            text = text[: i + 1] + text[i + 2 :]
        elif deletes(text, i):
            text = text[:i] + text[i + 1 :]
    return text


@given(SPACED)
def test_space_repair_equals_the_published_right_to_left_procedure(text: str) -> None:
    assert repair_spaces(text) == right_to_left(text)


def test_every_stage_gives_the_golden_strings(golden_directory: Path) -> None:
    lines = (golden_directory / "babylm" / "clean_vectors.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 329
    for line in lines:
        golden = json.loads(line)
        text = golden["input"]
        assert repair_spaces(text, space_before_brace=True) == golden["after_whitespace"]
        assert join_contractions(golden["after_whitespace"], " ,.") == golden["after_clitics"]
        assert repair_quotes(golden["after_clitics"]) == golden["after_quotes"]
        assert normalise_punctuation(golden["after_quotes"]) == golden["after_moses"]
        assert clean(text, BABYLM_PUBLISHED_RULES) == golden["full"]
        assert clean(text, BNC_RULES) == golden["bnc"]
        assert clean_minimal(text) == golden["minimal"]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("it costs $ 5 or 50 % now", "it costs $5 or 50% now"),
        ('He said ,"hello world",and left.', 'He said, "hello world," and left.'),
        ("Wait ...what ?No !", "Wait... what? No!"),
        ("at 12:30 or 12 : 30 ; see:this", "at 12:30 or 12: 30; see: this"),
        ("(see[1])and so", "(see[1]) and so"),
        ("A.B. Smith U.S.A", "A. B. Smith U. S. A"),
        ("e.g.this 3.14 and 3.Next", "e.g.this 3.14 and 3. Next"),
        ("‘Hello,’he said.‘Fine’", "'Hello,' he said. 'Fine'"),
        ("do n't go ; I 'm ok , we 've", "don't go; I'm ok, we 've"),
        ("a — b – c", "a - b - c"),
        ("foo { x }", "foo {x }"),
        ("Tom’s", "Tom' s"),
    ],
)
def test_bnc_cleaning_gives_the_vectors_of_the_reference(text: str, cleaned: str) -> None:
    assert clean(text, BNC_RULES) == cleaned


def test_corrected_rules_keep_a_typographic_apostrophe_inside_its_word() -> None:
    assert clean("It’s Tom’s , don’t", BABYLM_RULES) == "It's Tom's, don't"


def test_quotes_stay_when_their_pairing_is_doubtful() -> None:
    for text in ('one " alone', 'say "" twice', 'a "b" "c" d', 'x" y"z x" y"z'):
        assert repair_quotes(text) == text


def test_encoding_repair_mends_mojibake_entities_and_ligatures() -> None:
    assert repair_encoding("cafÃ© itâ€™s ﬁsh &amp;amp; “x”") == 'café it\'s fish & "x"'
    assert repair_encoding("3 < 4 &amp; 5") == "3 < 4 &amp; 5"


@given(st.text(alphabet=string.ascii_letters + string.digits + " ", max_size=60))
def test_plain_words_are_only_stripped_and_collapsed(text: str) -> None:
    assert clean(text, BABYLM_RULES) == " ".join(text.split())


@given(st.text(max_size=80))
def test_cleaning_never_leaves_double_spaces_or_outer_spaces(text: str) -> None:
    cleaned = clean(text, BABYLM_RULES)
    assert cleaned == cleaned.strip()
    assert "  " not in cleaned.replace("\u3000", "")
