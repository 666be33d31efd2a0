"""Numbers of every shipped suite, task and kind of evaluation, from tables to figures, page and LaTeX."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from figure_readback import typed
from generated_results import CANDIDATES, items_of
from matplotlib.figure import Figure
from measured_experiment import curve, table

from hatchery.analysis.settings import SummarySettings
from hatchery.analysis.summary import Summary, summarised
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.evaluation.kinds import evaluations
from hatchery.evaluation.minimal_pairs.decisions import accuracy_frame, accuracy_table
from hatchery.evaluation.scores import csv_of
from hatchery.experiment.project import Project
from hatchery.rendering.drawing import figure_style
from hatchery.runner import run_stage
from hatchery.typed import build, stage_body
from hatchery.views.figures.registry import declared_figures, figures_drawn_from
from hatchery.views.page import compose_page
from hatchery.views.page_settings import PageInputs, PageSettings
from hatchery.views.score_table import table_of
from hatchery.views.stages.summarise import summarise
from hatchery.views.stages.write_provenance import write_provenance
from hatchery.views.summary_sections import sections
from hatchery.views.summary_text import _section_tables, text_summary

MODELS, SEEDS = ("ltg", "elc"), (1, 2)
HAS = {"runs", "curves", "layer_weights", "minimal_pairs", "surprisals", "tasks", "ambiguous_tasks", "translated_tests"}
"""Kinds of data that the walk generates for figures."""


@pytest.fixture(scope="module")
def project(repository: Path) -> Project:
    return Project(repository / "config")


@pytest.fixture
def walked(experiment: Any, project: Project) -> Any:
    """Two models with two seeds each on all shipped suites and tasks, and one imported model on half of them."""
    suites = {name: project.suite(name) for name in project.names("suite")}
    tasks = {name: project.task(name) for name in project.names("task")}
    # There are more suites and tasks than files, because files have variants.
    assert len(suites) > 50 and len(tasks) > 140
    for place, model in enumerate(MODELS):
        for seed in SEEDS:
            run = experiment.add_model(
                model, seed, curve(2.0 + place + 0.1 * seed), alphas={(1, 0): 1.0, (2, 0): 0.5, (2, 1): 0.5}
            )
            for name, suite in suites.items():
                if suite.format == "wug":
                    experiment.add_correlations(run, name, {"past": -0.2 + 0.1 * place, "adjectives": 0.3})
                    continue
                items = items_of(suite.format)
                outcomes = ["correct" if index % 3 > place else "wrong" for index in range(len(items))]
                rows = accuracy_table(items, outcomes, name, None, suite.format == "entity_tracking")  # type: ignore[arg-type]
                experiment._scored_suite(run, name, {"accuracy.csv": csv_of(accuracy_frame(rows))})
            for name, task in tasks.items():
                results: Any = {
                    tuned: ((0.5 + 0.1 * place + 0.01 * tuned,) * len(task.metrics), "") for tuned in (1, 2)
                }
                experiment.add_finetuning(run, name, task.metrics, results, task.suite, majority={"validation": 0.4})
            experiment.add_perplexity(
                run, {"dev": (2.0, 7.4, 0.5), "test": (2.1, 8.2, 0.4)}, settings={"masking": "common"}
            )
            experiment.add_surprisal(run, "mine", {"the": 3.0, "dog": 9.0 + place})
            gains = [("eye_tracking", 0.02 + 0.01 * place), ("self_paced", 0.01)]
            experiment.add_scores("reading", run, "scores.csv", table(("outcome", "gain"), gains), words=99)
            columns = ("response", "rows", "gain_nats", "gain_deviation_nats")
            facts = {"scoring": "left_to_right", "scored_words": 99, "perplexity_of_words": 50.0 - place}
            gained = table(columns, [("rt", 500, 5.0 + place, 1.5)])
            experiment.add_scores("reading_times", run, "scores.csv", gained, **facts)
            experiment.add_scores("acquisition", run, "aoa.txt", "", words=40, aoa=0.4, edition=2026)
            scores = [("mine", "corpus", "test", 100, metric, 20.0 + place, "s") for metric in ("bleu", "chrf")]
            columns = ("test", "corpus", "split", "pairs", "metric", "score", "signature")
            experiment.add_scores("translation", run, "scores.csv", table(columns, scores))
    kinds = {key.partition(":")[0] for key in experiment.inputs["evaluation"]}
    assert kinds == set(evaluations()), "a new kind of evaluation belongs into this walk"
    experiment.shipped = suites, tasks
    return experiment


def row_of(summary: Summary, *key: str) -> SummaryRow:
    row = summary.row(*key)
    assert row is not None, key
    return row


def test_everything_shipped_goes_through_tables_figures_and_page(walked: Any) -> None:
    suites, tasks = walked.shipped
    settings = build(SummarySettings, stage_body(walked.summary_settings()))
    summary = summarised(settings, walked.measured(), {})
    shown = sections(summary)
    measures = {
        (measure.suite, measure.task, measure.metric): section for section in shown for measure in section.measures
    }
    # Chance levels and units follow from the items and files.
    for name, suite in suites.items():
        counts = CANDIDATES.get(suite.format, (2,))
        # One phenomenon has the items with even numbers, the other the items with odd numbers.
        chances = sorted({100 / count for count in counts})
        if suite.format == "wug":
            row = row_of(summary, "ltg", name, "past", "spearman_percent")
            assert (row.mean, row.blind_guess) == (pytest.approx(-20), 0)
            assert "chance is 0." in measures[name, "past", "spearman_percent"].note
            continue
        found = [row_of(summary, "ltg", name, task, "accuracy_percent") for task in ("f0", "f1")]
        assert sorted({row.blind_guess for row in found}) == pytest.approx(chances)
        note = measures[name, "f0", "accuracy_percent"].note
        assert f"chance is {' to '.join(f'{chance:g}' for chance in chances)}." in note, name
        assert row_of(summary, "ltg", name, "phenomenon_average", "accuracy_percent").seeds == len(SEEDS)
    for name, task in tasks.items():
        for metric in task.metrics:
            row = row_of(summary, "elc", task.suite, name, f"{metric}_percent")
            # Two fine-tuning seeds for each of two pretraining seeds.
            assert (row.mean, row.n, row.seeds) == (pytest.approx(61.5), 4, 2)
            assert row.blind_guess == {"accuracy": 40.0, "mcc": 0.0}.get(metric), (name, metric)
            assert (task.suite, name, row.metric) in measures, "each number has its place in a table"
    for key, mean in {
        ("translation", "mine", "bleu"): 20.0,
        ("acquisition", "age_of_acquisition", "correlation_percent"): 40.0,
        ("surprisal", "mine", "bits_per_word"): 6.0,
        ("perplexity", "test", "perplexity"): 8.2,
    }.items():
        assert row_of(summary, "ltg", *key).mean == pytest.approx(mean) and key in measures, key
    # No number is NaN, and every table has a LaTeX and a text form.
    for section in shown:
        assert "nan" not in "".join(_section_tables(summary, section))
        latex = table_of(summary, section.measures, summary.models).shown().latex("walk", "walk")
        assert latex.count(r"\\") > len(MODELS)
    text = text_summary(summary)
    assert all(section.title in text for section in shown if not section.detail)
    names = {
        name: walked.folder / name for name in ("summary.parquet", "summary.md", "summary.txt", "summary_notes.json")
    }
    collected, csv = walked.folder / "measurements.parquet", walked.folder / "summary.csv"
    forms = dict(zip(("parquet", "markdown", "text", "notes"), names.values(), strict=True))
    run_stage(summarise, walked.summary_settings(), csv, measurements=collected, published=[], **forms)
    figures = figures_of(walked)
    provenance, places = walked.folder / "provenance.html", walked.folder / "provenance_places.json"
    given = {"summary": forms["parquet"], "places": places, "project": walked.folder.parents[1]}
    run_stage(write_provenance, {"experiment": "demo"}, provenance, **given)
    inputs = PageInputs(
        *(forms["parquet"], forms["markdown"], forms["notes"], provenance, places),
        figures=figures,
        runs=collected.with_name("runs.parquet"),
        curves=collected.with_name("curves.parquet"),
        pretraining=walked.pretraining,
    )
    told = {"experiment": "demo", "description": "all", "runs": walked.runs}
    compose_page(build(PageSettings, told), inputs, walked.folder / "index.html")
    page = (walked.folder / "index.html").read_text(encoding="utf-8")
    assert all(f"row-ltg-{suite}-" in page for suite in suites)


def figures_of(walked: Any) -> list[Path]:
    """Draw every figure whose needs this experiment meets; check that no figure is empty."""
    tables, drawn = walked.tables(), []
    names = [name for name in figures_drawn_from(HAS) if not set(declared_figures()[name].needs) - HAS]
    assert {"phenomena", "task_scores", "learning_curves", "word_surprisals", "translation_scores"} <= set(names)
    for name in names:
        settings = typed(walked)
        with figure_style(settings.style):
            figure: Figure = import_module(f"hatchery.views.figures.{name}").draw(settings, tables)
        for axes in figure.axes:
            texts = [text.get_text() for text in axes.texts]
            assert not any("no measurements" in text for text in texts), name
            assert not axes.axison or axes.lines or axes.patches or axes.collections or axes.images or texts, name
        path = walked.folder / "figures" / f"{name}.svg"
        write_text(path, '<?xml version="1.0"?><svg xmlns="x"></svg>')
        write_text(path.with_suffix(".pdf"), "%PDF")
        write_checksums([path])
        drawn.append(path)
    return drawn
