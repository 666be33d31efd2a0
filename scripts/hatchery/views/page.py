"""The static HTML page of an experiment or a study, for readers who did not run the experiment.

The first screen states which models are compared, names the leading models in sentences, and draws averages and
learning curves. In the tables, each of our scores links to its row on the provenance page, and this row links to
manifests and raw files. If a large experiment's provenance page omits the row, the score has no link. The page loads no
other files. Its only script sorts and filters tables; all content is readable without the script. Equal results produce
byte-identical pages, except for the days and times of training (`page_runs`).
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import read_findings
from hatchery.analysis.read_tables import read_runs
from hatchery.analysis.scores import (
    HELD_OUT,
    PERPLEXITY,
    SHOWN_METRICS,
    Key,
    Measure,
    Scores,
    average_name,
    metric_name,
    read_scores,
)
from hatchery.analysis.settings import labels_of, models_in_order
from hatchery.analysis.task_averages import AVERAGE, AVERAGE_METRIC, RUN_AVERAGE_METRIC
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import verified_view
from hatchery.artifacts.manifests import read_manifest
from hatchery.evaluation.minimal_pairs.measurements import PAIR_AVERAGE, PARADIGM_AVERAGE, PHENOMENON_AVERAGE
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE
from hatchery.rendering.escaping import breakable, listed, readable
from hatchery.rendering.style import model_styles
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.rendering.templates import read_text, render
from hatchery.views.answer import answer
from hatchery.views.page_files import EXAMPLES, address, corpora, examples_section, figure_of
from hatchery.views.page_runs import RUNS_SHOWN, RunDetails, pretrained_on, run_details, runs, training_times
from hatchery.views.page_scores import MOST_MODELS, ScoreTables
from hatchery.views.page_settings import PageInputs, PageSettings
from hatchery.views.paper_tables.write_all import TABLES_FILE, VIEWS_FILE, PaperTableView, read_views
from hatchery.views.score_chart import score_chart
from hatchery.views.score_table import COMPARED, compared_cells, score_of
from hatchery.views.summary_notes import SummaryNotes, read_notes

COMPARED_SHOWN = 500
MOST_OPEN = 15
"""Maximum number of rows in a suite's tables for which the tables are initially unfolded."""
MOST_IN_LEGEND = 12
_AVERAGES = (AVERAGE_METRIC, RUN_AVERAGE_METRIC)
_AVERAGE_TASKS = (AVERAGE, PHENOMENON_AVERAGE, PARADIGM_AVERAGE, PAIR_AVERAGE)
CURVES = "learning_curves"
"""Name of the figure in the first section."""
SECTIONS = (
    "At a glance",
    "Main results",
    "Analyses",
    "Tables of the paper",
    "Figures",
    EXAMPLES,
    "All results",
    "Metrics and notes",
    "Corpora",
    "Pretraining runs",
    "Provenance and files",
)


def compose_page(chosen: PageSettings, inputs: PageInputs, output: Path) -> None:
    """Write the page of an experiment or a study to `output`. The stage `write_page` calls this function."""
    notes = read_notes(inputs.notes)
    labels = labels_of(chosen.runs)
    scores = read_scores(inputs.summary, labels, notes.objectives)
    score_tables = ScoreTables(scores, address(inputs.provenance, output))
    pretrained = [] if inputs.runs is None else read_runs(inputs.runs)
    shared, details = (
        (None, []) if inputs.curves is None else run_details(pretrained[:RUNS_SHOWN], inputs.pretraining, inputs.curves)
    )
    headline = scores.headline()
    paper_tables, paper_files = _paper_tables(inputs.tables, training_times(pretrained))
    swatches = _swatches(chosen)
    analyses = [read_findings(path) for path in inputs.analyses.values()]
    curves, figures = ([p for p in inputs.figures if (p.stem == CURVES) == first] for first in (True, False))
    chart = score_chart(scores, headline, swatches)
    shown = {
        "headline": score_tables.overview(headline, chosen.sets),
        "analyses": analyses,
        "paper_tables": paper_tables,
        "figures": [figure_of(path) for path in figures],
        "examples": examples_section(inputs.filled, chosen.runs, swatches),
        "suites": _suites(score_tables),
        "notes": notes,
        "corpora": corpora(inputs.cards, output) if inputs.cards else None,
        "runs": _runs(pretrained, details, inputs, output) if pretrained else None,
    }
    count = len(pretrained)
    text = render(
        "experiment.html.j2",
        title=f"Hatchery: {chosen.experiment}",
        experiment=chosen.experiment,
        description=chosen.description,
        contents=list(zip(SECTIONS, [True, *map(bool, shown.values()), True], strict=True)),
        parts=_parts(chosen, inputs, output) if chosen.parts else None,
        question=_question(chosen, scores, inputs, pretrained),
        answer=[*answer(scores, headline), *(sentence for each in analyses for sentence in each.answer)],
        chart=chart,
        curves=[figure_of(path) for path in curves],
        verdicts=scores.verdicts(),
        left_out=list(filter(None, [score_tables.left_out()])),
        compared=_compared(scores, notes),
        runs_left_out=f"The first {RUNS_SHOWN} of {count:,} pretrained models are listed."
        if count > RUNS_SHOWN
        else "",
        shared_settings=shared,
        details=details,
        paper_files=paper_files,
        inputs=inputs,
        units=_units(headline),
        listed=listed,
        swatches=swatches,
        legend=[name for name in labels.values() if name in swatches] if len(labels) <= MOST_IN_LEGEND else [],
        address=lambda path: address(path, output),
        **shown,
    )
    write_text(output, text)


