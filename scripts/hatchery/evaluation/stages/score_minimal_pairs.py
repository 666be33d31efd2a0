"""The stage `score_minimal_pairs`: score one language model on one suite of minimal pairs."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.evaluation import DataCheck, Evaluation, MostRows, ReadData
from hatchery.evaluation.minimal_pairs.measurements import minimal_pair_rows
from hatchery.evaluation.settings import EvaluationRuntime, ScoringSettings
from hatchery.raw.listings import source_of
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import build, stage_body

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource


def minimal_pairs_settings(project: "Project", suite: str) -> dict[str, object]:
    """Return the settings of a suite: the format of its files, and the scoring of its items."""
    return project.suite(suite).scored(suite)


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return the files of the source that belong to the suite."""
    from hatchery.evaluation.minimal_pairs.pairs import pair_files

    return pair_files(source, build(ScoringSettings, stage_body(settings)))


def suites_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the suites that an experiment scores."""
    for name, suite in project.readable("suite", project.experiment(experiment).minimal_pairs):
        yield ReadData(project.place("suite", name), suite.data, build(ScoringSettings, suite.scored(name)))


def check_suite(source: "RawSource", suite: ScoringSettings, rows: MostRows) -> Iterable[str]:
    """Check the files of a suite by reading them."""
    from hatchery.evaluation.minimal_pairs.pairs import check_pairs

    check_pairs(source, suite, rows)
    return ()


@Stage(
    version=1,
    settings=minimal_pairs_settings,
    inputs=lambda of, project, suite: {"source": of("register_source", source=source_of(project.suite(suite)))},
    files_read=files_read,
    shared=StoredByDigest("minimal_pairs", ("suite",)),
    evaluation=Evaluation(
        place=30,
        title="Minimal pairs",
        asked=lambda experiment, run: experiment.minimal_pairs,
        rows=minimal_pair_rows,
        data=DataCheck(settings=ScoringSettings, reads=suites_read, check=check_suite),
        direct="hatchery.evaluation.minimal_pairs.score_suite:evaluate",
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=480,
    runtime=("device", "tokens_per_batch", "compile"),
)
def score_minimal_pairs(
    settings: ScoringSettings, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun
) -> None:
    """Score a model on the suite in the source manifest.

    `model` is the manifest of a pretraining run or of an imported model. Raises EvaluationError naming file and line
    for wrong data, ConfigError for settings that the model does not support, and the errors of the model, tokenizer and
    source loaders.
    """
    from hatchery.evaluation.minimal_pairs.score_suite import score_suite

    score_suite(settings, runtime, model, source, run)
