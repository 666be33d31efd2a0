"""The stage `translate_tests`: one model translates the raw text of test sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.records import Record
from hatchery.evaluation.basis import basis, shortened
from hatchery.evaluation.evaluation import ONCE, Evaluated, Evaluation, TidyRow, measured
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.translation_settings import TRANSLATION_SUITE, TranslationTests, translated_runs
from hatchery.job_spec import Paths
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.experiment.seeded_run import SeededRun
    from hatchery.workflow.outputs import Outputs


def translation_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the test sets of an experiment, and the candidate beam sizes, if the experiment chooses a beam size."""
    return keys_of(project.experiment(experiment).translation, only=TranslationTests)


def translation_asked(experiment: "Experiment", run: "SeededRun") -> tuple[str, ...]:
    """Return the names of a run's translation evaluations. There is one evaluation, with an empty name, if the run
    translates the experiment's test sets. Otherwise, the tuple is empty.
    """
    return ONCE if run.model in translated_runs(experiment.translation, experiment.runs) else ()


@dataclass(frozen=True)
class _TestScore(Record):
    test: str
    corpus: str
    split: str
    pairs: int
    metric: str
    score: float
    signature: str


def translation_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return a row for BLEU and for chrF (0 to 100) of every test set, from `scores.csv`."""
    inputs, decides = evaluated.manifest.inputs, (evaluated.manifest.settings.get("beams") or {}).get("test")
    return [
        measured(
            *(TRANSLATION_SUITE, row.test, "split", row.metric, row.score),
            items=row.pairs,
            basis=basis(
                text=shortened(inputs.get(f"corpus:{row.test}")),
                items=row.pairs,
                selection="the beam was chosen on this text" if row.test == decides else "",
            ),
        )
        for row in evaluated.records("scores.csv", _TestScore, ("test", "metric"))
    ]


def translation_inputs(of: "Outputs", experiment: str) -> dict[str, Paths]:
    """Return the corpus manifest of each of the experiment's test sets, by name of the test set."""
    tests = of.project.experiment(experiment).translation.tests
    return {"corpus": {name: of.corpus(test.corpus) for name, test in tests.items()}}


@Stage(
    version=1,
    settings=translation_settings,
    inputs=translation_inputs,
    input_names={"corpus": "corpus:{}"},
    shared=StoredByDigest("translation"),
    evaluation=Evaluation(
        place=20,
        title="Translation",
        note="Scores are from 0 to 100, and are means over pretraining seeds. For development text, the scores are the "
        "highest score during training, and the area under the learning curve divided by the number of steps.",
        asked=translation_asked,
        rows=translation_rows,
        direct="hatchery.evaluation.translation:evaluate",
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
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
    """Translate the test sets in the settings with the model of a pretraining manifest.

    `corpus` maps the name of each test set to the manifest of its corpus. Raises ConfigError if the names in `corpus`
    differ from the names in the settings, CorpusError for a split that is missing or has no pairs, EvaluationError for
    a model that does not translate, and the errors of the model's loader.
    """
    from hatchery.evaluation.translation import translate_all

    translate_all(settings, runtime, model, corpus, run)
