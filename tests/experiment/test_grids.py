"""Models from a grid of sizes: which runs are written out of it, what they are called, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from trained_runs import trained

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.settings.fields import ABSENT
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.registry import stage_settings

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    return tmp_path / "config"


def small(folder: Path, sets: Any, **more: Any) -> Project:
    """A project with the experiment `sizes`, whose grid has these sets."""
    grid = {"name": "m", "columns": {"H": "hidden_size", "L": "num_hidden_layers"}, "run": {"model": "ltg_demo"}}
    demo = {"corpus": "demo", "tokenizer": "demo", "pretraining": {"steps": 10, "batch_size": 4}}
    document = {**demo, "grid": {**grid, "sets": sets, **more}}
    (folder / "experiments/sizes.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Project(folder)


def test_a_set_has_rows_changes_of_one_row_or_all_combinations(folder: Path) -> None:
    sets = {
        "listed": [{"rows": [[48, 1], [48, 2]]}],
        "changed": [{"around": [96, 3], "vary": {"H": [48, 192], "L": [1]}}],
        "all": [{"all": {"H": [24, 12], "L": [1, 2]}}],
    }
    project = small(folder, sets)
    assert trained(project, "sizes", "listed") == ["m_48_1", "m_48_2"]
    assert trained(project, "sizes", "changed") == ["m_96_3", "m_48_3", "m_192_3", "m_96_1"]
    assert trained(project, "sizes", "all") == ["m_24_1", "m_24_2", "m_12_1", "m_12_2"]
    model = project.model_of("sizes", "m_192_3")
    assert (model.hidden_size, model.num_hidden_layers) == (192, 3)


def test_a_draw_takes_rows_that_are_left_and_more_values_leave_its_order_alone(folder: Path) -> None:
    def drawn(**draw: Any) -> list[str]:
        first = [{"rows": [[48, 1]]}]
        project = small(folder, {"first": first, "second": [{"draw": {"count": 3, **draw}}]})
        return trained(project, "sizes", "second")

    values = {"H": [24, 48, 96], "L": [1, 2, 3, 4]}
    assert len(set(drawn(among=values))) == 3 and "m_48_1" not in drawn(among=values)
    assert drawn(among=values) == drawn(among=values) != drawn(among=values, seed=1)
    more = drawn(among={"H": [24, 48, 96, 192], "L": [1, 2, 3, 4]})
    kept = [run for run in more if not run.startswith("m_192")]
    assert kept == drawn(among=values)[: len(kept)]
    few = [{"rows": [[48, 1]]}], [{"draw": {"count": 2, "among": {"H": [48], "L": [1, 2]}}}]
    with pytest.raises(ConfigError, match=r"grid\.sets\.b\.0\.draw: count: got 2, but only 1 rows are left"):
        small(folder, dict(zip("ab", few, strict=True))).check("experiment", "sizes")


def test_parts_and_variants_say_what_differs_from_the_run(folder: Path) -> None:
    sets = {"a": [{"rows": [[48, 1]]}, {"rows": [[96, 1]], "run": {"pretraining": {"batch_size": 8}}}]}
    project = small(folder, sets, variants={"untrained": {"pretraining": {"steps": 0}}})
    experiment = project.experiment("sizes")
    assert list(experiment.runs) == ["m_48_1", "m_48_1_untrained", "m_96_1", "m_96_1_untrained"]
    chosen = [experiment.runs[run].pretraining for run in experiment.runs]
    assert [(run.steps, run.batch_size) for run in chosen] == [(10, 4), (0, 4), (10, 8), (0, 8)]
    assert experiment.grid is ABSENT
    labels = ["m, H 48 L 1", "m, H 48 L 1, untrained", "m, H 96 L 1", "m, H 96 L 1, untrained"]
    assert list(project.expansion("sizes").labels().values()) == labels


def test_variants_are_milestones_of_their_row_and_those_of_the_base_can_be_left_out(folder: Path) -> None:
    variants: dict[str, Any] = {
        "untrained": {"pretraining": {"steps": 0}},
        "half": {"pretraining": {"steps": 0, "initialise_from": {"step": 5}}},
    }
    kept = {"evaluation_interval_steps": 5, "milestones": [5]}
    small(folder, {"a": [{"rows": [[48, 1], [96, 1]], "run": {"pretraining": kept}}]}, variants=variants)
    (folder / "experiments/other.yaml").write_text("base: sizes\ngrid: {variants: {untrained: null}}\n")
    jobs = Jobs(Project(folder))
    names = ["m_48_1", "m_48_1_half", "m_96_1", "m_96_1_half"]
    assert [run.model for run in Project(folder).seeded_runs("other")] == names
    for row in ("m_48_1", "m_96_1"):
        whole, half = (f"{row}{end}-s42" for end in ("", "_half"))
        assert jobs.results.initial_model("other", half) == [jobs.results.pretrained("other")[whole]]
        settings = json.loads(stage_settings(Project(folder), "pretrain", experiment="other", run=half))
        assert settings["initialise_from"] == {"step": 5, "take": "weights"} and "milestones" not in settings


def test_milestones_that_are_not_evaluated_or_not_kept_are_told(folder: Path) -> None:
    def message(milestones: list[int], step: int) -> str:
        variants = {"half": {"pretraining": {"steps": 0, "initialise_from": {"step": step}}}}
        run = {"pretraining": {"evaluation_interval_steps": 5, "milestones": milestones}}
        with pytest.raises(ConfigError) as caught:
            small(folder, {"a": [{"rows": [[48, 1]], "run": run}]}, variants=variants).check("experiment", "sizes")
        return str(caught.value)

    assert "milestones: got 3, expected steps before the last (10) at which" in message([3], 3)
    assert "milestones: got 10, expected steps before the last (10)" in message([10], 10)
    kept = "step: got 4, expected one of the `milestones` under the `pretraining` of 'm_48_1', which has 5"
    assert kept in message([5], 4)


def test_sweeps_of_the_experiment_go_through_the_models_of_a_grid(folder: Path) -> None:
    small(folder, {"a": [{"rows": [[48, 1]]}]})
    path = folder / "experiments/sizes.yaml"
    path.write_text(path.read_text().replace("steps: 10", "steps: {sweep: [10, 20]}"))
    project = Project(folder)
    assert project.expansion("sizes").sets() == {"m_48_1_steps_10": "a", "m_48_1_steps_20": "a"}
    names = [run.words for run in project.seeded_runs("sizes")]
    assert names == ["m, H 48 L 1, steps 10, seed 42", "m, H 48 L 1, steps 20, seed 42"]


def test_an_experiment_can_be_based_on_another_and_leave_out_its_sets(folder: Path) -> None:
    small(folder, {"a": [{"rows": [[48, 1]]}], "b": [{"rows": [[96, 1]]}]})
    (folder / "experiments/other.yaml").write_text("base: sizes\ngrid: {sets: {a: null}}\n")
    assert trained(Project(folder), "other") == ["m_96_1"]
    (folder / "experiments/sizes.yaml").write_text("base: other\n")
    with pytest.raises(ConfigError, match="base: got 'sizes', whose own base leads back to 'other'"):
        Project(folder).check("experiment", "sizes")


def test_a_key_that_is_null_is_not_taken_from_the_base(folder: Path) -> None:
    small(folder, {"a": [{"rows": [[48, 1]]}]})
    tasks = "finetuning: {tasks: {demo_acceptability: {}}}\n"
    (folder / "experiments/sizes.yaml").open("a", encoding="utf-8").write(tasks)
    (folder / "experiments/same.yaml").write_text("base: sizes\n")
    (folder / "experiments/less.yaml").write_text("base: sizes\nfinetuning: null\n")
    project = Project(folder)
    found = {name: list(project.experiment(name).finetuning.tasks) for name in ("same", "less")}
    assert found == {"same": ["demo_acceptability"], "less": []}


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"a": [{"rows": [[48]]}]}, "grid.sets.a.0.rows.0: got 1 values, expected 2: H, L"),
        ({"a": [{"rows": [[48, 1], [48, 1]]}]}, "grid.sets.a.0: the row [48, 1] is already in grid.sets.a.0"),
        ({"a": [{"around": [48, 1], "vary": {"h": [96]}}]}, "vary: h: unknown column; the grid has: H, L"),
        ({"a": [{"around": [48, 1]}]}, "grid: sets.a.0: got around, expected exactly one of: `rows: [[16, 64]]`"),
        ({"a": [{"all": {"H": [48]}}]}, "grid.sets.a.0.all: L: the column is missing"),
        ({"a": [{"rows": [[50, 1]]}]}, "grid.sets.a.0.run.model_changes: num_attention_heads: got 3"),
        ({"a": [{"rows": [[48, 1]], "run": {"model": "ltg_dmeo"}}]}, "grid.sets.a.0.run.model: got 'ltg_dmeo', no su"),
        ({"a": [{"rows": [[48, 1]], "run": {"modle": "x"}}]}, "grid: sets.a.0.run.modle: unknown key"),
    ],
)
def test_a_wrong_grid_is_told_in_one_line_with_its_place(folder: Path, sets: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small(folder, sets).check("experiment", "sizes")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value), caught.value
