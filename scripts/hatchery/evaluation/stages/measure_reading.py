"""The stage `measure_reading`: the fraction of the variance in reading times that a model's surprisals explain."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.records import Record
from hatchery.evaluation.basis import basis, shortened
from hatchery.evaluation.evaluation import ONCE, DataCheck, Evaluated, Evaluation, MostRows, ReadData, TidyRow, measured
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.settings import ReadingSettings
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_manifest, source_of
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import build, keys_of, stage_body

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.result_paths import ResultPaths

NAMES = {"rt": "eye_tracking", "spr": "self_paced", "reading": "reading"}
"""Names of BabyLM's mean scores: the key is the name in `scores.csv`, and the value is the task name in tables."""


def reading_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the settings of the table of reading times and of the scoring method for the table's words."""
    return keys_of(project.experiment(experiment).reading, only=ReadingSettings)


def reading_inputs(results: "ResultPaths", experiment: str) -> dict[str, Paths]:
    """Return the source manifest of the table of reading times."""
    return {"source": source_manifest(source_of(results.project.experiment(experiment).reading))}


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return the file with the table of reading times."""
    return [source.one_name(build(ReadingSettings, stage_body(settings)).files)]


def times_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the data on reading times, if the experiment has such data."""
    if (asked := project.experiment(experiment).reading) is not None:
        where = f"{project.place('experiment', experiment)}: reading"
        yield ReadData(where, asked.data, build(ReadingSettings, keys_of(asked, only=ReadingSettings)))


def check_times(source: "RawSource", settings: ReadingSettings, rows: MostRows) -> Iterable[str]:
    """Check the table of reading times by reading it."""
    from hatchery.evaluation.surprisal.human_data import read_words

    read_words(source, settings.files, rows(source.one_name(settings.files)))
    return ()


@dataclass(frozen=True)
class _Gain(Record):
    outcome: str
    gain: float


def reading_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return a row for every measure of reading (such as gaze duration), and a row for each mean that BabyLM reports
    over several measures. The value of a row is the gain in explained variance in percent.
    """
    words = evaluated.manifest.measures["words"]
    return [
        measured(
            *("reading", NAMES.get(row.outcome, row.outcome)),
            "average" if row.outcome in NAMES else "paradigm",
            *("gain_percent", 100 * row.gain),
            items=words,
            blind_guess=0.0,
            basis=basis(text=shortened(evaluated.manifest.inputs.get("source")), items=words),
        )
        for row in evaluated.records("scores.csv", _Gain, ("outcome",))
    ]


@Stage(
    version=1,
    settings=reading_settings,
    inputs=reading_inputs,
    files_read=files_read,
    shared=StoredByDigest("reading"),
    evaluation=Evaluation(
        place=36,
        title="Reading times",
        note="Surprisal explains this percentage of the variance that word length, frequency, context length and their "
        "products leave unexplained; chance is 0. For self-paced reading, the length and the surprisal of the previous "
        "word are also taken into account.",
        asked=lambda experiment, run: () if experiment.reading is None else ONCE,
        rows=reading_rows,
        data=DataCheck(settings=ReadingSettings, reads=times_read, check=check_times),
        direct="hatchery.evaluation.surprisal.measure_reading:evaluate",
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=4000,
    minutes=60,
    runtime=("device", "tokens_per_batch"),
)
def measure_reading(
    settings: ReadingSettings, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun
) -> None:
    """Write `words.parquet`, `scores.csv` and `predictions.json` for the model of the manifest `model`.

    Raises EvaluationError naming file and line for wrong data, and the errors of the model, tokenizer and source
    loaders.
    """
    from hatchery.evaluation.surprisal.measure_reading import measure

    measure(settings, runtime, model, source, run)
