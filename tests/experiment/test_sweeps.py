"""Runs that sweeps expand to: their names, their settings, and refused sweeps."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from shipped import changed

from hatchery.errors import ConfigError
from hatchery.experiment.expansion import write_out
from hatchery.experiment.paper_tables import paper_tables
from hatchery.experiment.project import Project
from hatchery.experiment.sweeps import refuse_sweeps, slug
from hatchery.workflow.jobs import Jobs

RATES = {"optimizer": {"learning_rate": {"sweep": [0.005, 0.01]}}}
# In YAML, the value of an empty key `pretraining:` is null.
EMPTY = {"model": "m", "pretraining": None}


def refused(project: Project, of: str = "demo") -> str:
    with pytest.raises(ConfigError) as caught:
        project.check("experiment", of)
    text = str(caught.value)
    assert "\n" not in text, text
    assert text.startswith(f"{project.folder}/experiments/{of}.yaml: ")
    return text


def test_each_value_of_a_run_is_a_run_named_by_key_and_value(configuration: Path) -> None:
    project = changed(configuration, ("runs.ltg_bert.pretraining", RATES))
    runs = project.experiment("demo").runs
    assert list(runs) == ["random", "ltg_bert_learning_rate_0p005", "ltg_bert_learning_rate_0p01", "elc_bert"]
    rates = [project.experiment("demo").runs[run].pretraining.optimizer.learning_rate for run in list(runs)[1:3]]
    assert rates == [0.005, 0.01]
    assert project.expansion("demo").labels() == {
        "ltg_bert_learning_rate_0p005": "ltg_bert, learning_rate 0.005",
        "ltg_bert_learning_rate_0p01": "ltg_bert, learning_rate 0.01",
    }


def test_several_sweeps_make_all_combinations_in_the_order_of_the_file(configuration: Path) -> None:
    project = changed(
        configuration,
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


def test_a_sweep_of_the_experiment_holds_for_all_runs_that_do_not_say_otherwise(configuration: Path) -> None:
    project = changed(configuration, ("pretraining.steps", {"sweep": [400, 800]}))
    block = project.experiment("demo")
    # `random` overrides the sweep with 0 steps.
    assert list(block.runs)[:3] == ["random", "ltg_bert_steps_400", "ltg_bert_steps_800"]
    assert [block.runs[run].pretraining.steps for run in block.runs] == [0, 400, 800, 400, 800]


def test_keys_of_one_value_are_not_inherited_by_the_run_of_another(configuration: Path) -> None:
    values = [{"name": "adamw", "weight_decay": 0.3}, {"name": "lamb"}]
    block = changed(configuration, ("pretraining.optimizer", {"sweep": values})).experiment("demo")
    first, second = (block.runs[run].pretraining.optimizer for run in list(block.runs)[:2])
    assert (first.name, first.weight_decay) == ("adamw", 0.3)
    assert (second.name, second.weight_decay) == ("lamb", 0.1)


def test_names_are_fit_for_paths_and_the_same_every_time(configuration: Path) -> None:
    values = [None, {"from_fraction": 0.9, "factor": 4}]
    changes = (
        ("runs.ltg_bert.pretraining.long_sequence", {"sweep": values}),
        ("runs.ltg_bert.pretraining.optimizer", {"epsilon": {"sweep": [1e-06, 0.5]}}),
        ("runs.ltg_bert.pretraining.divergences", {"sweep": [True, False]}),
    )
    names = list(changed(configuration, *changes).experiment("demo").runs)
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names)
    assert "ltg_bert_long_sequence_from_fraction_0p9_factor_4_epsilon_1em06_divergences_true" in names
    assert names == list(Project(configuration).experiment("demo").runs)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0.005", "0p005"),
        ("-1", "m1"),
        ("-0.5", "m0p5"),
        ("1e-06", "1em06"),
        ("a-1", "a_1"),
        ("v1.", "v1"),
        ("+", "empty"),
    ],
)
def test_a_value_has_a_name_of_letters_digits_and_underscores(text: str, name: str) -> None:
    assert slug(text) == name


@pytest.mark.parametrize("runs_first", [False, True])
def test_sweeps_of_experiment_and_run_are_combined_in_the_order_of_the_file(runs_first: bool) -> None:
    blocks = {
        "pretraining": {"steps": {"sweep": [5, 9]}},
        "runs": {"one": {"model": "m", "pretraining": {"batch_size": {"sweep": [2, 4]}}}},
    }
    document = dict(reversed(blocks.items())) if runs_first else blocks
    names = list(write_out("x", document, "file").document["runs"])
    assert names == (
        [f"one_batch_size_{size}_steps_{steps}" for size in (2, 4) for steps in (5, 9)]
        if runs_first
        else [f"one_steps_{steps}_batch_size_{size}" for steps in (5, 9) for size in (2, 4)]
    )


def test_a_number_and_a_truth_value_are_two_values_of_a_sweep() -> None:
    document = {"runs": {"one": {"model": "m", "model_changes": {"key": {"sweep": [1, True]}}}}}
    assert list(write_out("x", document, "file").document["runs"]) == ["one_key_1", "one_key_true"]


def test_figures_get_numbers_as_numbers_and_other_values_as_text() -> None:
    values = [3, 0.5, True, "zero", None]
    document = {"runs": {"one": {"model": "m", "model_changes": {"key": {"sweep": values}}}, "two": {"model": "m"}}}
    found = write_out("x", document, "file").swept_values()
    assert [made["values"] for made in found.values()] == [{"key": shown} for shown in (3, 0.5, "true", "zero", "null")]
    # Runs of a sweep form one line, and only runs of a grid may differ in size.
    assert {(made["line"], made["sized"]) for made in found.values()} == {("one", False)}


@pytest.mark.parametrize(
    "own", [{"optimizer": {"sweep": [{"name": "lamb"}, {"name": "adamw"}]}}, {"optimizer": "adamw"}]
)
def test_a_run_that_sets_a_block_around_a_swept_key_has_no_part_in_the_sweep(own: dict[str, Any]) -> None:
    document = {"pretraining": RATES, "runs": {"one": {"model": "m", "pretraining": own}, "two": EMPTY}}
    names = list(write_out("x", document, "file").document["runs"])
    assert not [name for name in names if name.startswith("one") and "learning_rate" in name]
    assert [name for name in names if name.startswith("two")] == [
        "two_learning_rate_0p005",
        "two_learning_rate_0p01",
    ]


def test_long_values_are_cut_in_names_and_stay_apart() -> None:
    values = ["a" * 60 + "x", "a" * 60 + "y"]
    document = {"runs": {"one": {"model": "m", "model_changes": {"key": {"sweep": values}}}}}
    names = list(write_out("one", document, "file").document["runs"])
    assert len(set(names)) == 2 and all(len(name) < 60 for name in names)


def test_all_stages_and_the_cost_see_the_runs(configuration: Path) -> None:
    project = changed(configuration, ("runs.ltg_bert", {"model": "ltg_demo", "seeds": [1, 2], "pretraining": RATES}))
    runs = ["ltg_bert_learning_rate_0p005-s1", "ltg_bert_learning_rate_0p005-s2"]
    assert [run for run in Jobs(project).results.pretrained("demo") if "0p005" in run] == runs
    stages: dict[str, dict[str, str]] = {"write_cost": {}, "summarise": {}, "write_page": {}}
    for stage, more in (stages | {"draw_figure": {"figure": "learning_curves"}}).items():
        assert '"ltg_bert_learning_rate_0p01-s2"' in Jobs(project).settings(stage, experiment="demo", **more)
    assert '"learning_rate":0.01' in Jobs(project).settings(
        "pretrain", experiment="demo", run="ltg_bert_learning_rate_0p01-s1"
    )


def test_a_published_row_of_a_run_with_a_sweep_stands_beside_all_its_runs(configuration: Path) -> None:
    changes = [("runs.elc_zero.pretraining", RATES)]
    rows = changed(configuration, *changes, of="strict_small").experiment("strict_small").published.rows
    assert rows["elc_zero_learning_rate_0p005"] == rows["elc_zero_learning_rate_0p01"] == "elc_bert_small_zero"
    assert "elc_zero" not in rows


def test_a_run_of_a_sweep_keeps_its_own_published_row() -> None:
    swept = {"model": "m", "model_changes": {"key": {"sweep": [5, 7]}}}
    for rows in ({"one": "shared", "one_key_7": "own"}, {"one_key_7": "own", "one": "shared"}):
        document = write_out("x", {"runs": {"one": swept}, "published": {"rows": rows}}, "file").document
        assert document["published"]["rows"] == {"one_key_5": "shared", "one_key_7": "own"}


def test_the_runs_of_a_sweep_in_a_miniature_fill_the_row_of_their_run(configuration: Path) -> None:
    project = changed(configuration, ("runs.elc_zero.pretraining", RATES), of="strict_small_mini")
    chosen = paper_tables(project, "strict_small_mini")
    assert chosen is not None
    assert chosen["published"].rows["elc_zero_learning_rate_0p01"] == "elc_bert_small_zero"
    assert next(iter(chosen["published"].rows)) == "ltg_bert"


MISTAKES: dict[str, tuple[str, Any, str]] = {
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
    "a value twice": ("pretraining.optimizer.beta1", {"sweep": [0, 0.5, 0.0]}, "beta1.sweep: 0.0 appears twice"),
    "a key beside it": ("pretraining.batch_size", {"sweep": [8], "values": [1]}, "batch_size: values: unknown key"),
    "a bare list": (
        "runs.ltg_bert.pretraining.batch_size",
        [16, 32],
        "runs.ltg_bert.pretraining.batch_size: got the list [16, 32]; for a run with each value write "
        "{sweep: [16, 32]}",
    ),
    "a sweep in a sweep": ("pretraining.batch_size", {"sweep": [{"sweep": [8]}]}, "got a sweep within a sweep"),
    "seeds": ("runs.ltg_bert.seeds", {"sweep": [1, 2]}, "`seeds` is already a list, and every seed is pretrained"),
    "a model": ("runs.ltg_bert.model", {"sweep": ["ltg_demo", "elc_demo"]}, "write one run for each value"),
    "a whole block": (
        "pretraining",
        {"sweep": [{"steps": 1}]},
        "pretraining: a sweep is not possible here; write",
    ),
    "a whole block of a run": (
        "runs.ltg_bert.pretraining",
        {"sweep": [{"steps": 1}]},
        "runs.ltg_bert.pretraining: a sweep is not possible here; write the sweep at a key below this key, such as",
    ),
    "fine-tuning": (
        "finetuning.protocol.learning_rates",
        {"sweep": [0.1, 0.2]},
        "finetuning.protocol.learning_rates: a sweep is not possible here; `learning_rates` is already a list",
    ),
    "the corpus": ("corpus", {"sweep": ["demo", "my_text"]}, "corpus: a sweep is not possible here; only keys under"),
    "a name that is taken": (
        "runs.ltg_bert_batch_size_8",
        {"model": "ltg_demo"},
        "runs.ltg_bert_batch_size_8: the sweeps of runs.ltg_bert make a run of this name, too; rename one",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_line_with_file_key_and_value(configuration: Path, mistake: str) -> None:
    key, value, expected = MISTAKES[mistake]
    changes: list[tuple[str, Any]] = [(key, value)]
    if mistake == "a name that is taken":
        changes.append(("runs.ltg_bert.pretraining.batch_size", {"sweep": [8]}))
    assert expected in refused(changed(configuration, *changes))


def test_values_whose_names_are_alike_are_refused(configuration: Path) -> None:
    changes = {"layer_weighting": {"sweep": ["zero", "zero "]}}
    text = refused(changed(configuration, ("runs.elc_bert.model_changes", changes)))
    assert "two runs of the sweeps have the name 'elc_bert_layer_weighting_zero'" in text


def test_a_sweep_in_another_file_is_refused_with_where_it_belongs(configuration: Path) -> None:
    path = configuration / "models/ltg_demo.yaml"
    path.write_text(path.read_text().replace("hidden_size: 96", "hidden_size: {sweep: [96, 48]}"))
    with pytest.raises(ConfigError, match=r"ltg_demo\.yaml: hidden_size: a sweep is not possible here; sweeps"):
        Project(configuration).check("model", "ltg_demo")


def test_a_sweep_deep_in_another_file_is_named_with_all_its_keys() -> None:
    with pytest.raises(
        ConfigError, match=r"^mine\.yaml: split\.test_fraction: a sweep is not possible here; sweeps are"
    ):
        refuse_sweeps({"split": {"test_fraction": {"sweep": [0.1, 0.2]}}}, "mine.yaml")


def test_the_schema_file_that_editors_read_accepts_sweeps_and_still_knows_the_keys(repository: Path) -> None:
    rules = yaml.safe_load((repository / "workflow/schemas/experiment.schema.yaml").read_text())
    rules["properties"] = {key: rules["properties"][key] for key in ("pretraining", "runs")}
    validator = Draft202012Validator({**rules, "required": ["pretraining", "runs"]})
    plain = {"steps": 1, "batch_size": 8}
    assert validator.is_valid({"pretraining": {**plain, **RATES}, "runs": {"a": {"model": "m", "pretraining": RATES}}})
    assert validator.is_valid({"pretraining": plain, "runs": {"a": {"model": "m"}}})
    assert not validator.is_valid({"pretraining": {**plain, "stepps": 1}, "runs": {"a": {"model": "m"}}})
