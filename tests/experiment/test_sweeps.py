"""A list of values becomes runs: what they are called, what they hold, and where a sweep is refused."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import paper_tables
from hatchery.experiment.project import Project
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.registry import stage_settings

RATES = {"optimizer": {"learning_rate": {"sweep": [0.005, 0.01]}}}


@pytest.fixture
def folder(tmp_path: Path, repository: Path) -> Path:
    shutil.copytree(repository / "config", tmp_path / "config")
    return tmp_path / "config"


def experiment(folder: Path, *changes: tuple[str, Any], of: str = "demo") -> Project:
    """The project with an experiment in which keys (`runs.ltg_bert.seeds`) have other values."""
    path = folder / "experiments" / f"{of}.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for key, value in changes:
        holder = document
        *parents, last = key.split(".")
        for parent in parents:
            holder = holder.setdefault(parent, {})
        holder[last] = value
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Project(folder)


def message(project: Project, of: str = "demo") -> str:
    with pytest.raises(ConfigError) as caught:
        project.check("experiment", of)
    text = str(caught.value)
    assert "\n" not in text, text
    assert text.startswith(f"{project.folder}/experiments/{of}.yaml: ")
    return text


def test_each_value_of_a_run_is_a_run_named_by_key_and_value(folder: Path) -> None:
    project = experiment(folder, ("runs.ltg_bert.pretraining", RATES))
    runs = project.experiment("demo").runs
    assert list(runs) == ["random", "ltg_bert_learning_rate_0p005", "ltg_bert_learning_rate_0p01", "elc_bert"]
    rates = [project.experiment("demo").runs[run].pretraining.optimizer.learning_rate for run in list(runs)[1:3]]
    assert rates == [0.005, 0.01]
    assert project.expansion("demo").labels() == {
        "ltg_bert_learning_rate_0p005": "ltg_bert, learning_rate 0.005",
        "ltg_bert_learning_rate_0p01": "ltg_bert, learning_rate 0.01",
    }


def test_several_sweeps_make_all_combinations_in_the_order_of_the_file(folder: Path) -> None:
    project = experiment(
        folder,
        ("runs.ltg_bert.model_changes", {"hidden_dropout_prob": {"sweep": [0.0, 0.1]}}),
        ("runs.ltg_bert.pretraining", {"optimizer": {"name": {"sweep": ["lamb", "adamw"]}}}),
    )
    names = [name for name in project.experiment("demo").runs if name.startswith("ltg_bert")]
    assert names == [
        "ltg_bert_hidden_dropout_prob_0p0_optimizer_name_lamb",
        "ltg_bert_hidden_dropout_prob_0p0_optimizer_name_adamw",
        "ltg_bert_hidden_dropout_prob_0p1_optimizer_name_lamb",
        "ltg_bert_hidden_dropout_prob_0p1_optimizer_name_adamw",
    ]
    assert project.model_of("demo", names[2]).hidden_dropout_prob == 0.1
    assert project.expansion("demo").labels()[names[3]] == "ltg_bert, hidden_dropout_prob 0.1, optimizer.name adamw"


def test_a_sweep_of_the_experiment_holds_for_all_runs_that_do_not_say_otherwise(folder: Path) -> None:
    project = experiment(folder, ("pretraining.steps", {"sweep": [400, 800]}))
    block = project.experiment("demo")
    # `random` has 0 steps of its own.
    assert list(block.runs)[:3] == ["random", "ltg_bert_steps_400", "ltg_bert_steps_800"]
    assert [block.runs[run].pretraining.steps for run in block.runs] == [0, 400, 800, 400, 800]


def test_keys_of_one_value_are_not_inherited_by_the_run_of_another(folder: Path) -> None:
    values = [{"name": "adamw", "weight_decay": 0.3}, {"name": "lamb"}]
    block = experiment(folder, ("pretraining.optimizer", {"sweep": values})).experiment("demo")
    first, second = (block.runs[run].pretraining.optimizer for run in list(block.runs)[:2])
    assert (first.name, first.weight_decay) == ("adamw", 0.3)
    assert (second.name, second.weight_decay) == ("lamb", 0.1)


def test_names_are_fit_for_paths_and_the_same_every_time(folder: Path) -> None:
    values = [None, {"from_fraction": 0.9, "factor": 4}]
    changes = (
        ("runs.ltg_bert.pretraining.long_sequence", {"sweep": values}),
        ("runs.ltg_bert.pretraining.optimizer", {"epsilon": {"sweep": [1e-06, 0.5]}}),
        ("runs.ltg_bert.pretraining.divergences", {"sweep": [True, False]}),
    )
    names = list(experiment(folder, *changes).experiment("demo").runs)
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names)
    assert "ltg_bert_long_sequence_from_fraction_0p9_factor_4_epsilon_1em06_divergences_true" in names
    assert names == list(Project(folder).experiment("demo").runs)


def test_long_values_are_cut_in_names_and_stay_apart() -> None:
    from hatchery.experiment.expansion import write_out

    values = ["a" * 60 + "x", "a" * 60 + "y"]
    document = {"runs": {"one": {"model": "m", "model_changes": {"key": {"sweep": values}}}}}
    names = list(write_out("one", document, "file").document["runs"])
    assert len(set(names)) == 2 and all(len(name) < 60 for name in names)


def test_all_stages_and_the_cost_see_the_runs(folder: Path) -> None:
    project = experiment(folder, ("runs.ltg_bert", {"model": "ltg_demo", "seeds": [1, 2], "pretraining": RATES}))
    runs = ["ltg_bert_learning_rate_0p005-s1", "ltg_bert_learning_rate_0p005-s2"]
    assert [run for run in Jobs(project).results.pretrained("demo") if "0p005" in run] == runs
    stages: dict[str, dict[str, str]] = {"write_cost": {}, "summarise": {}, "write_page": {}}
    for stage, more in (stages | {"draw_figure": {"figure": "learning_curves"}}).items():
        assert '"ltg_bert_learning_rate_0p01-s2"' in stage_settings(project, stage, experiment="demo", **more)
    assert '"learning_rate":0.01' in stage_settings(
        project, "pretrain", experiment="demo", run="ltg_bert_learning_rate_0p01-s1"
    )


def test_an_experiment_without_sweeps_has_the_settings_that_it_had(repository: Path) -> None:
    assert "label" not in stage_settings(Project(repository / "config"), "summarise", experiment="demo")


def test_a_published_row_of_a_run_with_a_sweep_stands_beside_all_its_runs(folder: Path) -> None:
    changes = [("runs.elc_zero.pretraining", RATES)]
    rows = experiment(folder, *changes, of="strict_small").experiment("strict_small").published.rows
    assert rows["elc_zero_learning_rate_0p005"] == rows["elc_zero_learning_rate_0p01"] == "elc_bert_small_zero"
    assert "elc_zero" not in rows


def test_the_runs_of_a_sweep_in_a_miniature_fill_the_row_of_their_run(folder: Path) -> None:
    project = experiment(folder, ("runs.elc_zero.pretraining", RATES), of="strict_small_mini")
    chosen = paper_tables(project, "strict_small_mini")
    assert chosen is not None
    assert chosen["published"].rows["elc_zero_learning_rate_0p01"] == "elc_bert_small_zero"
    assert next(iter(chosen["published"].rows)) == "ltg_bert"


MISTAKES: dict[str, tuple[str, Any, str]] = {
    "a value of the wrong type": (
        "runs.ltg_bert.pretraining.optimizer.learning_rate",
        {"sweep": [0.1, "much"]},
        "runs.ltg_bert.pretraining.optimizer.learning_rate: got 'much', expected a number",
    ),
    "a value out of range, for all runs once": (
        "pretraining.batch_size",
        {"sweep": [32, 0]},
        "yaml: pretraining.batch_size: got 0, expected at least 1",
    ),
    "a key that there is not": (
        "runs.ltg_bert.pretraining.optimizer.learning_rat",
        {"sweep": [0.1, 0.2]},
        "runs.ltg_bert.pretraining.optimizer.learning_rat: unknown key",
    ),
    "no value": (
        "pretraining.batch_size",
        {"sweep": []},
        "pretraining.batch_size.sweep: the list is empty, expected at least one value: write sweep: [first, second]",
    ),
    "no list": ("pretraining.batch_size", {"sweep": 32}, "batch_size.sweep: got 32, expected a list of values"),
    "a value twice": ("pretraining.optimizer.beta1", {"sweep": [0, 0.5, 0.0]}, "beta1.sweep: 0.0 is given twice"),
    "a key beside it": ("pretraining.batch_size", {"sweep": [8], "values": [1]}, "batch_size: values: unknown key"),
    "a bare list": (
        "runs.ltg_bert.pretraining.batch_size",
        [16, 32],
        "runs.ltg_bert.pretraining.batch_size: got the list [16, 32]; for a run with each value write "
        "{sweep: [16, 32]}",
    ),
    "a sweep in a sweep": ("pretraining.batch_size", {"sweep": [{"sweep": [8]}]}, "a sweep within a sweep"),
    "seeds": ("runs.ltg_bert.seeds", {"sweep": [1, 2]}, "`seeds` is a list as it is, and each seed is pretrained"),
    "a model": ("runs.ltg_bert.model", {"sweep": ["ltg_demo", "elc_demo"]}, "write one run for each value"),
    "a whole block": (
        "pretraining",
        {"sweep": [{"steps": 1}]},
        "pretraining: a sweep is not possible here; give",
    ),
    "fine-tuning": (
        "finetuning.protocol.learning_rates",
        {"sweep": [0.1, 0.2]},
        "finetuning.protocol.learning_rates: a sweep is not possible here; `learning_rates` is a list as it is",
    ),
    "the corpus": ("corpus", {"sweep": ["demo", "my_text"]}, "corpus: a sweep is not possible here; only keys under"),
    "a name that is taken": (
        "runs.ltg_bert_batch_size_8",
        {"model": "ltg_demo"},
        "runs.ltg_bert_batch_size_8: the sweeps of runs.ltg_bert make a run of this name too; rename one",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_line_with_file_key_and_value(folder: Path, mistake: str) -> None:
    key, value, expected = MISTAKES[mistake]
    changes: list[tuple[str, Any]] = [(key, value)]
    if mistake == "a name that is taken":
        changes.append(("runs.ltg_bert.pretraining.batch_size", {"sweep": [8]}))
    assert expected in message(experiment(folder, *changes))


def test_values_whose_names_are_alike_are_refused(folder: Path) -> None:
    changes = {"layer_weighting": {"sweep": ["zero", "zero "]}}
    text = message(experiment(folder, ("runs.elc_bert.model_changes", changes)))
    assert "two runs of the sweeps would be called 'elc_bert_layer_weighting_zero'" in text


def test_a_sweep_in_another_file_is_refused_with_where_it_belongs(folder: Path) -> None:
    path = folder / "models/ltg_demo.yaml"
    path.write_text(path.read_text().replace("hidden_size: 96", "hidden_size: {sweep: [96, 48]}"))
    with pytest.raises(ConfigError, match=r"ltg_demo\.yaml: hidden_size: a sweep is not possible here; sweeps"):
        Project(folder).check("model", "ltg_demo")


def test_the_schema_file_that_editors_read_accepts_sweeps_and_still_knows_the_keys(repository: Path) -> None:
    rules = yaml.safe_load((repository / "workflow/schemas/experiment.schema.yaml").read_text())
    rules["properties"] = {key: rules["properties"][key] for key in ("pretraining", "runs")}
    validator = Draft202012Validator({**rules, "required": ["pretraining", "runs"]})
    plain = {"steps": 1, "batch_size": 8}
    assert validator.is_valid({"pretraining": {**plain, **RATES}, "runs": {"a": {"model": "m", "pretraining": RATES}}})
    assert validator.is_valid({"pretraining": plain, "runs": {"a": {"model": "m"}}})
    assert not validator.is_valid({"pretraining": {**plain, "stepps": 1}, "runs": {"a": {"model": "m"}}})
