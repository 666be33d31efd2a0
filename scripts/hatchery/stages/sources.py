"""Stages of the raw inputs: generating the embedded ones, and registering files with their checksums."""

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import KEYS
from hatchery.stages.record import Stage
from hatchery.typed import keys_of


def embedded_settings(project: Project) -> dict[str, object]:
    """How large the generated inputs are, and their seed."""
    return keys_of(project.config.embedded)


def source_settings(project: Project, source: str) -> dict[str, object]:
    """Where a raw input comes from, without what is only said about it. Raises ConfigError for an unknown one."""
    if source.startswith("embedded_"):
        return {"name": source, "path": f"resources/embedded/{source.removeprefix('embedded_')}"}
    data = project.raw_input(source)
    if data is None:
        raise ConfigError(f"{project.folder / 'config.yaml'}: data: there is no source {source!r}")
    # A key that most have not is named only where it is: what was registered before keeps its call.
    absent = ("hub_model",) if data.hub_model is None else ()
    return {"name": source, **keys_of(data, *KEYS, *absent)}


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
