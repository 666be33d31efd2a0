"""Reading single runs from the outputs of pretraining and of evaluations without training."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from measured_experiment import PRETRAINING
from measured_rows import replaced

from hatchery.analysis.compute_optimal import distinct_runs
from hatchery.analysis.measurements import development_basis, development_measurements, learning_measurements
from hatchery.analysis.read_tables import read_runs
from hatchery.analysis.scores import direction
from hatchery.analysis.settings import baseline_runs
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ConfigError, EvaluationError, HatcheryError, ManifestError
from hatchery.evaluation.basis import differing
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY, minimal_pair_rows
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.experiment.seeded_run import SeededRun
from hatchery.views.summary_sections import sections
from hatchery.views.summary_text import markdown_summary, text_summary

HEADER = "level,name,pairs,correct,ties,accuracy,accuracy_ties_correct\n"


def read(experiment: Any) -> list[SimpleNamespace]:
    return experiment.measurements()


def test_fractions_become_percent_and_the_metric_says_so(two_models: Any) -> None:
    values = {(m.task, m.metric): m.value for m in read(two_models) if m.run == "elc-s1" and m.finetuning_seed != 13}
    assert values["agreement", "accuracy_percent"] == pytest.approx(77.5)
    assert values["cola", "accuracy_percent"] == pytest.approx(80.0)
    assert values["cola", "mcc_percent"] == pytest.approx(40.0)
    assert values["development", "loss_nats"] == 2.0
    assert values["development", "perplexity"] == 30.0


def test_the_two_averages_weigh_phenomena_or_paradigms_equally(two_models: Any) -> None:
    values = {m.task: m for m in read(two_models) if m.run == "plain-s1" and m.suite == "blimp"}
    assert values["phenomenon_average"].value == pytest.approx((70 + 60) / 2)
    assert values["paradigm_average"].value == pytest.approx((80 + 60 + 60) / 3)


def test_the_sampling_deviation_is_binomial_with_two_more_pairs_of_either_kind(two_models: Any) -> None:
    values = {m.task: m.sampling_deviation for m in read(two_models) if m.run == "plain-s1"}
    # 140 of 200 and 60 of 100 pairs are right.
    agreement = 100 * math.sqrt(142 / 204 * 62 / 204 / 204)
    ellipsis = 100 * math.sqrt(62 / 104 * 42 / 104 / 104)
    assert values["agreement"] == pytest.approx(agreement)
    assert values["ellipsis"] == pytest.approx(ellipsis)
    assert values["phenomenon_average"] == pytest.approx(math.hypot(agreement, ellipsis) / 2)


def test_a_few_pairs_that_are_all_right_leave_doubt(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    experiment.add_minimal_pairs(run, "blimp", {"agreement": {"gender": (4, 4)}})
    (found,) = (m for m in read(experiment) if (m.task, m.level, m.metric) == ("agreement", "phenomenon", ACCURACY))
    assert (found.value, found.blind_guess) == (100.0, 50.0)
    assert found.sampling_deviation == pytest.approx(100 * math.sqrt(0.75 * 0.25 / 8))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("phenomenon,a,0,0,0,0.0,0.0\n", "an accuracy over 0 pairs"),
        ("phenomenon,a,10,5,0,0.5,0.5\n", "there is no row of level paradigm"),
        ("paradigm,a,10,5,0,0.5,0.5\n", "there is no row of level phenomenon"),
    ],
)
def test_wrong_accuracies_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    manifest = replaced(tmp_path, "accuracy.csv", HEADER + text)
    with pytest.raises(EvaluationError) as caught:
        minimal_pair_rows(Evaluated(manifest, manifest, "blimp"))
    assert str(tmp_path / "accuracy.csv") in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("run", ["plain-s1", "gpt"])
def test_an_evaluation_of_another_model_is_refused(two_models: Any, run: str) -> None:
    two_models.add_minimal_pairs("gpt", "blimp", {"agreement": {"gender": (99, 100)}, "ellipsis": {"n": (98, 100)}})
    two_models.minimal_pairs[f"{run}:blimp"] = two_models.minimal_pairs["plain-s2:blimp"]
    with pytest.raises(ManifestError, match=rf"is not an evaluation of the model .*{run}/manifest\.json"):
        read(two_models)


@pytest.mark.parametrize(
    "line",
    ["not json", "[1]", '{"step": 9}', '{"step": 9, "tokens": 1, "loss": NaN}', '{"step": 4, "tokens": 1, "loss": 2}'],
)
def test_a_damaged_learning_curve_names_file_and_line(experiment: Any, line: str) -> None:
    run = experiment.add_model("m", 1, [{"step": 4, "tokens": 1, "loss": 2.0}])
    folder = experiment.pretraining[run].parent
    text = (folder / "metrics.jsonl").read_text() + line + "\n"
    replaced(folder, "metrics.jsonl", text)
    with pytest.raises(HatcheryError, match=r"metrics\.jsonl, line 2: "):
        read(experiment)


def test_a_model_that_was_not_trained_has_no_development_loss(experiment: Any) -> None:
    experiment.add_model("random", 1, [])
    assert read(experiment) == []


def test_the_file_of_a_causal_model_is_read_like_any_other(experiment: Any) -> None:
    for model in ("masked", "causal"):
        experiment.add_model(model, 1, [], causal=model == "causal")
    experiment.collected()
    masked, causal = (
        pl.read_parquet(experiment.folder / "runs.parquet").drop("model", "label", "run", "manifest").to_dicts()
    )
    assert masked == causal


def test_each_count_of_ties_temperature_and_chance_has_a_metric_of_its_own(tmp_path: Path) -> None:
    """There are two paradigms: 10 items with four candidates, and 30 items with two candidates."""
    tables = {
        "accuracy.csv": [(0.5, 0.7, 0.25), (0.8, 0.9, 0.5), (0.725, 0.85, 0.4375), (0.7, 0.84, 0.43)],
        "accuracy_at_best_temperature.csv": [
            (0.6, 0.8, 0.25),
            (0.9, 1.0, 0.5),
            (0.825, 0.95, 0.4375),
            (0.8, 0.9, 0.43),
        ],
    }
    with stage_run(tmp_path / "manifest.json", {}) as run:
        for name, shares in tables.items():
            places = [("paradigm", "a", 10), ("paradigm", "b", 30), ("phenomenon", "x", 40)]
            places.append(("suite", "mine_by_pair", 40))
            rows = [(*place, 0, 0, *of) for place, of in zip(places, shares, strict=True)]
            text = HEADER.strip() + ",chance\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
            run.folder.joinpath(name).write_text(text)
            run.add_output(run.folder / name)
    made = read_manifest(tmp_path / "manifest.json")
    found = {(row["task"], row["metric"]): row for row in minimal_pair_rows(Evaluated(made, made, "mine"))}
    wanted = ("accuracy_percent", "accuracy_ties_correct_percent", "best_temperature_accuracy_percent")
    for task, values, chance, items in (
        ("a", (50, 70, 60), 25, 10),
        ("x", (72.5, 85, 82.5), 43.75, 40),
        ("phenomenon_average", (72.5, 85, 82.5), 43.75, 40),
        ("paradigm_average", (65, 80, 75), 37.5, 40),
        ("pair_average", (70, 84, 80), 43, 40),
    ):
        rows = [found[task, metric] for metric in wanted]
        assert [row["value"] for row in rows] == pytest.approx(values), task
        assert {(row["blind_guess"], row["items"]) for row in rows} == {(chance, items)}
    # With two right and two wrong items added: 7 of 14, and 26 of 34.
    deviations = math.sqrt(7 / 14 * 7 / 14 / 14), math.sqrt(26 / 34 * 8 / 34 / 34)
    assert found["a", wanted[0]]["sampling_deviation"] == pytest.approx(100 * deviations[0])
    assert found["paradigm_average", wanted[0]]["sampling_deviation"] == pytest.approx(50 * math.hypot(*deviations))


def test_perplexity_keeps_its_unit_and_accuracy_becomes_percent(experiment: Any) -> None:
    run = experiment.add_model("m", 1, [])
    experiment.add_perplexity(run, {"dev": (2.0, 7.389, 0.55), "test": (800.0, "inf", 0.0)}, pseudo=9.5)
    values = {(m.task, m.metric): (m.value, m.failed) for m in read(experiment) if m.suite == "perplexity"}
    assert values["dev", "loss_nats"] == (2.0, "")
    assert values["dev", "perplexity"] == (7.389, "")
    assert values["dev", "accuracy_percent"] == (pytest.approx(55.0), "")
    assert values["dev", "pseudo_perplexity"] == (9.5, "")
    assert values["test", "perplexity"] == (None, "infinite")


def test_a_table_from_before_a_metric_had_its_column_stays_readable(experiment: Any) -> None:
    manifest = experiment.add_perplexity(experiment.add_model("m", 1, []), {"dev": (2.0, 7.389, 0.55)})
    lines = (manifest.parent / "perplexity.csv").read_text().splitlines()
    older = replaced(manifest.parent, "perplexity.csv", "".join(line.rpartition(",")[0] + "\n" for line in lines))
    assert [row["metric"] for row in perplexity_rows(Evaluated(older, older))] == [
        "loss_nats",
        "perplexity",
        "accuracy_percent",
    ]


def test_averages_with_ties_as_right_answers_come_for_all_models_where_one_has_a_tie(experiment: Any) -> None:
    for model, ties in (("a", 0), ("b", 5)):
        run = experiment.add_model(model, 1, [])
        experiment.add_minimal_pairs(run, "tied", {"agreement": {"gender": (60, 100)}}, ties)
        experiment.add_minimal_pairs(run, "untied", {"agreement": {"gender": (60, 100)}})
    generous = {
        (m.model, m.suite, m.task): m.value for m in read(experiment) if m.metric == "accuracy_ties_correct_percent"
    }
    assert generous == {
        (run, "tied", task): pytest.approx(value)
        for run, value in (("a", 60.0), ("b", 65.0))
        for task in ("phenomenon_average", "paradigm_average")
    }


def test_a_baseline_is_a_run_like_ours_without_a_pretraining(two_models: Any) -> None:
    two_models.add_minimal_pairs("gpt", "blimp", {"agreement": {"gender": (99, 100)}, "ellipsis": {"n": (98, 100)}})
    found = [m for m in read(two_models) if m.model == "gpt"]
    assert {(m.suite, m.task): m.value for m in found}["blimp", "agreement"] == pytest.approx(99.0)
    ours = {m.suite for m in read(two_models) if m.run == "plain-s1"}
    assert {m.suite for m in found} == ours - {"pretraining"} and len(ours) > 2
    *trained, baseline = read_runs(two_models.folder / "runs.parquet")
    assert (baseline["run"], baseline["label"], baseline["seed"], baseline["steps"]) == ("gpt", "gpt", None, None)
    assert (baseline["parameters"], baseline["layers"], baseline["tied"]) == (5_000_000, 12, True)
    assert all(run["steps"] == 4 for run in trained)
    # The list of trained runs excludes the baseline.
    assert [run["run"] for run in distinct_runs(two_models.folder / "runs.parquet")] == [run["run"] for run in trained]


@pytest.mark.parametrize("name", ["elc", "elc-s1"])
def test_a_baseline_under_the_name_of_a_model_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"baselines: got '{name}', expected a name"):
        baseline_runs([name], [SeededRun.from_seed("elc", 1)])


def test_the_last_measured_development_values_count_and_not_the_lowest() -> None:
    columns = ("development_loss", "development_perplexity", "development_bits_per_byte")
    curve = [dict(zip(columns, values, strict=True)) for values in ((2.0, 8.0, 1.0), (3.0, 21.0, 1.5), (None,) * 3)]
    found = development_measurements(curve, unigram_loss=4.0, per_byte=0.25)
    # One nat per byte is log2(e) = 1.442695 bits per byte.
    expected = {"loss_nats": (3.0, 4.0), "perplexity": (21.0, 54.59815), "bits_per_byte": (1.5, 1.442695)}
    assert {row["metric"]: pytest.approx((row["value"], row["blind_guess"])) for row in found} == expected


def learning(*points: tuple[int, float], steps: int = 100) -> dict[tuple[str, str], float | None]:
    curve = [{"step": step, "loss": 1.0} | {"development_bleu": score} for step, score in points]
    found = learning_measurements([*curve, {"step": 1000, "development_bleu": None}], steps)
    assert all(one["suite"] == "pretraining" for one in found)
    return {(one["task"], one["metric"]): one["value"] for one in found}


BEST, AREA = ("development", "best_bleu"), ("first_100_steps", "alc_bleu")


@pytest.mark.parametrize(
    ("points", "found"),
    [
        # Trapezoids of 50 steps: (0 + 10) / 2 and (10 + 20) / 2. The later score counts only for the maximum.
        ([(0, 0.0), (50, 10.0), (100, 20.0), (150, 90.0)], {BEST: 90.0, AREA: 10.0}),
        # The curve ends exactly with the first steps.
        ([(0, 0.0), (100, 20.0)], {BEST: 20.0, AREA: 10.0}),
        # At step 100, interpolation between 10 at step 60 and 20 at step 160 gives 14: (60 * 5 + 40 * 12) / 100.
        ([(0, 0.0), (60, 10.0), (160, 20.0)], {BEST: 20.0, AREA: 7.8}),
        # The score falls after step 100.
        ([(0, 0.0), (100, 20.0), (150, 5.0)], {BEST: 20.0, AREA: 10.0}),
        # Curves that do not cover the first 100 steps, and the curve of a model without translations.
        ([(0, 1.0), (50, 2.0), (99, 3.0)], {BEST: 3.0}),
        ([(25, 1.0), (50, 2.0), (100, 3.0)], {BEST: 3.0}),
        ([], {}),
    ],
)
def test_learning_has_the_highest_score_and_the_area_of_the_first_steps_divided_by_their_number(
    points: list[tuple[int, float]], found: dict[tuple[str, str], float]
) -> None:
    assert learning(*points) == pytest.approx(found)


def row(suite: str, task: str, metric: str, mean: float) -> SummaryRow:
    return SummaryRow("mine", "zero", suite, task, metric, mean, 0.5, 2, 0, mean, 0, None, None, "", None, "", "abc")


ROWS = [
    row("pretraining", "development", "best_bleu", 61.0),
    row("pretraining", "development", "perplexity", 3.0),
    row("pretraining", "first_20000_steps", "alc_bleu", 41.25),
    row("translation", "other_domain", "bleu", 30.0),
    row("translation", "other_domain", "chrf", 40.0),
    row("translation", "test", "bleu", 60.0),
    row("translation", "test", "chrf", 70.0),
]
SUMMARY = Summary(ROWS, ["zero"], experiment="mine")


def test_the_summaries_show_every_test_set_the_highest_score_and_the_area() -> None:
    shown = next(section for section in sections(SUMMARY) if section.title == "Translation")
    assert [measure.label for measure in shown.measures] == [
        "other domain BLEU",
        "other domain chrF",
        "test BLEU",
        "test chrF",
        "highest BLEU of development",
        "area of BLEU, first 20000 steps",
    ]
    text = text_summary(SUMMARY)
    assert "area of BLEU, first 20000 steps" in text and "41.25 +-0.50" in text
    assert "70.00" in markdown_summary(SUMMARY)


def test_a_summary_without_translations_has_no_such_section() -> None:
    plain = Summary(ROWS[1:2], ["zero"], experiment="mine")
    assert [section.title for section in sections(plain)] == ["Overview"]


def test_the_headline_has_the_bleu_of_every_test_set() -> None:
    headline = [(measure.task, measure.metric) for measure in SUMMARY.headline() if measure.suite == "translation"]
    assert headline == [("other_domain", "bleu"), ("test", "bleu")]
    assert direction("bleu") == direction("alc_chrf") == 1
    assert direction("perplexity_of_words") == direction("loss_nats") == -1 and direction("parameters") == 0


def test_a_tokenizer_decides_what_numbers_per_token_compare_with_and_not_scores_of_translations(tmp_path: Path) -> None:
    trained = []
    for name in ("one", "other"):
        with stage_run(tmp_path / name / "tokenizer/manifest.json", {"name": name}) as tokenizer:
            pass
        settings = {**PRETRAINING, "steps": 1, "seed": 1}
        with stage_run(tmp_path / name / "manifest.json", settings, {"tokenizer": tokenizer.folder / "manifest.json"}):
            pass
        trained.append(read_manifest(tmp_path / name / "manifest.json"))
    per_token, of_text = ["loss_nats", "perplexity"], ["bits_per_byte", "best_bleu", "alc_chrf"]
    for metric in per_token + of_text:
        aspects = list(differing(development_basis(each, "text", metric) for each in trained))
        assert aspects == (["tokenizer"] if metric in per_token else []), metric


def test_a_development_loss_compares_with_losses_on_equal_text_windows_and_precision(tmp_path: Path) -> None:
    usual: dict[str, Any] = {**PRETRAINING, "steps": 4, "seed": 1, "evaluation_sequences": 8, "precision": "fp32"}
    changes: dict[str, tuple[dict[str, Any], str]] = {
        "usual": ({}, "text"),
        "shorter": ({"sequence_length": 16}, "text"),
        "more": ({"evaluation_sequences": 16}, "text"),
        "half": ({"precision": "bf16"}, "text"),
        "stopped": ({"early_stopping": {"patience_evaluations": 2}}, "text"),
        "other": ({}, "another text"),
    }
    found = {}
    for name, (change, text) in changes.items():
        with stage_run(tmp_path / name / "manifest.json", {**usual, **change}):
            pass
        found[name] = development_basis(read_manifest(tmp_path / name / "manifest.json"), text, "loss_nats")
    aspects = {name: list(differing([found["usual"], basis])) for name, basis in found.items()}
    assert aspects == {
        "usual": [],
        "shorter": ["window"],
        "more": ["text"],
        "half": ["precision"],
        "stopped": ["selection"],
        "other": ["text"],
    }
