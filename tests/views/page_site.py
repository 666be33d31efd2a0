"""A small experiment with all inputs of its page, written as the stages write them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.figure import Figure
from summary_text import write_summary

from hatchery.analysis.tidy_tables import CURVES, RUNS, write_rows
from hatchery.artifacts.atomic import write_bytes, write_json, write_text
from hatchery.artifacts.checksums import sha256_file, write_checksums
from hatchery.artifacts.manifests import stage_run
from hatchery.evaluation.sentences_file import (
    GAP,
    SENTENCES_FILE,
    Answer,
    FilledSentence,
    FilledSentences,
)
from hatchery.rendering.drawing import is_narrow, save_figure
from hatchery.rendering.style import Style
from hatchery.rendering.table import Cell, Column, Group, Table
from hatchery.runner import run_stage
from hatchery.typed import build
from hatchery.views.page import compose_page
from hatchery.views.page_runs import LOSSES
from hatchery.views.page_settings import PageInputs, PageSettings
from hatchery.views.paper_tables.write_all import PaperTableView, views_json
from hatchery.views.stages.write_provenance import write_provenance
from hatchery.views.summary_notes import SummaryNotes, notes_json
from hatchery.views.summary_sections import Section

SVG = '<?xml version="1.0"?><svg xmlns="x"><defs><path id="a"/></defs><use href="#a" clip-path="url(#a)"/></svg>'
NOTES = SummaryNotes(
    ("mean ± standard deviation over n runs.",),
    (Section("Minimal pairs: blimp", "Accuracy in percent by phenomenon; chance is 50.", []),),
)
TABLES = [
    PaperTableView(
        "Paper, Table 1",
        Table(
            [Column("Model", words=True), Column("numbers", words=True), Column("n"), Column("BLiMP")],
            [Group([["LTG<script>", "ours", "1", Cell("51.6", bold=True, comparable=False)]])],
            notes=("A note.",),
        ),
    )
]
SETTINGS: dict[str, Any] = {
    "stage": "pretrain",
    "stage_version": 1,
    "batch_size": 4,
    "sequence_length": 32,
    "long_sequence": None,
    "model": {"hidden_size": 16, "layer_weighting": "none"},
    "optimizer": {"name": "lamb", "learning_rate": 0.005},
    "seed": 1,
}


def two_panels(style: Style) -> Figure:
    """Draw a figure of two panels, side by side if wide enough."""
    figure = Figure(figsize=(style.width_inches, 3), layout="constrained")
    for axes in figure.subplots(*((2, 1) if is_narrow(style) else (1, 2))).flat:
        axes.plot([0, 1], [0, 1])
        axes.set_xlabel("steps")
    return figure


@cache
def drawn_panels() -> dict[str, bytes]:
    """Return the files of the figure `two_panels` by suffix. A drawing takes longer than all other files of a site."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save_figure(two_panels, Style(), path, "Scores")
        return {ending: path.with_suffix(ending).read_bytes() for ending in (".svg", ".pdf")}


