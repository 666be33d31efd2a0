"""Small tasks with settings and rows, the fine-tuning stage on these tasks, and its outputs."""

import csv

import numpy as np
import pyarrow.parquet as pq

from hatchery.evaluation.stages.finetune import finetune
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.runner import run_stage

SEEDS, RATES = [12, 642], [3e-3, 1e-3]
TASK = {
    "name": "agreement",
    "suite": "demo",
    "format": "rows",
    "files": {"train": "train.jsonl", "validation": "validation.jsonl"},
    "fields": ["sentence"],
    "labels": ["bad", "good"],
    "metrics": ["accuracy", "f1", "mcc"],
}
PROTOCOL = {
    "epochs": 3,
    "batch_size": 8,
    "learning_rates": RATES,
    "warmup_fraction": 0.1,
    "schedule": "cosine",
    "weight_decay": 0.1,
    "beta1": 0.9,
    "beta2": 0.999,
    "epsilon": 1e-8,
    "max_gradient_norm": 1.0,
    "dropout": 0.1,
    "max_length": 24,
    "selection": "held_out",
    "development_fraction": 0.2,
    "evaluation_interval_steps": None,
    "patience_evaluations": 2,
    "minimum_improvement": 0.0,
    "selection_metric": None,
    "seeds": SEEDS,
}
SETTINGS = {"stage": "finetune", "stage_version": 2, "task": TASK, "protocol": PROTOCOL}
RUNTIME = {"device": "cpu", "threads": 1}


ROWS_TASK = {
    "name": "mine",
    "suite": "glue",
    "format": "rows",
    "files": {"train": "train.json", "validation": "dev.json"},
    "labels": (0, 1),
    "metrics": ("accuracy",),
    "fields": ("sentence",),
}


def rows_task(**changes):
    """Return the settings of a task of rows, without the task's files."""
    return TaskSettings(**{**ROWS_TASK, **changes})


def finetuned(output, settings, model, sources, checkpoints, **runtime):
    """Run the stage `finetune` and return `output`, the folder with its files."""
    given = {"model": model, "source": sources, "checkpoints": checkpoints}
    run_stage(finetune, settings, output / "manifest.json", runtime={**RUNTIME, **runtime}, **given)
    return output


def results(folder, name="results.csv"):
    """Return the rows of a results table."""
    with (folder / name).open(newline="") as handle:
        return list(csv.DictReader(handle))


def predictions(folder):
    """Return the rows of the predictions."""
    return pq.read_table(folder / "predictions.parquet").to_pylist()


def changed(task=None, transfer=(), **protocol):
    task = TASK if task is None else {**TASK, **task}
    return {**SETTINGS, "task": task, "protocol": {**PROTOCOL, **protocol}, "transfer": list(transfer)}


def short(task=None, transfer=(), **protocol):
    """Return the settings of one run of one epoch."""
    return changed(task, transfer, **{"epochs": 1, "seeds": [12], "learning_rates": [3e-3], **protocol})


def sentences(n, seed):
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        plural, agrees = random.integers(2, size=2)
        noun = random.choice(["dog", "cat", "house"]) + "s" * int(plural)
        verb = "sleep" if bool(plural) == bool(agrees) else "sleeps"
        text = f"The {random.choice(['old', 'near'])} {noun} {verb} ."
        rows.append({"sentence": text, "label": ["bad", "good"][agrees], "kind": ["one", "many"][plural]})
    return rows


def contents(folder):
    return {name: (folder / name).read_bytes() for name in ("results.csv", "predictions.parquet", "manifest.json")}
