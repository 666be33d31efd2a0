"""The training curve: one JSON line per step, with nothing in it that differs from run to run.

The file in the run folder grows while training runs, so it can be watched; a resumed run starts from the copy in its
checkpoint, so no step appears twice. Speed and time are volatile and go to the log and to `provenance.json`.
"""

import json
import os
from pathlib import Path
from typing import Any

from hatchery.storage.atomic import write_text


class MetricsFile:
    """An append-only file of metrics; only the first process has one."""

    def __init__(self, path: Path, text: str = "") -> None:
        """Begin the file with `text`, the lines up to the resumed step."""
        write_text(path, text)
        self.path = path
        self._handle = path.open("a", encoding="utf-8")

    def append(self, row: dict[str, Any]) -> None:
        """Add one step; keys keep their order."""
        self._handle.write(json.dumps(row, allow_nan=False) + "\n")
        self._handle.flush()

    def text(self) -> str:
        """All lines so far, safely on the disk."""
        self._handle.flush()
        os.fsync(self._handle.fileno())
        return self.path.read_text(encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self._handle.close()
