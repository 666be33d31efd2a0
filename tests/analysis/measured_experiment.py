"""An experiment whose outputs are on disk as the stages write them, small enough to compute its summary by hand."""

import csv
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from hatchery.analysis.stages.collect_measurements import collect_measurements
from hatchery.analysis.summary import shown_pairs
from hatchery.analysis.tidy_tables import MEASUREMENTS, TABLES, read_frame
from hatchery.artifacts.atomic import write_bytes, write_text
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.runner import run_stage


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()


PRETRAINING: dict[str, Any] = {
    "stage": "pretrain",
    "stage_version": 1,
    "model": {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 32,
        "position_bucket_size": 8,
    },
    "objective": {"kind": "subword"},
    "sequence_length": 32,
    "batch_size": 4,
    "evaluation_interval_steps": 2,
}

Run = int | tuple[int, float]
Results = Mapping[Run, tuple[Sequence[float | None], str]]


class Experiment:
    """Writes outputs below `folder` and stores their manifests under the stages' input names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: list[dict[str, Any]] = []
        self.suites: list[str] = []
        self.tasks: list[str] = []
        self.pretraining: dict[str, Path] = {}
        self.minimal_pairs: dict[str, Path] = {}
        self.finetuning: dict[str, Path] = {}
        self.perplexity: dict[str, Path] = {}
        self.surprisal: dict[str, Path] = {}
        self.further: dict[str, Path] = {}
        self.baseline: dict[str, Path] = {}
        self.tokens: Path | None = None
        """Manifests of the token shards that models read, and of the corpus with the documents of these shards."""
        self.corpus: Path | None = None

    def copied(self, folder: Path) -> "Experiment":
        shutil.copytree(self.folder, folder)
        copy = Experiment(folder)
        copy.runs, copy.suites, copy.tasks = [dict(run) for run in self.runs], list(self.suites), list(self.tasks)
        for kind in ("pretraining", "minimal_pairs", "finetuning", "perplexity", "surprisal", "baseline"):
            moved = {name: folder / path.relative_to(self.folder) for name, path in getattr(self, kind).items()}
            setattr(copy, kind, moved)
        return copy

    def add_model(
        self,
        model: str,
        seed: int,
        metrics: Sequence[Mapping[str, Any]],
        layers: int = 2,
        alphas: Mapping[tuple[int, int], float] | None = None,
        causal: bool = False,
        initial: Path | None = None,
        seconds: float | None = None,
        measures: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> str:
        """Write a model; `alphas` are weights by (consuming layer, producing layer), or None without layer weighting.

        `initial` is the manifest of the initial model, `seconds` the training time; `measures` are further facts of the
        manifest, `more` further settings. A `budget` replaces the steps.
        """
        run = f"{model}-s{seed}"
        self.runs.append({"name": run, "model": model, "seed": seed})
        folder = self.folder / "pretraining" / run
        files = {
            "metrics.jsonl": "".join(json.dumps(row) + "\n" for row in metrics),
            "config.json": json.dumps(
                {
                    **PRETRAINING["model"],
                    "num_hidden_layers": layers,
                    "layer_weighting": "none" if alphas is None else "zero",
                    "vocab_size": 100,
                    **({"causal": True} if causal else {}),
                }
            ),
        }
        if alphas is not None:
            rows = [
                {"consuming_layer": n, "producing_layer": i, "weight": alpha, "scaled_weight": n * alpha}
                for (n, i), alpha in alphas.items()
            ]
            files["layer_weights.json"] = json.dumps({"rows": rows})
        settings = {**PRETRAINING, "steps": len(metrics), "seed": seed, **more}
        if "budget" in more:
            del settings["steps"]
        inputs = {} if initial is None else {"initial_model": initial}
        inputs |= {} if self.tokens is None else {"tokens": self.tokens}
        with stage_run(folder / "manifest.json", settings, inputs) as stage:
            last = metrics[-1] if metrics else {"step": 0, "tokens": 0}
            if seconds is not None:
                stage.volatile["training_seconds"] = seconds
            stage.measures.update(parameters=1000 * layers, steps=last["step"], tokens=last["tokens"], run=model)
            stage.measures.update(measures or {})
            for name, text in files.items():
                write_text(folder / name, text)
                stage.add_output(folder / name)
        self.pretraining[run] = folder / "manifest.json"
        return run

    def add_minimal_pairs(
        self,
        run: str,
        suite: str,
        phenomena: Mapping[str, Mapping[str, tuple[int, int]]],
        ties: int = 0,
        chance: Mapping[str, float] | None = None,
    ) -> Path:
        """Write a suite; `phenomena` maps phenomenon and paradigm to (correct, pairs); every paradigm has `ties`.

        `chance` is the accuracy of a blind guess by phenomenon. A `run` that is not a model of the experiment is a
        baseline.
        """
        rows: list[list[Any]] = []
        chance = chance or {}

        def add(level: str, name: str, right: int, pairs: int, tied: int, phenomenon: str = "") -> None:
            row = [level, name, pairs, right, tied, right / pairs, (right + tied) / pairs]
            rows.append([*row, *([chance.get(phenomenon, 0.5)] if chance else [])])

        for phenomenon, paradigms in phenomena.items():
            for name, (right, pairs) in paradigms.items():
                add("paradigm", name, right, pairs, ties, phenomenon)
        for name, paradigms in phenomena.items():
            right, pairs = (sum(values) for values in zip(*paradigms.values(), strict=True))
            add("phenomenon", name, right, pairs, ties * len(paradigms), name)
        add("suite", suite, 1, 1, 0)
        columns = ("level", "name", "pairs", "correct", "ties", "accuracy", "accuracy_ties_correct")
        files = {"accuracy.csv": table([*columns, *(["chance"] if chance else [])], rows)}
        return self._scored_suite(run, suite, files)

    def add_correlations(self, run: str, suite: str, phenomena: Mapping[str, float]) -> Path:
        """Write a suite without right answers; `phenomena` are correlations with people."""
        rows = [(name, 50, value) for name, value in phenomena.items()]
        return self._scored_suite(run, suite, {"correlation.csv": table(("name", "pairs", "spearman"), rows)})

    def _scored_suite(self, run: str, suite: str, files: Mapping[str, str]) -> Path:
        if run not in self.pretraining and run not in self.baseline:
            self.add_baseline(run)
        path = self._evaluation("minimal_pairs", run, suite, {"suite": suite}, files)
        self.minimal_pairs[f"{run}:{suite}"] = path
        self.suites = list(dict.fromkeys([*self.suites, suite]))
        return path

    def add_baseline(self, name: str) -> None:
        """Write an imported model with the first model's results in tasks and perplexity."""
        path = self.folder / "baselines" / name / "manifest.json"
        with stage_run(path, {"stage": "import_model", "architecture": "causal"}) as job:
            job.measures.update(parameters=5_000_000, layers=12, hidden_size=64, embedding_size=64, tied=True)
        self.baseline[name] = path
        first = next(iter(self.pretraining))
        for task in self.tasks:
            self.finetuning[f"{name}:{task}"] = self._same("finetuning", self.finetuning[f"{first}:{task}"], name, task)
        if first in self.perplexity:
            self.perplexity[name] = self._same("perplexity", self.perplexity[first], name, "")

    def _same(self, stage: str, other: Path, run: str, name: str) -> Path:
        """Copy another run's evaluation for this run."""
        manifest = read_manifest(other)
        files = {output.path.name: output.path.read_text(encoding="utf-8") for output in manifest.outputs}
        return self._evaluation(stage, run, name, manifest.settings, files, manifest.measures)

    def add_finetuning(
        self,
        run: str,
        task: str,
        metrics: Sequence[str],
        results: Results,
        suite: str = "finetuning",
        further: Mapping[str, Results] | None = None,
        transfer: Mapping[str, tuple[str, Sequence[str], Results]] | None = None,
        majority: Mapping[str, float] | None = None,
        probe: str = "",
        scored: int | None = None,
    ) -> Path:
        """Write a task; `results` maps a run to its values, in the order of `metrics`, and its reason of failure.

        A run is a fine-tuning seed, or a seed and a learning rate. `further` are more scored sets, `transfer` other
        tasks by name (suite, metrics, results), `majority` accuracies of the most frequent label by scored set, `probe`
        the text of `layer_weights.csv`, `scored` the number of validation rows.
        """
        transfer = transfer or {}
        sets = {"validation": (metrics, results), **{name: (metrics, more) for name, more in (further or {}).items()}}
        sets |= {name: (measured, more) for name, (_, measured, more) in transfer.items()}
        rows = []
        for name, (measured, runs) in sets.items():
            for tuned, (values, failed) in runs.items():
                seed, rate = tuned if isinstance(tuned, tuple) else (tuned, 5e-5)
                rows += [
                    [name, seed, rate, metric, value, 30, value, failed]
                    for metric, value in zip(measured, values, strict=True)
                ]
        columns = ("rows", "seed", "learning_rate", "metric", "value", "best_step", "development_value", "failed")
        settings = {
            "task": {"name": task, "suite": suite, "metrics": list(metrics)},
            "transfer": [
                {"name": name, "suite": other, "metrics": list(measured)}
                for name, (other, measured, _) in transfer.items()
            ],
        }
        measures = {f"majority_accuracy_{name}": value for name, value in (majority or {}).items()}
        measures |= {} if scored is None else {"scored_validation": scored}
        files = {"results.csv": table(columns, rows)} | ({"layer_weights.csv": probe} if probe else {})
        path = self._evaluation("finetuning", run, task, settings, files, measures)
        self.finetuning[f"{run}:{task}"] = path
        self.tasks = list(dict.fromkeys([*self.tasks, task]))
        return path

    def add_perplexity(
        self,
        run: str,
        splits: Mapping[str, tuple[Any, Any, Any]],
        pseudo: Any = "",
        settings: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a perplexity; `splits` maps a split to loss, perplexity and accuracy; `settings` are the stage's."""
        columns = ("split", "sequences", "labelled_tokens", "loss_nats", "perplexity", "accuracy", "pseudo_perplexity")
        rows = [[split, 10, 150, *values, pseudo] for split, values in splits.items()]
        told = {"splits": list(splits), "sequence_length": 32, **settings} if settings else {}
        path = self._evaluation("perplexity", run, "", told, {"perplexity.csv": table(columns, rows)})
        self.perplexity[run] = path
        return path

    def add_surprisal(
        self, run: str, name: str, words: Mapping[str, float], own: Mapping[str, str] | None = None, **measures: Any
    ) -> Path:
        """Write surprisals; `words` maps a text's words to bits; `own` are user columns, equal for all words."""
        columns = {"sentence": [1] * len(words), "position": range(1, len(words) + 1), "word": list(words)}
        columns |= {
            "surprisal": list(words.values()),
            **{key: [value] * len(words) for key, value in (own or {}).items()},
        }
        written = io.BytesIO()
        pl.DataFrame(columns).write_parquet(written)
        path = self._evaluation(
            "surprisal", run, name, {"drawn": 1}, {"surprisal.parquet": written.getvalue()}, measures
        )
        self.surprisal[f"{run}:{name}"] = path
        return path

    def add_scores(self, kind: str, run: str, file: str, text: str, settings: Any = None, **measures: Any) -> None:
        """Write a result of a kind without names: one file, settings and measures."""
        self.further[f"{kind}:{run}:"] = self._evaluation(kind, run, "", settings or {}, {file: text}, measures)

    def _evaluation(
        self,
        stage: str,
        run: str,
        name: str,
        settings: Mapping[str, Any],
        files: Mapping[str, str | bytes],
        measures: Mapping[str, Any] | None = None,
    ) -> Path:
        folder = self.folder / stage / run / name
        inputs = {"model": (self.pretraining | self.baseline)[run]}
        text = ("corpus", self.corpus) if run in self.baseline else ("tokens", self.tokens)
        inputs |= {} if text[1] is None else {text[0]: text[1]}
        with stage_run(folder / "manifest.json", settings, inputs) as job:
            for file, text in files.items():
                (write_bytes if isinstance(text, bytes) else write_text)(folder / file, text)
                job.add_output(folder / file)
            job.measures.update(measures or {})
        return folder / "manifest.json"

    def collect_settings(self) -> dict[str, Any]:
        baselines = [{"name": name, "model": name, "seed": 0, "is_baseline": True} for name in self.baseline]
        return {"stage": "collect_measurements", "experiment": "demo", "runs": [*self.runs, *baselines]}

    @property
    def inputs(self) -> dict[str, Any]:
        names = ("finetuning", "minimal_pairs", "perplexity", "surprisal")
        evaluated = {f"{kind}:{name}": path for kind in names for name, path in getattr(self, kind).items()}
        evaluated = {key + ":" * (key.count(":") == 1): path for key, path in evaluated.items()} | self.further
        text = {"tokens": self.tokens, "corpus": self.corpus}
        return {"model": self.pretraining | self.baseline, "evaluation": evaluated, **text}

    def collected(self) -> Path:
        """Write the tidy tables of the present outputs; return the path of the measurements."""
        run_stage(collect_measurements, self.collect_settings(), self.folder / "measurements.parquet", **self.inputs)
        return self.folder / "measurements.parquet"

    def tables(self, published: Path | None = None) -> dict[str, Path]:
        """Return the tidy tables of the present outputs by name, as inputs of a figure."""
        collected = self.collected()
        found = {table.name: table.in_folder_of(collected) for table in TABLES}
        return found if published is None else found | {"published": published}

    def measurements(self) -> list[SimpleNamespace]:
        """Rows of a summary of the present outputs, with columns as attributes."""
        return [SimpleNamespace(**row) for row in shown_pairs(self.measured()).to_dicts()]

    def measured(self) -> pl.DataFrame:
        """The tidy table of measurements of the present outputs."""
        return read_frame(self.collected(), MEASUREMENTS)

    def summary_settings(self, published: dict[str, Any] | None = None) -> dict[str, Any]:
        return {
            "stage": "summarise",
            "stage_version": 1,
            "experiment": "demo",
            "runs": self.runs,
            "suites": self.suites,
            "tasks": self.tasks,
            "published": published,
            "baselines": list(self.baseline),
        }

    def figure_settings(self, figure: str = "learning_curves", **style: Any) -> dict[str, Any]:
        named = {"stage": "draw_figure", "stage_version": 1, "figure": figure, "version": 1}
        return {**named, "experiment": "demo", "runs": self.runs, "style": style}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """An experiment without outputs."""
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
    """A copy of `two_models_once`; tests may change its files."""
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
    for run, (first, second) in pairs.items():
        experiment.add_minimal_pairs(
            run,
            "blimp",
            {"agreement": {"gender": (first, 100), "number": (60, 100)}, "ellipsis": {"n": (second, 100)}},
        )
    for run, task, results in (
        ("plain-s1", "cola", {12: ((0.70, 0.10), ""), 13: ((0.72, 0.20), "")}),
        ("plain-s2", "cola", {12: ((0.74, 0.30), ""), 13: ((0.69, 0.0), "majority_class")}),
        ("elc-s1", "cola", {12: ((0.80, 0.40), ""), 13: ((0.82, 0.50), "")}),
    ):
        experiment.add_finetuning(run, task, ("accuracy", "mcc"), results)
    for run, results in (
        ("plain-s1", {12: ((0.50,), ""), 13: ((0.52,), "")}),
        ("plain-s2", {12: ((0.54,), ""), 13: ((0.56,), "")}),
        ("elc-s1", {12: ((None,), "nan"), 13: ((0.60,), "")}),
    ):
        experiment.add_finetuning(run, "rte", ("accuracy",), results)
    return experiment
