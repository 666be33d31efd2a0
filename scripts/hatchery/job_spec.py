"""What a job is to compute, in a file named after its content: its settings and the files that it reads.

Lists of a thousand models do not fit on a command line (Linux allows 128 KiB for one argument), and a job that waits in
a queue must compute what was asked for when it was sent. Every stage is therefore run as
`python scripts/run.py STAGE @results/settings/<digest>.json --output ...`, which compares the file with its name.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_bytes
from hatchery.artifacts.checksums import canonical_json
from hatchery.errors import ConfigError

FOLDER = Path("results/settings")
DIGITS = 16

Argument = str | list[str] | dict[str, str]


@dataclass(frozen=True)
class Call:
    """The settings of a job as canonical JSON, and its arguments by their names without `--`.

    A word is one path, a list several paths, a mapping several arguments `NAME=path`.
    """

    settings: str
    arguments: Mapping[str, Argument]

    @cached_property
    def content(self) -> bytes:
        """The file: JSON without a line break, arguments in their order, settings as they are."""
        arguments = json.dumps(dict(self.arguments), separators=(",", ":"), ensure_ascii=False)
        return f'{{"arguments":{arguments},"settings":{self.settings}}}'.encode()

    @cached_property
    def digest(self) -> str:
        """The beginning of the SHA-256 of the file's content."""
        return hashlib.sha256(self.content).hexdigest()[:DIGITS]

    @property
    def path(self) -> Path:
        """Where the file lies, relative to the project."""
        return FOLDER / f"{self.digest}.json"

    def write(self) -> None:
        """Write the file, unless it is there with this content."""
        try:
            if self.path.read_bytes() == self.content:
                return
        except OSError:
            pass
        write_bytes(self.path, self.content)

    def paths(self, *names: str) -> list[str]:
        """The paths of these arguments, or of all of them, each once; none where the call has no such argument."""
        found: dict[str, None] = {}
        for name in names or self.arguments:
            value = self.arguments.get(name, [])
            paths = [value] if isinstance(value, str) else value.values() if isinstance(value, dict) else value
            found |= dict.fromkeys(paths)
        return list(found)

    def command_line(self) -> list[str]:
        """The words of the command line that the file stands for."""
        words = ["--settings", self.settings]
        for name, value in self.arguments.items():
            flag = f"--{name.replace('_', '-')}"
            # Each flag once: argparse takes minutes for a flag that is repeated for each of 40,000 values.
            values = [f"{key}={path}" for key, path in value.items()] if isinstance(value, dict) else value
            if values:
                words += [flag, values] if isinstance(values, str) else [flag, *values]
        return words


def read_call(path: str | Path) -> Call:
    """Read such a file. Raises ConfigError when it is missing, or when its content is not what its name says."""
    path = Path(path)
    remedy = "start the workflow again, which writes it anew"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: the settings file cannot be read: {error.strerror}; {remedy}") from error
    found = hashlib.sha256(content).hexdigest()[:DIGITS]
    if found != path.stem:
        raise ConfigError(
            f"{path}: the settings were altered: expected the SHA-256 {path.stem}..., found {found}...; {remedy}"
        )
    value: Mapping[str, Any] = json.loads(content)
    return Call(canonical_json(value["settings"]), value["arguments"])
