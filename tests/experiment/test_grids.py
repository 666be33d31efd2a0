"""Runs that the grid of an experiment expands to: their names, their settings, and refused grids."""

import json
from pathlib import Path
from typing import Any

import pytest
from shipped import trained, written

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.settings.fields import ABSENT
from hatchery.workflow.jobs import Jobs


def small(configuration: Path, sets: Any, **more: Any) -> Project:
    """Return a project with the experiment `sizes`, whose grid has `sets`."""
    grid = {"name": "m", "columns": {"H": "hidden_size", "L": "num_hidden_layers"}, "run": {"model": "ltg_demo"}}
    demo = {"corpus": "demo", "tokenizer": "demo", "pretraining": {"steps": 10, "batch_size": 4}}
    document = {**demo, "grid": {**grid, "sets": sets, **more}}
    return written(configuration, {"experiments/sizes": document})


def test_a_set_has_rows_changes_of_one_row_or_all_combinations(configuration: Path) -> None:
    sets = {
        "listed": [{"rows": [[48, 1], [48, 2]]}],
        # Two parts of a set may vary one row, which is listed once.
        "changed": [{"around": [96, 3], "vary": {"H": [48, 192]}}, {"around": [96, 3], "vary": {"L": [1]}}],
        "all": [{"all": {"H": [24, 12], "L": [1, 2]}}],
    }
    project = small(configuration, sets)
    assert trained(project, "sizes", "listed") == ["m_48_1", "m_48_2"]
    assert trained(project, "sizes", "changed") == ["m_96_3", "m_48_3", "m_192_3", "m_96_1"]
    assert trained(project, "sizes", "all") == ["m_24_1", "m_24_2", "m_12_1", "m_12_2"]
    model = project.model_of("sizes", "m_192_3")
    assert (model.hidden_size, model.num_hidden_layers) == (192, 3)
    # A part of a set may give a column to another key of the model.
    project = small(configuration, {"wide": [{"rows": [[72, 1]], "columns": {"H": "intermediate_size"}}]})
    model = project.model_of("sizes", "m_72_1")
    assert (model.hidden_size, model.intermediate_size) == (project.model("ltg_demo").hidden_size, 72)


def test_a_draw_takes_rows_that_are_left_and_more_values_leave_its_order_alone(configuration: Path) -> None:
    def drawn(**draw: Any) -> list[str]:
        first = [{"rows": [[48, 1]]}]
        project = small(configuration, {"first": first, "second": [{"draw": {"count": 3, **draw}}]})
        return trained(project, "sizes", "second")

    values = {"H": [24, 48, 96], "L": [1, 2, 3, 4]}
    assert len(set(drawn(among=values))) == 3 and "m_48_1" not in drawn(among=values)
    assert drawn(among=values) == drawn(among=values) != drawn(among=values, seed=1)
    more = drawn(among={"H": [24, 48, 96, 192], "L": [1, 2, 3, 4]})
    kept = [run for run in more if not run.startswith("m_192")]
    assert kept == drawn(among=values)[: len(kept)]
    few = [{"rows": [[48, 1]]}], [{"draw": {"count": 2, "among": {"H": [48], "L": [1, 2]}}}]
    with pytest.raises(ConfigError, match=r"grid\.sets\.b\.0\.draw: count: got 2, but only 1 rows are left"):
        small(configuration, dict(zip("ab", few, strict=True))).check("experiment", "sizes")


def test_parts_and_variants_say_what_differs_from_the_run(configuration: Path) -> None:
    sets = {"a": [{"rows": [[48, 1]]}, {"rows": [[96, 1]], "run": {"pretraining": {"batch_size": 8}}}]}
    project = small(configuration, sets, variants={"untrained": {"pretraining": {"steps": 0}}})
    experiment = project.experiment("sizes")
    assert list(experiment.runs) == ["m_48_1", "m_48_1_untrained", "m_96_1", "m_96_1_untrained"]
    chosen = [experiment.runs[run].pretraining for run in experiment.runs]
    assert [(run.steps, run.batch_size) for run in chosen] == [(10, 4), (0, 4), (10, 8), (0, 8)]
    # The run of a part overrides the run of the grid.
    run = {"model": "ltg_demo", "pretraining": {"batch_size": 2}}
    found = small(configuration, sets, run=run).experiment("sizes").runs
    assert [found[run].pretraining.batch_size for run in ("m_48_1", "m_96_1")] == [2, 8]
    assert experiment.grid is ABSENT
    labels = ["m, H 48 L 1", "m, H 48 L 1, untrained", "m, H 96 L 1", "m, H 96 L 1, untrained"]
    assert list(project.expansion("sizes").labels().values()) == labels
    lines = [found["line"] for found in project.expansion("sizes").swept_values().values()]
    assert lines == ["a", "a untrained", "a", "a untrained"]


