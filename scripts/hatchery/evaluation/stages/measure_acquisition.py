"""The stage `measure_acquisition`: the number of training words after which a model has learned a word, compared with
the age at which children learn it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.basis import basis, shortened
from hatchery.evaluation.evaluation import ONCE, DataCheck, Evaluated, Evaluation, MostRows, ReadData, TidyRow, measured
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.settings import AcquisitionSettings, MarkedAcquisition
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_manifest, source_of
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import build, keys_of, stage_body

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.experiment.seeded_run import SeededRun
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.jobs import Jobs


def acquisition_settings(project: "Project", experiment: str, run: str) -> dict[str, object]:
    """Return the settings for the comparison of the model's ages of acquisition with children's ages, and the number of
    training words that the model has read at each checkpoint.
    """
    chain = project.checkpoints(experiment, run)
    words = {milestone.milestone: milestone.words for _, milestone in chain}
    return {**keys_of(project.experiment(experiment).acquisition, only=AcquisitionSettings), "words": words}


def acquisition_inputs(jobs: "Jobs", experiment: str, run: str) -> dict[str, Paths]:
    """Return the source manifest of the data on children's words, and the manifests of the run's checkpoints. If the
    run continues earlier runs, the checkpoints of the earlier runs are included.
    """
    return {
        "source": source_manifest(source_of(jobs.project.experiment(experiment).acquisition)),
        "checkpoints": jobs.checkpoints(experiment, run),
    }


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return two files: the table of children's words, and the file of the contexts in which these words are scored."""
    found = build(MarkedAcquisition, stage_body(settings))
    return [source.one_name(pattern) for pattern in (found.children, found.contexts)]


def ages_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the data on children's words, if the experiment evaluates age of acquisition."""
    if (asked := project.experiment(experiment).acquisition) is not None:
        where = f"{project.place('experiment', experiment)}: acquisition"
        yield ReadData(where, asked.data, build(AcquisitionSettings, keys_of(asked, only=AcquisitionSettings)))


def check_ages(source: "RawSource", settings: AcquisitionSettings, rows: MostRows) -> Iterable[str]:
    """Check the table of children's words by reading it. Also check the file with the words' contexts, unless `rows`
    limits the number of rows to read: this JSON file can only be read as a whole.
    """
    from hatchery.evaluation.surprisal.human_data import read_children, read_contexts

    read_children(source, settings.children)
    if rows(source.one_name(settings.contexts)) is None:
        read_contexts(source, settings.contexts, shortest=2 if settings.spaces else 1)
    return ()


def acquisition_asked(experiment: "Experiment", run: "SeededRun") -> tuple[str, ...]:
    """Return the names of a run's evaluations of age of acquisition. There is one evaluation, with an empty name, if
    the experiment evaluates age of acquisition and the run saves checkpoints at word counts. Otherwise, the tuple is
    empty.
    """
    if experiment.acquisition is None or run.is_baseline or run.milestone_of:
        return ()
    return ONCE if experiment.runs[run.model].pretraining.marks else ()


def acquisition_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return one row: the correlation, times 100, between children's and the model's ages of acquisition. As in
    BabyLM's code, the correlation counts as 0 if it is not significant, or if fewer than three words have both ages.
    """
    measures = evaluated.manifest.measures
    value = 100 * float(measures["aoa"])
    shared = basis(
        text=shortened(evaluated.manifest.inputs.get("source")),
        items=measures["words"],
        rules=measures.get("edition"),
    )
    more = {"items": measures["words"], "basis": shared}
    return [measured("acquisition", "age_of_acquisition", "average", "correlation_percent", value, **more)]


@Stage(
    version=1,
    settings=acquisition_settings,
    inputs=acquisition_inputs,
    input_names={"checkpoints": "checkpoint {}"},
    files_read=files_read,
    shared=StoredByDigest("acquisition"),
    evaluation=Evaluation(
        place=37,
        title="Age of acquisition",
        note="Correlation, multiplied by 100, between the ages at which children acquire words and the numbers of "
        "training words after which the model acquires these words. The correlation counts as 0 if p is "
        "above 0.1, or if fewer than three words remain.",
        asked=acquisition_asked,
        rows=acquisition_rows,
        data=DataCheck(settings=AcquisitionSettings, reads=ages_read, check=check_ages),
        direct="hatchery.evaluation.surprisal.measure_acquisition:evaluate",
        of_checkpoints=True,
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=4000,
    minutes=240,
    runtime=("device", "tokens_per_batch"),
)
def measure_acquisition(
    settings: MarkedAcquisition,
    runtime: EvaluationRuntime,
    model: Path,
    checkpoints: Mapping[str, Path],
    source: Path,
    run: StageRun,
) -> None:
    """Write `surprisal.json`, `aoa_score.json` and `ages.csv` for the run `model`, computed from its checkpoints.

    Raises EvaluationError for wrong data, and the errors of the model, tokenizer and source loaders.
    """
    from hatchery.evaluation.surprisal.measure_acquisition import measure

    measure(settings, runtime, checkpoints, source, run)
