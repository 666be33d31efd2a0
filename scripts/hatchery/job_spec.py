"""What a job is to compute, in a file named after its content: its settings and the files that it reads.

Lists of a thousand models do not fit on a command line (Linux allows 128 KiB for one argument), and a job that waits in
a queue must compute what was asked for when it was sent. Every stage is therefore run as
`python scripts/run.py STAGE results/settings/<digest>.json '{"output": ...}'`, which compares the file with its name.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import hexdigits
from typing import Any

from hatchery.artifacts.atomic import write_bytes
from hatchery.artifacts.checksums import canonical_json
from hatchery.errors import ConfigError

FOLDER = Path("results/settings")
DIGITS = 16

Paths = str | list[str] | dict[str, str]
"""What an argument of a stage's function is given: one path, several, or paths by names.

A list of one path or of none stands for an argument that is one path and may be left out.
"""


def paths_of(given: Iterable[Paths]) -> list[str]:
    """All paths of several arguments, each once."""
    lists = ([one] if isinstance(one, str) else one.values() if isinstance(one, dict) else one for one in given)
    return list(dict.fromkeys(path for paths in lists for path in paths))


@dataclass(frozen=True)
class Call:
    """The settings of a job as canonical JSON, and the paths of its inputs by the arguments of the stage's function."""

    settings: str
    arguments: Mapping[str, Paths]

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


def is_call(path: Path) -> bool:
    """Whether a file is named as those of calls are."""
    return path.suffix == ".json" and len(path.stem) == DIGITS and set(path.stem) <= set(hexdigits)


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
