"""The kinds of files below config/: in which folder each lies, and the class of settings that says what it holds.

What stands in config.yaml itself is here, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from hatchery.experiment.cluster import ClusterSettings
from hatchery.experiment.evaluation_files import BaselineFile, SuiteFile, TaskFile
from hatchery.experiment.experiment_file import ExperimentFile, ModelFile, ProtocolFile, StudyFile
from hatchery.experiment.text_files import CorpusFile, SelectionFile, TokenizerFile, TokenizerSweepFile, VocabularyFile
from hatchery.raw.settings import EmbeddedSettings, SourceKeys
from hatchery.settings.base import Count, Natural, Range, Settings
from hatchery.settings.fields import BaselineName, BlockName, Reference, Unique
from hatchery.training.settings import TrainingRuntime


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
    "vocabulary": VocabularyFile,
    "selection": SelectionFile,
    "tokenizer_sweep": TokenizerSweepFile,
    "protocol": ProtocolFile,
    "baseline": BaselineFile,
}
"""`config` is config/config.yaml itself."""
