"""Models that differ beyond chance on the same pairs and rows. The p values of pairs equal SciPy's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, permutation_test

from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.analyses.minimal_pair_tests import ANALYSIS, NOUNS, MinimalPairTestsSettings
from hatchery.analysis.analyses.own_tests import own_tests
from hatchery.analysis.analyses.paired_test_sentences import answer, is_beyond_chance
from hatchery.analysis.analyses.paired_tests import holm, sign_flip_p
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError, EvaluationError
from hatchery.experiment.seeded_run import SeededRun

OUTCOMES = {"c": "correct", "w": "wrong", "t": "tie"}


def judged(folder: Path, outcomes: str, paradigm: str = "p") -> Path:
    """Return a model's manifest for a suite with one outcome per pair: correct, wrong or tie."""
    with stage_run(folder / "manifest.json", {}) as run:
        pairs = {"paradigm": paradigm, "pair_id": [str(index) for index in range(len(outcomes))]}
        scores = pl.DataFrame({**pairs, "outcome": [OUTCOMES[letter] for letter in outcomes]})
        scores.write_parquet(run.add_output(run.folder / "scores.parquet"))
    return folder / "manifest.json"


def judged_by(folder: Path, suites: Mapping[str, Mapping[str, str]], **settings: Any) -> Findings:
    """Return the findings for outcomes by suite and run; `gpt2` is an imported model."""
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
    # The interval of a difference of paired proportions.
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
    # By Holm: 3 x 0.01, then 2 x 0.02, then the maximum of 1 x 0.03 and the one before.
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.8, 0.7]) == [1, 1]
    assert holm([]) == []


def test_a_difference_is_bold_only_where_the_corrected_p_says_so(tmp_path: Path) -> None:
    def bold(suites: Mapping[str, Mapping[str, str]]) -> list[bool]:
        (table,) = judged_by(tmp_path, suites).tables
        return [row.cells[3].bold for row in table.rows]

    def seeds(**models: str) -> dict[str, dict[str, str]]:
        return {"own": {f"{model}-s{seed}": outcomes for model, outcomes in models.items() for seed in (1, 2)}}

    # Six discordant pairs, all for b: p is 0.031, and 0.094 after correction for three comparisons.
    one, other = "c" * 6 + "w" * 6, "w" * 12
    assert bold(seeds(a=other, b=one)) == [True]
    assert bold(seeds(a=other, b=one, c=other)) == [False] * 3
    assert bold(seeds(a=other, b=one[1:] + "w")) == [False]


def test_of_models_with_one_pretraining_seed_nothing_is_bold_and_the_heading_says_so(tmp_path: Path) -> None:
    good, bad = "c" * 60, "w" * 60
    single = judged_by(tmp_path / "single", {"own": {"a-s1": bad, "b-s1": good}})
    assert single.rows[0]["p_corrected"] < 0.001
    assert not single.tables[0].rows[0].cells[3].bold
    assert single.tables[0].caption == "Differences on the same minimal pairs, each between two trained models"
    assert "A model with one pretraining seed is a single trained model" in " ".join(single.notes)
    # A baseline is one trained model. Our models have two seeds here.
    mixed = judged_by(tmp_path / "mixed", {"own": {"a-s1": bad, "a-s2": bad, "b-s1": good, "b-s2": good, "gpt2": bad}})
    bold = {
        (row["model"], row["against"]): line.cells[3].bold
        for row, line in zip(mixed.rows, mixed.tables[0].rows, strict=True)
    }
    assert bold == {("b", "a"): True, ("gpt2", "a"): False, ("gpt2", "b"): False}
    assert mixed.tables[0].caption == "Differences on the same minimal pairs"
    notes = " ".join(mixed.notes)
    assert "A model with one pretraining seed is a single trained model" in notes and "seeds, a pair counts" in notes
    assert "deviation over pretraining seeds" not in notes
    # The first model has two seeds, the second has one.
    turned = judged_by(tmp_path / "turned", {"own": {"a-s1": bad, "b-s1": good, "b-s2": good}})
    assert turned.answer[0].endswith("corrected p < 0.001; only one pretraining seed).")