class Site:
    """Writes below `folder`/results; `rows` are lines of the summary without `experiment` and `manifests`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results" / "demo"
        self.page = self.results / "index.html"
        self.pretraining: dict[str, Path] = {}
        self.runs: list[dict[str, Any]] = []
        self.day: str | None = None
        self.seconds: dict[str, float] = {}
        self._rows: list[dict[str, Any]] = []
        self._curves: list[dict[str, Any]] = []

    def add_run(
        self,
        model: str,
        metrics: Sequence[dict[str, Any]] = (),
        settings: dict[str, Any] | None = None,
        measures: dict[str, Any] | None = None,
    ) -> Path:
        """Write a pretrained model with seed 1."""
        name = f"{model}-s1"
        output = self.results / "pretraining" / name / "manifest.json"
        with stage_run(output, {**SETTINGS, **(settings or {})}) as run:
            write_text(run.folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in metrics))
            run.add_output(run.folder / "metrics.jsonl")
            last = metrics[-1] if metrics else {"step": 0, "tokens": 0}
            run.measures.update({"parameters": 12345, "steps": last["step"], "tokens": last["tokens"]})
            run.measures.update(measures or {})
        self.pretraining[name] = output
        self.runs.append({"name": name, "model": model, "seed": 1})
        counts = {"parameters": 12345, "steps": last["step"], "tokens": last["tokens"], "training_flops": 5e6}
        losses = {name: last.get(name) for name in LOSSES}
        initial = (measures or {}).get("initial_model", {})
        start = {"initial": initial.get("take", ""), "earlier_tokens": initial.get("earlier_tokens")}
        place = {"experiment": "demo", "model": model, "run": name, "seed": 1, "label": model}
        self._rows.append({**place, **counts, **losses, **start, "manifest": sha256_file(output)})
        self._curves += [{"experiment": "demo", "model": model, "run": name, "seed": 1, **row} for row in metrics]
        return output

    def add_baseline(self, name: str) -> None:
        """Add an imported model."""
        place = {"experiment": "demo", "model": name, "run": name, "seed": None, "label": name, "parameters": 99}
        self._rows.append({**place, "initial": "", "manifest": "0" * 64})

    def write_runs(self) -> Path:
        """Write the table of runs as `collect_measurements` does; `day` is the training day of all trained runs."""
        path = self.results / "runs.parquet"
        rows = [
            {**row, "day": self.day if row["seed"] else None, "seconds": self.seconds.get(row["run"])}
            for row in self._rows
        ]
        write_rows(path, RUNS, rows)
        return path

    def write_curves(self) -> Path:
        """Write the losses of the runs."""
        path = self.results / "curves.parquet"
        write_rows(path, CURVES, self._curves)
        return path

    def write_filled(self, name: str) -> Path:
        """Write a sentence whose gap a run's model filled."""
        output = self.results / "filled_sentences" / name / "manifest.json"
        guesses = [Answer("sleep", 40.0), Answer("…ing", 0.4)]
        with stage_run(output, {}) as run:
            ranked = guesses if name.startswith("ltg") else guesses[::-1]
            example = FilledSentence(f"The dogs {GAP} near <the> house.", "sleep", tuple(ranked))
            write_json(run.folder / SENTENCES_FILE, asdict(FilledSentences("fill", (example,))))
            run.add_output(run.folder / SENTENCES_FILE)
            run.measures["split"] = "dev"
        return output

    def write_summary(self, rows: Sequence[str]) -> Path:
        """Write the summary from lines `model,suite,...,verdict`, with an optional `|sampling_deviation,blind_guess`.

        Each line names the pretraining manifest of its model, if there is one.
        """
        lines = []
        for row, _, noise in (row.partition("|") for row in rows):
            manifest = self.pretraining.get(f"{row.partition(',')[0]}-s1")
            lines.append(f"demo,{row},{sha256_file(manifest)[:12] if manifest else ''},{noise or ','}")
        return write_summary(self.results, lines)

    def page_inputs(self, **more: Any) -> PageInputs:
        """Return the required inputs of a page and `more`, after all files are written."""
        names = ("summary.parquet", "summary.md", "summary_notes.json", "provenance.html")
        return PageInputs(*(self.results / name for name in names), **more)

    def write(self, rows: Sequence[str], notes: SummaryNotes = NOTES, description: str = "A <small> test.") -> str:
        """Write the page and its inputs, with figures, a corpus card and paper tables; return the page's text."""
        summary = self.write_summary(rows)
        write_text(self.results / "summary.md", "# Summary of demo\n")
        write_text(self.results / "summary.tex", "% The tables of demo\n")
        write_text(self.results / "summary_notes.json", notes_json(notes))
        write_checksums([self.results / "summary_notes.json"])
        write_checksums(summary.with_suffix(ending) for ending in (".csv", ".md", ".parquet", ".tex"))
        figures = [self.results / "figures" / f"{name}.svg" for name in ("learning_curves", "phenomena")]
        for figure in figures:
            write_text(figure, SVG)
            write_text(figure.with_suffix(".pdf"), "%PDF")
            write_checksums([figure])
        figures.append(self.results / "figures" / "task_scores.svg")
        for ending, content in drawn_panels().items():
            write_bytes(figures[-1].with_suffix(ending), content)
        write_checksums(figures[-1].with_suffix(ending) for ending in drawn_panels())
        write_text(self.results / "cost.html", '<html lang="en"><h1>Cost</h1></html>')
        corpus = self.folder / "results" / "cards" / "a&b" / "manifest.json"
        counts = {"documents": 3, "sentences": 40, "words": 1234567, "characters": 5}
        with stage_run(corpus, {}) as run:
            write_text(run.folder / "card.html", '<html lang="en"><h1>card</h1></html>')
            run.add_output(run.folder / "card.html")
            run.measures.update({"train": counts, "dev": {**counts, "documents": 1}})
        tables = self.results / "paper_tables" / "manifest.json"
        with stage_run(tables, {}) as run:
            views = views_json([replace(shown, with_times=bool(self.seconds)) for shown in TABLES])
            for name, text in (("tables.md", "#"), ("tables.json", views), ("tables.tex", "x")):
                write_text(run.folder / name, text)
                run.add_output(run.folder / name)
        provenance = self.results / "provenance.html"
        places = self.results / "provenance_places.json"
        given = {"summary": summary, "places": places, "project": self.folder}
        run_stage(write_provenance, {"experiment": "demo"}, provenance, **given)
        inputs = PageInputs(
            summary=summary,
            markdown=self.results / "summary.md",
            notes=self.results / "summary_notes.json",
            provenance=provenance,
            places=places,
            figures=figures,
            cards={"a&b": corpus},
            runs=self.write_runs(),
            curves=self.write_curves(),
            pretraining=self.pretraining,
            tables=tables,
            filled={run: self.write_filled(run) for run in self.pretraining},
            costs=[self.results / "cost.html"],
        )
        settings = {"experiment": "demo", "description": description, "runs": self.runs}
        compose_page(build(PageSettings, settings), inputs, self.page)
        return self.page.read_text(encoding="utf-8")


