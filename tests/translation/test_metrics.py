"""Scores of translations: those of sacreBLEU's own command line, and areas under learning curves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import EvaluationError
from hatchery.translation.metrics import area_under_curve, scores

REFERENCES = [
    "The cat sat on the mat.",
    "It's raining, isn't it?",
    "He said: \u201cgo home!\u201d",
    "42,000 people came.",
]
TRANSLATIONS = ["The cat is on the mat.", "It is raining, isn't it?", "He said go home!", "42000 people came today."]


def test_bleu_and_chrf_are_those_of_the_command_line(tmp_path: Path) -> None:
    ours = scores(TRANSLATIONS, REFERENCES)
    for name, lines in (("references", REFERENCES), ("translations", TRANSLATIONS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references"), "-i", str(tmp_path / "translations")]
    told = subprocess.run(
        [*command, "-m", "bleu", "chrf", "-w", "10"], capture_output=True, text=True, check=True, timeout=60
    )
    theirs = {entry["name"].lower(): entry for entry in json.loads(told.stdout)}
    assert ours["bleu"].value == pytest.approx(theirs["bleu"]["score"], abs=1e-9)
    assert ours["chrf"].value == pytest.approx(theirs["chrf2"]["score"], abs=1e-9)
    assert ours["bleu"].signature == theirs["bleu"]["signature"]
    assert ours["chrf"].signature == theirs["chrf2"]["signature"]
    assert "case:mixed|eff:no|tok:13a|smooth:exp" in ours["bleu"].signature


def test_a_perfect_translation_has_a_hundred_points() -> None:
    assert [round(score.value, 6) for score in scores(REFERENCES, REFERENCES).values()] == [100, 100]


@pytest.mark.parametrize(("translations", "references"), [([], []), (["a"], ["a", "b"])])
def test_nothing_or_unequal_numbers_cannot_be_scored(translations: list[str], references: list[str]) -> None:
    with pytest.raises(EvaluationError, match="expected one for each, and at least one"):
        scores(translations, references)


def test_the_area_under_a_constant_is_the_constant_and_under_a_line_from_nothing_half_its_end() -> None:
    assert area_under_curve([(0, 7), (250, 7), (1000, 7)]) == pytest.approx(7)
    assert area_under_curve([(0, 0), (20_000, 30)]) == pytest.approx(15)


@given(st.floats(0, 1), st.floats(-10, 100), st.floats(-10, 100))
def test_points_on_a_line_change_no_area(share: float, start: float, end: float) -> None:
    between = (1000 * share, start + share * (end - start))
    whole = area_under_curve([(0, start), (1000, end)])
    assert area_under_curve([(1000, end), between, (0, start)]) == pytest.approx(whole, abs=1e-6)


def test_one_point_has_no_area() -> None:
    with pytest.raises(EvaluationError, match="two steps"):
        area_under_curve([(5, 1.0)])
