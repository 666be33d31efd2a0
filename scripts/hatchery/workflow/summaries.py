"""What a finished workflow prints: the plain-text summaries of the experiments that were made."""

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from hatchery.artifacts.checksums import vouched
from hatchery.errors import HatcheryError
from hatchery.sanitize import visible


def show_summaries(paths: Iterable[str | Path], stream: TextIO) -> None:
    """Print every `summary.txt` in `paths`, in the given order, to `stream`.

    A file that cannot be read, or is not what its checksum says, is told in one line instead of raised: this runs after
    the work is done, and must not turn a finished workflow into a failed one. Characters that the stream cannot show
    become question marks, those that would steer a terminal U+FFFD.
    """
    for path in paths:
        try:
            text = vouched(path).read_text(encoding="utf-8")
        except (HatcheryError, OSError, UnicodeDecodeError) as error:
            text = f"(no summary to show: {path}: {error})\n"
        encoding = getattr(stream, "encoding", None) or "utf-8"
        text = visible(text)
        stream.write("\n" + text.encode(encoding, errors="replace").decode(encoding))
    stream.flush()
