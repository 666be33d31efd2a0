"""An experiment's models as rows of BabyLM's leaderboard, with the published rows of other models, chance levels, and
95 % intervals.

Source: docs/papers/babylm-2026.md, "Leaderboard". Every experiment with `submission` has this analysis.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.babylm_scores import ACQUISITION, LABELS, RULES, Parts, RowCount, official_parts, parts_of
from hatchery.artifacts.records import Record, read_records
from hatchery.experiment.experiment_file import Edition, Track
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.fields import NotEmpty
from hatchery.sums import plain_sum
from hatchery.typed import keys_of

PUBLISHED, ROW_COUNTS = "babylm/leaderboard", "babylm/row_counts"
OTHER_DATA = "*"
"""Mark after scores that were not measured on the official data."""
OTHER = f"this experiment; {OTHER_DATA}: not measured on the official data, so not comparable with published rows"
NONE_OFFICIAL = (
    "No part of the benchmark was scored on all rows of the official data of 2026 with the rules of 2026. "
    "Therefore no published rows are shown."
)
MEAN, WITHOUT = "mean", "mean_with_aoa_0"
NOTES = (
    "Scores of different years, and of different versions of the pipeline, are not comparable. Between April "
    "and July 2026, the rules changed for EWoK, entity tracking, ties, pooling in fine-tuning, and AoA.",
    "± is half the width of the 95 % interval of the mean over pretraining seeds (Student's t). With one "
    "seed, there is no interval. Over seeds, the standard deviation of entity tracking is 6 to 9 points. RTE (139 "
    "rows) and WSC (52 rows) vary by 4 to 12 points, and overall means by 1 to 2 points.",
    "Most models of this size are near chance on EWoK: in 13 % of its items, the training text contains "
    "neither concept. In 22 of BLiMP's 67 paradigms, the sentences of a pair differ only in word order. A model that "
    "ignores word order gives both sentences the same score, so its accuracy depends on the treatment of ties.",
    "AoA (age of acquisition) is a correlation over few words. A correlation that is not significant counts "
    "as 0. The server uses the submitted value unchanged. Most of the highest published rows have AoA 0, so "
    "two means are shown: one with the measured AoA, and one with AoA 0.",
    "In a mean, a missing part counts as 0. Each GLUE model is scored after the epoch with the best score on "
    "the test rows.",
)


@dataclass(frozen=True, kw_only=True)
class LeaderboardSettings(AnalysisSettings):
    """Settings of the analysis: the suites and tasks of the score, and the published rows for comparison."""

    suites: NotEmpty = "babylm_2026"
    """Prefix of the suites' names: `<suites>_blimp`."""
    tasks: NotEmpty = "babylm_2026"
    """Prefix of the tasks' names: `<tasks>_boolq`."""
    edition: Edition = 2026
    """Year of the BabyLM challenge. The rules of this year define the mean of the scores."""
    track: Track = "strict_small"
    """Track whose published rows are shown."""


@dataclass(frozen=True)
class PublishedScore(Record):
    """A published score on a part of BabyLM's overall score, or the overall score itself, as printed in `source`."""

    track: Track
    row: str
    part: str
    points: float
    source: str


def read_published(path: Path) -> list[PublishedScore]:
    """Read the published scores of BabyLM 2026. Raises EvaluationError, which names file and line, for an invalid
    table."""
    return read_records(path, PublishedScore, ("track", "row", "part"))


def leaderboard(settings: LeaderboardSettings, study: Study) -> Findings:
    """Return the table with the rows of our models, the rows of the published leaderboard, and the row of the chance
    level.

    Raises ManifestError for an altered file, and EvaluationError for an invalid file.
    """
    from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame

    rules = RULES[settings.edition]
    frame = read_frame(study.tables["measurements"], MEASUREMENTS)
    by_model: dict[str, list[Parts]] = {}
    counts = read_records(study.files[ROW_COUNTS], RowCount, ("set", "block", "uid"))
    official: dict[str, bool] = {}
    for run in study.runs:
        of_run = frame.filter(frame["run"] == run.name)
        found = parts_of(of_run, settings.suites, settings.tasks, settings.edition)
        if any(value is not None for value in found.values()):
            by_model.setdefault(run.label or run.model, []).append(found)
            if settings.edition != 2026:
                continue
            for part, same in official_parts(of_run, settings.suites, settings.tasks, counts).items():
                official[part] = official.get(part, True) and same
    other = frozenset(part for part, same in official.items() if not same)
    comparable = not other or any(official.values())
    ours = [_model(name, runs, settings) for name, runs in by_model.items()]
    printed: dict[str, dict[str, float]] = {}
    for score in read_published(study.files[PUBLISHED]):
        if settings.edition == 2026 and score.track == settings.track and comparable:
            printed.setdefault(score.row, {})[score.part] = score.points
    published = [_printed(name, found, settings) for name, found in printed.items()]
    published.sort(key=lambda row: row.values[MEAN] or 0.0, reverse=True)
    columns = ["", *(LABELS[part] for part in rules.parts), "mean", "with AoA 0"]
    # The chance level of a GLUE task depends on the label frequencies, so GLUE has no entry in `chance`. Without GLUE,
    # the row has no mean over the benchmarks.
    chance = _Entry("chance", {**rules.chance, MEAN: None, WITHOUT: None}, {}, 0, "chance")
    groups = [
        Group([_cells(row, rules.parts, other) for row in ours], OTHER if other else "this experiment"),
        *([Group([_cells(row, rules.parts) for row in published], "published")] if published else []),
        Group([_cells(chance, rules.parts)]),
    ]
    caption = f"Leaderboard: {rules.name}"
    caveats = [] if comparable else [NONE_OFFICIAL]
    table = Table(
        [Column(name, words=not name) for name in columns],
        groups,
        caption=caption,
        notes=caveats,
        names=True,
        kind="leaderboard",
    )
    numbers = [number for row in (*ours, *published, chance) for number in _numbers(row, rules.name)]
    return Findings(numbers, [table], (*caveats, *NOTES))


