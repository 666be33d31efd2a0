"""The parts of BabyLM's overall score, and their mean, by the rules of 2025 or 2026 (docs/papers/babylm-2026.md,
"Leaderboard").

In 2026, the overall score is the mean of nine parts. In 2025, the overall score is the mean of two means: the mean over
the language tasks, and the mean over the measures of human likeness. A missing part counts as 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hatchery.artifacts.records import Record
from hatchery.evaluation.minimal_pairs.measurements import CORRELATION, PARADIGM_AVERAGE
from hatchery.experiment.experiment_file import Edition

if TYPE_CHECKING:
    import polars as pl

TASKS = ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc")
"""GLUE tasks of the submission, in the order of the submission."""
PIQA = ("global_piqa_parallel", "global_piqa_nonparallel")
READING, ACQUISITION, GLUE = "reading", "acquisition", "glue"
Parts = Mapping[str, float | None]
"""Points for each part of BabyLM's overall score, from 0 to 100 (correlations from -100). A score that was not measured
is None.
"""


@dataclass(frozen=True)
class Rules:
    """The rules for BabyLM's overall score in one year.

    `language` names the language tasks, and `likeness` the measures of human likeness; each is one part of the score.
    If `halves` is true, these two groups have equal weights; otherwise, all parts have equal weights. `chance` maps
    each part to its chance level.
    """

    name: str
    language: tuple[str, ...]
    likeness: tuple[str, ...]
    halves: bool
    chance: Mapping[str, float]

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of all parts of the overall score, in the order of the columns of the leaderboard table."""
        return (*self.language, *self.likeness)

    @property
    def suites(self) -> tuple[str, ...]:
        """Return the names of those parts of the overall score that are suites of minimal pairs."""
        return tuple(part for part in self.parts if part not in (GLUE, READING, ACQUISITION))

    def mean(self, parts: Parts, acquisition: bool = True) -> float:
        """Return the overall score. If `acquisition` is False, the part for the age of acquisition counts as 0."""
        found = {part: parts.get(part) or 0.0 for part in self.parts}
        if not acquisition:
            found[ACQUISITION] = 0.0
        groups = (self.language, self.likeness) if self.halves else (self.parts,)
        return _mean([_mean([found[part] for part in group]) for group in groups])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_CHANCE = {"blimp": 50.0, "supplement": 50.0, "ewok": 50.0, "entity_tracking": 20.0, "comps": 50.0}
_PEOPLE = {READING: 0.0, ACQUISITION: 0.0}
RULES: dict[Edition, Rules] = {
    2026: Rules(
        "mean of nine parts, BabyLM 2026 (July)",
        ("blimp", "supplement", "ewok", "entity_tracking", "comps", GLUE, "global_piqa"),
        (READING, ACQUISITION),
        False,
        {**_CHANCE, "global_piqa": 37.5, **_PEOPLE},
    ),
    2025: Rules(
        "macro average, BabyLM 2025",
        ("blimp", "supplement", "ewok", "entity_tracking", "comps", GLUE),
        (READING, "wug_adjectives", "wug_past_tense", ACQUISITION),
        True,
        {**_CHANCE, **_PEOPLE, "wug_adjectives": 0.0, "wug_past_tense": 0.0},
    ),
}
LABELS = {
    **{"blimp": "BLiMP", "supplement": "supplement", "ewok": "EWoK", "entity_tracking": "entity tracking"},
    **{"comps": "COMPS", GLUE: "GLUE", "global_piqa": "GlobalPIQA", READING: "reading", ACQUISITION: "AoA"},
    **{"wug_adjectives": "WUG, adjectives", "wug_past_tense": "WUG, past"},
}


SUITES = {
    "blimp": "blimp",
    "blimp_supplement": "supplement",
    "ewok": "ewok",
    "entity_tracking_filtered": "entity_tracking",
    "comps": "comps",
    "global_piqa_parallel": "global_piqa_parallel",
    "global_piqa_nonparallel": "global_piqa_nonparallel",
}
"""Names of our suites, without their prefix, by the benchmark's key in BabyLM's submission."""


@dataclass(frozen=True)
class RowCount(Record):
    """Number of rows in the official data of a benchmark (`block`), for one paradigm or task (`uid`). If `uid` is
    empty, the number is the benchmark's total.

    `set` distinguishes the full data from the smaller data for intermediate checkpoints.
    """

    set: Literal["full", "checkpoint"]
    block: str
    uid: str
    rows: int


def suites_of(part: str) -> tuple[str, ...]:
    """Return the names of the suites that belong to a part of BabyLM's overall score. The names are without the prefix
    that all suites of an experiment share.
    """
    return PIQA if part == "global_piqa" else (part,)