METRICS = [
    {"step": step, "tokens": 128 * step, "loss": 9.0 - step, "learning_rate": 0.001 * step, "gradient_norm": 1.0}
    for step in (1, 2, 3)
]
METRICS[2] |= {"development_loss": 6.5, "development_perplexity": 665.1, "development_bits_per_byte": 2.345}
# Lines of the summary of `two_runs` and of an imported model.
ROWS = (
    "elc,blimp,agreement,accuracy_percent,61.0000,,1,0,,0,,,,,",
    "elc,blimp,phenomenon_average,accuracy_percent,61.0000,,1,0,,0,70.0,0.5,Paper Table 2,-9.0,below",
    "elc,blimp,paradigm_average,accuracy_percent,61.0000,,1,0,,0,,,,,",
    "elc,glue,average,score_percent,70.2500,1.2500,4,2,71.5000,0,70.0,,Paper Table 3,0.25,within",
    "elc,glue,average,run_score_percent,70.2500,1.0000,4,2,,0,,,,,",
    "elc,glue,cola,mcc_percent,,,0,0,,4,,,,,",
    "elc,pretraining,development,perplexity,665.1000,,1,0,,0,,,,,",
    "ltg,blimp,agreement,accuracy_percent,58.0000,,1,0,,0,,,,,",
    "ltg,blimp,phenomenon_average,accuracy_percent,58.0000,,1,0,,0,60.0,,Paper Table 2,,not comparable",
    "ltg,blimp,paradigm_average,accuracy_percent,58.0000,,1,0,,0,,,,,",
    "roberta,blimp,phenomenon_average,accuracy_percent,75.0000,,1,0,,0,,,,,",
)


def two_runs(folder: Path) -> Site:
    """Return a site with two models, one pretraining run each."""
    site = Site(folder)
    # The configuration's order, which differs from the summary's.
    site.add_run("ltg", METRICS)
    site.add_run("elc", METRICS)
    return site
