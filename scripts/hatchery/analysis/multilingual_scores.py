"""Scores in BabyLM's multilingual track by language and by part of the benchmark, and the means of these scores.

Source: docs/papers/babylm-2026.md, "The multilingual track". A part is one task, or several tasks whose mean enters a
language's score. Each language has a fixed number of parts, and a missing part counts as 0. English, Dutch and Chinese
have 6, 7 and 6 zero-shot parts, and 8, 8 and 9 fine-tuning parts. These numbers follow from the printed means of the
organisers' baselines. The two tasks of GlobalPIQA count as one part.

We inferred that a language's score is the mean over all of its parts, without the Hanzi tasks and MECO, which only
BabyLM's server scores. The overall score is the mean of the three languages' scores.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hatchery.evaluation.minimal_pairs.measurements import PAIR_AVERAGE

if TYPE_CHECKING:
    import polars as pl

LANGUAGES = {"en": "English", "nl": "Dutch", "zh": "Mandarin"}
BLIMP = "blimp_babylm_filtered"
_PAIRS = {
    "en": {"blimp": (BLIMP,), "multiblimp": ("multiblimp_eng",)},
    "nl": {"blimp": ("blimp_nl",), "multiblimp": ("multiblimp_nld",), "xcomps": ("xcomps_nl",)},
    "zh": {"blimp": ("zhoblimp",), "xcomps": ("xcomps_zh",)},
}
_MUBENCH = ("hellaswag", "winogrande", "xstorycloze")
ZERO_SHOT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    language: {
        **pairs,
        **{name: (f"{name}_{language}_mubench",) for name in _MUBENCH},
        "global_piqa": (f"global_piqa_parallel_{language}", f"global_piqa_nonparallel_{language}"),
    }
    for language, pairs in _PAIRS.items()
}
"""Zero-shot tasks, named as by the organisers, by language and part of the score."""
HIDDEN = ("hanzi_structure", "hanzi_pinyin")
POS = "pos"
_TUNED = ("arc", "belebele", "bmlama", "include", "mnli", "sib200", "truthfulqa", "xnli")
FINETUNED: Mapping[str, tuple[str, ...]] = {
    "en": (*(task for task in _TUNED if task != "include"), POS),
    "nl": (*(task for task in _TUNED if task != "xnli"), POS),
    "zh": (*_TUNED, POS),
}
"""Fine-tuning tasks by language."""
READING = {"meco_l1": ("eng", "nld", "zho"), "meco_l2": ("nld", "zho")}
"""Languages of the eye-tracking corpora MECO L1 and L2."""
GROUPS = ("zero-shot", "fine-tuning")
Parts = Mapping[str, Mapping[str, Mapping[str, float | None]]]
"""Scores from 0 to 100 points by language, group (zero-shot or fine-tuning) and part. A score is None if it was not
measured.
"""


def zero_shot_tasks() -> tuple[str, ...]:
    """Return the names of all zero-shot tasks, including the two Hanzi tasks, which only BabyLM's server scores."""
    return (*(task for parts in ZERO_SHOT.values() for tasks in parts.values() for task in tasks), *HIDDEN)


def finetuned_names() -> tuple[str, ...]:
    """Return the names of all fine-tuning tasks with their languages, such as `arc_nl`.

    Part-of-speech tagging is one task for all languages.
    """
    return (*(f"{task}_{language}" for language, tasks in FINETUNED.items() for task in tasks if task != POS), POS)


def parts_of(measurements: "pl.DataFrame", suites: str, tasks: str) -> Parts:
    """Return the scores of one run by language, group (zero-shot or fine-tuning) and part of the benchmark, given the
    run's rows of `measurements.parquet`.

    `suites` and `tasks` are the prefixes of names such as `<suites>_zhoblimp` and `<tasks>_arc_nl`. If a part has
    several tasks, its score is the mean of their scores; a missing task counts as 0, unless all tasks of the part are
    missing. The score of a fine-tuning task is the mean over the fine-tuning runs.
    """
    import polars as pl

    whole, of_suite = measurements.filter(pl.col("value").is_not_null()), _pair_averages(measurements)
    tuned = whole.filter(
        (pl.col("kind") == "finetuning") & (pl.col("level") == "task") & (pl.col("metric") == "accuracy_percent")
    )
    of_task = dict(tuned.group_by("task").agg(pl.col("value").mean()).rows())

    def mean(names: Sequence[str]) -> float | None:
        values = [of_suite.get(f"{suites}_{name}") for name in names]
        return None if all(value is None for value in values) else _mean(values)

    return {
        language: {
            "zero-shot": {part: mean(names) for part, names in ZERO_SHOT[language].items()},
            "fine-tuning": {task: of_task.get(f"{tasks}_{task}_{language}") for task in FINETUNED[language]},
        }
        for language in LANGUAGES
    }


def hidden_parts(measurements: "pl.DataFrame", suites: str) -> dict[str, float | None]:
    """Return the accuracy in percent by task, for the two Hanzi tasks, whose official scores only BabyLM's server
    computes; None for a task that was not measured.
    """
    found = _pair_averages(measurements)
    return {task: found.get(f"{suites}_{task}") for task in HIDDEN}


def _pair_averages(measurements: "pl.DataFrame") -> dict[str, float | None]:
    import polars as pl

    averages = measurements.filter((pl.col("task") == PAIR_AVERAGE) & (pl.col("metric") == "accuracy_percent"))
    return dict(averages.select("suite", "value").rows())


def group_mean(parts: Mapping[str, float | None]) -> float:
    """Return the mean of the scores in `parts`, such as all zero-shot tasks; a missing score counts as 0."""
    return _mean(parts.values())


def language_mean(groups: Mapping[str, Mapping[str, float | None]]) -> float:
    """Return the mean score over all parts of a language, given by group (zero-shot or fine-tuning) and part; a missing
    score counts as 0.
    """
    return _mean(value for parts in groups.values() for value in parts.values())


def overall(parts: Parts) -> float:
    """Return the mean over English, Dutch and Mandarin of the language's mean score (`language_mean`)."""
    return _mean(language_mean(parts[language]) for language in LANGUAGES)


def _mean(values: Iterable[float | None]) -> float:
    found = [value or 0.0 for value in values]
    return math.fsum(found) / len(found)
