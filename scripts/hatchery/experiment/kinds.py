"""The kinds of files below config/: the folder of each kind, and its settings class.

The classes of suites, baselines and labelled tasks, and of config.yaml itself, are here; those of text and of
experiments have files of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from hatchery.evaluation.reading_times.settings import ReadingTableSettings
from hatchery.evaluation.settings import BaselineSettings, SuiteSettings
from hatchery.evaluation.tasks.settings import NamedVocabularyFilter, TaskKeys, TaskSettings, VocabularyFilter
from hatchery.experiment.cluster import ClusterSettings
from hatchery.experiment.experiment_file import ExperimentFile, ModelFile, ProtocolFile, StudyFile
from hatchery.experiment.text_files import CorpusFile, SelectionFile, TokenizerFile, TokenizerSweepFile, VocabularyFile
from hatchery.raw.settings import EmbeddedSettings, SourceKeys
from hatchery.settings.base import Count, Natural, Range, Settings
from hatchery.settings.fields import (
    ABSENT,
    BaselineName,
    BlockName,
    DataName,
    OneOfKeys,
    PartOf,
    Reference,
    TaskName,
    Unique,
)
from hatchery.training.runtime_settings import TrainingRuntime
from hatchery.typed import keys_of


@dataclass(frozen=True, kw_only=True)
class SuiteVariant(SuiteSettings, OneOfKeys):
    """A suite that differs from that of its file, or from another base."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_pairs",
        ("embedded",): "embedded: minimal_pairs",
    }

    description: str = ""
    """What it is, for people."""
    base: Annotated[str, Reference("suite", inherited=True)] | None = None
    """Another suite whose keys come first."""
    data: DataName = ABSENT
    """A raw input of config.yaml."""
    embedded: Literal["minimal_pairs", "filter_data", "babylm_evaluation", "multilingual"] = ABSENT
    """A folder of the generated sources."""

    def scored(self, name: str) -> dict[str, object]:
        """Return the settings for scoring the suite `name` (`ScoringSettings`), without keys of other formats."""
        return {"suite": name, **keys_of(self, only=SuiteSettings)}


@dataclass(frozen=True, kw_only=True)
class SuiteFile(SuiteVariant):
    """Where sentence pairs lie, what counts as one paradigm, and how sentences are scored."""

    variants: dict[BlockName, Annotated[dict[str, Any], PartOf(SuiteVariant)]] = field(default_factory=dict)
    """More suites by their names, each with what differs from this one, or from the `base` that it names."""


