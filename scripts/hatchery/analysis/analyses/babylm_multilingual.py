"""An experiment's models in BabyLM's multilingual track: scores for each language and each part of the benchmark (such
as a suite or a fine-tuning task), and means of these scores.

Source: docs/papers/babylm-2026.md, "The multilingual track". Every experiment with `multilingual_submission` has this
analysis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.multilingual_scores import (
    GROUPS,
    LANGUAGES,
    Parts,
    group_mean,
    hidden_parts,
    language_mean,
    overall,
    parts_of,
)
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.fields import NotEmpty
from hatchery.sums import plain_sum

NOTES = (
    "In every mean, a missing part counts as 0. English, Dutch and Mandarin have 6, 7 and 6 zero-shot parts "
    "(both tasks of GlobalPIQA are one part), and 8, 8 and 9 fine-tuning parts. The overall score is the "
    "mean of the three languages.",
    "It is inferred that all parts of a language have equal weights in the language's score. The server also "
    "scores Hanzi and reading times.",
    "In means of zero-shot tasks, all pairs have equal weights, and a tie of k texts counts 1/k. In the "
    "strict tracks, all paradigms have equal weights, so the tracks report different scores for BLiMP.",
    "Each fine-tuned model is scored after the epoch with the best score on the scored rows. The settings of "
    "each task state if the bugs of the official trainer are reproduced.",
)
OVERALL, MEAN = "overall", "mean"


@dataclass(frozen=True, kw_only=True)
class MultilingualSettings(AnalysisSettings):
    """Settings of the analysis: prefixes of the names of suites and tasks."""

    suites: NotEmpty = "multilingual"
    """Prefix of the suites' names: `<suites>_zhoblimp`."""
    tasks: NotEmpty = "multilingual"
    """Prefix of the tasks' names: `<tasks>_arc_nl`."""


def multilingual(settings: MultilingualSettings, study: Study) -> Findings:
    """Return tables with the overall score of each model, its mean scores in each language (over zero-shot parts, over
    fine-tuning parts, and over all parts), and its score on each part. A part is, for example, a suite or a fine-tuning
    task. Raises ManifestError for an altered table.
    """
    from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame

    frame = read_frame(study.tables["measurements"], MEASUREMENTS)
    by_model: dict[str, list[Mapping[str, float | None]]] = {}
    for run in study.runs:
        of_run = frame.filter(frame["run"] == run.name)
        parts = parts_of(of_run, settings.suites, settings.tasks)
        found = {**_means(parts), **_parts(parts), **hidden_parts(of_run, settings.suites)}
        if any(found.values()):
            by_model.setdefault(run.label or run.model, []).append(found)
    models = {name: _over_seeds(runs) for name, runs in by_model.items()}
    tables_shown = [_table("Multilingual track: means", models, [OVERALL, *_keys_of_means()])]
    for language, name in LANGUAGES.items():
        keys = [key for key in next(iter(models.values()), {}) if key.startswith(f"{language}/")]
        shown = [key for key in keys if key not in _keys_of_means()]
        hidden = ["hanzi_structure", "hanzi_pinyin"] if language == "zh" else []
        tables_shown.append(_table(f"Multilingual track: {name}", models, [*shown, *hidden]))
    numbers: list[Numbers] = [
        {"model": name, "part": key, "points": None if value is None else round(value, 6)}
        for name, values in models.items()
        for key, value in values.items()
    ]
    return Findings(numbers, tables_shown if models else [], NOTES)


def _keys_of_means() -> list[str]:
    return [f"{language}/{group}" for language in LANGUAGES for group in (*GROUPS, MEAN)]


def _means(parts: Parts) -> dict[str, float | None]:
    found: dict[str, float | None] = {OVERALL: overall(parts)}
    for language, groups in parts.items():
        found |= {f"{language}/{group}": group_mean(groups[group]) for group in GROUPS}
        found[f"{language}/{MEAN}"] = language_mean(groups)
    return found


def _parts(parts: Parts) -> dict[str, float | None]:
    return {
        f"{language}/{group}/{part}": value
        for language, groups in parts.items()
        for group, found in groups.items()
        for part, value in found.items()
    }


def _over_seeds(runs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for key in runs[0]:
        known = [value for run in runs if (value := run[key]) is not None]
        found[key] = plain_sum(known) / len(known) if known else None
    return found


def _table(caption: str, models: Mapping[str, Mapping[str, float | None]], keys: Sequence[str]) -> Table:
    """Return a table with one row per score and one column per model, because there are more scores than models."""

    def cell(value: float | None) -> Content:
        return "-" if value is None else Cell(f"{value:.2f}")

    rows: list[list[Content]] = [
        [readable(key.replace("/", ", ")), *(cell(values.get(key)) for values in models.values())] for key in keys
    ]
    columns = [Column("", words=True), *(Column(name) for name in models)]
    return Table(columns, [Group(rows)], caption=caption, names=True, kind="multilingual")


ANALYSIS = Analysis(
    title="BabyLM's multilingual track",
    version=1,
    settings=MultilingualSettings,
    run=multilingual,
    needs=(tables("measurements"),),
    own=lambda experiment: (
        None
        if experiment.multilingual_submission is None
        else {
            "suites": experiment.multilingual_submission.suites,
            "tasks": experiment.multilingual_submission.tasks,
        }
    ),
)
