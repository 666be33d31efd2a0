"""Write the two files for BabyLM's multilingual track: one with a model's accuracies, one with its predictions and the
scores of its checkpoints.

Source: docs/papers/babylm-2026.md, "The multilingual track". Tasks without measurements are omitted from the files and
listed in the report. Accuracies are fractions. This is inferred from the library that computes BabyLM's scores.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from hatchery.analysis.multilingual_scores import (
    BLIMP,
    FINETUNED,
    GROUPS,
    HIDDEN,
    LANGUAGES,
    POS,
    READING,
    Parts,
    finetuned_names,
    group_mean,
    hidden_parts,
    language_mean,
    overall,
    parts_of,
    zero_shot_tasks,
)
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest
from hatchery.evaluation.minimal_pairs.items import BY_PAIR
from hatchery.evaluation.reading_times.measurements import item_words
from hatchery.export.multilingual_check import structure_problems
from hatchery.export.settings import MultilingualSubmissionSettings
from hatchery.rendering.escaping import markdown_text

Found = Mapping[str, Path]
"""Type of a mapping from BabyLM's name of a task to the manifest of an evaluation. For checkpoints, the keys are names
such as `chck_1M/zhoblimp`.
"""
MAIN_SET = "validation"


@dataclass(frozen=True)
class Evaluated:
    """Manifests of all evaluations of a model.

    The keys of `zero_shot` are tasks, the keys of `finetuned` are names such as `arc_nl` and `pos`, and the keys of
    `reading` are names such as `meco_l1_eng`. `fast` contains the evaluations of checkpoints, with the keys
    `<checkpoint>/<task>`.
    """

    zero_shot: Found
    finetuned: Found
    reading: Found
    fast: Found


def write_files(
    settings: MultilingualSubmissionSettings, evaluated: Evaluated, measurements: Path, run: StageRun
) -> None:
    """Write the two submission files for BabyLM's multilingual track, and a report. The stage
    `write_multilingual_submission` calls this function."""
    accuracies = submission(evaluated)
    predicted = predictions(settings, evaluated)
    frame = read_frame(measurements, MEASUREMENTS, run=(settings.run,))
    parts, hidden = parts_of(frame, settings.suites, settings.tasks), hidden_parts(frame, settings.suites)
    for name, text in (
        (f"{settings.model}_submission.json", json.dumps(accuracies) + "\n"),
        (f"{settings.model}_predictions.json", json.dumps(predicted) + "\n"),
        ("submission.md", report(settings, accuracies, predicted, parts, hidden)),
    ):
        write_text(run.add_output(run.folder / name), text)


def public_name(task: str) -> str:
    """Return the name of a zero-shot task in BabyLM's files. It is `blimp` for BLiMP, and Hatchery's name for all other
    tasks.
    """
    return "blimp" if task == BLIMP else task


def submission(evaluated: Evaluated) -> dict[str, dict[str, float]]:
    """Return the content of `<model>_submission.json`. Raises ManifestError for a missing or damaged manifest."""
    found: dict[str, dict[str, float]] = {}
    for task in zero_shot_tasks():
        if task in evaluated.zero_shot and task not in HIDDEN:
            name = public_name(task)
            found[name] = {name: _accuracies(read_manifest(evaluated.zero_shot[task]))[BY_PAIR]}
    for name, path in evaluated.finetuned.items():
        of_set = _tuned(read_manifest(path))
        if name == POS:
            found[POS] = {language: of_set[language] for language in LANGUAGES if language in of_set}
        else:
            task, _, language = name.rpartition("_")
            found.setdefault(task, {})[language] = of_set[MAIN_SET]
    return found


def predictions(settings: MultilingualSubmissionSettings, evaluated: Evaluated) -> dict[str, Any]:
    """Return the content of `<model>_predictions.json`. Raises ManifestError for a missing or damaged manifest."""
    zero_shot = {task: read_manifest(path) for task, path in evaluated.zero_shot.items()}
    hidden: dict[str, Any] = {task: _documents(zero_shot[task]) for task in HIDDEN if task in zero_shot}
    for name, languages in READING.items():
        texts = {one: evaluated.reading[f"{name}_{one}"] for one in languages if f"{name}_{one}" in evaluated.reading}
        if texts:
            hidden[name] = {language: _words(read_manifest(path)) for language, path in texts.items()}
    fast: dict[str, dict[str, float]] = {name: {} for name in settings.checkpoints}
    for place, path in evaluated.fast.items():
        checkpoint, _, task = place.partition("/")
        manifest = read_manifest(path)
        value = _gain(manifest) if task.startswith("meco") else _accuracies(manifest)[BY_PAIR]
        fast[checkpoint][public_name(task)] = value
    return {
        "zeroshot": _results({task: made for task, made in zero_shot.items() if task not in HIDDEN}),
        "finetune": dict(_labels({name: read_manifest(path) for name, path in evaluated.finetuned.items()})),
        "hidden": hidden,
        "fast_eval_results": list(fast.values()),
    }


def _accuracies(manifest: Manifest) -> dict[str, float]:
    """Return the accuracy on each paradigm as a fraction. The key BY_PAIR contains the accuracy over all pairs."""
    rows = _csv(manifest.file("accuracy.csv"))
    found = {row["name"]: float(row["accuracy"]) for row in rows if row["level"] == "paradigm"}
    whole = next(row for row in rows if row["level"] == "suite" and row["name"].endswith(BY_PAIR))
    return {**found, BY_PAIR: float(whole["accuracy"])}


def _tuned(manifest: Manifest) -> dict[str, float]:
    """Return, for each scored set of rows, the accuracy of the model that was fine-tuned with the first seed and
    learning rate. All accuracies are 0 if this fine-tuning diverged.
    """
    found: dict[str, float] = {}
    for row in _csv(manifest.file("results.csv")):
        if row["metric"] == "accuracy":
            found.setdefault(row["rows"], float(row["value"] or 0.0))
    return found


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _results(manifests: Mapping[str, Manifest]) -> dict[str, Any]:
    """Return the accuracies of tasks and of their paradigms, in the format of lm-evaluation-harness."""
    results: dict[str, dict[str, Any]] = {}
    subtasks: dict[str, list[str]] = {}
    for task, manifest in manifests.items():
        found = _accuracies(manifest)
        metric = "acc_norm,none" if task.startswith("global_piqa") else "acc,none"
        results[task] = {"alias": task, metric: found.pop(BY_PAIR)}
        if len(found) > 1:
            subtasks[task] = [f"{task}_{paradigm}" for paradigm in found]
            for paradigm, value in found.items():
                results[f"{task}_{paradigm}"] = {"alias": f" - {task}_{paradigm}", metric: value}
    return {"results": results, "group_subtasks": subtasks}


def _documents(manifest: Manifest) -> dict[str, Any]:
    """Return, for each pair of sentences of a Hanzi task (`hanzi_structure` or `hanzi_pinyin`), the scores of both
    sentences. The keys are lm-evaluation-harness's names of the pairs.
    """
    rows = pq.read_table(manifest.file("scores.parquet")).to_pylist()
    return {
        row["pair_id"]: {"scores": [row["score_good"], row["score_bad"]], "has_unk": row["unknown"]} for row in rows
    }


def _words(manifest: Manifest) -> dict[str, float]:
    """Return the surprisals (nats) of the words of a MECO text. The keys have the form `item:position`, with the
    position of the word in the item. If a key occurs several times, the first surprisal is returned.
    """
    return item_words(pl.read_parquet(manifest.file("words.parquet")))


def _gain(manifest: Manifest) -> float:
    """Return the gain in log-likelihood (nats) that the model's surprisals give in the regression of a text's reading
    times.
    """
    return float(_csv(manifest.file("scores.csv"))[0]["gain_nats"])


def _labels(manifests: Mapping[str, Manifest]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield, for each fine-tuned task, its name and the predicted labels of its scored rows, from the fine-tuning with
    the first seed and learning rate.

    For part-of-speech tagging, yield the labels of all words of each language's test set.
    """
    columns = ["rows", "seed", "learning_rate", "row", "scored", "prediction"]
    for name, manifest in manifests.items():
        table = pq.read_table(manifest.file("predictions.parquet"), columns=columns).to_pylist()
        sets = {f"test_{one}": f"{POS}_{one}" for one in LANGUAGES} if name == POS else {MAIN_SET: name}
        for rows, called in sets.items():
            chosen = [row for row in table if row["rows"] == rows and row["scored"]]
            first = [row for row in chosen if (row["seed"], row["learning_rate"]) == _run_of(chosen[0])]
            yield called, [{"index": row["row"], "prediction": row["prediction"]} for row in first]


