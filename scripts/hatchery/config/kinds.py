"""The kinds of files below config/: in which folder each lies, and the class of settings that says what it holds."""

from pathlib import Path
from typing import Any

from hatchery.config.evaluation_files import BaselineFile, SuiteFile, TaskFile
from hatchery.config.experiment_file import ExperimentFile, ModelFile, ProtocolFile
from hatchery.config.main_file import MainFile
from hatchery.config.text_files import CorpusFile, SelectionFile, TokenizerFile, TokenizerSweepFile, VocabularyFile

FOLDERS = {
    "experiment": "experiments",
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
FILES: dict[str, Any] = {
    "config": MainFile,
    "experiment": ExperimentFile,
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

SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"


def schema_texts() -> dict[Path, str]:
    """The schema files for editors, by their paths, as they have to be."""
    from hatchery.settings.schemas import as_yaml, json_schema

    titles = {kind: f"config/{folder}/<name>.yaml" for kind, folder in FOLDERS.items()}
    titles["config"] = "config/config.yaml"
    return {SCHEMAS / f"{kind}.schema.yaml": as_yaml(json_schema(FILES[kind], titles[kind])) for kind in FILES}
