"""An experiment whose outputs lie on disk as the stages write them, small enough to compute its summary by hand."""

import csv
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import stage_run


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()


class Experiment:
    """Writes outputs below `folder` and remembers the manifests under the names that the commands take."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cells: list[dict[str, Any]] = []
        self.suites: list[str] = []
        self.tasks: list[str] = []
        self.pretraining: dict[str, Path] = {}
        self.minimal_pairs: dict[str, Path] = {}
        self.finetuning: dict[str, Path] = {}

    def copied(self, folder: Path) -> "Experiment":
        shutil.copytree(self.folder, folder)
        copy = Experiment(folder)
        copy.cells, copy.suites, copy.tasks = list(self.cells), list(self.suites), list(self.tasks)
        for kind in ("pretraining", "minimal_pairs", "finetuning"):
            moved = {name: folder / path.relative_to(self.folder) for name, path in getattr(self, kind).items()}
            setattr(copy, kind, moved)
        return copy

    def add_model(
        self,
        run: str,
        seed: int,
        metrics: Sequence[Mapping[str, Any]],
        layers: int = 2,
        alphas: Mapping[tuple[int, int], float] | None = None,
    ) -> str:
        """`alphas` by (consuming layer, producing layer); None for a model without layer weighting."""
        cell = f"{run}-s{seed}"
        self.cells.append({"cell": cell, "run": run, "seed": seed})
        folder = self.folder / "pretraining" / cell
        files = {
            "metrics.jsonl": "".join(json.dumps(row) + "\n" for row in metrics),
            "config.json": json.dumps(
                {"num_hidden_layers": layers, "layer_weighting": "none" if alphas is None else "zero"}
            ),
        }
        if alphas is not None:
            rows = [
                {"consuming_layer": n, "producing_layer": i, "weight": alpha, "scaled_weight": n * alpha}
                for (n, i), alpha in alphas.items()
            ]
            files["layer_weights.json"] = json.dumps({"rows": rows})
        with stage_run(folder / "manifest.json", {"stage": "pretrain", "cell": cell}) as stage:
            for name, text in files.items():
                write_text(folder / name, text)
                stage.add_output(folder / name)
        self.pretraining[cell] = folder / "manifest.json"
        return cell

    def add_minimal_pairs(self, cell: str, suite: str, phenomena: Mapping[str, Mapping[str, tuple[int, int]]]) -> Path:
        """`phenomena` maps phenomenon and paradigm to (correct, pairs)."""
        rows: list[list[Any]] = []
        for paradigms in phenomena.values():
            rows += [["paradigm", name, pairs, right, 0, right / pairs] for name, (right, pairs) in paradigms.items()]
        for name, paradigms in phenomena.items():
            right, pairs = (sum(values) for values in zip(*paradigms.values(), strict=True))
            rows.append(["phenomenon", name, pairs, right, 0, right / pairs])
        rows.append(["suite", suite, 1, 1, 0, 1.0])
        text = table(("level", "name", "pairs", "correct", "ties", "accuracy"), rows)
        path = self._evaluation("minimal_pairs", cell, suite, {"suite": suite}, {"accuracy.csv": text})
        self.minimal_pairs[f"{cell}:{suite}"] = path
        self.suites = list(dict.fromkeys([*self.suites, suite]))
        return path

    def add_finetuning(
        self, cell: str, task: str, metrics: Sequence[str], results: Mapping[int, tuple[Sequence[float | None], str]]
    ) -> Path:
        """`results` maps a fine-tuning seed to its values in the order of `metrics`, and the reason of failure."""
        rows = [
            [seed, metric, value, 3, value, failed]
            for seed, (values, failed) in results.items()
            for metric, value in zip(metrics, values, strict=True)
        ]
        text = table(("seed", "metric", "value", "best_epoch", "development_value", "failed"), rows)
        settings = {"task": {"name": task, "metrics": list(metrics)}}
        path = self._evaluation("finetuning", cell, task, settings, {"results.csv": text})
        self.finetuning[f"{cell}:{task}"] = path
        self.tasks = list(dict.fromkeys([*self.tasks, task]))
        return path

    def _evaluation(
        self, stage: str, cell: str, name: str, settings: Mapping[str, Any], files: Mapping[str, str]
    ) -> Path:
        folder = self.folder / stage / cell / name
        with stage_run(folder / "manifest.json", settings, {"model": self.pretraining[cell]}) as run:
            for file, text in files.items():
                write_text(folder / file, text)
                run.add_output(folder / file)
        return folder / "manifest.json"

    def summary_settings(self, published: str | None = None) -> dict[str, Any]:
        return {
            "stage": "summarise",
            "stage_version": 1,
            "experiment": "demo",
            "cells": self.cells,
            "suites": self.suites,
            "tasks": self.tasks,
            "published": published,
        }

    def figure_settings(self, **style: Any) -> dict[str, Any]:
        return {"stage": "plot", "stage_version": 1, "experiment": "demo", "cells": self.cells, "style": style}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """An experiment without any output yet."""
    return Experiment(tmp_path / "results" / "demo")


def curve(final_loss: float) -> list[dict[str, Any]]:
    """Four steps of 1,000 tokens each, evaluated after the second and the fourth."""
    losses = [final_loss + 3, final_loss + 2, final_loss + 1, final_loss]
    rows: list[dict[str, Any]] = [
        {"step": step, "tokens": 1000 * step, "loss": loss} for step, loss in enumerate(losses, start=1)
    ]
    rows[1] |= {"development_loss": final_loss + 2.5, "development_perplexity": 50.0}
    rows[3] |= {"development_loss": final_loss + 0.5, "development_perplexity": 20.0 * final_loss}
    return rows


@pytest.fixture
def two_models(two_models_once: Experiment, tmp_path: Path) -> Experiment:
    """A copy, free to be damaged, of the experiment of `two_models_once`."""
    return two_models_once.copied(tmp_path / "results" / "demo")


@pytest.fixture(scope="session")
def two_models_once(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Models `plain` (seeds 1 and 2) and `elc` (seed 1), one suite of two phenomena, tasks cola and rte."""
    experiment = Experiment(tmp_path_factory.mktemp("two_models"))
    for run, seed, loss, alphas in (
        ("plain", 1, 1.0, None),
        ("plain", 2, 2.0, None),
        ("elc", 1, 1.5, {(1, 0): 1.0, (2, 0): 0.25, (2, 1): 0.75}),
    ):
        experiment.add_model(run, seed, curve(loss), alphas=alphas)
    pairs = {"plain-s1": (80, 60), "plain-s2": (90, 50), "elc-s1": (95, 75)}
    for cell, (first, second) in pairs.items():
        experiment.add_minimal_pairs(
            cell,
            "blimp",
            {"agreement": {"gender": (first, 100), "number": (60, 100)}, "ellipsis": {"n": (second, 100)}},
        )
    for cell, task, results in (
        ("plain-s1", "cola", {12: ((0.70, 0.10), ""), 13: ((0.72, 0.20), "")}),
        ("plain-s2", "cola", {12: ((0.74, 0.30), ""), 13: ((0.69, 0.0), "majority_class")}),
        ("elc-s1", "cola", {12: ((0.80, 0.40), ""), 13: ((0.82, 0.50), "")}),
    ):
        experiment.add_finetuning(cell, task, ("accuracy", "mcc"), results)
    for cell, results in (
        ("plain-s1", {12: ((0.50,), ""), 13: ((0.52,), "")}),
        ("plain-s2", {12: ((0.54,), ""), 13: ((0.56,), "")}),
        ("elc-s1", {12: ((None,), "nan"), 13: ((0.60,), "")}),
    ):
        experiment.add_finetuning(cell, "rte", ("accuracy",), results)
    return experiment