def test_variants_are_milestones_of_their_row_and_those_of_the_base_can_be_left_out(configuration: Path) -> None:
    variants: dict[str, Any] = {
        "untrained": {"pretraining": {"steps": 0}},
        "half": {"pretraining": {"steps": 0, "initialise_from": {"step": 5}}},
    }
    kept = {"evaluation_interval_steps": 5, "milestones": [5]}
    small(configuration, {"a": [{"rows": [[48, 1], [96, 1]], "run": {"pretraining": kept}}]}, variants=variants)
    (configuration / "experiments/other.yaml").write_text("base: sizes\ngrid: {variants: {untrained: null}}\n")
    jobs = Jobs(Project(configuration))
    names = ["m_48_1", "m_48_1_half", "m_96_1", "m_96_1_half"]
    assert [run.model for run in Project(configuration).seeded_runs("other")] == names
    for row in ("m_48_1", "m_96_1"):
        whole, half = (f"{row}{end}-s42" for end in ("", "_half"))
        assert jobs.results.initial_model("other", half) == [jobs.results.pretrained("other")[whole]]
        settings = json.loads(Jobs(Project(configuration)).settings("pretrain", experiment="other", run=half))
        assert settings["initialise_from"] == {"step": 5, "take": "weights"} and "milestones" not in settings


def test_a_variant_that_starts_from_a_folder_does_not_start_from_the_run_of_its_row(configuration: Path) -> None:
    variants = {"other": {"pretraining": {"steps": 0, "initialise_from": {"path": "there"}}}}
    project = small(configuration, {"a": [{"rows": [[48, 1]]}]}, variants=variants)
    start = project.experiment("sizes").runs["m_48_1_other"].pretraining.initialise_from
    assert start is not None and (start.path, start.run) == ("there", ABSENT)


def test_milestones_that_are_not_evaluated_or_not_kept_are_told(configuration: Path) -> None:
    def message(milestones: list[int], step: int) -> str:
        variants = {"half": {"pretraining": {"steps": 0, "initialise_from": {"step": step}}}}
        run = {"pretraining": {"evaluation_interval_steps": 5, "milestones": milestones}}
        with pytest.raises(ConfigError) as caught:
            small(configuration, {"a": [{"rows": [[48, 1]], "run": run}]}, variants=variants).check(
                "experiment", "sizes"
            )
        return str(caught.value)

    assert "milestones: got 3, expected a multiple of `evaluation_interval_steps` (" in message([3], 3)
    assert "that is less than `steps` (10)" in message([10], 10)
    kept = "step: got 4, expected one of the `milestones` under the `pretraining` of 'm_48_1', which has 5"
    assert kept in message([5], 4)


def test_sweeps_of_the_experiment_go_through_the_models_of_a_grid(configuration: Path) -> None:
    small(configuration, {"a": [{"rows": [[48, 1]]}]})
    path = configuration / "experiments/sizes.yaml"
    path.write_text(path.read_text().replace("steps: 10", "steps: {sweep: [10, 20]}"))
    project = Project(configuration)
    assert project.expansion("sizes").sets() == {"m_48_1_steps_10": "a", "m_48_1_steps_20": "a"}
    names = [run.title for run in project.seeded_runs("sizes")]
    assert names == ["m, H 48 L 1, steps 10, seed 42", "m, H 48 L 1, steps 20, seed 42"]


def test_an_experiment_can_be_based_on_another_and_leave_out_its_sets(configuration: Path) -> None:
    small(configuration, {"a": [{"rows": [[48, 1]]}], "b": [{"rows": [[96, 1]]}]})
    (configuration / "experiments/other.yaml").write_text("base: sizes\ngrid: {sets: {a: null}}\n")
    assert trained(Project(configuration), "other") == ["m_96_1"]
    (configuration / "experiments/sizes.yaml").write_text("base: other\n")
    with pytest.raises(ConfigError, match="base: got 'sizes', whose own base leads back to 'other'"):
        Project(configuration).check("experiment", "sizes")


def test_a_key_that_is_null_is_not_taken_from_the_base(configuration: Path) -> None:
    small(configuration, {"a": [{"rows": [[48, 1]]}]})
    tasks = "finetuning: {tasks: {demo_acceptability: {}}}\n"
    (configuration / "experiments/sizes.yaml").open("a", encoding="utf-8").write(tasks)
    (configuration / "experiments/same.yaml").write_text("base: sizes\n")
    (configuration / "experiments/less.yaml").write_text("base: sizes\nfinetuning: null\n")
    project = Project(configuration)
    found = {name: list(project.experiment(name).finetuning.tasks) for name in ("same", "less")}
    assert found == {"same": ["demo_acceptability"], "less": []}


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"a": [{"rows": [[48]]}]}, "grid.sets.a.0.rows.0: got 1 values, expected 2: H, L"),
        ({"a": [{"rows": [[48, 1], [48, 1]]}]}, "grid.sets.a.0: the row [48, 1] is already in grid.sets.a.0"),
        ({"a": [{"rows": [[48, 1], ["48", 1]]}]}, "grid.sets.a.0: two runs of the grid have the name 'm_48_1'"),
        ({"a": [{"around": [48, 1], "vary": {"h": [96]}}]}, "vary: h: unknown column; the grid has: H, L"),
        ({"a": [{"around": [48, 1]}]}, "grid: sets.a.0: got around, expected exactly one of: `rows: [[16, 64]]`"),
        ({"a": [{"all": {"H": [48]}}]}, "grid.sets.a.0.all: L: the column is missing"),
    ],
)
def test_a_wrong_grid_is_told_in_one_line_with_its_place(configuration: Path, sets: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small(configuration, sets).check("experiment", "sizes")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value), caught.value
