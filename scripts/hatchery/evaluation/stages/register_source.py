"""The stage `register_source`: names, sizes and checksums of the files of a raw input, fetched first if it is pinned.

Then it is read as suites and tasks will read it, so that mistakes in it are known before the first training.
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
    """Where a raw input comes from, without what is only said about it. Raises ConfigError for an unknown one."""
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
    # The user's files are noticed by their listing.
    made_after=lambda of, source: [of("generate_embedded_sources")] if source.startswith("embedded_") else [],
    # An edited, added or removed file is noticed when the workflow is planned.
    recorded={"listing": lambda raw_files, source: raw_files.source_listing(source) or ""},
    # A file that no suite or task can read ends the workflow before its first training.
    priority=1,
    unrecorded=lambda results, source: results.about_source(source),
    environment="sources",
    # It may download, and nodes of a cluster often lack the network.
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
    """Register one source and look through what is evaluated of it.

    `about` says how it is obtained, its licence and its terms, `readings` the settings of the suites and tasks that
    read it; `fetched` is the folder for what is downloaded or unpacked.
    """
    from hatchery.raw.obtain import register_settings

    print(register_settings({**settings, **(about or {})}, output, fetched))
    if readings:
        from hatchery.evaluation.first_rows import check_registered

        check_registered(output, readings)