def _run_of(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return row["seed"], row["learning_rate"]


def missing_parts(evaluated: Mapping[str, Any], predicted: Mapping[str, Any], checkpoints: int) -> list[str]:
    """Return one line for each task without results in the files, and one line if results of checkpoints are
    missing."""
    found = [
        f"zero-shot: {public_name(task)}"
        for task in zero_shot_tasks()
        if task not in HIDDEN and public_name(task) not in evaluated
    ]
    for language, tasks in FINETUNED.items():
        found += [f"fine-tuning: {task}, {language}" for task in tasks if language not in evaluated.get(task, ())]
    found += [f"hidden: {task}" for task in HIDDEN if task not in predicted["hidden"]]
    for name, languages in READING.items():
        found += [f"hidden: {name}, {one}" for one in languages if one not in predicted["hidden"].get(name, ())]
    without = sum(not entry for entry in predicted["fast_eval_results"])
    measured = len(predicted["fast_eval_results"]) - without
    return [*found, f"fast_eval_results: {measured} of {checkpoints} checkpoints"] if measured < checkpoints else found


CHECKPOINTS = 28


def report(
    settings: MultilingualSubmissionSettings,
    accuracies: Mapping[str, Any],
    predicted: Mapping[str, Any],
    parts: Parts,
    hidden: Mapping[str, float | None],
) -> str:
    """Return a Markdown report on the two submission files; the user reads the report before uploading the files."""
    rows = []
    for language, name in LANGUAGES.items():
        of_groups = [
            f"{group_mean(parts[language][group]):.2f} ({len(parts[language][group])} parts)" for group in GROUPS
        ]
        rows.append(f"| {name} | {' | '.join(of_groups)} | {language_mean(parts[language]):.2f} |")
    said = ", ".join(f"{task} {'-' if value is None else f'{value:.2f}'}" for task, value in hidden.items())
    missing = missing_parts(accuracies, predicted, CHECKPOINTS)
    problems = structure_problems(accuracies, predicted)
    checked = (
        "the experiment was checked against the track's rules."
        if settings.track_checked
        else "the track's rules were not checked, because the experiment has no `track: multilingual`."
    )
    lines = [
        f"# Submission: {markdown_text(settings.model)}",
        "",
        f"Track multilingual: {checked}",
        "",
        f"Overall: **{overall(parts):.2f}**, the mean of three languages. Missing parts count as 0.",
        "",
        "| language | zero-shot | fine-tuning | mean of all parts |",
        "|:--|--:|--:|--:|",
        *rows,
        "",
        f"From the predictions, the server also computes scores for Hanzi ({said}) and for reading times. Hatchery "
        "does not know the weight of these scores in the overall score.",
        "",
        "## Missing parts",
        "",
        *([f"- {markdown_text(one)}" for one in missing] or ["No part is missing."]),
        "",
        "## Structure",
        "",
        *(
            [f"- {markdown_text(one)}" for one in problems]
            or ["Both files have the structure that the collator writes."]
        ),
    ]
    return "\n".join(lines) + "\n"


def all_names(suites: str, tasks: str) -> tuple[list[str], list[str]]:
    """Return the names of the suites and of the tasks of a submission. The names of suites begin with `suites`, and the
    names of tasks begin with `tasks`.
    """
    return [f"{suites}_{task}" for task in zero_shot_tasks()], [f"{tasks}_{name}" for name in finetuned_names()]
