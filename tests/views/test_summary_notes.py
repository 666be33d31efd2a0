"""Notes, titles and labels of a summary: each is about rows that the summary has."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.analysis.published_values import PublishedValue
from hatchery.analysis.settings import SummarySettings
from hatchery.analysis.summary import Summary, summarised
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.evaluation.kinds import evaluations
from hatchery.typed import build, stage_body
from hatchery.views.sections import own_sections
from hatchery.views.summary_latex import latex_summary
from hatchery.views.summary_notes import SummaryNotes, general_notes, notes_json, notes_of, read_notes
from hatchery.views.summary_sections import Section, failure_texts, sections
from hatchery.views.summary_text import markdown_summary, text_summary

UNIGRAM = (
    "on held-out text, it is the unigram distribution of the training tokens: a model that knows only how frequent "
    "tokens are"
)


def summary_of(experiment: Any, published: Any = None) -> Summary:
    settings = build(SummarySettings, stage_body(experiment.summary_settings()))
    return summarised(settings, experiment.measured(), published or {})


@pytest.fixture(scope="module")
def failing(two_models_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Two models with two seeds on nine tasks: each training has a run without a score, and all other runs of `a`
    failed. One of twelve published values has a counterpart.
    """
    experiment = type(two_models_once)(tmp_path_factory.mktemp("failing"))
    for model, value in (("a", 0.5), ("b", 0.9)):
        for seed in (1, 2):
            run = experiment.add_model(model, seed, [])
            experiment.add_perplexity(run, {"dev": (2.0, 7.4 + value, 0.5)})
            results = {12: ((value + seed / 100,), "constant" if model == "a" else ""), 13: ((None,), "nan")}
            for task in range(9):
                experiment.add_finetuning(run, f"t{task}", ("accuracy",), results)
    experiment.add_scores("acquisition", run, "aoa.txt", "", words=40, aoa=0.4, edition=2026)
    keys = [("a", "absent", f"task{number:02}", "accuracy_percent") for number in range(11)]
    keys.append(("a", "finetuning", "t0", "accuracy_percent"))
    return summary_of(experiment, {key: PublishedValue(60.0, None, "Table 1", True, "") for key in keys})


def notes_with(summary: Summary, text: str) -> list[str]:
    return [note for note in general_notes(summary) if text in note]


def test_runs_and_published_values_that_are_not_listed_are_counted(failing: Summary) -> None:
    lines = text_summary(failing).splitlines()
    # Each of 4 trainings has 9 tasks with a run without a score, and 18 runs of `a` failed.
    assert any(line.startswith("* Runs that failed, or have no score (54).") for line in lines)
    assert sum(line.startswith(("  a, seed", "  b, seed")) for line in lines) == 8
    assert "  and 28 more, listed in summary.md" in lines
    assert "Compared with published values: 1 below (rows in summary.csv)." in lines
    (unmatched,) = notes_with(failing, "no counterpart")
    assert unmatched.startswith("11 published values") and unmatched.count("a, absent, task") == 10
    assert unmatched.endswith("a, absent, task09, accuracy_percent; and 1 more.")
    (verdict,) = notes_with(failing, "The verdict is")
    assert "at most 2 x the combined" in verdict and "at most 0.5 points if no deviation is known" in verdict
    assert "one pretraining seed" not in verdict
    single = replace(failing, rows=[replace(row, seeds=1) for row in failing.rows])
    assert notes_with(single, "For a model with one pretraining seed, a verdict")


def test_guesses_that_differ_between_models_and_scores_that_do_not_compare_are_told(failing: Summary) -> None:
    guesses = {"a": 50.0, "b": 20.0}
    rows = [
        replace(row, blind_guess=guesses[row.model], basis=f"items: {row.model}") if row.task == "t0" else row
        for row in failing.rows
    ]
    changed = replace(failing, rows=rows)
    assert "| blind guess | - | - | 20.0 or 50.0 | - | - | - |" in markdown_summary(changed)
    lines = text_summary(changed).splitlines()
    (line,) = (line for line in lines if line.startswith("Not compared"))
    assert line.startswith("Not compared: t0, because the numbers of items differ.")
    assert not any(line.startswith("Not compared") for line in text_summary(failing).splitlines())
    assert lines[0] == "Hatchery summary: demo" and lines[1] == "=" * len(lines[0])