def _units(headline: Sequence[Measure]) -> str:
    """Return a text with the units of the averages `headline`, which the first section of the page shows."""
    metrics = [measure.metric for measure in headline]
    scores = [SHOWN_METRICS[metric] for metric in SHOWN_METRICS if metric in metrics]
    units = ["perplexity per labelled token"] if PERPLEXITY in metrics else []
    units += ["bits per byte of text"] if BITS_PER_BYTE in metrics else []
    units += [f"{listed(scores)} in points"] if scores else []
    if any(metric.endswith("_percent") for metric in metrics):
        units.append("other averages in percent" if units else "in percent")
    return ", ".join(units)


def _swatches(settings: PageSettings) -> dict[str, str]:
    """Return colours by label: each model has the colour that it has in the figures. A key is the label of a model, or
    the label of one of its runs. Empty if the colours in figures show grid sets (groups of models that a grid defines)
    instead of models.
    """
    if settings.sets:
        return {}
    styles, labels = model_styles(models_in_order(settings.runs), settings.style), labels_of(settings.runs)
    found = {run.title: styles[run.model].colour for run in settings.runs}
    for model, label in labels.items():
        found |= dict.fromkeys((label, str(breakable(label))), styles[model].colour)
    return found


def _question(
    settings: PageSettings, scores: Scores, inputs: PageInputs, pretrained: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """Return the values that the template inserts into its description of the comparison, such as names and numbers of
    models.
    """
    trained = models_in_order(settings.runs)
    compared = trained or scores.models
    own = [row for row in pretrained if row["steps"] is not None]
    of_parts = list(dict.fromkeys(part.corpus for part in settings.parts.values()))
    return {
        "models": list(map(scores.label, compared)) if len(compared) <= MOST_MODELS else [f"{len(compared):,} models"],
        "several": len(compared) > 1,
        "trainings": len(settings.runs) if len(settings.runs) > len(trained) else 0,
        "others": [model for model in scores.models if model not in trained] if trained else [],
        "suites": [readable(suite) for suite in scores.suites() if suite not in HELD_OUT],
        "corpora": of_parts or list(inputs.cards)[:1],
        "trained": pretrained_on(own),
        "trained_models": len(own),
    }


def _parts(settings: PageSettings, inputs: PageInputs, page: Path) -> Table:
    rows: list[list[Content]] = [
        [Cell(name, link=address(inputs.parts[name], page)), part.corpus, str(count[name]), part.description]
        for count in [Counter(run.name.partition("/")[0] for run in settings.runs)]
        for name, part in settings.parts.items()
    ]
    header = ("experiment", "corpus", "pretrained models", "description")
    return table(header, rows, words=(0, 1, 3), caption="Experiments of the study")


def _paper_tables(manifest: Path | None, times: str) -> tuple[list[PaperTableView], list[Path]]:
    """Return the tables of a paper in `manifest`, and their files. `times` is a note on our training times, which is
    added to tables that print training times; no note is added if it is empty.
    """
    if manifest is None:
        return [], []
    made = read_manifest(manifest)
    views = read_views(read_text(made.file(VIEWS_FILE)))
    for index, view in enumerate(views):
        if view.with_times and times:
            views[index] = replace(view, table=replace(view.table, notes=[*view.table.notes, times]))
    return views, [made.file(TABLES_FILE), *made.files(suffix=".tex")]


def _suites(tables: ScoreTables) -> list[tuple[str, list[Table], bool]]:
    """Return (title, tables, True if initially unfolded) of each suite; short tables are unfolded."""
    found, all_keys = [], tables.scores.keys()
    for suite in tables.scores.suites():
        keys = [key for key in all_keys if key[0] == suite]
        metrics = list(dict.fromkeys(metric for _, _, metric in keys))
        # Put the rows of averages first, then the tasks, sorted by metric.
        metrics.sort(key=lambda metric: _AVERAGES.index(metric) if metric in _AVERAGES else len(_AVERAGES))
        keys.sort(key=lambda key: (key[1] not in _AVERAGE_TASKS, metrics.index(key[2])))
        averages = sum(key[1] in _AVERAGE_TASKS for key in keys)
        measures = [Measure(_row_name(key, metrics), *key) for key in keys]
        unit = f" ({metric_name(metrics[0])})" if len(metrics) == 1 else ""
        own = tables.tables(readable(suite), measures, averages)
        found.append((readable(suite) + unit, own, sum(len(table.rows) for table in own) <= MOST_OPEN))
    return found


def _row_name(key: Key, metrics: Sequence[str]) -> str:
    _, task, metric = key
    if metric in _AVERAGES:
        return average_name(task, metric)
    return readable(task) if len(metrics) == 1 else f"{readable(task)}, {metric_name(metric)}"


def _compared(scores: Scores, notes: SummaryNotes) -> list[Table]:
    """Return a table for each suite with published values: each row compares one of our scores with the published
    score. A table has at most COMPARED_SHOWN rows.
    """
    made = []
    for suite, rows in scores.compared().items():
        body = [
            compared_cells(scores, row, notes.remarks, f"{score_of(row).text()} (n={row.n})", None)
            for row in rows[:COMPARED_SHOWN]
        ]
        rest = f"; the first {COMPARED_SHOWN} of {len(rows):,}" if len(rows) > COMPARED_SHOWN else ""
        made.append(table(COMPARED, body, words=(0, 1, 2, 6, 7, 8), caption=readable(suite) + rest))
    return made


def _runs(
    pretrained: Sequence[Mapping[str, Any]], details: Sequence[RunDetails], inputs: PageInputs, page: Path
) -> Table:
    places = set() if inputs.places is None else set(json.loads(verified_view(inputs.places).read_bytes()))
    return runs(pretrained, [each.name for each in details], inputs.provenance, page, places)