@dataclass(frozen=True)
class _Entry:
    """A row of the leaderboard: for each part of BabyLM's overall score, the score and the half width of its 95 %
    interval; and the number of pretraining seeds.
    """

    name: str
    values: Mapping[str, float | None]
    intervals: Mapping[str, float]
    seeds: int
    source: str


def _model(name: str, runs: Sequence[Parts], settings: LeaderboardSettings) -> _Entry:
    """Return the row of a model, which contains mean scores over the model's seeds."""
    rules = RULES[settings.edition]
    whole = [{**parts, MEAN: rules.mean(parts), WITHOUT: rules.mean(parts, acquisition=False)} for parts in runs]
    values, intervals = dict[str, float | None](), dict[str, float]()
    for key in whole[0]:
        known = [value for parts in whole if (value := parts[key]) is not None]
        values[key] = plain_sum(known) / len(known) if known else None
        if len(known) > 1:
            intervals[key] = half_interval(known)
    return _Entry(name, values, intervals, len(runs), "this experiment")


def half_interval(values: Sequence[float]) -> float:
    """Return half the width of the 95 % confidence interval (Student's t) of the mean of two or more values."""
    from scipy.stats import t

    from hatchery.analysis.aggregates import mean_and_error

    error = mean_and_error(values)[1]
    assert error is not None
    return float(t.ppf(0.975, len(values) - 1)) * error


def _printed(name: str, found: Mapping[str, float], settings: LeaderboardSettings) -> _Entry:
    """Return a row with the published scores of a model and their published mean. `found` maps the parts of BabyLM's
    overall score to the published scores. If no mean is published, the mean is computed from the scores.

    The row also contains a second mean, in which the score for the age of acquisition counts as 0.
    """
    rules = RULES[settings.edition]
    parts = {part: found.get(part) for part in rules.parts}
    has_parts = sum(value is not None for value in parts.values()) > 1
    mean = found.get("overall", rules.mean(parts))
    acquisition = parts[ACQUISITION] or 0.0
    without = rules.mean(parts, acquisition=False) if has_parts else mean - acquisition / len(rules.parts)
    return _Entry(name, {**parts, MEAN: mean, WITHOUT: without}, {}, 0, "published")


def _cells(row: _Entry, parts: Sequence[str], other: Collection[str] = ()) -> list[Content]:
    """Return the cells of a row. `other` are the parts that were not measured on official data. An asterisk follows the
    scores on these parts, and the means that include these scores.
    """

    def cell(key: str) -> Content:
        value = row.values.get(key)
        if value is None:
            return "-"
        mark = OTHER_DATA if key in other or (other and key in (MEAN, WITHOUT)) else ""
        return Cell(f"{value:.2f}{mark}", deviation=f"{row.intervals[key]:.2f}" if key in row.intervals else "")

    seeds = f"{row.name} ({row.seeds} seeds)" if row.seeds > 1 else row.name
    return [seeds, *(cell(key) for key in (*parts, MEAN, WITHOUT))]


def _numbers(row: _Entry, rule: str) -> list[Numbers]:
    return [
        {
            "model": row.name,
            "source": row.source,
            "part": part,
            "points": None if value is None else round(value, 6),
            "half_interval": round(row.intervals[part], 6) if part in row.intervals else None,
            "seeds": row.seeds or None,
            "rule": rule,
        }
        for part, value in row.values.items()
    ]


ANALYSIS = Analysis(
    title="BabyLM leaderboard",
    version=1,
    settings=LeaderboardSettings,
    run=leaderboard,
    needs=(tables("measurements"),),
    published=lambda settings: (PUBLISHED, ROW_COUNTS),
    own=lambda experiment: (
        None if experiment.submission is None else keys_of(experiment.submission, only=LeaderboardSettings)
    ),
)