def test_notes_that_were_written_are_read_back(tmp_path: Path) -> None:
    remarks = {("b", "s", "t", "m"): "in bold", ("a", "s", "t", "m"): "rounded"}
    notes = SummaryNotes(("note",), (Section("title", "text", []),), remarks, {"a": "causal"})
    write_text(tmp_path / "summary_notes.json", notes_json(notes))
    write_checksums([tmp_path / "summary_notes.json"])
    assert read_notes(tmp_path / "summary_notes.json") == notes


def test_failures_of_a_training_are_told_together_with_their_seeds_and_without_a_reason_if_it_is_unknown() -> None:
    fixed = {"title": "m, seed 1", "task": "rte", "learning_rate": 5e-5}
    failures = [
        fixed | {"failed": "nan", "value": None, "finetuning_seed": 13},
        fixed | {"failed": "zero_mcc", "value": 0.0, "finetuning_seed": 14},
        fixed | {"failed": "nan", "value": None, "finetuning_seed": 15},
        fixed | {"failed": "", "value": None, "finetuning_seed": None, "learning_rate": None},
    ]
    summary: Any = SimpleNamespace(failures=failures)
    assert failure_texts(summary) == [
        "m, seed 1, rte: no number (nan) with seeds 13, 15 at learning rate 5e-05; "
        "zero mcc with seed 14 at learning rate 5e-05; no number (not measured)"
    ]


def test_notes_on_failed_runs_tell_runs_with_a_score_from_runs_without(failing: Summary) -> None:
    assert notes_with(failing, "lower both with and without the failed runs") and notes_with(failing, "diverged")
    without = replace(failing, rows=[row for row in failing.rows if row.model == "b"])
    assert not notes_with(without, "lower both with and without") and notes_with(without, "diverged")
    whole = replace(failing, rows=[row for row in failing.rows if row.suite == "perplexity"])
    assert not notes_with(whole, "diverged")


def test_a_blind_guess_is_described_for_those_rows_that_have_one(failing: Summary, two_models: Any) -> None:
    start = "A blind guess predicts without seeing the item: "
    assert notes_with(failing, start) == []
    rows = [replace(row, blind_guess=300.0) if row.suite == "perplexity" else row for row in failing.rows]
    assert notes_with(replace(failing, rows=rows), start) == [f"{start}{UNIGRAM}."]
    assert notes_with(summary_of(two_models), start) == [
        f"{start}among two sentences, it is correct in 50 % of items; in classification, it predicts the most frequent "
        "label, and its Matthews correlation is 0."
    ]


def test_an_average_of_a_paper_is_described_for_its_suite_under_any_prefix(failing: Summary) -> None:
    assert not notes_with(failing, "`average` is an average that a paper")
    tasks = [replace(task, suite="my_babylm_glue") for task in failing.finetuned]
    (note,) = notes_with(replace(failing, finetuned=tasks), "`average` is an average that a paper")
    assert "were run: BabyLM's GLUE over 11 tasks; `average of n tasks` is" in note


def test_labels_are_in_the_notes_and_remarks_on_absent_rows_are_not(failing: Summary) -> None:
    key = ("a", "finetuning", "average", "score_percent")
    named = replace(failing, labels={"a": "A, rate 1"}, incomplete={key: ("t0", "t1")})
    assert "A, rate 1, finetuning: no average, because no run has a score for t0, t1." in general_notes(named)
    known = ("a", "finetuning", "t0", "accuracy_percent")
    remarked = replace(failing, published_notes={known: "in bold", ("a", "absent", "t", "m"): "lost"})
    assert notes_of(remarked).remarks == {known: "in bold"}


