"""Typography: punctuation and encodings, by hand and against the libraries on arbitrary text."""

import html
import re
import zipfile
from pathlib import Path

import ftfy
import pytest
from ftfy.badness import is_bad
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hatchery.corpora.typography import (
    CURLY_QUOTES,
    SAFE_CHARACTERS,
    normalise_punctuation,
    repair_encoding,
    repair_mojibake,
)

PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
PUNCTUATION = st.text(alphabet="\r\n ()%:;.,!?\"'„“”–—´‘’‚…«»\u00a0`~n?ºCcm19٣²aZ", max_size=20)
TROUBLED = st.text(
    alphabet=f"{SAFE_CHARACTERS}{''.join(CURLY_QUOTES)}ÃÂâ€™&amp;lt<>\x1b[m\r\n\x85\u2028ﬁＡ\u0301e \ud83d", max_size=24
)


@pytest.fixture(scope="module")
def moses() -> object:
    return pytest.importorskip("sacremoses").MosesPunctNormalizer(lang="en", penn=False)


@settings(max_examples=1500)
@given(text=PUNCTUATION)
@example(text="´´’´´")
@example(text="\u00a0«\u00a0»\u00a0")
@example(text="7\u00a0ºC nº\u00a05\u00a0cm 20\u00a0000")
def test_normaliser_equals_sacremoses_on_the_characters_of_its_rules(moses: object, text: str) -> None:
    assert normalise_punctuation(text) == moses.normalize(text)  # type: ignore[attr-defined]


@settings(max_examples=400)
@given(text=st.text(max_size=200))
def test_normaliser_equals_sacremoses_on_arbitrary_text(moses: object, text: str) -> None:
    assert normalise_punctuation(text) == moses.normalize(text)  # type: ignore[attr-defined]


@settings(max_examples=1500)
@given(TROUBLED)
def test_repair_equals_ftfy_on_the_characters_that_it_treats(text: str) -> None:
    assert repair_encoding(text) == ftfy.fix_text(text)


@settings(max_examples=400)
@given(st.text(max_size=200))
def test_repair_equals_ftfy_on_arbitrary_text(text: str) -> None:
    assert repair_encoding(text) == ftfy.fix_text(text)


def straightened(text: str) -> str:
    return text.translate(str.maketrans(CURLY_QUOTES))


def test_ftfy_leaves_the_safe_characters_alone_between_any_two_ascii_characters() -> None:
    around = [left + right for left in PRINTABLE.replace("&", "") + "\t" for right in PRINTABLE.replace("&", "") + "\t"]
    for character in [*SAFE_CHARACTERS, *CURLY_QUOTES]:
        text = "".join(left + character + right for left, right in around)
        assert not is_bad(text), character
        assert ftfy.fix_text(text) == straightened(text) == repair_encoding(text)


@pytest.mark.parametrize("between", [" ", "a", "Z", "1", ".", "\n", "\t"])
def test_ftfy_leaves_two_safe_characters_alone_with_one_ascii_character_between(between: str) -> None:
    for first in [*SAFE_CHARACTERS, *CURLY_QUOTES]:
        text = "".join(f"{first}{between}{second}{between}" for second in [*SAFE_CHARACTERS, *CURLY_QUOTES])
        for line in text.split("\n"):
            assert not is_bad(line), (first, between)
        assert ftfy.fix_text(text) == straightened(text) == repair_encoding(text)


def test_ftfy_leaves_printable_ascii_without_entities_alone() -> None:
    text = "".join(left + right for left in PRINTABLE for right in PRINTABLE).replace("&", "")
    assert ftfy.fix_text(text) == text == repair_encoding(text)


def test_repair_mends_mojibake_entities_and_ligatures() -> None:
    assert repair_encoding("cafÃ© itâ€™s ﬁsh &amp;amp; “x”") == 'café it\'s fish & "x"'


def test_repair_keeps_entities_from_the_first_line_with_a_literal_bracket_on() -> None:
    assert repair_encoding("1 &amp; 2\n3 < 4 &amp; 5\n6 &amp; 7") == "1 & 2\n3 < 4 &amp; 5\n6 &amp; 7"


def test_side_by_side_safe_characters_are_left_to_the_library() -> None:
    assert repair_encoding("é££") == ftfy.fix_text("é££") == "飣"


@pytest.mark.parametrize(
    ("garbled", "written"),
    [
        ("schÃ¶n", "schön"),
        ("â€œNoâ€\x9d", "“No”"),
        ("a \x96 b", "a – b"),
        ("l\u0092Ã©tÃ©", "l’été"),
        ("a\0b", "ab"),
        ("IRMÃ” schÃ¶n", "IRMÔ schön"),
    ],
)
def test_wrong_decodings_are_undone(garbled: str, written: str) -> None:
    assert repair_mojibake(garbled) == written


@pytest.mark.parametrize(
    "text",
    [
        "„Die Straße“, ‚so‘, “no”, l’été, «\u00a0À la\u202f», ‹a›, — …",
        "ﬁn ﬂ ½ ² Ａ１ ｶﾞ e\u0301 \u200b\u200d \u00ad \u2028 \x0b \x1b[31m \ufffd",
        "“A IRMÃ” e «PARÃ»",
        "“A MAÇÃ”",
        "&amp; &szlig; <i> &lt;",
        "  zwei  Leerzeichen\t und\u00a0geschützt ",
        "日本語。العربية؟ Ελλάδα· НЕТ Ħ Ő Ş Ğ İ",
    ],
)
def test_what_was_rightly_decoded_stays(text: str) -> None:
    assert repair_mojibake(text) == text


def test_typographic_text_of_five_languages_is_taken_for_nothing_else(real_data: Path) -> None:
    marks = [
        "„%s“",
        "“%s”",
        "«\u00a0%s\u00a0»",
        "« %s »",
        "»%s«",
        "‚%s‘",
        "‘%s’",
        "‹%s›",
        "–%s—",
        "%s…",
        "’%s’",
        "(%s)",
    ]
    words = set()
    with zipfile.ZipFile(real_data / "nltk/genesis.zip") as archive:
        for language, encoding in [
            ("german", "latin-1"),
            ("french", "latin-1"),
            ("finnish", "latin-1"),
            ("swedish", "latin-1"),
            ("portuguese", "utf-8"),
        ]:
            text = html.unescape(archive.read(f"genesis/{language}.txt").decode(encoding))
            words |= set(re.findall(r"[^\W\d_]+", text))
    words = {form for word in words if not word.isascii() for form in (word, word.upper())}
    assert len(words) > 5000
    changed = {mark % word for word in words for mark in marks if repair_mojibake(mark % word) != mark % word}
    assert changed == set()
