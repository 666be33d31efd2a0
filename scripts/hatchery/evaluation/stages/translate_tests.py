"""The stage `translate_tests`: one model translates test sets of raw text."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.settings import EvaluationRuntime, TranslationTests
from hatchery.stage import Shared, Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def translation_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Which test sets are translated, and the beams to choose from where there are any."""
    chosen = project.experiment(experiment).translation
    return {"tests": chosen.tests} | ({} if chosen.beams is None else {"beams": chosen.beams})


@Stage(
    version=2,
    settings=translation_settings,
    inputs=lambda results, experiment: {"corpus": results.translation_corpora(experiment)},
    input_names={"corpus": "corpus:{}"},
    shared=Shared("translation"),
    keep=True,
    environment="evaluation",
    sort="model",
    threads="evaluation",
    memory_mb=8000,
    minutes=240,
    runtime=("device", "tokens_per_batch"),
)
def translate_tests(
    settings: TranslationTests,
    runtime: EvaluationRuntime,
    model: Path,
    corpus: Mapping[str, Path],
    run: StageRun,
) -> None:
    """Translate the test sets of the settings with the model of a pretraining manifest.

    `corpus` are the manifests of the test sets' corpora by the names of the test sets. Raises ConfigError for other
    names than those of the settings, CorpusError for a split that is not there or holds no pairs, EvaluationError for a
    model that does not translate, and the errors of the model's loader.
    """
    from hatchery.evaluation.translation import translate_all

    translate_all(settings, runtime, model, corpus, run)
