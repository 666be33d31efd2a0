"""What there is to evaluate: counted in the files that lie here, and unknown where it cannot be counted."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hatchery.experiment.cluster import ClusterSettings, planned_device
from hatchery.experiment.project import Project
from hatchery.workflow.evaluation_work import HEAD_BYTES, PairWork, TuningWork, pair_work, tuning_work
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.planned_work import START_MINUTES, PlannedWork

PAIR = {"sentence_good": "the dog sees a cat", "sentence_bad": "the dog see a cat"}
ROW = {"sentence1": "the dog sees a cat", "sentence2": "a cat is seen", "label": 1}


def lines(path: Path, row: dict[str, Any], number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({**row, "label": index % 2}) + "\n" for index in range(number)))


@pytest.fixture
def project(configuration: Path, tmp_path: Path) -> Project:
    """The demo with a suite and a task in files of somebody's own."""
    edited = configuration / "config.yaml"
    text = edited.read_text(encoding="utf-8")
    paths = "".join(f"  {name}:\n    path: {tmp_path / name}\n" for name in ("my_pairs", "my_rows"))
    edited.write_text(text.replace("\ndata:\n", f"\ndata:\n{paths}", 1), encoding="utf-8")
    (configuration / "suites/my_pairs.yaml").write_text("data: my_pairs\n")
    task = yaml.safe_load((configuration / "tasks/demo_entailment.yaml").read_text())
    del task["embedded"]
    (configuration / "tasks/my_rows.yaml").write_text(yaml.safe_dump({**task, "data": "my_rows"}))
    path = configuration / "experiments/demo.yaml"
    text = path.read_text().replace("[demo_pairs]", "[demo_pairs, my_pairs]")
    path.write_text(text.replace("    demo_entailment: {}", "    demo_entailment: {}\n    my_rows: {}"))
    return Project(configuration)


pytestmark = pytest.mark.usefixtures("folder_of_its_own")


def test_pairs_and_rows_of_small_files_are_counted(project: Project, tmp_path: Path) -> None:
    lines(tmp_path / "my_pairs/a.jsonl", PAIR, 70)
    lines(tmp_path / "my_pairs/b.jsonl", PAIR, 50)
    lines(tmp_path / "my_rows/entailment.train.jsonl", ROW, 40)
    assert pair_work(project, "my_pairs") == PairWork(120, 120 * 10)
    tuned = tuning_work(project, "demo", "my_rows")
    assert tuned is not None and tuned.examples == 40
    # Two minutes of work were planned as two hours: a plan for a suite of BLiMP's size.
    work = PlannedWork(project, Jobs(project).settings("write_cost", experiment="demo"), 2)
    minutes = work.minimal_pairs_minutes("ltg_bert-s42", "my_pairs")
    assert minutes is not None and START_MINUTES < minutes < START_MINUTES + 0.1


def test_of_large_files_the_beginning_stands_for_the_rest(project: Project, tmp_path: Path) -> None:
    number = 6 * HEAD_BYTES // len(json.dumps(PAIR))
    lines(tmp_path / "my_pairs/a.jsonl", PAIR, number)
    lines(tmp_path / "my_rows/entailment.train.jsonl", ROW, number)
    found, tuned = pair_work(project, "my_pairs"), tuning_work(project, "demo", "my_rows")
    assert found is not None and found.pairs == pytest.approx(number, rel=0.01)
    assert tuned is not None and tuned.examples == pytest.approx(number, rel=0.01)


def test_what_is_not_here_yet_has_no_cost(project: Project, tmp_path: Path) -> None:
    assert pair_work(project, "my_pairs") is None and tuning_work(project, "demo", "my_rows") is None
    # Generated later.
    assert pair_work(project, "demo_pairs") is None
    work = PlannedWork(project, Jobs(project).settings("write_cost", experiment="demo"), 2)
    assert work.minimal_pairs_minutes("ltg_bert-s42", "my_pairs") is None
    assert work.finetuning_minutes("ltg_bert-s42", ["demo_entailment", "my_rows"]) is None


def test_what_is_wrong_in_a_file_is_told_elsewhere(project: Project, tmp_path: Path) -> None:
    lines(tmp_path / "my_pairs/a.jsonl", {"good": "no such field"}, 3)
    lines(tmp_path / "my_rows/entailment.validation.jsonl", ROW, 3)
    assert pair_work(project, "my_pairs") is None and tuning_work(project, "demo", "my_rows") is None


def test_the_configuration_says_how_many_generated_rows_there_will_be(project: Project) -> None:
    tuned = tuning_work(project, "demo", "demo_entailment")
    assert tuned is not None and (tuned.examples, tuned.runs) == (600, 3)


def test_a_sentence_takes_a_forward_pass_for_each_of_its_words() -> None:
    calls = []

    def per_sequence(length: int, labelled_share: float) -> float:
        calls.append((length, labelled_share))
        return 3.0

    assert PairWork(100, 2 * 100 * 12).flops(per_sequence) == 2 * 100 * 12
    assert calls == [(14, 1 / 14)]


def test_fine_tuning_grows_with_runs_epochs_and_examples() -> None:
    def flops(examples: int = 2490, runs: int = 1, epochs: int = 1) -> float:
        work = TuningWork(examples, runs, epochs, max_length=64, development_fraction=0.1)
        return work.flops(lambda length, share: float(length) if share == 0 else -1.0)

    # Nine tenths are trained on, a tenth is scored after each epoch at a third of the price.
    assert flops() == pytest.approx(2_490 * 64 * (0.9 + 0.1 / 3))
    assert flops(runs=5, epochs=10) == pytest.approx(50 * flops())
    assert flops(examples=249) == pytest.approx(flops() / 10)


@pytest.mark.parametrize(
    ("keys", "device"),
    [
        ({"gpus_per_node": 4, "gpu_type": "nvidia_a100_80gb"}, "a100"),
        ({"gpus_per_node": 4, "gpu_type": "V100"}, "v100"),
        ({"gpus_per_node": 8, "gpu_type": "mi250"}, "mi250x"),
        ({"gpus_per_node": 4, "gpu_type": "a100", "planned_device": "h200"}, "h200"),
        ({"gpus_per_node": 4, "gpu_type": "rtx6000"}, "h100"),
        ({"gpus_per_node": 4}, "h100"),
    ],
)
def test_the_type_of_the_gpus_decides_what_costs_are_estimated_for(keys: dict[str, Any], device: str) -> None:
    assert planned_device(ClusterSettings(**keys), "auto") == device
