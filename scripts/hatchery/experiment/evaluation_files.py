"""What stands in the files of suites, baselines and labelled tasks."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from hatchery.evaluation.baselines.settings import BaselineSettings
from hatchery.evaluation.minimal_pairs.settings import SuiteSettings
from hatchery.evaluation.tasks.settings import NamedVocabularyFilter, TaskKeys, TaskSettings, VocabularyFilter
from hatchery.settings.fields import ABSENT, BlockName, DataName, OneOfKeys, PartOf, Reference, TaskName, Unique
from hatchery.typed import keys_of


@dataclass(frozen=True, kw_only=True)
class SuiteFile(SuiteSettings, OneOfKeys):
    """Where sentence pairs lie, what counts as one paradigm, and how sentences are scored."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_pairs",
        ("embedded",): "embedded: minimal_pairs",
    }

    description: str = ""
    """What it is, for people."""
    data: DataName = ABSENT
    """A raw input of config.yaml."""
    embedded: Literal["minimal_pairs", "filter_data"] = ABSENT
    """A folder of the generated sources."""

    def scored(self, name: str) -> dict[str, object]:
        """What scoring is told of the suite `name` (`ScoringSettings`), without keys of other formats."""
        absent = [key for key in ("columns", "good_line") if getattr(self, key) is None]
        return {"suite": name, **keys_of(self, *absent, of=SuiteSettings)}


@dataclass(frozen=True, kw_only=True)
class BaselineFile(BaselineSettings):
    """A folder of the transformers library that is evaluated beside ours; no code of it is run."""

    description: str = ""
    """What it is, for people."""
    data: DataName
    """A folder with config.json, weights and tokenizer, by its name in config.yaml."""


@dataclass(frozen=True, kw_only=True)
class Variant(TaskKeys, OneOfKeys):
    """A task that differs from that of its file, or from another base."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("data",): "data: my_task", ("embedded",): "embedded: glue"}

    description: str = ""
    """What it is, for people."""
    base: Annotated[str, Reference("task", inherited=True)] | None = None
    """Another task whose keys come first."""
    data: DataName = ABSENT
    """A raw input of config.yaml."""
    embedded: Literal["glue", "superglue", "filter_data", "hans", "edge_probing"] = ABSENT
    """A folder of the generated sources."""
    otherwise: Annotated[str, Reference("task", inherited=True)] | None = None
    """A task that lies in other files: its `data`, `format`, `files` and `label_field` are taken where config.yaml says
    where those are, and not where the files of this task are."""
    vocabulary: NamedVocabularyFilter | None = None
    """Keep only rows whose words lie in a vocabulary (the reduced-vocabulary study)."""
    transfer_tasks: Annotated[tuple[TaskName, ...], Unique()] = ()
    """Tasks that are scored with the models of this one."""

    def settings(self, name: str) -> TaskSettings:
        """What fine-tuning is told of the task `name`."""
        filtered, keys = self.vocabulary, keys_of(self, of=TaskKeys)
        vocabulary = None if filtered is None else VocabularyFilter(filtered.fields, filtered.reading)
        return TaskSettings(**{**keys, "name": name, "vocabulary": vocabulary})


@dataclass(frozen=True, kw_only=True)
class TaskFile(Variant):
    """Where its rows come from, how they become inputs, which head answers, what is measured."""

    variants: dict[BlockName, Annotated[dict[str, Any], PartOf(Variant)]] = field(default_factory=dict)
    """More tasks by their names, each with what differs from this one, or from the `base` that it names."""
