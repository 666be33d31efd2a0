"""Settings of exported models, and of submissions to BabyLM's leaderboards."""

from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Edition, Track
from hatchery.experiment.seeded_run import SeededRun
from hatchery.raw.terms import SourceTerms
from hatchery.settings.base import Settings


@dataclass(frozen=True, kw_only=True)
class SubmissionSettings(Settings):
    """Settings of the submission of one model; `edition` is the year of BabyLM whose rules apply."""

    run: str
    """Name of the run: model and seed."""
    track: Track
    edition: Edition
    suites: str
    """Prefix that our names of suites add to the organisers' names."""
    tasks: str
    """Prefix that our names of tasks add to the organisers' names."""
    checkpoints: tuple[str, ...]
    """Names of the checkpoints with results in the file, in training order."""
    age_of_acquisition: Literal["as_measured", "zero"]
    track_checked: bool
    """True if the experiment names the track, so that its rules were checked."""


@dataclass(frozen=True, kw_only=True)
class MultilingualSubmissionSettings(Settings):
    """Settings of the files of one model for the multilingual track."""

    run: str
    """Name of the run: model and seed."""
    model: str
    """Beginning of the files' names, before `_submission.json`."""
    suites: str
    """Prefix that our names of suites add to the organisers' names."""
    tasks: str
    """Prefix that our names of tasks add to the organisers' names."""
    reading: str
    """Prefix that our names of tables of reading times add to the organisers' names."""
    checkpoints: tuple[str, ...]
    """Names of the checkpoints with results in the files, in training order."""
    track_checked: bool
    """True if the experiment names the track, so that its rules were checked."""


BRANCHES = "branches"
"""Name of the folder next to the exported model that contains a folder for each intermediate checkpoint."""


@dataclass(frozen=True)
class DataSource(SourceTerms):
    """A raw input of the training data, and its terms of use."""

    dataset: str | None = None
    """Name of the data set on the Hugging Face hub, if the input was downloaded from there."""


@dataclass(frozen=True)
class ExportSettings(Settings):
    """One exported model: a run of an experiment with one pretraining seed."""

    experiment: str
    description: str
    """Description of the experiment in its configuration."""
    run: SeededRun
    seeds: tuple[int, ...]
    """All pretraining seeds of the run's model, over which the scores are averaged."""
    model: str
    """Name of the model's architecture in the configuration."""
    model_description: str
    corpus: str
    corpus_description: str
    sources: tuple[DataSource, ...]
    languages: tuple[str, ...] = ()
    """ISO 639 codes of the languages of the corpus; empty if unknown."""

    def __post_init__(self) -> None:
        if (seed := self.run.seed) not in self.seeds:
            raise ConfigError(f"export.seeds: got {list(self.seeds)}, expected the model's seed {seed} among them")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise ConfigError(f"export.sources: got the names {', '.join(names)}, expected each name only once")