@dataclass(frozen=True, kw_only=True)
class ReadingTableFile(ReadingTableSettings, OneOfKeys):
    """Reading times of people: which table has them, its columns, and the regressions of the times."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_reading_times",
        ("embedded",): "embedded: reading_times",
    }

    description: str = ""
    """What it is, for people."""
    base: Annotated[str, Reference("reading_table", inherited=True)] | None = None
    """Another table whose keys come first."""
    data: DataName = ABSENT
    """A raw input of config.yaml."""
    embedded: Literal["reading_times"] = ABSENT
    """A folder of the generated sources."""

    def measured(self, name: str) -> dict[str, object]:
        """Return the settings of the stage for the table `name`."""
        return {"name": name, **keys_of(self, only=ReadingTableSettings)}


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
    embedded: Literal[
        "glue", "superglue", "filter_data", "hans", "edge_probing", "babylm_evaluation", "multilingual"
    ] = ABSENT
    """A folder of the generated sources."""
    otherwise: Annotated[str, Reference("task", inherited=True)] | None = None
    """A task that lies in other files: its `data`, `format`, `files` and `label_field` are taken where config.yaml says
    where those are, and not where the files of this task are."""
    vocabulary: NamedVocabularyFilter | None = None
    """Keep only rows whose words lie in a vocabulary (the reduced-vocabulary study)."""
    transfer_tasks: Annotated[tuple[TaskName, ...], Unique()] = ()
    """Tasks that are scored with the models of this one."""

    def settings(self, name: str) -> TaskSettings:
        """Return the settings for fine-tuning on the task `name`."""
        filtered, keys = self.vocabulary, keys_of(self, only=TaskKeys)
        vocabulary = None if filtered is None else VocabularyFilter(filtered.fields, filtered.reading)
        return TaskSettings(**{**keys, "name": name, "vocabulary": vocabulary})


@dataclass(frozen=True, kw_only=True)
class TaskFile(Variant):
    """Where its rows come from, how they become inputs, which head answers, what is measured."""

    variants: dict[BlockName, Annotated[dict[str, Any], PartOf(Variant)]] = field(default_factory=dict)
    """More tasks by their names, each with what differs from this one, or from the `base` that it names."""


@dataclass(frozen=True, kw_only=True)
class Compute(TrainingRuntime):
    """How to compute. Nothing here is part of a result, so changing it computes none anew; only estimated costs, and
    the page and cards that show them, are written again, in seconds."""

    corpus_threads: Count = 2
    """Processes of one conversion or selection."""
    pretraining_threads: Count = 1
    """Processor threads of one pretraining."""
    evaluation_threads: Count = 1
    """Threads of one scoring or fine-tuning job."""
    tokens_per_batch: Annotated[int, Range(ge=64)] | None = None
    """Token budget of a scoring batch; null is what was measured to be fast on the device."""
    frozen_layers_mib: Natural = 2048
    """Memory for the layers of a frozen model in edge probing, so that they are computed once."""


@dataclass(frozen=True, kw_only=True)
class MainFile(Settings):
    """What a user edits first - where data lies, what to run by default, which machines there are."""

    @classmethod
    def other_files(cls) -> Mapping[str, type]:
        """Other files to search for an unknown key, with their names for messages."""
        return {"the experiment's file": ExperimentFile}

    experiments: tuple[Annotated[str, Reference("experiment")], ...] = ("demo",)
    """Experiments that plain `snakemake` runs; every file in config/experiments/ can be asked for by target."""
    storage_root: str | None = None
    """Folder on large or fast storage that holds results/, resources/ and logs/, which a run makes links to it; null
    keeps them here. The folder that it lies in must exist. Another value changes the links; files stay where they
    are."""
    data: dict[BlockName, SourceKeys] = field(default_factory=dict)
    """Raw inputs by name; a corpus, suite or task refers to a name, never to a path."""
    leave_out_baselines: Annotated[tuple[BaselineName, ...], Unique()] = ()
    """Models that others pretrained and that no experiment is to evaluate here, by their files in config/baselines/."""
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    """The generated miniature language that the demo runs on."""
    compute: Compute = field(default_factory=Compute)
    """How to compute; no result depends on it."""
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """The machines that jobs are sent to; ignored where jobs run at once."""


FOLDERS = {
    "experiment": "experiments",
    "study": "studies",
    "corpus": "corpora",
    "tokenizer": "tokenizers",
    "model": "models",
    "suite": "suites",
    "task": "tasks",
    "reading_table": "reading_tables",
    "vocabulary": "vocabularies",
    "selection": "selections",
    "tokenizer_sweep": "tokenizer_sweeps",
    "protocol": "protocols",
    "baseline": "baselines",
}
FILES: Mapping[str, Any] = {
    "config": MainFile,
    "experiment": ExperimentFile,
    "study": StudyFile,
    "corpus": CorpusFile,
    "tokenizer": TokenizerFile,
    "model": ModelFile,
    "suite": SuiteFile,
    "task": TaskFile,
    "reading_table": ReadingTableFile,
    "vocabulary": VocabularyFile,
    "selection": SelectionFile,
    "tokenizer_sweep": TokenizerSweepFile,
    "protocol": ProtocolFile,
    "baseline": BaselineFile,
}
"""Folders of all kinds of files. `config` is config/config.yaml itself."""
