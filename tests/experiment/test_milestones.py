"""Plans of milestones: a milestone has no training job, and its folder is inside the folder of its training."""

import json
from pathlib import Path
from typing import Any

import pytest
from shipped import changed, written

from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError
from hatchery.experiment.milestones import chain_of_marks, own_marks
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun, of_member
from hatchery.training.milestones import BABYLM_MARKS, mark_name
from hatchery.workflow.cost_estimate import cost_settings, estimate
from hatchery.workflow.jobs import Jobs

STEPS = [20 * number for number in range(1, 29)]


def test_28_milestones_of_a_run_are_28_places_and_no_training(configuration: Path) -> None:
    kept = {"steps": 580, "evaluation_interval_steps": 20, "milestones": STEPS}
    keys = [(f"runs.ltg_bert.pretraining.{key}", value) for key, value in kept.items()]
    keys.append(("runs.ltg_bert.seeds", [42]))
    before = Jobs(changed(configuration, *keys))
    own = before.results.evaluations("demo")
    places = {result: before.storage_path(path) for result, path in own.items()}
    trained = before.storage_path(before.results.pretrained("demo")["ltg_bert-s42"]).removesuffix("/manifest.json")

    jobs = Jobs(changed(configuration, *keys, ("evaluate_milestones", ["minimal_pairs/demo_pairs"])))
    found = jobs.results.evaluations("demo")
    assert {result: jobs.storage_path(path) for result, path in found.items() if result in own} == places
    assert jobs.results.pretrained("demo").keys() == before.results.pretrained("demo").keys()
    # Rules that read the runs' own manifests get no milestones as inputs.
    kind = "minimal_pairs"
    assert jobs.results.of_kind("demo", kind).keys() == before.results.of_kind("demo", kind).keys()
    added = [result for result in found if result not in own]
    assert [(result.kind, result.run, result.name) for result in added] == [
        ("minimal_pairs", f"ltg_bert-s42-step{step}", "demo_pairs") for step in STEPS
    ]
    models = [jobs.storage_path(jobs.results.models("demo")[result.run]) for result in added]
    assert models == [f"{trained}/milestones/step_{step:08d}/manifest.json" for step in STEPS]
    measured = next(place for result, place in places.items() if result.kind == "minimal_pairs").split("/")[-2]
    folder = trained.replace("results/models/", "results/minimal_pairs/")
    assert [jobs.storage_path(found[result]) for result in added] == [
        f"{folder}/milestones/step_{step:08d}/{measured}/manifest.json" for step in STEPS
    ]


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (
            "minimal_pairs/demo_pair",
            "evaluate_milestones: got 'minimal_pairs/demo_pair', .*did you mean 'minimal_pairs/demo_",
        ),
        ("minimal_pairs", "evaluate_milestones: no run has `milestones` or `checkpoints_at`"),
    ],
)
def test_a_wrong_name_or_no_milestone_is_one_line(configuration: Path, asked: str, complaint: str) -> None:
    project = changed(configuration, ("evaluate_milestones", [asked]))
    with pytest.raises(ConfigError, match=complaint):
        project.check("experiment", "demo")