@pytest.mark.parametrize(
    ("changes", "beyond"),
    [
        ({}, True),
        ({"p_corrected": 0.05}, False),
        ({"seeds": 1}, False),
        ({"against_seeds": 1}, False),
        ({"deviation_over_runs": 4.0}, False),
        ({"deviation_over_seeds": 4.0}, False),
        # Without the failed runs, the other model is ahead, or the difference is within its deviation.
        ({"failed": 1}, True),
        ({"against_failed": 1, "difference_without_failed": -3.0}, False),
        ({"failed": 1, "deviation_without_failed": 3.0}, False),
        # If no run failed, this difference does not count.
        ({"difference_without_failed": -3.0}, True),
    ],
)
def test_a_difference_is_beyond_chance_by_p_by_deviations_and_in_one_direction(
    changes: Mapping[str, float], beyond: bool
) -> None:
    row = {
        **{"p_corrected": 0.049, "difference": 4.0, "seeds": 2, "against_seeds": 2, "failed": 0, "against_failed": 0},
        **{"deviation_over_runs": 3.9, "deviation_over_seeds": 3.9},
        **{"difference_without_failed": 3.0, "deviation_without_failed": 2.9},
    }
    assert is_beyond_chance(row | changes, "runs") is beyond


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
    assert "one seed may cause the difference" in notes and "a single trained model" not in notes


def test_the_answer_names_who_is_ahead_by_how_much_and_who_does_not_differ(tmp_path: Path) -> None:
    # 40, 20 and 20 of 40 pairs are right, equally for all seeds.
    outcomes = {"a": "c" * 40, "b": "c" * 20 + "w" * 20, "c": "w" * 20 + "c" * 20}
    runs = {f"{model}-s{seed}": text for model, text in outcomes.items() for seed in "12"}
    assert judged_by(tmp_path / "seeds", {"own_pairs": runs}).answer == [
        # Two of three exact p values are 2^-19. Each is multiplied by the number of remaining hypotheses.
        "a, rate 1 is ahead of b, rate 1 on own pairs (+50.0 points, corrected p < 0.001).",
        "a, rate 1 is ahead of c, rate 1 on own pairs (+50.0 points, corrected p < 0.001).",
        "c, rate 1 and b, rate 1 do not differ beyond chance on own pairs (50.0 and 50.0, corrected p = 1.000).",
    ]
    single = {name: text for name, text in runs.items() if name.endswith("-s1")}
    assert judged_by(tmp_path / "single", {"own": single}, against="a").answer == [
        f"{model}, rate 1 and a, rate 1 differ as trained models on own (50.0 and 100.0, corrected p < 0.001; "
        "only one pretraining seed)."
        for model in "bc"
    ]


def test_the_answer_rounds_as_the_table_does() -> None:
    row = {
        **{"suite": "own", "model": "a", "against": "b", "difference": 0.74999, "p_corrected": 1.0},
        **{"accuracy_percent": 50.74999, "against_accuracy_percent": 50.04999, "seeds": 2, "against_seeds": 2},
        "deviation_over_seeds": 1.0,
    }
    # The tables round to four decimals first: 50.7500 and 50.0500.
    assert answer([row | {"p_value": 0.01}], {}, NOUNS) == [
        "a and b do not differ beyond chance on own (50.8 and 50.0, corrected p = 1.000)."
    ]
    # The number of comparisons is that of the suite.
    many = [row | {"model": str(model)} for model in range(7)] + [row | {"suite": "another"}]
    assert answer(many, {}, NOUNS)[0] == "On own, 0 of 7 pairs of models differ beyond chance."
    # If one sentence names several leads, its p is the largest.
    leads = [row | {"model": model, "difference": 9.0, "p_corrected": p} for model, p in (("a", 0.04), ("c", 0.002))]
    assert answer(leads, {}, NOUNS) == ["a and c are ahead of b on own (+9.0 and +9.0 points, corrected p = 0.040)."]


@pytest.mark.parametrize(("models", "named"), [(7, True), (8, False)])
def test_the_answer_counts_many_comparisons(models: int, named: bool, tmp_path: Path) -> None:
    runs = {
        f"m{index}-s{seed}": "c" * (40 if index else 20) + "w" * (0 if index else 20)
        for index in range(models)
        for seed in "12"
    }
    (sentence,) = judged_by(tmp_path, {"own": runs}).answer
    assert ("are ahead of m0" in sentence) == named
    assert (sentence == "On own, 7 of 7 pairs of models differ beyond chance.") == (not named)


