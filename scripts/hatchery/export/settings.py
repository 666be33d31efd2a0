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
    """Settings of a submission to BabyLM's leaderboard, for one model; `edition` is the year of BabyLM whose rules
    apply.
    """

    run: str
    """Name of the submitted run, which consists of model and seed."""
    track: Track
    edition: Edition
    suites: str
    """Prefix of suite names: Hatchery's name of a suite is this prefix and BabyLM's name."""
    tasks: str
    """Prefix of task names: Hatchery's name of a task is this prefix and BabyLM's name."""
    checkpoints: tuple[str, ...]
    """Names of the checkpoints in the file, in the order of training."""
    age_of_acquisition: Literal["as_measured", "zero"]
    track_checked: bool
    """True if the experiment has the key `track`, so that the experiment was checked against the track's rules."""


@dataclass(frozen=True, kw_only=True)
class MultilingualSubmissionSettings(Settings):
    """Settings of a submission to BabyLM's multilingual track, for one model."""

    run: str
    """Name of the submitted run, which consists of model and seed."""
    model: str
    """First part of the names of the submission files, before `_submission.json`."""
    suites: str
    """Prefix of suite names: Hatchery's name of a suite is this prefix and BabyLM's name."""
    tasks: str
    """Prefix of task names: Hatchery's name of a task is this prefix and BabyLM's name."""
    reading: str
    """First part of the names of tables of reading times: Hatchery's name of a table is this prefix and the rest of the
    name in BabyLM's files after `meco`.
    """
    checkpoints: tuple[str, ...]
    """Names of the checkpoints in the files, in the order of training."""
    track_checked: bool
    """True if the experiment has the key `track`, so that the experiment was checked against the track's rules."""


BRANCHES = "branches"
"""Name of the subfolder of an exported model that contains one folder for each exported intermediate checkpoint."""


@dataclass(frozen=True)
class DataSource(SourceTerms):
    """A raw input of the training data, with its terms of use."""

    dataset: str | None = None
    """Name of the raw input's data set on the Hugging Face hub; None if the input was not downloaded from the hub."""


@dataclass(frozen=True)
class ExportSettings(Settings):
    """Settings of one exported model: a run of an experiment with one pretraining seed."""

    experiment: str
    description: str
    """Description of the experiment in the experiment's file."""
    run: SeededRun
    seeds: tuple[int, ...]
    """All pretraining seeds of the run; the scores in the model card are means over these seeds."""
    model: str
    """Name of the model's architecture: a file in config/models/."""
    model_description: str
    corpus: str
    corpus_description: str
    sources: tuple[DataSource, ...]
    languages: tuple[str, ...] = ()
    """ISO 639 codes of the corpus's languages; empty if the languages are unknown."""

    def __post_init__(self) -> None:
        if (seed := self.run.seed) not in self.seeds:
            raise ConfigError(f"export.seeds: got {list(self.seeds)}, expected the model's seed {seed} among them")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise ConfigError(f"export.sources: got the names {', '.join(names)}, expected each name only once")
