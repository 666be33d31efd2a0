"""BLEU and chrF, the area under their curves, and intervals of their differences."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import corpus_bleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.paired_bootstrap import ANALYSIS, BootstrapSettings, _lines
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import EvaluationError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.translation.metrics import area_under_curve, paired_differences, scores

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
    output = subprocess.run(
        [*command, "-m", "bleu", "chrf", "-w", "10"], capture_output=True, text=True, check=True, timeout=60
    )
    theirs = {entry["name"].lower(): entry for entry in json.loads(output.stdout)}
    assert ours["bleu"].value == pytest.approx(theirs["bleu"]["score"], abs=1e-9)
    assert ours["chrf"].value == pytest.approx(theirs["chrf2"]["score"], abs=1e-9)
    assert ours["bleu"].signature == theirs["bleu"]["signature"]
    assert ours["chrf"].signature == theirs["chrf2"]["signature"]
    assert "case:mixed|eff:no|tok:13a|smooth:exp" in ours["bleu"].signature


def test_a_perfect_translation_has_a_hundred_points() -> None:
    assert [round(score.value, 6) for score in scores(REFERENCES, REFERENCES).values()] == [100, 100]


@pytest.mark.parametrize(("translations", "references"), [([], []), (["a"], ["a", "b"])])
def test_nothing_or_unequal_numbers_cannot_be_scored(translations: list[str], references: list[str]) -> None:
    with pytest.raises(EvaluationError, match=r"translations and . references, expected equal numbers, at least 1"):
        scores(translations, references)


def test_the_area_under_a_constant_is_the_constant_and_under_a_line_from_nothing_half_its_end() -> None:
    assert area_under_curve([(0, 7), (250, 7), (1000, 7)]) == pytest.approx(7)
    assert area_under_curve([(0, 0), (20_000, 30)]) == pytest.approx(15)
    # A curve may begin later than step 0: the area from step 100 to step 300 is 200 * 15.
    assert area_under_curve([(100, 10), (300, 20)]) == pytest.approx(15)


@given(st.floats(0, 1), st.floats(-10, 100), st.floats(-10, 100))
def test_points_on_a_line_change_no_area(share: float, start: float, end: float) -> None:
    between = (1000 * share, start + share * (end - start))
    whole = area_under_curve([(0, start), (1000, end)])
    assert area_under_curve([(1000, end), between, (0, start)]) == pytest.approx(whole, abs=1e-6)


def test_one_point_has_no_area() -> None:
    with pytest.raises(EvaluationError, match="expected at least 2"):
        area_under_curve([(5, 1.0)])


WORDS = ["a", "cat", "sees", "the", "old", "dog", "near", "our", "house", "while", "two", "birds", "sing"]


def sentences(count: int, seed: int) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, size=9)) for _ in range(count)]


def changed(texts: list[str], share: float, seed: int) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(w if draw.random() > share else str(draw.choice(WORDS)) for w in text.split()) for text in texts]


DRAWN = sentences(60, 0)
BETTER, WORSE = changed(DRAWN, 0.2, 1), changed(DRAWN, 0.4, 2)


@pytest.mark.parametrize(("one", "other"), [(BETTER, WORSE), (WORSE, BETTER), (BETTER, changed(DRAWN, 0.2, 3))])
def test_difference_and_p_value_are_those_of_sacrebleu(
    one: list[str], other: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    metrics = {"BLEU": BLEU(), "CHRF": CHRF()}
    _, table = PairedTest([("other", other), ("one", one)], metrics, [DRAWN], "bs", n_samples=200)()
    found = paired_differences(one, other, DRAWN, samples=200, seed=12345)
    for name, result in (("bleu", table["BLEU"]), ("chrf", table["chrF2"])):
        assert found[name].p_value == pytest.approx(result[1].p_value)  # type: ignore[union-attr]
        assert found[name].value == pytest.approx(result[1].score - result[0].score)  # type: ignore[union-attr]
        assert found[name].low < found[name].value < found[name].high


def drawn_differences(seed: int, samples: int) -> list[float]:
    """Return differences in BLEU between BETTER and WORSE on drawn sentences."""
    drawn = np.random.default_rng(seed).choice(60, size=(samples, 60), replace=True)
    bleu = [
        [corpus_bleu([texts[i] for i in row], [[DRAWN[i] for i in row]]).score for texts in (BETTER, WORSE)]
        for row in drawn
    ]
    return [one - other for one, other in bleu]


def test_the_interval_leaves_out_a_fortieth_of_the_differences_on_each_side() -> None:
    ordered = sorted(drawn_differences(7, 41))
    found = paired_differences(BETTER, WORSE, DRAWN, samples=41, seed=7)["bleu"]
    # Of 41 sorted differences, the 0.025 and 0.975 quantiles are the second and the second to last.
    assert (found.low, found.high) == (pytest.approx(ordered[1]), pytest.approx(ordered[-2]))


def test_the_same_seed_draws_the_same_sentences() -> None:
    first, again, other = (paired_differences(BETTER, WORSE, DRAWN, 50, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first["bleu"].low > 0, "all of the better one's words but a fifth are right"


def test_a_system_does_not_differ_from_itself() -> None:
    (bleu, chrf) = paired_differences(BETTER, BETTER, DRAWN, 50, 1).values()
    assert bleu[:3] == chrf[:3] == (0.0, 0.0, 0.0)


def test_a_missing_sentence_is_refused() -> None:
    with pytest.raises(EvaluationError, match="got 59 translations and 60 references"):
        paired_differences(BETTER, WORSE[1:], DRAWN, 50, 1)


def test_runs_of_the_same_seed_are_compared_with_the_start_of_their_experiment(tmp_path: Path) -> None:
    by_run = {
        "one/zero-s0": WORSE,
        "one/zero-s1": DRAWN,
        "one/unigram-s0": BETTER,
        "one/unigram-s1": BETTER,
        "one/unigram-s2": BETTER,
        "two/unigram-s0": BETTER,
    }
    tables = {}
    for run, translations in by_run.items():
        with stage_run(tmp_path / run / "manifest.json", {"tests": {"mine": {"corpus": "a"}}}) as made:
            for ending, lines in ((".txt", translations), (".reference.txt", DRAWN)):
                path = made.add_output(made.folder / f"mine{ending}")
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        tables[f"translation/{run}"] = tmp_path / run / "manifest.json"
    parts = [(name, *name.split("-s")) for name in by_run]
    labels = {"one/unigram-s1": "one/swept, rate 1"}
    runs = tuple(SeededRun(name, model, int(seed), labels.get(name, "")) for name, model, seed in parts)
    found = ANALYSIS.run(BootstrapSettings(samples=50), Study("both", runs, tables=tables))
    compared = [(row["run"], row["against"]) for row in found.rows if row["metric"] == "bleu"]
    assert compared == [("one/unigram-s0", "one/zero-s0"), ("one/unigram-s1", "one/zero-s1")]
    expected = scores(BETTER, DRAWN)["bleu"].value - scores(WORSE, DRAWN)["bleu"].value
    assert found.rows[0]["value"] == pytest.approx(expected, abs=1e-4) and found.rows[0]["value"] > 0
    assert found.rows[2]["value"] < 0
    assert "50 times" in found.notes[0]
    first, cells = found.rows[0], found.tables[0].rows[0].cells
    assert first["low"] < first["high"] and cells[2] == f"{first['low']:+.2f} to {first['high']:+.2f}"
    # Only a line feed ends a line.
    (tmp_path / "lines").write_text("one\u2028more\ntwo\n", encoding="utf-8")
    assert _lines(tmp_path / "lines") == ["one\u2028more", "two"]
    # The intervals come from the sentences that the configured seed draws.
    for seed in (12345, 7):
        drawn = ANALYSIS.run(BootstrapSettings(samples=50, seed=seed), Study("both", runs, tables=tables)).rows[0]
        by_hand = np.quantile(drawn_differences(seed, 50), (0.025, 0.975))
        assert (drawn["low"], drawn["high"]) == pytest.approx(tuple(by_hand), abs=1e-4)
    assert [group.heading for group in found.tables[0].groups] == ["one/unigram, seed 0", "one/swept, rate 1, seed 1"]
