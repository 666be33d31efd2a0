"""The stage `export_model`: write a model as a folder for `transformers`."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.export.settings import ExportSettings
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.jobs import Jobs
    from hatchery.workflow.outputs import Outputs


NOTHING: Mapping[str, Path] = MappingProxyType({})


def export_settings(project: "Project", experiment: str, run: str) -> dict[str, object]:
    """Return the settings on which the exported folder of a run's model depends."""
    block = project.experiment(experiment)
    chosen = project.seeded_run(experiment, run)
    settings = block.runs[chosen.model]
    corpus = project.corpus(block.corpus)
    sources = {source["name"]: source for source in raw_inputs(project, block.corpus)}
    return {
        "experiment": experiment,
        "description": block.description,
        "run": chosen,
        "seeds": settings.seeds,
        "model": settings.model,
        "model_description": keys_of(project.model(settings.model))["description"],
        "corpus": block.corpus,
        "corpus_description": corpus.description,
        "languages": corpus.languages,
        "sources": [{**sources[name], "dataset": _hub_dataset(project, name)} for name in sorted(sources)],
    }


def _hub_dataset(project: "Project", source: str) -> str | None:
    """Return the name of a raw input's data set on the Hugging Face hub; None if the input is not from the hub or has a
    local path.
    """
    data = project.raw_input(source)
    return None if data is None or data.hub is None or data.path is not None else data.hub.dataset


def export_inputs(of: "Outputs", jobs: "Jobs", experiment: str, run: str) -> dict[str, Paths]:
    """Return the manifests of the model, of its example sentences and of its checkpoints, and the summary with the
    scores of all models.
    """
    return {
        "pretraining": of("pretrain"),
        "summary": of("summarise", "parquet"),
        "filled": of("fill_sentences"),
        "checkpoints": jobs.checkpoints(experiment, run),
    }


@Stage(
    version=2,
    settings=export_settings,
    inputs=export_inputs,
    outputs={"output": "results/{experiment}/export/{run}/manifest.json"},
    input_names={"checkpoints": "checkpoint {}"},
    environment="evaluation",
    runs_on="local",
    memory_mb=3000,
    minutes=10,
)
def export_model(
    settings: ExportSettings,
    pretraining: Manifest,
    summary: Path | None,
    filled: Path | None,
    run: StageRun,
    checkpoints: Mapping[str, Path] = NOTHING,
) -> None:
    """Write the folder of one model for `transformers`.

    `pretraining` is the manifest of the model. `summary` is the experiment's summary.parquet; the model card shows its
    rows for this model. If `summary` is None, the card says that the model was not evaluated. `filled` is the manifest
    of example sentences with the model's answers; the card's code example uses the first sentence. `checkpoints` are
    the manifests of intermediate checkpoints by name, such as `chck_1M`; each is exported to a folder in `branches/`.
    Raises ManifestError, ModelError and TokenizationError for unusable inputs, and EvaluationError for invalid
    sentences.
    """
    from hatchery.export.write_export import write_export

    write_export(settings, pretraining, summary, filled, run, checkpoints)
