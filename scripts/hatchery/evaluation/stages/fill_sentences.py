"""The stage `fill_sentences`: a pretrained model fills gaps in sentences of a corpus, continues sentences, or
translates them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.stage import Stage, StoredByDigest

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def filled_sentences_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return an empty mapping: the stage has no settings, because the result depends only on model and corpus.

    Raises ConfigError for an unknown experiment.
    """
    project.experiment(experiment)
    return {}


@Stage(
    version=1,
    settings=filled_sentences_settings,
    inputs=lambda of, project, experiment: {"corpus": of.corpus(project.experiment(experiment).corpus)},
    shared=StoredByDigest("filled_sentences"),
    environment="evaluation",
    runs_on="local",
    memory_mb=3000,
    minutes=10,
)
def fill_sentences(settings: Mapping[str, Any], model: Path, corpus: Manifest, run: StageRun) -> None:
    """Write `sentences.json` into the folder of `run`: sentences of the corpus, and the model's answers. A model fills
    gaps in the sentences, continues the sentences, or translates the sentences.

    `model` is the manifest of a pretraining. Raises ManifestError, ModelError, TokenizationError, EvaluationError or
    CorpusError naming the unusable input.
    """
    from hatchery.evaluation.filled_sentences import fill

    fill(model, corpus, run)
