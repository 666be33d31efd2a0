"""The stage `write_provenance`: write a page with each number of an experiment, linked to its manifests."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.runner import OutputPath
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def provenance_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the provenance page. Raises ConfigError for an unknown experiment."""
    project.results_of(experiment)
    return {"experiment": experiment}


@Stage(
    version=1,
    settings=provenance_settings,
    inputs=lambda of, experiment: {"summary": of("summarise", "parquet")},
    outputs={
        "page": "results/{experiment}/provenance.html",
        "places": "results/{experiment}/provenance_places.json",
        "checksums": "results/{experiment}/provenance.sha256",
        "places_checksums": "results/{experiment}/provenance_places.sha256",
    },
    reported={"page": ("{experiment}", "Provenance")},
    environment="analysis",
    runs_on="local",
    memory_mb=1000,
    minutes=10,
)
def write_provenance(
    settings: Mapping[str, Any],
    summary: Path,
    output: Path,
    places: OutputPath | None = None,
    project: OutputPath = Path(),
) -> None:
    """Write the provenance page of an experiment. `summary` is the path of the experiment's summary.parquet.

    `settings` contains `experiment`; the digests of the manifests on the page are written to `places`. Inputs may be
    removed after a result is made, so the page lists missing and damaged manifests. For a large experiment, the page
    contains only the first rows of the summary, and states this in a note. Raises ManifestError if `summary` is missing
    or is not a summary.
    """
    from hatchery.analysis.summary_rows import PROVENANCE_ROWS, read_summary
    from hatchery.artifacts.atomic import write_json, write_text
    from hatchery.artifacts.checksums import write_checksums
    from hatchery.provenance.chain import ManifestIndex, follow
    from hatchery.views.provenance_page import page_text, places_of

    experiment = str(settings["experiment"])
    rows = read_summary(summary)
    digests = dict.fromkeys(digest for row in rows[:PROVENANCE_ROWS] for digest in row.digests)
    chain = follow(ManifestIndex(project), digests, where="summary.csv", prefer=Path("results") / experiment)
    write_text(output, page_text(experiment, rows, chain))
    if places is not None:
        write_json(places, sorted(places_of(chain)))
        write_checksums([places])
    write_checksums([output])