def test_every_two_of_few_models_are_compared_and_many_with_the_first_or_a_chosen_one(tmp_path: Path) -> None:
    few = dict.fromkeys(("a-s1", "b-s1", "gpt2"), "cw")
    assert compared(judged_by(tmp_path / "few", {"own": few})) == [("b", "a"), ("gpt2", "a"), ("gpt2", "b")]
    four = {f"{model}-s1": "cw" for model in "abcd"}
    every_two = [("b", "a"), ("c", "a"), ("d", "a"), ("c", "b"), ("d", "b"), ("d", "c")]
    assert compared(judged_by(tmp_path / "four", {"own": four})) == every_two
    many = {f"{model}-s1": "cw" for model in "abcde"}
    assert compared(judged_by(tmp_path / "many", {"own": many})) == [(model, "a") for model in "bcde"]
    chosen = judged_by(tmp_path / "chosen", {"own": many}, against="c")
    assert compared(chosen) == [(model, "c") for model in "abde"]
    # The chosen model did not judge the second suite.
    suites = {"own": many, "other": {"a-s1": "cw", "b-s1": "cw"}}
    assert compared(judged_by(tmp_path / "two", suites, against="c")) == [(model, "c") for model in "abde"]
    study = Study("mine", tuple(SeededRun.from_seed(model, 1) for model in "ab"))
    with pytest.raises(ConfigError, match="against: got 'd', expected one of the compared models"):
        ANALYSIS.check(MinimalPairTestsSettings(against="d"), study)


def test_an_experiment_tests_two_models_and_the_first_untrained_model_is_the_reference_of_five() -> None:
    def settings(runs: Mapping[str, tuple[int, str | None]], *baselines: str, items: str = "own") -> Any:
        trained = {
            name: SimpleNamespace(pretraining=SimpleNamespace(steps=steps, initialise_from=start))
            for name, (steps, start) in runs.items()
        }
        return own_tests(SimpleNamespace(runs=trained, baselines=baselines, tests_against=None), items)  # type: ignore[arg-type]

    # `copy` is a trained model without steps of its own.
    runs: dict[str, tuple[int, str | None]] = {"own": (2, None), "copy": (0, "own"), "random": (0, None)}
    assert settings(runs, "gpt", "bert") == {"against": "random"}
    assert settings(runs, "gpt") == {"against": None}
    assert settings({"own": (2, None)}, "gpt") == {"against": None}
    assert settings({"own": (2, None)}) is settings(runs, items="") is None


def test_the_table_has_a_group_for_each_suite_labels_and_says_what_the_test_is_over(tmp_path: Path) -> None:
    found = judged_by(tmp_path, {"my_own": {"a-s1": "ccw", "b-s1": "wcw"}, "blimp": {"a-s1": "ct", "b-s1": "cc"}})
    (table,) = found.tables
    assert [group.heading for group in table.groups] == ["my own", "blimp"]
    assert [getattr(cell, "text", cell) for cell in table.rows[0].cells] == [
        *("b, rate 1 against a, rate 1", "33.3", "66.7", "-33.3", "-86.7 to +20.0", "0", "1", "1.000", "1.000")
    ]
    notes = " ".join(found.notes)
    assert (
        "to other pairs, but not to other trainings" in notes and "for the 2 comparisons in this table (Holm)" in notes
    )
    assert "seeds, a pair counts" not in notes and "a single trained model" in notes


def test_models_that_judged_other_pairs_are_refused(tmp_path: Path) -> None:
    tables: dict[str, Path] = {
        f"minimal_pairs/{name}:own": judged(tmp_path / name, "cc", paradigm)
        for name, paradigm in (("a-s1", "p"), ("b-s1", "q"))
    }
    runs: Sequence[SeededRun] = (SeededRun.from_seed("a", 1), SeededRun.from_seed("b", 1))
    with pytest.raises(EvaluationError, match=r"b-s1/manifest\.json: the pairs differ from the pairs of .*a-s1"):
        ANALYSIS.run(MinimalPairTestsSettings(), Study("mine", tuple(runs), tables=tables))


def test_a_suite_without_right_answers_is_not_tested(tmp_path: Path) -> None:
    tables = {f"minimal_pairs/{model}-s1:wug": judged(tmp_path / model, "cw") for model in "ab"}
    for path in tables.values():
        with stage_run(path, {}) as run:
            for name in ("scores.parquet", "correlation.csv"):
                (run.folder / name).touch()
                run.add_output(run.folder / name)
    study = Study("mine", tuple(SeededRun.from_seed(model, 1) for model in "ab"), tables=tables)
    assert not ANALYSIS.run(MinimalPairTestsSettings(), study).rows


def test_one_model_alone_is_compared_with_nothing(tmp_path: Path) -> None:
    found = judged_by(tmp_path, {"own": {"a-s1": "cw"}})
    assert (list(found.rows), list(found.tables)) == ([], [])
    assert found.notes == ["No two models judged the same minimal pairs."]
