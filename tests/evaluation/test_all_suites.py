"""Every suite of the papers runs on its generated miniature: readers, heads, metrics and tables of each task."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demo.stages.generate_embedded_sources import generate_embedded_sources
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.evaluation.stages.finetune import finetune
from hatchery.evaluation.stages.score_minimal_pairs import score_minimal_pairs
from hatchery.experiment.project import Project
from hatchery.raw.registration import register_source
from hatchery.raw.settings import EmbeddedSettings
from hatchery.runner import run_stage
from hatchery.workflow.jobs import Jobs

EXPERIMENT = "demo_suites"
CONFIG = Project(Path(__file__).parents[2] / "config")
BLOCK = CONFIG.experiment(EXPERIMENT)
CORRELATIONS = ("mcc", "pearson", "spearman", "mean_of_pearson_and_spearman")
TASKS = sorted(BLOCK.finetuning.tasks)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The source manifest of a generated folder, given the path that the workflow has for it."""
    folder = tmp_path_factory.mktemp("embedded")
    settings = EmbeddedSettings(
        seed=0, documents=40, pairs_per_paradigm=4, examples_per_task=12, examples_per_suite_task=12
    )
    with stage_run(folder / "manifest.json", {"stage": "generate_embedded_sources"}) as run:
        generate_embedded_sources(settings, run)

    def registered(path: str) -> Path:
        name = Path(path).stem.removeprefix("embedded_")
        manifest = folder / f"{name}.source.json"
        if not manifest.exists():
            register_source(name, folder / name, manifest)
        return manifest

    return registered


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_learnt_scored_and_written_down(
    task: str, embedded: Callable[[str], Path], model_manifest: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = json.loads(Jobs(CONFIG).settings("finetune", experiment=EXPERIMENT, task=task))
    settings["protocol"] |= {"epochs": 1, "seeds": [1], "max_length": 64}
    sources = {name: embedded(path) for name, path in Jobs(CONFIG).results.task_sources(task).items()}
    output = tmp_path / "out" / "manifest.json"
    run_stage(
        finetune,
        settings,
        output,
        runtime={"device": "cpu"},
        model=model_manifest,
        source=sources,
        checkpoints=tmp_path / "checkpoints",
    )
    manifest = read_manifest(output)
    manifest.verify()
    with (output.parent / "results.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    sets = [name for name in settings["task"]["files"] if name != "train"]
    scored = dict.fromkeys(sets, settings["task"]["metrics"])
    scored |= {entry["name"]: entry["metrics"] for entry in settings["transfer"]}
    assert {(row["rows"], row["metric"]) for row in rows} == {
        (name, metric) for name, metrics in scored.items() for metric in metrics
    }
    for row in rows:
        low = -1.0 if row["metric"] in CORRELATIONS else 0.0
        assert row["failed"] != "nan" and low <= float(row["value"]) <= 1.0
    assert (output.parent / "layer_weights.csv").exists() == (settings["task"]["head"]["kind"] == "span_classification")
    assert (output.parent / "breakdown.csv").exists() == any(entry["facts"] for entry in settings["transfer"])


@pytest.mark.parametrize("suite", BLOCK.minimal_pairs)
def test_every_suite_of_pairs_is_scored(
    suite: str, embedded: Callable[[str], Path], model_manifest: Path, tmp_path: Path
) -> None:
    settings = json.loads(Jobs(CONFIG).settings("score_minimal_pairs", suite=suite))
    source = embedded(Jobs(CONFIG).data.suite_source(suite))
    output = tmp_path / "manifest.json"
    run_stage(score_minimal_pairs, settings, output, runtime={"device": "cpu"}, model=model_manifest, source=source)
    with (tmp_path / "accuracy.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["level"] for row in rows} == {"paradigm", "phenomenon", "suite"}
    assert all(0 <= float(row["accuracy"]) <= float(row["accuracy_ties_correct"]) <= 1 for row in rows)


def test_the_miniature_has_a_task_for_every_suite_of_the_papers() -> None:
    suites = {CONFIG.task(task).suite for task in TASKS}
    assert suites == {"demo_babylm_glue", "demo_msgs", "demo_glue", "demo_probing"}
    msgs = {task.removeprefix("msgs_") for task in CONFIG.names("task") if task.startswith("msgs_")}
    babylm = {task.removeprefix("babylm_") for task in CONFIG.names("task") if task.startswith("babylm_")}
    assert {f"demo_msgs_{name}" for name in msgs} | {f"demo_babylm_{name}" for name in babylm} <= set(TASKS)
    assert len(msgs) == len(babylm) == 11
