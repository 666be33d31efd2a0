"""Initial models are checked when planning: as the input of a run's job, and each mistake with a message of
one line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from shipped import add, written

from hatchery.errors import ConfigError
from hatchery.experiment.continuation import first_step
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path


def start(take: str = "weights", steps: int = 100, **initial: Any) -> dict[str, Any]:
    return {"pretraining": {"steps": steps, "initialise_from": {**initial, "take": take}}}


def copy_of_demo(configuration: Path) -> None:
    shutil.copy(configuration / "experiments/demo.yaml", configuration / "experiments/other.yaml")


def test_a_run_starts_from_the_manifest_of_another_run(configuration: Path) -> None:
    jobs = Jobs(add(configuration, later=start(run="ltg_bert")))
    assert jobs.results.initial_model("demo", "later-s42") == [jobs.results.pretrained("demo")["ltg_bert-s42"]]
    later, earlier = (
        Path(jobs.storage_path(readable_path("demo", "pretraining", run))) for run in ("later-s42", "ltg_bert-s42")
    )
    assert jobs.call_at(later.parent.name).arguments["initial_model"] == str(earlier)
    assert jobs.results.initial_model("demo", "ltg_bert-s42") == []
    assert "initial_model" not in jobs.call_at(earlier.parent.name).arguments


def test_a_run_starts_from_a_run_of_another_experiment_with_the_same_seed(configuration: Path) -> None:
    copy_of_demo(configuration)
    add(configuration, "other", base={"seeds": [1, 2]})
    jobs = Jobs(add(configuration, later={"seeds": [2, 1], **start(run="base", experiment="other")}))
    assert jobs.results.initial_model("demo", "later-s2") == [jobs.results.pretrained("other")["base-s2"]]
    assert jobs.results.initial_model("demo", "later-s1") == [jobs.results.pretrained("other")["base-s1"]]


def test_a_path_may_name_the_folder_of_an_imported_model(configuration: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "my models" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("{}")
    jobs = Jobs(add(configuration, later=start(path=str(manifest.parent))))
    assert jobs.results.initial_model("demo", "later-s42") == [str(manifest)]
    address = Path(jobs.storage_path(readable_path("demo", "pretraining", "later-s42"))).parent.name
    assert jobs.call_at(address).arguments["initial_model"] == str(manifest)


def test_a_path_may_be_that_of_an_entry_of_data(configuration: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "imported" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("{}", encoding="utf-8")
    config = configuration / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(
        text.replace("\ndata:\n", f"\ndata:\n  imported: {{path: {manifest.parent}}}\n"), encoding="utf-8"
    )
    jobs = Jobs(add(configuration, later=start(path="imported")))
    assert jobs.results.initial_model("demo", "later-s42") == [str(manifest)]


def test_where_the_initial_model_lies_is_no_setting_of_the_result(configuration: Path) -> None:
    project = add(configuration, later=start(run="ltg_bert"))
    settings = json.loads(Jobs(project).settings("pretrain", experiment="demo", run="later-s42"))
    assert settings["initialise_from"] == {"take": "weights", "step": None}


def test_the_cost_and_the_estimated_time_count_only_the_steps_that_are_left(configuration: Path) -> None:
    from hatchery.workflow.cost_estimate import cost_settings, estimate
    from hatchery.workflow.pretraining_time import PretrainingTimes

    project = add(
        configuration,
        base={"pretraining": {"steps": 60, "keep_training_state": True}},
        later=start("training", run="base"),
        whole={"pretraining": {"steps": 100}},
        # Two runs count all their steps: `own` starts anew from weights, and the last step before `unknown` is not
        # known.
        own=start("weights", run="base"),
        stopped={
            "pretraining": {"steps": 60, "keep_training_state": True, "early_stopping": {"patience_evaluations": 1}}
        },
        unknown=start("training", run="stopped"),
    )
    settings = json.loads(Jobs(project).settings("write_cost", experiment="demo"))
    costs = {cost.run: cost for cost in estimate(cost_settings(settings))}
    base, later, whole = (costs[f"{name}-s42"] for name in ("base", "later", "whole"))
    for name in ("own", "unknown"):
        cost = costs[f"{name}-s42"]
        assert (cost.steps, cost.tokens, cost.training_flops) == (100, whole.tokens, whole.training_flops)
    assert later.steps == 40 and base.tokens + later.tokens == whole.tokens
    assert base.training_flops + later.training_flops == pytest.approx(whole.training_flops)
    # Each step trains on 32 sequences. After the last step, 256 sequences are scored; a forward pass needs a third of
    # the operations of training.
    times = PretrainingTimes(project, json.dumps(settings))
    expected = (40 * 32 + 256 / 3) / (100 * 32 + 256 / 3)
    assert times.seconds("later-s42") / times.seconds("whole-s42") == pytest.approx(expected)


def test_words_seen_before_are_counted_in_steps_of_the_later_batches(configuration: Path) -> None:
    common = {"batch_size": 32, "sequence_length": 32, "budget": {"words_seen": 120_000}}
    changes = {
        "base": {"batch_size": 64, "budget": {"words_seen": 60_000}},
        "later": {"initialise_from": {"run": "base"}},
    }
    runs = {name: {"model": "ltg_demo", "seeds": [1], "pretraining": own} for name, own in changes.items()}
    experiment = {"corpus": "demo", "tokenizer": "demo", "pretraining": common, "runs": runs}
    project = written(configuration, {"experiments/chain": experiment})
    # 60,000 words at 1.62 tokens per word are 97,200 tokens; a step of 32 x 32 tokens reads 1,024 tokens.
    assert first_step(project, "chain", "later", 1) == 95


def test_a_sweep_may_start_from_several_models(configuration: Path) -> None:
    sweep = {"sweep": [None, {"run": "ltg_bert"}]}
    project = add(configuration, later={"pretraining": {"steps": 5, "initialise_from": sweep}})
    names = [name for name in project.experiment("demo").runs if name.startswith("later")]
    assert names == ["later_initialise_from_null", "later_initialise_from_run_ltg_bert"]


KEPT = {"pretraining": {"steps": 60, "keep_training_state": True}}
FURTHER = start("training", 99, run="base")["pretraining"]
UNTIED = {"model_changes": {"tie_word_embeddings": False}}
MARKED = {"steps": None, "budget": {"words_seen": "60K"}, "checkpoints_at": ["30K"]}
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown run": (
        {"later": start(run="ltg_bet")},
        "initialise_from.run: got 'ltg_bet', expected a run of demo; did you mean 'ltg_bert'? There are: random, "
        "ltg_bert",
    ),
    "an unknown seed": (
        {"later": start(run="ltg_bert", seed=7)},
        "initialise_from.seed: got 7, expected a seed of 'ltg_bert': 42, 43, 44",
    ),
    "no seed of the same number": (
        {"base": {"seeds": [1, 2]}, "later": start(run="base")},
        "got 42, expected a seed of 'base': 1, 2; set this key to one of these seeds, or give both runs the same seeds",
    ),
    "neither run nor path": ({"later": start()}, "initialise_from: got neither `run` nor `path`, expected"),
    "run and path": (
        {"later": start(run="ltg_bert", path="x")},
        "got `run` and `path`, expected one of these two keys",
    ),
    "a seed beside a path": ({"later": start(path="x", seed=1)}, "initialise_from.seed: got 1 with `path`"),
    "a path without a model": (
        {"later": start(path="nowhere")},
        "initialise_from.path: got 'nowhere', there is no nowhere/manifest.json; expected a folder that",
    ),
    "the home of nobody": ({"later": start(path="~nobody_is_here/x")}, "there is no ~nobody_is_here/x/manifest.json;"),
    "another architecture": (
        {"later": {**start(run="ltg_bert"), "model_changes": {"hidden_size": 48}}},
        "'ltg_bert' has hidden_size 64, this run has hidden_size 48; expected equal values, because the "
        "architecture of a trained model cannot change",
    ),
    "another head": (
        {
            "later": {
                "pretraining": {"initialise_from": {"run": "ltg_bert"}, "objective": {"sentence_pairs": "order"}},
            }
        },
        "has sentence_pair_head false, this run has sentence_pair_head true",
    ),
    "a bias of its own": (
        {"later": {"pretraining": {"initialise_from": {"run": "ltg_bert"}, "output_bias": {"kind": "unigram"}}}},
        "output_bias.kind: got 'unigram', expected zero or none with initialise_from",
    ),
    "an optimiser that is not kept": (
        {"later": start("training", 9999, run="ltg_bert")},
        "the optimiser state of 'ltg_bert' is not kept; set `keep_training_state: true`",
    ),
    "no more steps": (
        {"base": KEPT, "later": start("training", 60, run="base")},
        "runs.later.pretraining.steps: got 60, expected more than the 60 steps of 'base'",
    ),
    "another seed with the optimiser": (
        {"base": KEPT, "later": {"seeds": [7], **start("training", 99, run="base")}},
        "initialise_from.seed: got 42, expected 7, the seed of this run",
    ),
    "word counts after a run without a budget in words": (
        {"later": {"pretraining": {**MARKED, "initialise_from": {"run": "ltg_bert"}}}},
        "runs.later.pretraining.checkpoints_at: got word counts, but the number of words that the initial model has "
        "read is unknown; set `budget.words_seen` of 'ltg_bert', and start from its finished model",
    ),
    "a step beside a path": ({"later": start(path="x", step=5)}, "initialise_from.step: got 5 with `path`"),
    "a layer without bias": (
        {"later": {"pretraining": {"initialise_from": {"run": "ltg_bert"}, "output_bias": {"kind": "none"}}}},
        "'ltg_bert' has vocabulary_bias true, this run has vocabulary_bias false",
    ),
    "an output matrix of its own scale": (
        {
            "base": UNTIED,
            "later": UNTIED
            | {"pretraining": {"initialise_from": {"run": "base"}, "output_bias": {"weight_scale": "unit"}}},
        },
        "output_bias.weight_scale: got 'unit', expected own with initialise_from",
    ),
    "the optimiser of a run without steps": (
        {
            "base": {"pretraining": {"steps": 0, "keep_training_state": True}},
            "later": start("training", 99, run="base"),
        },
        "the optimiser state of 'base' is not kept; set `keep_training_state: true` and steps above 0",
    ),
    "the optimiser of a milestone": (
        {
            "base": {"pretraining": {**KEPT["pretraining"], "milestones": [30], "evaluation_interval_steps": 30}},
            "later": start("training", 99, run="base", step=30),
        },
        "initialise_from.step: got 30, which requires take: weights, but take is training",
    ),
    "another optimiser": (
        {"base": KEPT, "later": {"pretraining": {**FURTHER, "optimizer": {"name": "adamw"}}}},
        "runs.later.pretraining.optimizer.name: got 'adamw', expected 'lamb', whose state 'base' has saved",
    ),
    "a budget after steps": (
        {"base": KEPT, "later": {"pretraining": {**FURTHER, "steps": None, "budget": {"words_seen": "60K"}}}},
        "runs.later.pretraining.budget: with `take: training`, expected a budget in both this run and 'base', or in",
    ),
    "minutes after training": (
        {"base": KEPT, "later": {"pretraining": {**FURTHER, "steps": None, "budget": {"minutes": 5}}}},
        "initialise_from.take: got 'training', expected 'weights' with a budget in minutes",
    ),
    "early stopping without patience": (
        {"later": {"pretraining": {"early_stopping": {"export": "best"}}}},
        "early_stopping.patience_evaluations: the key is missing",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_line_when_planning(configuration: Path, mistake: str) -> None:
    runs, expected = MISTAKES[mistake]
    project = add(configuration, **runs)
    with pytest.raises(ConfigError) as caught:
        project.check("experiment", "demo")
    assert "\n" not in str(caught.value)
    assert expected in str(caught.value)


def test_a_run_that_may_stop_early_may_be_continued_by_a_run_of_fewer_steps(configuration: Path) -> None:
    """Only the job knows the last step of the run that stopped."""
    stopped = {**KEPT["pretraining"], "early_stopping": {"patience_evaluations": 1}}
    runs = {"stopped": {"pretraining": stopped}, "later": start("training", 50, run="stopped")}
    add(configuration, **runs).check("experiment", "demo")


def test_a_circle_through_two_experiments_is_refused(configuration: Path) -> None:
    copy_of_demo(configuration)
    add(configuration, "other", there=start(run="here", experiment="demo"))
    project = add(configuration, here=start(run="there", experiment="other"))
    with pytest.raises(ConfigError, match=r"cycle: demo/here-s42 <- other/there-s42 <- demo/here-s42"):
        project.check("experiment", "demo")


def test_another_tokenizer_is_refused(configuration: Path) -> None:
    copy_of_demo(configuration)
    path = configuration / "experiments/other.yaml"
    path.write_text(path.read_text().replace("tokenizer: demo", "tokenizer: real_small"))
    project = add(configuration, later=start(run="ltg_bert", experiment="other"))
    with pytest.raises(
        ConfigError, match="other has the tokenizer 'real_small', this experiment has the tokenizer 'demo'"
    ):
        project.check("experiment", "demo")
