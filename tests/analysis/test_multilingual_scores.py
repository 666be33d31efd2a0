"""Means of BabyLM's multilingual track, against the means that the organisers print for their baselines."""

import polars as pl
import pytest

from hatchery.analysis.multilingual_scores import (
    FINETUNED,
    LANGUAGES,
    ZERO_SHOT,
    finetuned_names,
    group_mean,
    language_mean,
    overall,
    parts_of,
    zero_shot_tasks,
)

# Rows of the organisers' README of July 2026: the parts and the printed mean. A part without a printed number (parts of
# speech of GPT2-Strict) is missing.
PRINTED = [
    (
        *("en", "zero-shot", 54.60),
        {"blimp": 73.81, "global_piqa": 36.62, "hellaswag": 26.45, "multiblimp": 88.57, "winogrande": 51.44},
        {"xstorycloze": 50.70},
    ),
    (
        *("nl", "zero-shot", 56.28),
        {"blimp": 81.70, "global_piqa": 41.61, "hellaswag": 26.45, "multiblimp": 92.62, "winogrande": 48.80},
        {"xcomps": 53.87, "xstorycloze": 48.92},
    ),
    (
        *("zh", "zero-shot", 49.28),
        {"hellaswag": 27.06, "global_piqa": 39.61, "winogrande": 49.55, "xcomps": 53.61, "xstorycloze": 48.84},
        {"blimp": 77.03},
    ),
    (
        *("en", "fine-tuning", 33.19),
        {"arc": 24.17, "belebele": 26.14, "bmlama": 11.01, "mnli": 51.91, "sib200": 82.50, "truthfulqa": 23.21},
        {"xnli": 46.55},
    ),
    (
        *("nl", "fine-tuning", 41.31),
        {"arc": 24.38, "belebele": 22.73, "bmlama": 12.00, "include": 31.25, "mnli": 45.38, "pos": 95.54},
        {"sib200": 76.00, "truthfulqa": 23.21},
    ),
    (
        *("zh", "fine-tuning", 41.07),
        {"arc": 23.54, "belebele": 26.14, "bmlama": 8.86, "include": 26.79, "mnli": 46.06, "pos": 90.72},
        {"sib200": 78.00, "truthfulqa": 23.21, "xnli": 46.30},
    ),
]


def rows(suites=(), tasks=()):
    columns = ("kind", "suite", "task", "level", "metric", "value")
    found = [
        ("minimal_pairs", f"x_{name}", "pair_average", "average", "accuracy_percent", value) for name, value in suites
    ]
    found += [
        ("minimal_pairs", f"x_{name}", task, "average", metric, 1.0)
        for name, _ in suites
        for task, metric in (
            ("paradigm_average", "accuracy_percent"),
            ("pair_average", "accuracy_ties_correct_percent"),
        )
    ]
    found += [("finetuning", "tuned", f"y_{name}", "task", "accuracy_percent", value) for name, value in tasks]
    return pl.DataFrame(found, schema=columns, orient="row")


@pytest.mark.parametrize(("language", "group", "mean", "first", "more"), PRINTED)
def test_the_printed_means_have_fixed_numbers_of_parts(language, group, mean, first, more):
    points = {**first, **more}
    if group == "zero-shot":
        named = [(name, points[part]) for part, names in ZERO_SHOT[language].items() for name in names]
        frame = rows(suites=named)
    else:
        frame = rows(tasks=[(f"{task}_{language}", value) for task, value in points.items()])
    found = parts_of(frame, "x", "y")[language][group]
    assert {part: value for part, value in found.items() if value is not None} == pytest.approx(points)
    assert group_mean(found) == pytest.approx(mean, abs=0.005)


def test_a_missing_part_counts_0_and_the_languages_weigh_the_same():
    """There are 14, 15 and 15 parts: 42 points of one English part are 3 points of English and 1 overall."""
    parts = parts_of(rows(tasks=[("arc_en", 42.0)]), "x", "y")
    sizes = {language: sum(map(len, groups.values())) for language, groups in parts.items()}
    assert sizes == {"en": 14, "nl": 15, "zh": 15}
    assert [language_mean(parts[language]) for language in LANGUAGES] == [3.0, 0.0, 0.0]
    assert overall(parts) == 1.0


def test_a_task_is_the_mean_of_the_accuracies_of_its_runs():
    two = rows(tasks=[("arc_en", 80.0), ("arc_en", 60.0)])
    other = rows(tasks=[("arc_en", 1.0)]).with_columns(metric=pl.lit("f1_percent"))
    assert parts_of(pl.concat([two, other]), "x", "y")["en"]["fine-tuning"]["arc"] == 70.0


def test_one_of_both_tasks_of_global_piqa_counts_half():
    parts = parts_of(rows(suites=[("global_piqa_parallel_zh", 50.0)]), "x", "y")
    assert parts["zh"]["zero-shot"]["global_piqa"] == 25.0
    assert parts["en"]["zero-shot"]["global_piqa"] is None


def test_the_track_has_7_8_and_9_zero_shot_tasks_and_eight_or_nine_to_fine_tune():
    tasks = {language: [name for names in parts.values() for name in names] for language, parts in ZERO_SHOT.items()}
    assert {language: len(names) for language, names in tasks.items()} == {"en": 7, "nl": 8, "zh": 7}
    # With both tasks of Hanzi, Mandarin has nine.
    assert len(zero_shot_tasks()) == 7 + 8 + 9
    assert {language: len(names) for language, names in FINETUNED.items()} == {"en": 8, "nl": 8, "zh": 9}
    assert len(finetuned_names()) == 7 + 7 + 8 + 1
