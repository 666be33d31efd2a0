"""The stage `collect_measurements`: write all results of an experiment's runs as four tidy tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import TIDY_TABLES
from hatchery.analysis.settings import CollectSettings, baseline_runs
from hatchery.job_spec import Paths
from hatchery.stage import Stage, none_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.result_paths import ResultPaths

TIDY_OUTPUTS = {
    **{table: f"results/{{experiment}}/{table}.parquet" for table in TIDY_TABLES},
    "checksums": [f"results/{{experiment}}/{table}.sha256" for table in TIDY_TABLES],
}
"""Path patterns of the tidy tables, for experiments and studies."""


def collect_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the stage's settings: the models whose results the tidy tables contain."""
    block, runs = project.experiment(experiment), project.seeded_runs(experiment)
    milestones = project.milestones(experiment).values()
    return {
        "experiment": experiment,
        "runs": [*runs, *baseline_runs(block.baselines, runs), *milestones],
        "alc_steps": block.translation.alc_steps,
    }


def collect_inputs(results: "ResultPaths", experiment: str) -> dict[str, Paths]:
    """Return the manifests of the models, of all their evaluations, and of their training text."""
    return {
        "model": results.models(experiment),
        "evaluation": {result.key: path for result, path in results.evaluations(experiment).items()},
        "tokens": results.tokens(experiment),
        "corpus": results.corpus(experiment),
    }


@Stage(
    version=1,
    settings=collect_settings,
    inputs=collect_inputs,
    outputs=TIDY_OUTPUTS,
    wildcard_patterns=lambda project: {"experiment": none_of(project.names("study"))},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=30,
)
def collect_measurements(
    settings: CollectSettings,
    model: Mapping[str, Path],
    evaluation: Mapping[str, Path],
    tokens: Path | None,
    corpus: Path | None,
    output: Path,
) -> None:
    """Write the tidy tables of an experiment: the table of measurements to `output`, and the other tables into the same
    folder.

    All inputs are manifests. `model` contains the manifest of every run and baseline. `evaluation` contains the
    manifests of all evaluations of these models (keys: `Result.key`). `tokens` is the manifest of the token shards, and
    `corpus` is the manifest of the documents. The table of curves gets its final name before the evaluations are read;
    the other tables are written after all inputs were read.

    Raises ManifestError if a file differs from its manifest, or if the model of an evaluation is not the model in
    `model`. Raises EvaluationError if a table is invalid.
    """
    from hatchery.analysis.collect_measurements import collect

    collect(settings, model, evaluation, tokens, corpus, output)
