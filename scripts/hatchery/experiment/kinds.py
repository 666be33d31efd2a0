"""The kinds of configuration files below config/: folder and settings class of each kind.

This module also defines the classes of suites, reading-time tables, baselines, labelled tasks and config.yaml. Other
classes are in `text_files.py` and `experiment_file.py`.
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
    """A variant of a suite: the keys that differ from the suite of the same file, or from the suite `base`."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_pairs",
        ("embedded",): "embedded: minimal_pairs",
    }

    description: str = ""
    """Description of the suite in one or two sentences."""
    base: Annotated[str, Reference("suite", inherited=True)] | None = None
    """Suite from which this file inherits every key that it leaves out; `null` inherits from no suite."""
    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["minimal_pairs", "filter_data", "babylm_evaluation", "multilingual"] = ABSENT
    """Folder of the generated demo data."""

    def scored(self, name: str) -> dict[str, object]:
        """Return the settings with which models are scored on the suite `name` (`ScoringSettings`)."""
        return {"suite": name, **keys_of(self, only=SuiteSettings)}


@dataclass(frozen=True, kw_only=True)
class SuiteFile(SuiteVariant):
    """Minimal pairs of a suite: files, division into paradigms, and scoring."""

    variants: dict[BlockName, Annotated[dict[str, Any], PartOf(SuiteVariant)]] = field(default_factory=dict)
    """Additional suites by name, each with the keys that differ from this suite, or from the suite that `base`
    names.
    """


@dataclass(frozen=True, kw_only=True)
class ReadingTableFile(ReadingTableSettings, OneOfKeys):
    """A table of human reading times: its columns, and the regressions that predict the reading times."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {
        ("data",): "data: my_reading_times",
        ("embedded",): "embedded: reading_times",
    }

    description: str = ""
    """Description of the table in one or two sentences."""
    base: Annotated[str, Reference("reading_table", inherited=True)] | None = None
    """Table from which this file inherits every key that it leaves out; `null` inherits from no table."""
    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal["reading_times", "meco"] = ABSENT
    """Folder of the generated demo data."""

    def measured(self, name: str) -> dict[str, object]:
        """Return the settings with which models are evaluated on the table `name`."""
        return {"name": name, **keys_of(self, only=ReadingTableSettings)}


@dataclass(frozen=True, kw_only=True)
class BaselineFile(BaselineSettings):
    """External model for comparison: a folder in the format of the transformers library. Code in the folder is not
    executed.
    """

    description: str = ""
    """Description of the model in one or two sentences."""
    data: DataName
    """Folder with config.json, weights and tokenizer, by its name under `data` in config.yaml."""


@dataclass(frozen=True, kw_only=True)
class Variant(TaskKeys, OneOfKeys):
    """A variant of a task: the keys that differ from the task of the same file, or from the task `base`."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("data",): "data: my_task", ("embedded",): "embedded: glue"}

    description: str = ""
    """Description of the task in one or two sentences."""
    base: Annotated[str, Reference("task", inherited=True)] | None = None
    """Task from which this file inherits every key that it leaves out; `null` inherits from no task."""
    data: DataName = ABSENT
    """Raw input, by its name under `data` in config.yaml."""
    embedded: Literal[
        "glue", "superglue", "filter_data", "hans", "edge_probing", "babylm_evaluation", "multilingual"
    ] = ABSENT
    """Folder of the generated demo data."""
    otherwise: Annotated[str, Reference("task", inherited=True)] | None = None
    """Another task, which has the same rows in other files. If config.yaml contains the other task's raw input, but not
    this task's raw input, this task uses the other task's `data`, `format`, `files` and `label_field`. `null`: no other
    task.
    """
    vocabulary: NamedVocabularyFilter | None = None
    """Vocabulary that must contain all words of a row; rows with other words are dropped (the reduced-vocabulary
    study). `null` keeps all rows.
    """
    transfer_tasks: Annotated[tuple[TaskName, ...], Unique()] = ()
    """Tasks on which the models fine-tuned on this task are also scored."""

    def settings(self, name: str) -> TaskSettings:
        """Return the settings with which models are fine-tuned on the task `name`."""
        filtered, keys = self.vocabulary, keys_of(self, only=TaskKeys)
        vocabulary = None if filtered is None else VocabularyFilter(filtered.fields, filtered.reading)
        return TaskSettings(**{**keys, "name": name, "vocabulary": vocabulary})


@dataclass(frozen=True, kw_only=True)
class TaskFile(Variant):
    """A labelled task: its rows, inputs, head and metrics."""

    variants: dict[BlockName, Annotated[dict[str, Any], PartOf(Variant)]] = field(default_factory=dict)
    """Additional tasks by name, each with the keys that differ from this task, or from the task that `base` names."""


@dataclass(frozen=True, kw_only=True)
class Compute(TrainingRuntime):
    """Settings of the computation. They change a result at most by rounding; `device` and `micro_batch_size` also
    change the random draws of dropout. If you change a value, no result is computed again. Only estimated costs, and
    the pages that use these costs, are rewritten, within seconds.
    """

    corpus_threads: Count = 2
    """Number of processes of one job that converts a corpus or selects text."""
    pretraining_threads: Count = 1
    """Number of processor threads of one pretraining."""
    evaluation_threads: Count = 1
    """Number of processor threads of one scoring or fine-tuning job."""
    tokens_per_batch: Annotated[int, Range(ge=64)] | None = None
    """Maximum number of tokens in a scoring batch; `null` uses the default of each evaluation."""
    frozen_layers_mib: Natural = 2048
    """Memory in MiB for the layer outputs of a frozen model in edge probing. Outputs that fit into this memory are
    computed only once.
    """


@dataclass(frozen=True, kw_only=True)
class MainFile(Settings):
    """Raw inputs, default experiments, and settings for the computation on this machine or a cluster. Edit this file
    first.
    """

    @classmethod
    def other_files(cls) -> Mapping[str, type]:
        """Settings classes of other files, by file name. If a key is unknown here, but known in one of these files, the
        error message names that file.
        """
        return {"the experiment's file": ExperimentFile}

    experiments: tuple[Annotated[str, Reference("experiment")], ...] = ("demo",)
    """Experiments that `snakemake` runs without a target. Any other experiment in config/experiments/ runs if its
    target is given.
    """
    storage_root: str | None = None
    """Folder on large or fast storage in which the three folders results/, resources/ and logs/ are stored. In the
    checkout, a run creates links to these three folders. The parent of the given folder must exist. `null` keeps the
    three folders in the checkout. If you change the value, the next run changes the links, but moves no files.
    """
    data: dict[BlockName, SourceKeys] = field(default_factory=dict)
    """Raw inputs by name. Corpora, suites and tasks refer to a raw input by its name, never by its path."""
    leave_out_baselines: Annotated[tuple[BaselineName, ...], Unique()] = ()
    """External models that are not evaluated, by the names of files in config/baselines/."""
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    """Sizes of the generated data in a miniature language, which the demo uses."""
    compute: Compute = field(default_factory=Compute)
    """Devices, threads and checkpoints of the computation. These settings change results at most by rounding and by
    other random draws of dropout.
    """
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """Resources of cluster jobs. If jobs run on this machine, only `gpus_per_node`, `jobs_per_gpu` and the keys of the
    cost estimate have an effect.
    """


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
"""Settings class of each kind of file. `config` is config/config.yaml itself."""
