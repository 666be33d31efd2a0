"""Stages of the raw inputs: generating the embedded ones, and registering files with their checksums."""

from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.block_bodies import without
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import KEYS
from hatchery.stages.record import Stage


def embedded_settings(project: Project) -> dict[str, Any]:
    """How large the generated inputs are, and their seed."""
    return dict(project.config["embedded"])


def source_settings(project: Project, source: str) -> dict[str, Any]:
    """Where a raw input comes from, without what is only said about it. Raises ConfigError for an unknown one."""
    if source.startswith("embedded_"):
        return {"name": source, "path": f"resources/embedded/{source.removeprefix('embedded_')}"}
    data = project.raw_input(source)
    if data is None:
        raise ConfigError(f"{project.folder / 'config.yaml'}: data: there is no source {source!r}")
    return {"name": source, **without(data, *KEYS)}


STAGES = (
    Stage(
        name="generate_embedded_sources",
        version=4,
        settings=embedded_settings,
        environment="sources",
        sort="cpu",
        memory_mb=1000,
        minutes=10,
    ),
    # Local, because it may download, and nodes of a cluster often lack the network.
    Stage(
        name="register_source",
        version=2,
        settings=source_settings,
        environment="sources",
        sort="local",
        memory_mb=1500,
        minutes=1440,
    ),
)
