"""A project: what its files say together, and that one broken file or wrong name hurts nothing else."""

import shutil
from pathlib import Path

import pytest
from mistakes import DEMO, edit, load_everything

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.training.settings import WARMUP_FRACTION
from hatchery.typed import keys_of


@pytest.mark.parametrize(
    ("run", "warmup"),
    [
        # Another way to say the warm-up takes the place of the experiment's, whose share is the default again.
        ("{schedule: {warmup_steps: 100}}", {"warmup_steps": 100, "warmup_fraction": WARMUP_FRACTION}),
        # The beginning of a longer training.
        (
            "{steps: 20, schedule: {name: constant, warmup_steps: 100}, keep_training_state: true}",
            {"warmup_steps": 100, "warmup_fraction": WARMUP_FRACTION},
        ),
        ("{steps: 0}", {"warmup_fraction": 0.05}),
        # Evaluated at its end; others come to the interval.
        ("{steps: 100}", {"warmup_fraction": 0.05}),
    ],
)
def test_what_a_run_says_of_its_steps_is_taken(run: str, warmup: dict[str, float], configuration: Path) -> None:
    edit(configuration, DEMO, "{model: elc_demo}", f"{{model: elc_demo, pretraining: {run}}}")
    configured = Project(configuration)
    configured.check("experiment", "demo")
    schedule = configured.experiment("demo").runs["elc_bert"].pretraining.schedule
    said = keys_of(schedule)
    assert {key: said[key] for key in ("warmup_steps", "warmup_fraction") if key in said} == warmup


def test_a_short_training_needs_no_interval(configuration: Path) -> None:
    edit(configuration, DEMO, "  steps: 1700", "  steps: 100")
    edit(configuration, DEMO, "  evaluation_interval_steps: 250\n", "")
    assert Project(configuration).experiment("demo").pretraining.evaluation_interval_steps == 500


def test_every_shipped_file_is_valid(repository: Path) -> None:
    load_everything(repository / "config")


def test_an_unknown_experiment_names_the_nearest(repository: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'strict'"):
        Project(repository / "config").check("experiment", "strcit")


def test_an_unknown_seeded_run_names_those_that_exist(repository: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'ltg_bert-s42'"):
        Project(repository / "config").seeded_run("demo", "ltg_bart-s42")


def test_a_reserved_experiment_name_is_refused(configuration: Path) -> None:
    shutil.copy(configuration / DEMO, configuration / "experiments/tokens.yaml")
    with pytest.raises(ConfigError, match="cannot be an experiment's name"):
        Project(configuration).check("experiment", "tokens")


def test_a_broken_experiment_hurts_only_itself(configuration: Path) -> None:
    edit(configuration, DEMO, "steps: 1700", "steps: many")
    project = Project(configuration)
    assert project.experiment("strict").corpus == "babylm_100M"
    with pytest.raises(ConfigError):
        project.check("experiment", "demo")
