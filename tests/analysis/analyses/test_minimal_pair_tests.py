"""Differences on the same minimal pairs: exact p values equal to SciPy's, corrected, and of the right models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, permutation_test

from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.analyses.minimal_pair_tests import ANALYSIS, MinimalPairTestsSettings, holm, sign_flip_p
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError, EvaluationError
from hatchery.experiment.seeded_run import SeededRun

OUTCOMES = {"c": "correct", "w": "wrong", "t": "tie"}


def judged(folder: Path, outcomes: str, paradigm: str = "p") -> Path:
    """The manifest of a model on a suite; an outcome per pair: correct, wrong or tie."""
    with stage_run(folder / "manifest.json", {}) as run:
        pairs = {"paradigm": paradigm, "pair_id": [str(index) for index in range(len(outcomes))]}
        scores = pl.DataFrame({**pairs, "outcome": [OUTCOMES[letter] for letter in outcomes]})
        scores.write_parquet(run.add_output(run.folder / "scores.parquet"))
    return folder / "manifest.json"


def judged_by(folder: Path, suites: Mapping[str, Mapping[str, str]], **settings: Any) -> Findings:
    """The findings of outcomes by suite and name of a run; `gpt2` is a model from elsewhere."""
    names = dict.fromkeys(name for runs in suites.values() for name in runs)
    seeded = [(name, *name.split("-s")) for name in names if "-s" in name]
    runs = tuple(SeededRun(name, model, int(seed), f"{model}, rate 1") for name, model, seed in seeded)
    tables = {
        f"minimal_pairs/{name}:{suite}": judged(folder / suite / name, outcomes)
        for suite, runs_of_suite in suites.items()
        for name, outcomes in runs_of_suite.items()
    }
    return ANALYSIS.run(MinimalPairTestsSettings(**settings), Study("mine", runs, tables=tables))


def compared(found: Findings) -> list[tuple[str, str]]:
    return [(row["model"], row["against"]) for row in found.rows]


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 1), (3, 3), (14, 3), (120, 160), (2, 0)])
def test_of_single_runs_p_is_that_of_the_binomial_test_of_the_discordant_pairs(
    only_first: int, only_second: int, tmp_path: Path
) -> None:
    first = "c" * only_first + "w" * only_second + "c" * 40 + "t" * 20
    second = "w" * only_first + "c" * only_second + "c" * 40 + "w" * 20
    (row,) = judged_by(tmp_path, {"own": {"b-s1": second, "a-s1": first}}).rows
    assert (row["model"], row["against"]) == ("a", "b")
    assert (row["pairs_for"], row["pairs_against"]) == (only_first, only_second)
    expected = binomtest(only_first, only_first + only_second).pvalue
    assert row["p_value"] == pytest.approx(expected, abs=1e-6)
    assert row["p_corrected"] == row["p_value"]
    pairs = len(first)
    assert row["difference"] == pytest.approx(100 * (only_first - only_second) / pairs, abs=1e-4)
    # The interval of the difference of paired shares.
    spread = 1.96 * np.sqrt(only_first + only_second - (only_first - only_second) ** 2 / pairs) / pairs
    assert row["high"] - row["difference"] == pytest.approx(100 * spread, abs=1e-3)
    assert row["difference"] - row["low"] == pytest.approx(100 * spread, abs=1e-3)


@pytest.mark.parametrize("draw", range(4))
def test_over_seeds_p_is_that_of_all_flips_of_the_signs(draw: int, tmp_path: Path) -> None:
    numbers = np.random.default_rng(draw)
    runs = {
        f"{model}-s{seed}": "".join(numbers.choice(list("cw"), size=13, p=[share, 1 - share]))
        for model, share, seeds in (("b", 0.3, 2), ("a", 0.7, 3))
        for seed in range(seeds)
    }
    (row,) = judged_by(tmp_path, {"own": runs}).rows
    shares = {
        model: np.mean([[c == "c" for c in text] for name, text in runs.items() if name[0] == model], axis=0)
        for model in "ab"
    }
    every_flip = permutation_test(
        (shares["a"] - shares["b"],), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert row["p_value"] == pytest.approx(float(every_flip.pvalue), abs=1e-6)
    assert row["difference"] == pytest.approx(100 * (shares["a"] - shares["b"]).mean(), abs=1e-4)
    assert (row["seeds"], row["against_seeds"]) == (3, 2)


def test_opposite_differences_of_other_sizes_that_cancel_are_no_difference() -> None:
    assert sign_flip_p(np.array([1] * 100 + [-5] * 20)) == pytest.approx(1)
    assert sign_flip_p(np.array([5, 0, 5, 5])) == pytest.approx(binomtest(3, 3).pvalue)
    assert sign_flip_p(np.zeros(3, dtype=int)) == 1


def test_p_values_are_corrected_for_all_comparisons() -> None:
    # 3 x 0.01, 2 x 0.02, and no smaller than the one before it.
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.8, 0.7]) == [1, 1]
    assert holm([]) == []


def test_a_difference_is_bold_only_where_the_corrected_p_says_so(tmp_path: Path) -> None:
    def bold(suites: Mapping[str, Mapping[str, str]]) -> list[bool]:
        (table,) = judged_by(tmp_path, suites).tables
        return [row.cells[3].bold for row in table.rows]

    # Six pairs for it and none against: p is 0.031, and 0.094 in three comparisons.
    one, other = "c" * 6 + "w" * 6, "w" * 12
    assert bold({"own": {"a-s1": other, "b-s1": one}}) == [True]
    assert bold({"own": {"a-s1": other, "b-s1": one, "c-s1": other}}) == [False] * 3
    assert bold({"own": {"a-s1": other, "b-s1": one[1:] + "w"}}) == [False]


def test_a_difference_that_one_seed_of_several_makes_is_not_bold(tmp_path: Path) -> None:
    chance, lucky = "c" * 40 + "w" * 40, "c" * 61 + "w" * 19
    models = {f"a-s{seed}": chance for seed in "123"}
    one_seed = {"b-s1": lucky, "b-s2": chance, "b-s3": chance}
    for name, runs, bold in (("one", one_seed, False), ("all", dict.fromkeys(one_seed, lucky), True)):
        found = judged_by(tmp_path / name, {"own": {**models, **runs}})
        (row,), ((line,), *_) = found.rows, [table.rows for table in found.tables]
        assert row["p_corrected"] < 0.001 and (row["pairs_for"], row["pairs_against"]) == (21, 0)
        assert line.cells[3].bold is bold
        accuracies = 100 * np.array([[text.count("c") / 80 for text in of.values()] for of in (models, runs)])
        assert row["deviation_over_seeds"] == pytest.approx(np.sqrt(accuracies.var(axis=1, ddof=1).sum()), abs=1e-4)
    notes = " ".join(found.notes)
    assert "one seed may make it" in notes and "single one" not in notes


def test_every_two_of_few_models_are_compared_and_many_with_the_first_or_a_chosen_one(tmp_path: Path) -> None:
    few = dict.fromkeys(("a-s1", "b-s1", "gpt2"), "cw")
    assert compared(judged_by(tmp_path / "few", {"own": few})) == [("b", "a"), ("gpt2", "a"), ("gpt2", "b")]
    many = {f"{model}-s1": "cw" for model in "abcde"}
    assert compared(judged_by(tmp_path / "many", {"own": many})) == [(model, "a") for model in "bcde"]
    chosen = judged_by(tmp_path / "chosen", {"own": many}, against="c")
    assert compared(chosen) == [(model, "c") for model in "abde"]
    study = Study("mine", tuple(SeededRun.of(model, 1) for model in "ab"))
    with pytest.raises(ConfigError, match="against: got 'd', no model of these"):
        ANALYSIS.check(MinimalPairTestsSettings(against="d"), study)


def test_the_table_has_a_group_for_each_suite_labels_and_says_what_the_test_is_over(tmp_path: Path) -> None:
    found = judged_by(tmp_path, {"my_own": {"a-s1": "ccw", "b-s1": "wcw"}, "blimp": {"a-s1": "ct", "b-s1": "cc"}})
    (table,) = found.tables
    assert [group.heading for group in table.groups] == ["my own", "blimp"]
    assert [getattr(cell, "text", cell) for cell in table.rows[0].cells] == [
        *("b, rate 1 against a, rate 1", "33.3", "66.7", "-33.3", "-86.7 to +20.0", "0", "1", "1.000", "1.000")
    ]
    notes = " ".join(found.notes)
    assert "over pairs, given these trained models" in notes and "for the 2 comparisons here (Holm)" in notes
    assert "seeds, a pair counts" not in notes and "not known of a model with a single one" in notes


def test_models_that_judged_other_pairs_are_refused(tmp_path: Path) -> None:
    tables: dict[str, Path] = {
        f"minimal_pairs/{name}:own": judged(tmp_path / name, "cc", paradigm)
        for name, paradigm in (("a-s1", "p"), ("b-s1", "q"))
    }
    runs: Sequence[SeededRun] = (SeededRun.of("a", 1), SeededRun.of("b", 1))
    with pytest.raises(EvaluationError, match=r"b-s1/manifest\.json: these are other pairs than those of .*a-s1"):
        ANALYSIS.run(MinimalPairTestsSettings(), Study("mine", tuple(runs), tables=tables))


def test_one_model_alone_is_compared_with_nothing(tmp_path: Path) -> None:
    found = judged_by(tmp_path, {"own": {"a-s1": "cw"}})
    assert (list(found.rows), list(found.tables)) == ([], [])
    assert found.notes == ["No two models judged the same minimal pairs."]
