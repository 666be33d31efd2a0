"""The stage `register_source`: list names, sizes and checksums of the files of a raw input; download the input first if
it has a URL.

Then the files are read as suites and tasks will read them, so that errors in the files are found before the first
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
    """Return the origin of a raw input; keys that only describe the input are omitted. Raises ConfigError for an
    unknown source."""
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
    # It is sufficient that the generation of the data precedes this job. The generated files need not be inputs of the
    # rule, because the listing below detects changes of these files.
    made_after=lambda of, source: [of("generate_embedded_sources")] if source.startswith("embedded_") else [],
    # An edited, added or removed file is detected when the workflow is planned.
    recorded={"listing": lambda raw_files, source: raw_files.source_listing(source) or ""},
    # This stage has a high priority, so that a file that no suite or task can read stops the workflow before its first
    # training.
    priority=1,
    unrecorded=lambda results, source: results.about_source(source),
    environment="sources",
    # This stage runs on the submitting machine, because it may download files, and nodes of a cluster often have no
    # network.
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

    `about` describes the source's origin, licence and terms; `readings` are the settings of the suites and tasks that
    read the source; `fetched` is the folder for downloaded or unpacked files.
    """
    from hatchery.raw.obtain import register_settings

    print(register_settings({**settings, **(about or {})}, output, fetched))
    if readings:
        from hatchery.evaluation.first_rows import check_registered

        check_registered(output, readings)
