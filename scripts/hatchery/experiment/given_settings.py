"""Values from Snakemake's command line that override config.yaml: first from the files of `--configfile`, then from
`--config`.

Snakemake reads these files and this option by its own YAML rules: a number in `--config 'compute={corpus_threads: 2}'`
becomes text, and `1e-3` in a file also becomes text. Therefore this module reads the files and the option again, by the
rules of config.yaml, and records the source of each value.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchery.artifacts.yaml_files import read_yaml, yaml_value
from hatchery.experiment.written_blocks import Document, merged

COMMAND_LINE = "the command line (--config)"

Given = Sequence[tuple[str, Mapping[str, Any]]]
"""Pairs of a source (a file or the command line) and its values. Later values override earlier values."""


def given_settings(files: Iterable[Path], arguments: Iterable[str]) -> Given:
    """Parse the files and arguments (`key=value`) of the command line. Raises ConfigError for invalid YAML."""
    from_arguments: Document = {}
    for argument in arguments:
        key, _, text = argument.partition("=")
        from_arguments = merged(from_arguments, {key.strip(): yaml_value(text, f"{COMMAND_LINE}: {key.strip()}")})
    given = [(f"{file} (--configfile)", read_yaml(file)) for file in files]
    return [*given, *([(COMMAND_LINE, from_arguments)] if from_arguments else [])]


def place_of(key: str, given: Given) -> str:
    """Return the source of the value of a key such as `compute.device`: a file or the option `--config`. If the key has
    no value, return the source of the nearest enclosing key or, if there is no such source, the first source in
    `given`.
    """
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
