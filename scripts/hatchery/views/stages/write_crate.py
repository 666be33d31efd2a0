"""The stage `write_crate`: write an RO-Crate (a zip archive with metadata) of an experiment or a study."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.job_spec import Paths
from hatchery.runner import OutputPath
from hatchery.stage import SCRIPTS, Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs


def crate_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the RO-Crate; for a study, these include the configurations of all its experiments."""
    return {
        "experiment": experiment,
        "description": project.results_of(experiment).description,
        "configuration": {part: project.experiment(part) for part in project.members(experiment)},
    }


def crate_inputs(of: "Outputs", experiment: str) -> dict[str, Paths]:
    """Return the input files of an RO-Crate: `summary` is the summary as a Parquet file, and `results` are the summary
    as CSV, the summary as Markdown, and the provenance page.

    The summary contains digests of manifests, from which all manifests down to the raw files are found.
    """
    return {
        "summary": of("summarise", "parquet"),
        "results": [of("summarise"), of("summarise", "markdown"), of("write_provenance")],
    }


@Stage(
    version=1,
    settings=crate_settings,
    inputs=crate_inputs,
    outputs={"output": "results/{experiment}/ro-crate.zip"},
    environment="analysis",
    runs_on="local",
    memory_mb=1000,
    minutes=10,
)
def write_crate(
    settings: Mapping[str, Any],
    summary: Path,
    results: Sequence[Path],
    output: Path,
    project: OutputPath = Path(),
) -> None:
    """Write the RO-Crate of an experiment or a study, a zip archive with reproducible bytes. `summary` is the path of
    summary.parquet.

    The archive contains the metadata, the Snakefile, the configuration, the results and the manifests of all stages,
    but neither weights nor raw data. Raises ManifestError if `summary` is missing or is not a summary.
    """
    import zipfile
    from io import BytesIO

    from hatchery.analysis.summary_rows import read_summary
    from hatchery.artifacts.atomic import json_text, write_bytes
    from hatchery.provenance.chain import ManifestIndex, follow
    from hatchery.provenance.run_crate import METADATA, Run, run_crate
    from hatchery.rendering.citation import version
    from hatchery.rendering.templates import render

    name = str(settings["experiment"])
    digests = dict.fromkeys(digest for row in read_summary(summary) for digest in row.digests)
    chain = follow(ManifestIndex(project), digests, where="summary.csv", prefer=Path("results") / name)
    description = str(settings["description"])
    title = {"name": name, "description": description, "version": version()}
    run = Run(
        **title,
        results=[*results, summary],
        workflow=SCRIPTS.parent / "Snakefile",
        configuration=json_text(settings["configuration"]),
        readme=render("crate_readme.md.j2", **title, results=results),
    )
    crate = run_crate(run, chain)
    content = {METADATA: json_text(crate.metadata()).encode(), **crate.files}
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for place, data in content.items():
            packed.writestr(zipfile.ZipInfo(place), data, zipfile.ZIP_DEFLATED)
    write_bytes(output, archive.getvalue())
