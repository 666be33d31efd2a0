"""Text on terminals and in tables: harmless text of strangers, the progress of long work, durations."""

import csv
import io
import json
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery import progress
from hatchery.evaluation.minimal_pairs.decisions import Accuracy, accuracy_frame
from hatchery.evaluation.minimal_pairs.pairs import read_minimal_pairs
from hatchery.evaluation.scores import csv_of
from hatchery.evaluation.settings import SuiteSettings
from hatchery.progress import Progress
from hatchery.sanitize import csv_cell, csv_text, plain_name, visible
from hatchery.units import seconds_of

FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|x", "@SUM(A1)", '  =HYPERLINK("x")', "=\n1", "＝1+1")
HARMLESS = ("wh_island", "-", "--", "=", "+", "'tis", "", "a=b", "-0.25", "+1", "-3.5e-7", "1,000", "5 %")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe_once(text: str) -> None:
    assert csv_cell(text) == f"'{text}" == csv_cell(csv_cell(text))


@pytest.mark.parametrize("value", [*HARMLESS, -1, -0.5, None, True])
def test_names_signs_numbers_and_empty_fields_stay_as_they_are(value: object) -> None:
    assert csv_cell(value) is value


@given(st.text())
def test_a_cell_is_the_visible_text_with_an_apostrophe_in_front_at_most(text: str) -> None:
    lines = list(csv.reader(io.StringIO(csv_text(["x", "y"], [(text, "end")]), newline="")))
    assert lines[1:] == [[csv_cell(text), "end"]]
    shown = visible(text)
    assert csv_cell(text) == shown or (csv_cell(text) == f"'{shown}" and shown.lstrip()[0] in "=+-@＝＋－＠")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("\x9b2J", "\ufffd2J"),
        ("a\rb", "a\ufffdb"),
        ("gnp.\u202eexe", "gnp.\ufffdexe"),
        ("Größe, 日本, é", "Größe, 日本, é"),
    ],
)
def test_characters_that_steer_a_terminal_or_hide_become_one_sign(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown
    assert plain_name(f"={text}") == f"'={shown}"


def test_a_name_is_one_line_and_a_text_may_be_several() -> None:
    assert plain_name("a\nb\tc\u2028d\r\ne") == "a\ufffdb\ufffdc\ufffdd\ufffd\ufffde"
    assert visible("a\nb\tc\r\nd") == "a\nb\tc\nd"


def test_names_of_paradigms_are_harmless_from_the_moment_they_are_read(make_source) -> None:
    names = {"UID": "=cmd\x1b[2J", "linguistics_term": "@x", "field": "-y"}
    line = json.dumps({"sentence_good": "a b", "sentence_bad": "b a", **names})
    source = make_source({"+z\x1b.jsonl": f"{line}\n"})
    [pair] = read_minimal_pairs(source)
    assert (pair.paradigm, pair.phenomenon, pair.field) == ("'=cmd\ufffd[2J", "'@x", "'-y")
    [pair] = read_minimal_pairs(source, SuiteSettings(unit="file"))
    assert (pair.paradigm, pair.phenomenon) == ("'+z\ufffd", "'+z\ufffd")


def test_a_table_of_accuracies_holds_no_formula() -> None:
    fields = dict.fromkeys(Accuracy.__dataclass_fields__, 0)
    table = csv_of(accuracy_frame([Accuracy(**{**fields, "level": "paradigm", "name": "=1+1"})]))  # type: ignore[arg-type]
    assert table.splitlines()[1].split(",")[:2] == ["paradigm", "'=1+1"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which the test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(("found", "said"), [({}, ""), ({"loss": 5.5}, "training: 12 steps done in 0.0 s loss=5.5\n")])
def test_work_that_is_over_at_once_says_only_what_it_found(
    clock: list[float], found: dict[str, float], said: str
) -> None:
    stream = StringIO()
    with Progress(12, "training", "steps", stream=stream) as bar:
        bar.update(12, **found)
    assert stream.getvalue()[20:] == said


def test_long_work_is_announced_counted_and_ended(clock: list[float]) -> None:
    stream = StringIO()
    with Progress(40, "reading", "files", initial=10, stream=stream) as bar:
        for clock[0] in (0.5, 1.5, 2.0, 11.0):
            bar.update(5)
    assert [line[20:] for line in stream.getvalue().splitlines()] == [
        "reading: 30 files to do",
        "reading: 30/40 files (75 %), 1.8 files/s, 6 s left",
        "reading: 30 files done in 11.0 s",
    ]


def test_lines_come_less_often_the_longer_it_takes(clock: list[float]) -> None:
    stream = StringIO()
    with Progress(36_000, "training", "steps", stream=stream) as bar:
        for second in range(36_000):
            clock[0] = float(second)
            bar.update(1)
            if second == 100:
                early = len(stream.getvalue().splitlines())
    assert early == 11
    assert 600 < len(stream.getvalue().splitlines()) < 700


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("0:07", 7),
        ("30:59", 1859),
        ("2:00:00", 7200),
        ("1-12", 129_600),
        ("1-02:03:04", 93_784),
        ("7-00:00:00", 604_800),
    ],
)
def test_every_form_of_a_duration_is_read(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "UNLIMITED", "NOT_SET", "INVALID", "1:2:3:4", "-5", "2 h"])
def test_what_is_no_duration_has_no_seconds(text: str) -> None:
    assert seconds_of(text) is None
