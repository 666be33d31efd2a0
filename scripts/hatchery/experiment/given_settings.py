"""Values of config.yaml that a call of Snakemake says otherwise: by `--configfile`, and after that by `--config`.

Snakemake reads both, in its own words of YAML: a number inside `--config 'compute={corpus_threads: 2}'` arrives as
text, and `1e-3` of a file, too. So they are read here again, as config.yaml is, and each remembers where it came from.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchery.artifacts.yaml_files import read_yaml, yaml_value
from hatchery.experiment.written_blocks import Document, merged

COMMAND_LINE = "the command line (--config)"

Given = Sequence[tuple[str, Mapping[str, Any]]]
"""Places with the values that stand there; the later ones count."""


def given_settings(files: Iterable[Path], arguments: Iterable[str]) -> Given:
    """What files and arguments (`key=value`) of the command line say. Raises ConfigError for what is not YAML."""
    from_arguments: Document = {}
    for argument in arguments:
        key, _, text = argument.partition("=")
        from_arguments = merged(from_arguments, {key.strip(): yaml_value(text, f"{COMMAND_LINE}: {key.strip()}")})
    given = [(f"{file} (--configfile)", read_yaml(file)) for file in files]
    return [*given, *([(COMMAND_LINE, from_arguments)] if from_arguments else [])]


def place_of(key: str, given: Given) -> str:
    """Where the value of a key (`compute.device`) stands; of a missing key, where the keys above it do."""
    parts = tuple(key.split("."))
    for length in range(len(parts), 0, -1):
        for place, values in reversed(given):
            if _has(values, parts[:length]):
                return place
    return given[0][0]


def _has(values: Any, parts: tuple[str, ...]) -> bool:
    for part in parts:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True