def parts_of(measurements: "pl.DataFrame", suites: str, tasks: str, edition: Edition) -> dict[str, float | None]:
    """Return the score of one run for each part of BabyLM's overall score. `measurements` contains the run's rows of
    `measurements.parquet`.

    `suites` and `tasks` are the prefixes of names such as `<suites>_blimp` and `<tasks>_boolq`. If a part has several
    suites or tasks, its score is the mean of their scores. As on BabyLM's server, a missing suite or task counts as 0,
    unless all suites or tasks of the part are missing.
    """
    import polars as pl

    whole = measurements.filter(pl.col("value").is_not_null())
    averages = whole.filter((pl.col("level") == "average") & pl.col("metric").is_in(MEAN_METRICS))
    found = {(suite, task): value for suite, task, value in averages.select("suite", "task", "value").rows()}
    preferred = whole.filter(pl.col("metric") == CORRELATION).group_by("suite").agg(pl.col("value").mean())
    by_suite = {suite: value for (suite, task), value in found.items() if task == PARADIGM_AVERAGE}
    by_suite |= dict(preferred.rows())
    tuned = whole.filter(
        (pl.col("kind") == "finetuning") & (pl.col("level") == "task") & pl.col("primary") & pl.col("main")
    )
    by_task = dict(tuned.group_by("task").agg(pl.col("value").mean()).rows())

    def part(name: str) -> float | None:
        if name == GLUE:
            values = [by_task.get(f"{tasks}_{task}") for task in TASKS]
        elif name == READING:
            values = [found.get(("reading", "reading"))]
        elif name == ACQUISITION:
            values = [found.get(("acquisition", "age_of_acquisition"))]
        else:
            values = [by_suite.get(f"{suites}_{suite}") for suite in suites_of(name)]
        return None if all(value is None for value in values) else _mean([value or 0.0 for value in values])

    return {name: part(name) for name in RULES[edition].parts}


def official_parts(
    measurements: "pl.DataFrame", suites: str, tasks: str, counts: Sequence[RowCount]
) -> dict[str, bool]:
    """Map each measured part of BabyLM's overall score to True if the part was measured on the official data and with
    BabyLM's rules of 2026.

    `counts` are the official numbers of rows; all other arguments are as in `parts_of`. The age of acquisition has no
    official word list. It counts as official if all other measured parts are official.
    """
    import polars as pl

    expected: dict[str, dict[str, int]] = {}
    for count in counts:
        expected.setdefault(count.block, {})[count.uid] = count.rows
    accuracies = measurements.filter((pl.col("level") == "paradigm") & (pl.col("metric") == "accuracy_percent"))
    tuned = measurements.filter((pl.col("kind") == "finetuning") & (pl.col("level") == "task") & pl.col("main"))
    reading = measurements.filter((pl.col("suite") == READING) & (pl.col("task") == READING))
    found: dict[str, dict[str, int]] = {}
    for block, suite in SUITES.items():
        of_suite = accuracies.filter(pl.col("suite") == f"{suites}_{suite}")
        found[block] = dict(of_suite.select("task", "items").rows())
        if of_suite.filter(pl.col("settings").str.contains("BabyLM 2025", literal=True)).height:
            # These items were scored with the rules of BabyLM 2025. Remove the official number of items, so that the
            # suite does not count as official.
            expected.pop(block, None)
        if found[block] and set(expected.get(block, ())) == {""}:
            found[block] = {"": sum(found[block].values())}
    of_task = dict(tuned.select("task", "items").rows())
    found[GLUE] = {task: of_task[name] for task in TASKS if (name := f"{tasks}_{task}") in of_task}
    found[READING] = dict(reading.select("task", "items").rows())
    blocks = {suite: block for block, suite in SUITES.items()}
    official: dict[str, bool] = {}
    for part in RULES[2026].parts:
        own = [blocks[suite] for suite in suites_of(part)] if part in RULES[2026].suites else [part]
        if part != ACQUISITION and any(found[block] for block in own):
            official[part] = all(_same(found[block], expected.get(block, {}), part == GLUE) for block in own)
    if measurements.filter(pl.col("suite") == ACQUISITION).height:
        official[ACQUISITION] = all(official.values())
    return official


def _same(found: Mapping[str, int], expected: Mapping[str, int], some: bool) -> bool:
    """Return True if the measured number of rows of every measured task equals the official number. If `some` is false,
    also return False if some tasks were measured and other tasks were not.
    """
    return all(expected.get(uid) == rows for uid, rows in found.items()) and (some or len(found) in (0, len(expected)))


MEAN_METRICS = ("accuracy_percent", "gain_percent", "correlation_percent")
