"""The stage `register_source`: list the names, sizes and checksums of a raw input's files. An input with a URL is
downloaded first.

The stage then reads the complete files as evaluations will read them, so that errors are found before the first
training.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.errors import ConfigError
from hatchery.raw.obtain import FETCHED
from hatchery.raw.settings import KEYS
from hatchery.runner import OutputPath
from hatchery.stage import Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def source_settings(project: "Project", source: str) -> dict[str, object]:
    """Return the keys that define where a raw input comes from; keys that only describe the input are omitted. Raises
    ConfigError for an unknown source.
    """
    if source.startswith("embedded_"):
        return {"name": source, "path": f"resources/embedded/{source.removeprefix('embedded_')}"}
    data = project.raw_input(source)
    if data is None:
        raise ConfigError(f"{project.folder / 'config.yaml'}: data: there is no source {source!r}")
    return {"name": source, **keys_of(data, *KEYS)}


@Stage(
    version=1,
    settings=source_settings,
    outputs={
        "manifest": "resources/sources/{source}.json",
        "location": "resources/sources/{source}.location.json",
    },
    # Generated files must exist before this job, but they are not inputs of the rule, because `listing` below detects
    # changes of these files.
    made_after=lambda of, source: [of("generate_embedded_sources")] if source.startswith("embedded_") else [],
    # Planning compares the listing with the files, and thus detects an edited, added or removed file.
    recorded={"listing": lambda raw_files, source: raw_files.source_listing(source) or ""},
    # Run this stage before other stages: an unreadable file of a suite or task then stops the workflow before the first
    # training.
    priority=1,
    unrecorded=lambda results, source: results.about_source(source),
    environment="sources",
    # This stage runs on the submitting machine, because it may download files, and cluster nodes often have no network.
    runs_on="local",
    memory_mb=1500,
    minutes=1440,
)
def register_source(
    settings: Mapping[str, Any],
    output: Path,
    about: Mapping[str, Any] | None = None,
    readings: Mapping[str, Any] | None = None,
    fetched: OutputPath = FETCHED,
) -> None:
    """Register one source and check the data that evaluations read from it.

    `about` describes the source's origin, licence and terms. `readings` are the settings with which evaluations read
    the source (`check_registered`). `fetched` is the folder for downloaded or unpacked files.
    """
    from hatchery.raw.obtain import register_settings

    print(register_settings({**settings, **(about or {})}, output, fetched))
    if readings:
        from hatchery.evaluation.first_rows import check_registered

        check_registered(output, readings)
