"""Checks that a schema cannot express: values that must fit each other."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchery.config.overrides import pretraining_of, protocol_of
from hatchery.errors import ConfigError

if TYPE_CHECKING:
    from hatchery.config.project import Project


def check_sources(corpus: Mapping[str, Any], where: str) -> None:
    """Source names are unique, and the split leaves documents to train on. Raises ConfigError."""
    for name, count in Counter(source["name"] for source in corpus["sources"]).items():
        if count > 1:
            raise ConfigError(f"{where}: sources: the name {name!r} is given {count} times, expected once")
    split = corpus["split"]
    held_out = split["development_fraction"] + split["test_fraction"]
    if held_out >= 1:
        raise ConfigError(f"{where}: split: development_fraction + test_fraction is {held_out:g}, expected less than 1")


def check_experiment(experiment: dict[str, Any], where: str, project: "Project") -> None:
    """The settings of every run fit each other and their model. Raises ConfigError."""
    for run in experiment["runs"]:
        pretraining = pretraining_of(experiment, run)
        place = f"{where}: runs.{run}.pretraining"
        objective = pretraining["objective"]
        if objective["random_probability"] + objective["keep_probability"] > 1:
            raise ConfigError(f"{place}: objective.random_probability + objective.keep_probability is more than 1")
        long = pretraining["long_sequence"]
        if long is not None and pretraining["batch_size"] % long["factor"]:
            raise ConfigError(
                f"{place}: batch_size: got {pretraining['batch_size']}, "
                f"expected a multiple of long_sequence.factor ({long['factor']})"
            )
        micro = project.config["compute"]["micro_batch_size"]
        if micro is not None and pretraining["batch_size"] % micro:
            raise ConfigError(
                f"{place}: batch_size: got {pretraining['batch_size']}, "
                f"expected a multiple of compute.micro_batch_size ({micro}) of {project.folder / 'config.yaml'}"
            )
    for task in experiment["finetuning"]["tasks"]:
        metrics = project.block("task", task)["metrics"]
        selection = protocol_of(experiment, task)["selection_metric"]
        if selection not in metrics:
            raise ConfigError(
                f"{where}: finetuning.tasks.{task}.selection_metric: got {selection!r}, "
                f"the metrics of this task are: {', '.join(metrics)}"
            )
