"""Models of inside a training are planned as what they are: without trainings, at places below their training's."""

from pathlib import Path

import pytest
from shipped import changed

from hatchery.errors import ConfigError
from hatchery.workflow.jobs import Jobs

STEPS = [20 * number for number in range(1, 29)]


def test_28_milestones_of_a_run_are_28_places_and_no_training(configuration: Path) -> None:
    kept = {"steps": 580, "evaluation_interval_steps": 20, "milestones": STEPS}
    keys = [(f"runs.ltg_bert.pretraining.{key}", value) for key, value in kept.items()]
    before = Jobs(changed(configuration, *keys))
    own = before.results.evaluations("demo")
    places = {result: before.place(path) for result, path in own.items()}
    trained = before.place(before.results.pretrained("demo")["ltg_bert-s42"]).removesuffix("/manifest.json")

    jobs = Jobs(changed(configuration, *keys, ("evaluate_milestones", ["minimal_pairs/demo_pairs"])))
    found = jobs.results.evaluations("demo")
    assert {result: jobs.place(path) for result, path in found.items() if result in own} == places
    assert jobs.results.pretrained("demo").keys() == before.results.pretrained("demo").keys()
    # What reads single manifests of an experiment's runs is given no others.
    kind = "minimal_pairs"
    assert jobs.results.of_kind("demo", kind).keys() == before.results.of_kind("demo", kind).keys()
    added = [result for result in found if result not in own]
    assert [(result.kind, result.run, result.name) for result in added] == [
        ("minimal_pairs", f"ltg_bert-s42-step{step}", "demo_pairs") for step in STEPS
    ]
    models = [jobs.place(jobs.results.models("demo")[result.run]) for result in added]
    assert models == [f"{trained}/milestones/step_{step:08d}/manifest.json" for step in STEPS]
    measured = next(place for result, place in places.items() if result.kind == "minimal_pairs").split("/")[-2]
    folder = trained.replace("results/models/", "results/minimal_pairs/")
    assert [jobs.place(found[result]) for result in added] == [
        f"{folder}/milestones/step_{step:08d}/{measured}/manifest.json" for step in STEPS
    ]


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (
            "minimal_pairs/demo_pair",
            "evaluate_milestones: got 'minimal_pairs/demo_pair', .*did you mean 'minimal_pairs/demo_",
        ),
        ("translation", "evaluate_milestones: got 'translation', expected an evaluation of the experiment"),
        ("minimal_pairs", "evaluate_milestones: no run has `milestones`"),
    ],
)
def test_a_wrong_name_or_no_milestone_is_one_line(configuration: Path, asked: str, complaint: str) -> None:
    project = changed(configuration, ("evaluate_milestones", [asked]))
    with pytest.raises(ConfigError, match=complaint):
        project.check("experiment", "demo")
