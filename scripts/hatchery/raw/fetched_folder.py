"""The folder of a downloaded source. If the folder exists, it is complete."""

import json
import shutil
from pathlib import Path

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.checksums import digest
from hatchery.raw.registration import STAMP


class FetchedFolder:
    """The folder `<name>` of a source's downloaded or unpacked files.

    Files are first written to the hidden folder `.<name>.partial`, which remains if the process is killed. When all
    files are written, the folder is renamed to `<name>`. A stamp file in the folder contains the `origin` of the files
    (JSON), for example the repository and commit of a data set. The folder is replaced only if the origin has changed.
    """

    def __init__(self, path: Path, origin: dict[str, object]) -> None:
        self.path = path
        self.work = path.with_name(f".{path.name}.partial")
        self.origin = origin
        self._identity = digest(origin)

    def is_complete(self) -> bool:
        """Return True if the folder exists and its stamp file contains the origin of this object."""
        return _stamp(self.path) == self._identity

    def start(self, *, keep: bool) -> Path:
        """Return the working folder. Files of an earlier, interrupted run are kept if `keep` is True and that run wrote
        files of the same origin; otherwise, they are removed.
        """
        begun = self.work / ".begun.json"
        if not keep or _stamp(self.work, begun.name) != self._identity:
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(parents=True)
            write_json(begun, {"identity": self._identity})
        return self.work

    def publish(self, content: Path | None = None) -> Path:
        """Give the folder `content` the final name, replacing an existing folder, and return the final path.

        If `content` is None, the working folder is renamed.
        """
        content = content or self.work
        write_json(content / STAMP, {"identity": self._identity, "origin": self.origin})
        old = self.path.with_name(f".{self.path.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if self.path.exists():
            self.path.rename(old)
        content.rename(self.path)
        (self.path / ".begun.json").unlink(missing_ok=True)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)
        return self.path


def _stamp(folder: Path, name: str = STAMP) -> str | None:
    try:
        value = json.loads((folder / name).read_text(encoding="utf-8"))
        return str(value["identity"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
