"""Changes by switches against the noise of their baseline, and the amount of text that a loss is worth, by hand."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hatchery.analysis.analyses import noise_floor
from hatchery.analysis.analyses.analysis import Findings, Study
from hatchery.analysis.analyses.noise_floor import NoiseFloorSettings, paired_difference
from hatchery.analysis.data_factors import different_amounts, fit_data_curve
from hatchery.analysis.tidy_tables import MEASUREMENTS, RUNS, read_frame, write_rows
from hatchery.errors import ConfigError, EvaluationError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.table import Cell

# The baseline's curve is 2 + 3 (words / 10M)^-0.5.
LOSSES = {
    "one/plain": [4.98, 5.0, 5.02],
    "one/half": [2 + 3 * 2**0.5] * 3,
    "one/double": [2 + 3 * 2**-0.5] * 3,
    "one/fourfold": [3.5] * 3,
    "one/better": [3.98, 4.0, 4.05],
    "one/worse": [5.0, 5.01, 5.02],
    "one/near": [5.01, 5.03, 5.05],
    "one/masked": [1.0, 1.0, 1.0],
}
WORDS = {"one/half": 5_000_000, "one/double": 20_000_000, "one/fourfold": 40_000_000}
CURVE = ("one/half", "one/double", "one/fourfold")


@pytest.fixture(params=[6])
def study(tmp_path: Path, request: pytest.FixtureRequest) -> Study:
    layers = request.param
    common = {"failed": "", "primary": True, "main": True, "origin": "", "manifest": "abc", "experiment": "one"}
    named = [(model, f"{model}-s{seed}", seed) for model in LOSSES for seed in range(3)]
    # This model has one of the baseline's seeds and another seed, with different amounts of text.
    losses = {**LOSSES, "one/few": {0: 7.0, 5: 7.2}}
    named += [("one/few", f"one/few-s{seed}", seed) for seed in (0, 5)]
    measurements = [
        {**common, "model": model, "run": run, "seed": seed, "kind": "pretraining", "suite": "pretraining"}
        | {"task": "development", "level": "split", "metric": "loss_nats", "value": losses[model][seed]}
        | {"basis": "asked: 15 % of subwords" if model == "one/masked" else "asked: next tokens"}
        for model, run, seed in named
    ]
    # Paradigms and numbers that the baseline lacks have no rows.
    few = next(row for row in measurements if row["model"] == "one/few")
    measurements += [{**few, "level": "paradigm", "task": "agreement"}, {**few, "metric": "perplexity"}]
    runs = [
        {"experiment": "one", "model": model, "run": run, "seed": seed, "label": model, "manifest": "abc"}
        | {
            "words": 20_000_000 if seed == 5 else WORDS.get(model, 10_000_000),
            "seconds": 200.0 if model == "one/better" else 100.0,
        }
        for model, run, seed in named
    ]
    runs = [row | {"hidden_size": 64, "layers": 6 if row["model"] == "one/fourfold" else layers} for row in runs]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, measurements)
    write_rows(tmp_path / "runs.parquet", RUNS, runs)
    tables = {name: tmp_path / f"{name}.parquet" for name in ("measurements", "runs")}
    return Study("both", tuple(SeededRun(run, model, seed) for model, run, seed in named), tables=tables)


def found(study: Study, **settings: Any) -> Findings:
    return noise_floor.ANALYSIS.run(NoiseFloorSettings(baseline="one/plain", **settings), study)


def test_differences_are_those_of_equal_seeds_with_the_interval_of_students_t(study: Study) -> None:
    rows = {row["model"]: row for row in found(study).rows}
    # Differences -1.00, -1.00, -0.97: mean -0.99, deviation 0.01732; t with 2 degrees of freedom is 4.3027.
    assert rows["one/better"]["difference"] == pytest.approx(-0.99)
    assert rows["one/better"]["half_width"] == pytest.approx(4.302653 * 0.0173205 / 3**0.5, rel=1e-4)
    # The deviation of 4.98, 5 and 5.02 is 0.02. A mean difference of 0.01 is not more than twice this deviation.
    assert rows["one/better"]["noise"] == pytest.approx(0.02) and rows["one/better"]["beyond_noise"] is True
    assert rows["one/worse"]["difference"] == pytest.approx(0.01) and rows["one/worse"]["beyond_noise"] is False
    assert rows["one/better"]["worth_words"] is None
    # 0.03 is more than twice the standard error of a mean, 0.012, but not beyond noise.
    assert rows["one/near"]["difference"] == pytest.approx(0.03) and rows["one/near"]["beyond_noise"] is False
    (stricter,) = (row for row in found(study, deviations=0.4).rows if row["model"] == "one/worse")
    assert stricter["beyond_noise"] is True
    (table,) = found(study).tables
    better = dict(zip([group.heading for group in table.groups], table.rows, strict=True))["one/better"]
    # The interval is 4.3027 * 0.01732 / 3 ** 0.5 = 0.0430 on each side.
    line = ["pretraining: development, loss_nats", "-0.9900", "-1.0330 to -0.9470", "0.0200", "yes", "-", "-"]
    assert list(better.cells) == line


def test_a_number_on_another_basis_is_never_compared(study: Study) -> None:
    findings = found(study)
    assert "one/masked" not in {row["model"] for row in findings.rows}
    assert any("predicted different tokens" in note for note in findings.notes)


def test_noise_is_not_known_with_fewer_seeds_than_asked_for(study: Study) -> None:
    few = found(study, least_seeds=4)
    row = next(row for row in few.rows if row["model"] == "one/better")
    assert row["noise"] is None and row["beyond_noise"] is None
    assert "over at least 4 seeds" in few.notes[0]
    assert {row.cells[4] for row in few.tables[0].rows} == {"not known"}
    headings = ["number", "difference", "95 % interval", "noise", "beyond noise", "text", "per second"]
    assert [column.heading for column in few.tables[0].columns] == headings


def test_averages_and_scores_of_suites_are_compared_too(study: Study, tmp_path: Path) -> None:
    rows = read_frame(study.tables["measurements"], MEASUREMENTS).to_dicts()
    rows += [
        {
            **row,
            "suite": "blimp",
            "task": level,
            "level": level,
            "metric": "accuracy_percent",
            "value": 10 * row["value"],
        }
        for row in rows
        if row["model"] in ("one/plain", "one/better") and row["metric"] == "loss_nats"
        for level in ("average", "suite")
    ]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, rows)
    differences = {row["task"]: row["difference"] for row in found(study).rows if row["suite"] == "blimp"}
    # The mean difference of the losses is -0.99.
    assert differences == {"average": pytest.approx(-9.9), "suite": pytest.approx(-9.9)}


def test_a_loss_is_worth_the_text_of_the_curve_per_word_and_per_second(study: Study) -> None:
    rows = {row["model"]: row for row in found(study, curve=CURVE).rows}
    # The curve 2 + 3 x^-0.5 is 4.01 at x = (3 / 2.01)^2 = 2.2277.
    assert rows["one/better"]["data_factor"] == pytest.approx((3 / 2.01) ** 2, rel=2e-3)
    assert rows["one/better"]["worth_words"] == pytest.approx(22_277_000, rel=2e-3)
    assert rows["one/better"]["seconds_ratio"] == 2.0
    assert rows["one/better"]["factor_per_second"] == pytest.approx((3 / 2.01) ** 2 / 2, rel=2e-3)
    assert rows["one/better"]["extrapolated"] is False
    (note,) = (note for note in found(study, curve=CURVE).notes if note.startswith("Curve of"))
    pattern = r"loss_nats: (\S+) \+ (\S+) \(words / (\S+)\)\^-(\S+), from 5e\+06 to 4e\+07 words, residual (\S+)\. Am"
    match = re.search(pattern, note)
    assert match is not None
    limit, coefficient, scale, exponent, residual = map(float, match.groups())
    assert (limit, exponent) == (pytest.approx(2, abs=0.01), pytest.approx(0.5, abs=0.01))
    assert coefficient * scale**exponent == pytest.approx(3 * 10_000_000**0.5, rel=0.02)
    # Of twelve losses, two differ by 0.02 from the law.
    assert residual == pytest.approx((2 * 0.02**2 / 12) ** 0.5, abs=1e-4)
    (table,) = found(study, curve=CURVE).tables
    lines = {group.heading: row.cells for group, row in zip(table.groups, table.rows, strict=True)}
    assert lines["one/better"][-2:] == ["2.23 times", "1.11 times"]
    assert lines["one/few"][-2] == Cell("0.36 times", remark="extrapolated")
    assert any(note.startswith("Text: the amount of text") for note in found(study, curve=CURVE).notes)
    # Without the baseline of 40 million words, the largest amount of text is 20 million.
    (fewer,) = (row for row in found(study, curve=CURVE[:2]).rows if row["model"] == "one/better")
    assert fewer["worth_words"] > 20_000_000 and fewer["extrapolated"] is True
    assert set(rows) == {"one/better", "one/worse", "one/near", "one/few"}


def test_seeds_without_a_partner_count_neither_in_the_difference_nor_in_its_worth(study: Study) -> None:
    found_rows = found(study, curve=CURVE).rows
    (few,) = (row for row in found_rows if row["model"] == "one/few")
    assert (few["task"], few["metric"], few["pairs"], few["baseline_seeds"]) == ("development", "loss_nats", 1, 3)
    assert (few["difference"], few["half_width"], few["noise"]) == (pytest.approx(2.02), None, pytest.approx(0.02))
    # 2 + 3 x^-0.5 = 5 + 2.02 at x = (3 / 5.02)^2, which is below all amounts. Seed 0 has 10 million words.
    assert few["worth_words"] == pytest.approx(10_000_000 * (3 / 5.02) ** 2, rel=2e-3) and few["extrapolated"] is True
    assert few["data_factor"] == pytest.approx((3 / 5.02) ** 2, rel=2e-3)


def test_a_baseline_on_another_basis_has_no_part_in_the_curve(study: Study) -> None:
    findings = found(study, curve=(*CURVE, "one/masked"))
    rows = {row["model"]: row for row in findings.rows}
    assert rows["one/better"]["data_factor"] == pytest.approx((3 / 2.01) ** 2, rel=2e-3)
    assert any("predicted different tokens" in note for note in findings.notes)
    (alone,) = (row for row in found(study, curve=("one/masked",)).rows if row["model"] == "one/better")
    assert alone["data_factor"] is None


@pytest.mark.parametrize("study", [4], indirect=True)
def test_a_larger_baseline_has_no_part_in_the_curve_and_is_named(study: Study) -> None:
    """Without `one/fourfold` (6 instead of 4 layers), the curve has two baselines with other amounts of text."""
    labelled = tuple(replace(run, label=f"the {run.model.removeprefix('one/')} model") for run in study.runs)
    named = found(replace(study, runs=labelled), curve=CURVE).notes
    assert named[0].startswith("Differences from the plain model with the same pretraining seed")
    assert named[1].startswith("the fourfold model is not part of the curve")
    findings = found(study, curve=(*CURVE, "one/masked"))
    assert "one/fourfold is not part of the curve, because it differs from the baseline in layers." in findings.notes
    (note,) = (note for note in findings.notes if note.startswith("Curve of pretraining development"))
    assert "from 5e+06 to 2e+07 words" in note
    assert "one/fourfold" not in {row["model"] for row in findings.rows}


def test_losses_that_rise_with_the_text_leave_the_differences_without_data_factors(study: Study) -> None:
    # With 20 million words, the loss is 7.2; with 10 million words, it is 5 to 7.
    findings = found(study, curve=("one/few",))
    better = next(row for row in findings.rows if row["model"] == "one/better")
    assert better["data_factor"] is None and better["difference"] == pytest.approx(-0.99)
    (note,) = (note for note in findings.notes if note.startswith("No data factors of pretraining development"))
    assert note.endswith("got losses that do not decrease with the amount of text, expected decreasing losses.")


def test_the_fitted_curve_is_the_law_of_its_points_and_its_inverse() -> None:
    amounts = np.array([1e8, 2e8, 4e8, 8e8, 1.6e9])
    law = 1.7 + 410.0 * amounts**-0.3
    curve = fit_data_curve(amounts.tolist(), law.tolist())
    assert curve.limit == pytest.approx(1.7, rel=1e-4) and curve.exponent == pytest.approx(0.3, rel=1e-4)
    assert curve.amount(1.7 + 410.0 * 6.13e8**-0.3) == pytest.approx(6.13e8, rel=1e-4)
    assert curve.amount(1.6) is None
    # Two points have a law without a limit: 8 at 1 and 4 at 4 give 8 D^-0.5.
    two = fit_data_curve([1.0, 4.0], [8.0, 4.0])
    assert (two.limit, two.amount(2.0)) == (0.0, pytest.approx(16.0))
    # The points are 8 and 4, times and divided by 1.25. Residuals are 2, -1.6, 1 and -0.8.
    four = fit_data_curve([1.0, 1.0, 4.0, 4.0], [10.0, 6.4, 5.0, 3.2])
    assert four.deviation == pytest.approx(((4 + 2.56 + 1 + 0.64) / 4) ** 0.5)


def _study_with_half_the_words(folder: Path) -> list[Any]:
    folder.mkdir()
    models = {
        "one/plain": (5.0, 10_000_000, 100.0),
        "one/half": (7.0, 5_000_000, 50.0),
        "one/fast": (5.0, 5_000_000, 50.0),
    }
    row = {"manifest": "abc", "experiment": "one", "seed": 0}
    measured = {"failed": "", "primary": True, "main": True, "origin": "", "suite": "perplexity", "task": "dev"}
    measured |= {"level": "split", "metric": "loss_nats", "basis": ""}
    write_rows(
        folder / "measurements.parquet",
        MEASUREMENTS,
        [{**row, **measured, "model": name, "run": name, "value": loss} for name, (loss, *_) in models.items()],
    )
    write_rows(
        folder / "runs.parquet",
        RUNS,
        [
            {**row, "model": name, "run": name, "label": name, "words": words, "seconds": seconds}
            for name, (_, words, seconds) in models.items()
        ],
    )
    tables = {name: folder / f"{name}.parquet" for name in ("measurements", "runs")}
    study = Study("both", tuple(SeededRun(name, name, 0) for name in models), tables=tables)
    return noise_floor.ANALYSIS.run(NoiseFloorSettings(baseline="one/plain", curve=("one/half",)), study).rows


def test_a_pair_without_a_difference_is_worth_its_own_text_whatever_its_seed(tmp_path: Path) -> None:
    # Seed 1 of the baseline has 4.9, while the curve has 5. The switch has only this seed and the same loss.
    losses = {"one/plain": {0: 5.05, 1: 4.9, 2: 5.05}, "one/half": {0: 7.0}, "one/lucky": {1: 4.9}}
    words = {"one/half": 5_000_000}
    row = {"manifest": "abc", "experiment": "one"}
    measured = {
        **row,
        "failed": "",
        "primary": True,
        "main": True,
        "origin": "",
        "suite": "perplexity",
        "task": "dev",
        "level": "split",
        "metric": "loss_nats",
        "basis": "",
    }
    named = [(model, f"{model}-s{seed}", seed, loss) for model, of in losses.items() for seed, loss in of.items()]
    paths = {"measurements": tmp_path / "measurements.parquet", "runs": tmp_path / "runs.parquet"}
    write_rows(
        paths["measurements"],
        MEASUREMENTS,
        [{**measured, "model": model, "run": run, "seed": seed, "value": loss} for model, run, seed, loss in named],
    )
    write_rows(
        paths["runs"],
        RUNS,
        [
            {**row, "model": model, "run": run, "seed": seed, "label": model, "words": words.get(model, 10_000_000)}
            for model, run, seed, _ in named
        ],
    )
    study = Study("both", tuple(SeededRun(run, model, seed) for model, run, seed, _ in named), tables=paths)
    found = noise_floor.ANALYSIS.run(NoiseFloorSettings(baseline="one/plain", curve=("one/half",)), study)
    (only,) = found.rows
    assert only["difference"] == 0 and only["data_factor"] == pytest.approx(1)
    # The model has the baseline's loss with half of the words in half of the time: twice per word and per second.
    (half,) = _study_with_half_the_words(tmp_path / "half")
    assert half["data_factor"] == pytest.approx(2) and half["factor_per_second"] == pytest.approx(2)


def test_amounts_of_seeds_that_differ_by_a_few_words_are_one_amount() -> None:
    # Four numbers of words are two amounts, so the curve has no limit. A limit would be the lowest loss.
    curve = fit_data_curve([99_740, 199_521, 199_388, 199_603], [4.5, 3.96, 3.99, 4.0])
    assert curve.limit == 0.0
    # The loss falls from 4.5 to 3.983 for twice the text. A loss of 3.89 needs more text than 3.983.
    assert curve.exponent == pytest.approx(np.log(4.5 / 3.983) / np.log(2), rel=0.01)
    assert curve.amount(3.89) == pytest.approx(199_500 * (3.983 / 3.89) ** (1 / curve.exponent), rel=0.01)
    # Amounts that differ by up to 5 % are one amount.
    assert [different_amounts([100.0, more]) for more in (105.0, 105.1)] == [1, 2]
    with pytest.raises(EvaluationError, match="got 1 different amounts"):
        fit_data_curve([199_521, 199_388], [4.0, 3.9])


@pytest.mark.parametrize(("amounts", "losses"), [([1.0, 1.0], [2.0, 3.0]), ([1.0, 2.0], [2.0, 3.0])])
def test_points_without_a_curve_are_refused(amounts: list[float], losses: list[float]) -> None:
    with pytest.raises(EvaluationError, match="loss curve"):
        fit_data_curve(amounts, losses)


def test_one_pair_has_no_interval_and_an_unknown_model_is_refused(study: Study) -> None:
    assert paired_difference([0.5]) == (0.5, None) and paired_difference([]) == (None, None)
    with pytest.raises(ConfigError, match="curve: got 'one/hal', expected a model of this study"):
        noise_floor.ANALYSIS.check(NoiseFloorSettings(baseline="one/plain", curve=("one/hal",)), study)
