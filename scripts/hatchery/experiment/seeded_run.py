"""One pretrained model: a run of an experiment with one pretraining seed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hatchery.settings.base import Settings
from hatchery.training.milestones import mark_name, step_name


@dataclass(frozen=True)
class SeededRun(Settings):
    """One pretrained model: a run of an experiment with one pretraining seed.

    `model` is the run's name in files, and `name` consists of model and seed. If a sweep or a grid generated the run,
    tables and figures show `label` instead of `model`: `ltg_bert, learning_rate 0.005`. An intermediate checkpoint,
    after a number of steps or words, names its training run in `milestone_of`.
    """

    name: str
    model: str
    seed: int
    label: str = ""
    is_baseline: bool = False
    milestone_of: str = ""
    step: int = 0
    words: int = 0

    @classmethod
    def from_seed(cls, model: str, seed: int, label: str = "") -> "SeededRun":
        """Return the pretrained model of the run `model` with the pretraining seed `seed`. Its `name` consists of both,
        such as `ltg_bert-s42`.
        """
        return cls(f"{model}-s{seed}", model, seed, label)

    @classmethod
    def of_baseline(cls, name: str) -> "SeededRun":
        """Return an external model as a single run, without a pretraining seed."""
        return cls(name, name, 0, is_baseline=True)

    def after(self, step: int) -> "SeededRun":
        """Return the intermediate checkpoint of this run after `step` steps."""
        name, model = (f"{name}-step{step}" for name in (self.name, self.model))
        label = f"{self.label or self.model}, step {step}"
        return replace(self, name=name, model=model, label=label, milestone_of=self.name, step=step)

    def after_words(self, words: int) -> "SeededRun":
        """Return the intermediate checkpoint of this run after `words` words of its budget."""
        name, model = (f"{name}-{mark_name(words)}" for name in (self.name, self.model))
        label = f"{self.label or self.model}, {words:,} words"
        return replace(self, name=name, model=model, label=label, milestone_of=self.name, words=words)

    @property
    def milestone(self) -> str:
        """Name of the folder of an intermediate checkpoint."""
        return mark_name(self.words) if self.words else step_name(self.step)

    @property
    def title(self) -> str:
        """Displayed name: `ltg_bert, learning_rate 0.005, seed 42`."""
        return f"{self.label or self.model}, seed {self.seed}"


def runs_with_seeds(seeds: Mapping[str, Iterable[int]], labels: Mapping[str, str]) -> list[SeededRun]:
    """Return a run for each model and each of its seeds, in the order of `seeds`."""
    return [SeededRun.from_seed(model, seed, labels.get(model, "")) for model, each in seeds.items() for seed in each]


def of_member(experiment: str, run: SeededRun) -> SeededRun:
    """Return a copy of `run` for a study: the prefix `<experiment>/` is added to its `name`, to its `model`, and to its
    `label` and `milestone_of` unless they are empty.
    """
    label = f"{experiment}/{run.label}" if run.label else ""
    training = f"{experiment}/{run.milestone_of}" if run.milestone_of else ""
    name, model = f"{experiment}/{run.name}", f"{experiment}/{run.model}"
    return replace(run, name=name, model=model, label=label, milestone_of=training)