def test_a_budget_keeps_the_marks_of_the_challenge_and_a_chain_goes_on_with_them(configuration: Path) -> None:
    first = {"budget": {"words_seen": "60M"}}
    second: dict[str, Any] = {"initialise_from": {"run": "first"}}
    experiment: dict[str, Any] = {
        "corpus": "demo",
        "tokenizer": "demo",
        "pretraining": {"batch_size": 512, "budget": {"words_seen": "100M"}, "checkpoints_at": "babylm"},
        "runs": {
            "first": {"model": "ltg_demo", "pretraining": first},
            "second": {"model": "ltg_demo", "pretraining": second},
        },
        "minimal_pairs": ["demo_pairs"],
        "evaluate_milestones": ["minimal_pairs/demo_pairs"],
    }
    project = written(configuration, {"experiments/chain": experiment})
    project.check("experiment", "chain")
    jobs = Jobs(project)
    models = {run: jobs.storage_path(path) for run, path in jobs.results.models("chain").items() if "chck" in run}
    assert len(models) == 15 + 4
    trained = jobs.storage_path(jobs.results.pretrained("chain")["second-s42"]).removesuffix("/manifest.json")
    assert models["second-s42-chck_70M"] == f"{trained}/milestones/chck_70M/manifest.json"
    chain = chain_of_marks(project, "chain", project.seeded_run("chain", "second-s42"))
    assert [run.milestone for _, run in chain] == [mark_name(words) for words in BABYLM_MARKS[:19]]
    assert [run.milestone_of for _, run in chain] == ["first-s42"] * 15 + ["second-s42"] * 4
    # An export contains all milestones, even if no milestone is evaluated.
    kept = written(configuration, {"experiments/chain": {**experiment, "evaluate_milestones": []}})
    call = Jobs(kept).call("export_model", experiment="chain", run="second-s42")
    assert call.arguments["checkpoints"] == {
        mark_name(words): models[f"{'first' if words <= 60_000_000 else 'second'}-s42-{mark_name(words)}"]
        for words in BABYLM_MARKS[:19]
    }

    # The settings of the job contain only the marks that remain.
    def check_second() -> None:
        jobs = Jobs(written(configuration, {"experiments/chain": experiment}))
        settings = json.loads(jobs.settings("pretrain", experiment="chain", run="second-s42"))
        assert settings["checkpoints_at"] == [70_000_000, 80_000_000, 90_000_000, 100_000_000]
        assert settings["budget"]["words_seen"] == 100_000_000 and "steps" not in settings
        # The number of steps is estimated before the corpus exists.
        costs = estimate(cost_settings(json.loads(jobs.settings("write_cost", experiment="chain"))))
        assert [cost.steps for cost in costs if cost.steps] == [1483, 2472 - 1483]

    check_second()
    # A run without steps has seen the words of its initial model.
    without_steps = {"steps": 0, "budget": None, "checkpoints_at": [], **second}
    experiment["runs"]["between"] = {"model": "ltg_demo", "pretraining": without_steps}
    second["initialise_from"] = {"run": "between"}
    check_second()

    second["budget"] = {"words_seen": "60M"}
    with pytest.raises(ConfigError, match="got 60,000,000, expected more than 60,000,000, the budget of 'first'"):
        written(configuration, {"experiments/chain": experiment}).check("experiment", "chain")


def test_marks_that_a_model_of_a_folder_has_passed_are_not_kept_again(configuration: Path, tmp_path: Path) -> None:
    with stage_run(tmp_path / "manifest.json", {"stage": "pretrain"}) as made:
        # The words of this training, and the words including those of the initial model.
        made.measures.update(words=15_000_000, words_seen=25_000_000)
    budget = {"budget": {"words_seen": "60M"}, "checkpoints_at": ["10M", "25M", "30M", "60M"]}
    starts: dict[str, Any] = {"near": {"path": str(tmp_path)}, "between": {"run": "near"}, "far": {"run": "between"}}
    runs: dict[str, Any] = {
        name: {"model": "ltg_demo", "pretraining": {"initialise_from": start}}
        for name, start in (starts | {"alone": starts["near"]}).items()
    }
    for name in ("near", "between"):
        runs[name]["pretraining"] |= {"steps": 0, "budget": None, "checkpoints_at": []}
    experiment = {"corpus": "demo", "tokenizer": "demo", "pretraining": {"batch_size": 512, **budget}, "runs": runs}
    project = written(configuration, {"experiments/chain": experiment})
    project.check("experiment", "chain")
    for run in ("alone", "far"):
        assert own_marks(project, "chain", run, 42) == (30_000_000, 60_000_000)


