"""Every shipped experiment with a BabyLM track or a submission, from results to the checked file."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from generated_results import drawn, items_of
from shipped_workflow import WHOLE, Workflow

from hatchery.analysis.analyses.analysis import read_numbers
from hatchery.evaluation.evaluation import Result
from hatchery.experiment.project import Project
from hatchery.experiment.tracks import TRACKS
from hatchery.export.submission_check import structure_problems

SUBMITTED = {"babylm_2026_strict": 28, "babylm_2026_strict_small": 19, "babylm_mini": 3}
"""The number of checkpoints of each experiment with a submission."""


def test_every_shipped_track_and_submission_is_walked(repository: Path) -> None:
    project = Project(repository / "config")
    blocks = {name: project.experiment(name) for name in project.names("experiment")}
    assert {name for name, block in blocks.items() if block.submission} == set(SUBMITTED)
    held = {name: block.track for name, block in blocks.items() if block.track}
    assert set(held.values()) == set(TRACKS) - {"chinese"}
    # tests/export/test_multilingual_submission.py tests the files of the multilingual track.
    of_languages = {name for name, track in held.items() if track == "multilingual"}
    assert of_languages == {name for name, block in blocks.items() if block.multilingual_submission and block.track}
    assert set(held) - of_languages <= set(SUBMITTED)


def points_of(workflow: Workflow, experiment: str, run: str) -> dict[str, float]:
    """Return the points of a submission's parts, computed from the generated numbers."""
    wanted: Any = workflow.project.experiment(experiment).submission

    def pairs(name: str) -> float:
        result = Result("minimal_pairs", run, f"{wanted.suites}_{name}")
        items = items_of(workflow.project.suite(result.name).format, workflow.paradigms.get(result.name, ()))
        right: dict[str, list[bool]] = {}
        for item in items:
            right.setdefault(item.paradigm, []).append(drawn(result, item.item_id) > 0.45)
        return 100 * fmean(fmean(of) for of in right.values())

    def tuned(name: str) -> float:
        task = f"{wanted.tasks}_{name}"
        protocol = json.loads(workflow.jobs.settings("finetune", experiment=experiment, task=task))["protocol"]
        metric = workflow.project.task(task).metrics[0]
        result = Result("finetuning", run, task)
        return 100 * fmean(
            drawn(result, "validation", seed, rate, metric)
            for seed in protocol["seeds"]
            for rate in protocol["learning_rates"]
        )

    reading = Result("reading", run, "")
    found = {"reading": 100 * (drawn(reading, "spr") + drawn(reading, "rt")) / 20, "AoA": 25.0}
    labels = {"blimp": "BLiMP", "supplement": "supplement", "ewok": "EWoK", "comps": "COMPS"}
    found |= {label: pairs(name) for name, label in labels.items()}
    found["GlobalPIQA"] = fmean(pairs(f"global_piqa_{name}") for name in ("parallel", "nonparallel"))
    found["GLUE"] = fmean(tuned(name) for name in ("boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc"))
    return found


@pytest.mark.parametrize(("experiment", "checkpoints"), SUBMITTED.items())
def test_a_submission_is_whole_and_has_the_points_of_its_evaluations(
    workflow: Workflow, experiment: str, checkpoints: int
) -> None:
    settings = json.loads(workflow.jobs.settings("write_submission", experiment=experiment))
    workflow.collect(experiment, settings["run"])
    folder = Path("results", experiment)
    places = {"report": str(folder / "submission.md")}
    file = workflow.make("write_submission", str(folder / "submission.json"), experiment=experiment, places=places)
    value, report = json.loads(file.read_text(encoding="utf-8")), (folder / "submission.md").read_text(encoding="utf-8")
    assert structure_problems(value, settings["track"]) == []
    assert "The file has the structure" in report and "not measured" not in report
    assert {len(entries) for entries in value["fast_eval_results"].values()} == {checkpoints}
    assert all(entry for entries in value["fast_eval_results"].values() for entry in entries)
    assert len({row["step"] for row in value["aoa_surprisals"]["results"]}) == checkpoints
    assert ("All blocks have the rows that the server expects." in report) == (experiment == WHOLE)
    assert ("All blocks have all checkpoints of the track." in report) == (experiment != "babylm_mini")
    points = points_of(workflow, experiment, settings["run"])
    for label, expected in points.items():
        assert f"| {label} | {expected:.2f} |" in report, label
    analysis = "babylm_leaderboard"
    place = str(folder / "analyses" / analysis / "manifest.json")
    numbers = read_numbers(workflow.make("analyse", place, experiment=experiment, analysis=analysis))
    ours = {row["part"]: float(row["points"]) for row in numbers if row["source"] == "this experiment"}
    assert ours["acquisition"] == pytest.approx(25) and ours["glue"] == pytest.approx(points["GLUE"], abs=1e-6)
    assert f"**{ours['mean']:.2f}**" in report and f"**{ours['mean_with_aoa_0']:.2f}**" in report
    assert ours["mean"] - ours["mean_with_aoa_0"] == pytest.approx(25 / 9, abs=1e-5)
