"""The stage `join_surprisals`: write one table with the surprisals of all words under all models of an experiment."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.settings import CollectSettings
from hatchery.analysis.stages.collect_measurements import collect_settings
from hatchery.stage import Stage, none_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def joined_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the stage's settings: the models whose surprisals the table contains."""
    settings = collect_settings(project, experiment)
    return {key: settings[key] for key in ("experiment", "runs")}


@Stage(
    version=1,
    settings=joined_settings,
    inputs=lambda results, experiment: {
        "model": results.models(experiment),
        "words": {key.key: path for key, path in results.evaluations(experiment).items() if key.kind == "surprisal"},
    },
    outputs={
        "parquet": "results/{experiment}/surprisals.parquet",
        "csv": "results/{experiment}/surprisals.csv",
        "checksums": "results/{experiment}/surprisals.sha256",
    },
    wildcard_patterns=lambda project: {"experiment": none_of(project.names("study"))},
    environment="analysis",
    runs_on="local",
    memory_mb=2000,
    minutes=60,
)
def join_surprisals(
    settings: CollectSettings, model: Mapping[str, Path], words: Mapping[str, Path], output: Path
) -> None:
    """Write `surprisals.parquet` to `output`, and `surprisals.csv` into the same folder, with a row for each word and
    model.

    `model` contains the manifest of every model, and `words` contains the manifests of the outputs of
    `measure_surprisal` (keys: `Result.key`). Only one batch of rows is in memory at a time. Raises ManifestError if a
    file differs from its manifest, or if surprisals belong to another model.
    """
    from hatchery.analysis.joined_surprisals import join_words

    join_words(settings, model, words, output)