def test_a_milestone_is_shown_with_the_label_of_its_run_and_in_a_study_with_its_experiment() -> None:
    swept, plain = SeededRun.from_seed("a_rate_0p1", 1, "a, rate 0.1"), SeededRun.from_seed("a", 2)
    assert swept.after(20).title == "a, rate 0.1, step 20, seed 1"
    assert plain.after_words(3_000_000).title == "a, 3,000,000 words, seed 2"
    assert swept.after_words(3_000_000).title == "a, rate 0.1, 3,000,000 words, seed 1"
    found = of_member("mine", swept.after(20))
    assert (found.title, found.milestone_of) == ("mine/a, rate 0.1, step 20, seed 1", "mine/a_rate_0p1-s1")
    assert (of_member("mine", plain).title, of_member("mine", plain).name) == ("mine/a, seed 2", "mine/a-s2")


def of_babylm(folder: Path, **more: Any) -> Project:
    """Return a project with an experiment of two runs and a budget of words."""
    budget = {"budget": {"words_seen": "60K"}, "checkpoints_at": ["20K", "60K"]}
    experiment = {
        "corpus": "demo",
        "tokenizer": "demo",
        "pretraining": {"batch_size": 8, **budget},
        "runs": {"marked": {"model": "ltg_demo", "seeds": [1, 2]}, "other": {"model": "elc_demo"}},
        "minimal_pairs": ["demo_babylm_blimp", "demo_babylm_fast_blimp"],
        "reading": {"embedded": "babylm_evaluation"},
        "acquisition": {"embedded": "babylm_evaluation"},
        "evaluate_milestones": ["minimal_pairs/demo_babylm_fast_blimp", "reading"],
        "submission": {"suites": "demo_babylm", "tasks": "demo_babylm_2026"},
    }
    return written(folder, {"experiments/mine": experiment | more})


def test_words_that_children_learn_are_asked_of_all_checkpoints_of_a_run_at_once(configuration: Path) -> None:
    project = of_babylm(configuration)
    project.check("experiment", "mine")
    jobs = Jobs(project)
    found = [result.run for result in jobs.results.evaluations("mine") if result.kind == "acquisition"]
    assert found == ["marked-s1", "marked-s2", "other-s42"]
    call = jobs.call("measure_acquisition", experiment="mine", run="marked-s2")
    model = jobs.storage_path(jobs.results.pretrained("mine")["marked-s2"]).removesuffix("/manifest.json")
    assert call.arguments["checkpoints"] == {
        name: f"{model}/milestones/{name}/manifest.json" for name in ("chck_20K", "chck_60K")
    }
    assert json.loads(call.settings)["words"] == {"chck_20K": 20_000, "chck_60K": 60_000}
    steps = {"batch_size": 8, "steps": 5}
    with pytest.raises(ConfigError, match="acquisition: no run has `budget` and `checkpoints_at`"):
        of_babylm(configuration, pretraining=steps, evaluate_milestones=[]).check("experiment", "mine")


def test_a_submission_is_of_one_run_with_what_was_measured_of_it_and_its_checkpoints(configuration: Path) -> None:
    jobs = Jobs(of_babylm(configuration))
    call = jobs.call("write_submission", experiment="mine")
    settings = json.loads(call.settings)
    # The first run with a budget; its checkpoints are not checkpoints of the track.
    assert settings["run"] == "marked-s1" and settings["checkpoints"] == ["chck_20K", "chck_60K"]
    assert list(call.arguments["predictions"]) == ["blimp", "reading", "acquisition"]
    assert list(call.arguments["fast"]) == [
        f"{name}/{block}" for name in settings["checkpoints"] for block in ("reading", "blimp")
    ]
    fast = jobs.storage_path(call.arguments["fast"]["chck_20K/blimp"])
    assert "/milestones/chck_20K/demo_babylm_fast_blimp-" in fast
    with pytest.raises(ConfigError, match=r"submission\.edition: got 2025, whose leaderboard is closed"):
        Jobs(of_babylm(configuration, submission={"edition": 2025})).call("write_submission", experiment="mine")
    with pytest.raises(ConfigError, match="the key `submission` is missing"):
        Jobs(of_babylm(configuration, submission=None)).call("write_submission", experiment="mine")
