"""Settings of exported models, and of the submission for the leaderboard of BabyLM."""

from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Edition, Track
from hatchery.experiment.seeded_run import SeededRun
from hatchery.raw.terms import SourceTerms
from hatchery.settings.base import Settings


@dataclass(frozen=True, kw_only=True)
class SubmissionSettings(Settings):
    """One model's submission."""

    run: str
    """Model and seed."""
    track: Track
    edition: Edition
    suites: str
    """Before the names of suites."""
    tasks: str
    """Before the names of tasks."""
    checkpoints: tuple[str, ...]
    """The checkpoints with results in the file, in their order."""
    age_of_acquisition: Literal["as_measured", "zero"]
    track_checked: bool
    """True if the experiment names the track, so that its rules were checked."""


@dataclass(frozen=True, kw_only=True)
class MultilingualSubmissionSettings(Settings):
    """One model's files of the multilingual track."""

    run: str
    """Model and seed."""
    model: str
    """Beginning of the files' names, before `_submission.json`."""
    suites: str
    """Before the names of suites."""
    tasks: str
    """Before the names of tasks."""
    reading: str
    """Before the names of tables of reading times."""
    checkpoints: tuple[str, ...]
    """The checkpoints with results in the files, in their order."""
    track_checked: bool
    """True if the experiment names the track, so that its rules were checked."""


BRANCHES = "branches"
"""Folder next to the model with its intermediate checkpoints, each a folder of its own."""


@dataclass(frozen=True)
class DataSource(SourceTerms):
    """A raw input of the training data, and the terms on which it may be used."""

    dataset: str | None = None
    """Its name on the Hugging Face hub, for sources that come from there."""


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
    """Name of its architecture in the configuration."""
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
            raise ConfigError(f"export.sources: a name occurs twice among {', '.join(names)}")