def test_sections_have_the_title_of_their_kind_and_the_settings_of_their_suite(
    failing: Summary, two_models: Any
) -> None:
    found = {section.title: section for section in sections(failing)}
    assert list(found) == ["Overview", "Perplexity on held-out text", "Age of acquisition", "Fine-tuning"]
    assert [measure.label for measure in found["Overview"].measures] == [
        *("dev perplexity", "finetuning, average", "acquisition, age of acquisition correlation in percent")
    ]
    assert [measure.label for measure in found["Age of acquisition"].measures] == [
        "age of acquisition correlation in percent"
    ]
    over = "Accuracy in percent, over pretraining seeds x fine-tuning seeds x learning rates."
    assert found["Fine-tuning"].note == over
    summary = replace(summary_of(two_models), settings={"finetuning": "batches of 32.", "blimp": "both directions"})
    found = {section.title: section for section in sections(summary)}
    assert found["Fine-tuning"].note == f"{over} Batches of 32."
    assert found["Fine-tuning, further metrics"].note == "Scores are in percent."
    pairs = "Accuracy in percent by phenomenon; chance is 50. Both directions."
    assert found["Minimal pairs: blimp"].note == pairs
    # With a second metric, the note names no metric, and the metric is in the labels.
    tasks = [replace(task, metric="mcc_percent") if task.task == "cola" else task for task in summary.finetuned]
    tuned = next(one for one in sections(replace(summary, finetuned=tasks)) if one.title == "Fine-tuning")
    assert tuned.note.startswith("Scores in percent, over pretraining seeds")
    assert [measure.label for measure in tuned.measures][2:] == ["cola mcc", "rte accuracy"]


def test_a_single_task_keeps_its_whole_name(experiment: Any) -> None:
    experiment.add_finetuning(experiment.add_model("m", 1, []), "glue_rte", ("accuracy",), {12: ((0.7,), "")})
    assert [measure.label for measure in sections(summary_of(experiment))[-1].measures] == ["glue rte"]


def test_perplexities_of_several_objectives_have_a_unit_each_in_the_overview(experiment: Any) -> None:
    for model in ("hidden", "next", "gpt"):
        experiment.add_perplexity(experiment.add_model(model, 1, []), {"dev": (2.0, 7.4, 0.5)})
    summary = replace(summary_of(experiment), objectives={"next": "causal", "gpt": "other causal"})
    overview, held_out, *_ = sections(summary)
    units = "token of causal models, per token of each model's own tokenizer of other causal models"
    assert overview.note.startswith(
        f"Averages in percent; perplexity per masked token of masked models, per {units}; perplexities of different "
        "objectives are not comparable."
    )
    assert "Imported models are evaluated in the same way" in held_out.note


def test_held_out_text_has_its_slopes_and_percentages_last_and_names_models_by_their_labels() -> None:
    metrics = ("frequency_slope_without_bias", "accuracy_percent", "bits_per_byte", "perplexity", "frequency_slope")
    rows = [SimpleNamespace(suite="perplexity", task="dev", metric=metric, model="m", basis="") for metric in metrics]
    summary: Any = SimpleNamespace(
        rows=rows,
        models=["m"],
        label=str.upper,
        objective=lambda model: "masked",
        trained_otherwise={"m": "trained on 40 % of spans"},
    )
    own: Any = own_sections("perplexity")
    (section,) = own(summary, "perplexity", evaluations()["perplexity"])
    shown = [(measure.label, measure.metric) for measure in section.measures if measure.metric in metrics]
    assert shown == [
        ("dev perplexity", "perplexity"),
        ("dev bits per byte", "bits_per_byte"),
        ("dev accuracy", "accuracy_percent"),
        ("dev slope by log-frequency", "frequency_slope"),
        ("dev slope without bias", "frequency_slope_without_bias"),
    ]
    assert "The slopes are regression slopes" in section.note
    assert "other than the evaluation's: M (trained on 40 % of spans)." in section.note
    summary.rows = rows[1:4]
    assert "slopes" not in own(summary, "perplexity", evaluations()["perplexity"])[0].note


def test_the_tables_of_a_paper_are_numbered_and_split_and_mark_best_numbers_and_failures(failing: Summary) -> None:
    text = latex_summary(failing)
    # Eleven measures of fine-tuning do not fit into one table.
    assert re.findall(r"\\label\{(.*?)\}", text) == [f"tab:demo-0{number}" for number in (1, 2, 3, 4, 5)]
    assert r"51.5 {\tiny $\pm$ 0.7} {\tiny (18 failed, 18 without a number)}" in text
    assert r"\textbf{91.5} {\tiny $\pm$ 0.7} {\tiny (18 without a number)}" in text
    assert r"\scriptsize Averages in percent; perplexity per masked token.\end{minipage}" in text
