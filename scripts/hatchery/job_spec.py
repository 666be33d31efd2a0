"""The specification of a job (settings, and paths of inputs), in a file named by the digest of its content.

The specification is a file for two reasons. First, a list of a thousand models does not fit on a command line (Linux
allows 128 KiB for one argument). Second, a job that waits in a queue must compute the result that was requested at its
submission, even if the configuration has changed since. Therefore every stage runs as `python scripts/run.py STAGE
results/settings/<digest>.json '{"output": ...}'`. The program checks that the digest of the file's content equals the
digest in the file's name.
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
"""Value of an argument with paths of a stage's function: one path, several paths, or paths by name.

If the argument is a single path that is optional, its value may be a list with one path or no path.
"""


def paths_of(given: Iterable[Paths]) -> list[str]:
    """Return all paths in `given`, without duplicates. `given` contains the values of several arguments of a stage's
    function.
    """
    lists = ([one] if isinstance(one, str) else one.values() if isinstance(one, dict) else one for one in given)
    return list(dict.fromkeys(path for paths in lists for path in paths))


@dataclass(frozen=True)
class Call:
    """The specification of a job. `settings` is canonical JSON, and `arguments` maps the names of the stage function's
    arguments to the paths of its inputs.
    """

    settings: str
    arguments: Mapping[str, Paths]

    @cached_property
    def content(self) -> bytes:
        """Return the content of the job specification's file: JSON without line breaks, the arguments in their given
        order.
        """
        arguments = json.dumps(dict(self.arguments), separators=(",", ":"), ensure_ascii=False)
        return f'{{"arguments":{arguments},"settings":{self.settings}}}'.encode()

    @cached_property
    def digest(self) -> str:
        """Return the first 16 hexadecimal digits of the SHA-256 of the job specification's file."""
        return hashlib.sha256(self.content).hexdigest()[:DIGITS]

    @property
    def path(self) -> Path:
        """Return the path of the job specification's file, relative to the project."""
        return FOLDER / f"{self.digest}.json"

    def write(self) -> None:
        """Write the job specification's file, unless the file exists with this content."""
        try:
            if self.path.read_bytes() == self.content:
                return
        except OSError:
            pass
        write_bytes(self.path, self.content)


def is_call(path: Path) -> bool:
    """Return True if the name of a file has the form `<digest>.json`, as job specifications have."""
    return path.suffix == ".json" and len(path.stem) == DIGITS and set(path.stem) <= set(hexdigits)


def read_call(path: str | Path) -> Call:
    """Return the job specification that a file contains.

    Raises ConfigError if the file is missing, or if the digest of its content differs from the digest in its name.
    """
    path = Path(path)
    remedy = "start the workflow again, which writes a new file"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: the specification of the job cannot be read: {error.strerror}; {remedy}") from error
    found = hashlib.sha256(content).hexdigest()[:DIGITS]
    if found != path.stem:
        raise ConfigError(
            f"{path}: the specification of the job was altered: expected the SHA-256 {path.stem}..., got {found}...; "
            f"{remedy}"
        )
    value: Mapping[str, Any] = json.loads(content)
    return Call(canonical_json(value["settings"]), value["arguments"])
