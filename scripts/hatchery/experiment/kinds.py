"""The kinds of files below config/: in which folder each lies, and the class of settings that says what it holds."""

from collections.abc import Mapping
from typing import Any

from hatchery.experiment.evaluation_files import BaselineFile, SuiteFile, TaskFile
from hatchery.experiment.experiment_file import ExperimentFile, ModelFile, ProtocolFile, StudyFile
from hatchery.experiment.main_file import MainFile
from hatchery.experiment.text_files import CorpusFile, SelectionFile, TokenizerFile, TokenizerSweepFile, VocabularyFile

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
