"""The stage `score_suites`: score one model on several suites of minimal pairs, one after another, in one process.

The model is loaded once. Each suite has its own folder and manifest, and if a suite fails, the other suites still run
(`several_items`).
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.several_items import run_each
from hatchery.evaluation.stages.score_minimal_pairs import files_read, score_minimal_pairs
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_of
from hatchery.runner import OutputPath
from hatchery.stage import Stage, StoredByDigest, record_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.jobs import Jobs
    from hatchery.workflow.outputs import Outputs

SOURCE = "source of {}"
"""Pattern for the name of an input in manifests: the source manifest of a suite."""


def several_suites_settings(project: "Project", experiment: str, batch: str) -> dict[str, object]:
    """Return the settings of all suites of a job. Each suite has the same settings, and thus the same results, as in a
    separate job.
    """
    record = record_of(score_minimal_pairs)
    suites = project.suite_batch(experiment, batch)
    return {"suites": {suite: json.loads(record.canonical_settings(project, suite=suite)) for suite in suites}}


def several_suites_inputs(of: "Outputs", jobs: "Jobs", experiment: str, batch: str) -> dict[str, Paths]:
    """Return the sources of all suites of a job, and the result folder of each suite."""
    suites = jobs.project.suite_batch(experiment, batch)
    sources = {suite: of("register_source", source=source_of(jobs.project.suite(suite))) for suite in suites}
    folders = {suite: jobs.address(experiment, "minimal_pairs", suite=suite) for suite in suites}
    return {"source": sources, "folder": folders}


def files_of_suites(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return the files of a source that the suites read."""
    found = {SOURCE.format(suite): given for suite, given in settings["suites"].items()}
    return files_read(found[name], name, source) if name in found else ()


@Stage(
    version=1,
    settings=several_suites_settings,
    inputs=several_suites_inputs,
    input_names={"source": SOURCE},
    files_read=files_of_suites,
    unrecorded=lambda model: {"results": f"results/minimal_pairs/{model}"},
    # Do not declare the suites' folders as outputs. If one suite changes or fails, Snakemake would also delete the
    # folders of finished suites.
    shared=StoredByDigest("minimal_pairs_jobs", ("batch",)),
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=480,
    runtime=("device", "tokens_per_batch", "compile"),
)
def score_suites(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    model: Path,
    source: Mapping[str, Path],
    results: OutputPath,
    folder: Mapping[str, OutputPath],
    run: StageRun,
) -> None:
    """Score the model on every suite of `settings["suites"]`; each suite's results are written to its `folder` in
    `results`.

    `settings["suites"]` maps names of suites to settings of the stage `score_minimal_pairs`; `source` maps names of
    suites to source manifests. If a suite fails, the other suites still run. At the end, EvaluationError is raised with
    the first error message and the names of all failed suites.
    """
    from hatchery.evaluation.minimal_pairs.opened_models import models_are_kept

    given = {name: {"model": model, "source": source[name]} for name in settings["suites"]}
    folders = {name: results / place for name, place in folder.items()}
    with models_are_kept():
        run_each(score_minimal_pairs, settings["suites"], given, folders, run, "suites", runtime=runtime)
