"""Downloads of files, which resume after interruptions and are checked against an expected size and SHA-256.

Downloaded bytes are stored in `.<file>.partial`. A second file stores the version (ETag or date) that the server states
for the downloaded file. If this version changes during a download, the download starts again, so a file never contains
bytes of two versions. The file receives its final name only after its checksum is verified. If the checksum is wrong,
the file is removed.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.progress import Progress
from hatchery.raw.settings import Download

# Number of failed attempts after which a download fails. An attempt that makes the partial file longer resets the count
# of failed attempts to 1.
ATTEMPTS = 6
LONGEST_PAUSE_SECONDS = 60.0
_TIMEOUT_SECONDS = (30.0, 60.0)
_TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504)
# Size of the blocks in which a file is received. Blocks are small, because the current block is lost if the connection
# fails.
_BLOCK_BYTES = 64 << 10
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

Pause = Callable[[float], None]


class _TransientError(Exception):
    """An error that may not occur in a further attempt. `after_seconds` is the delay that the server requests, or
    None.
    """

    def __init__(self, reason: str, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds


def fetch(download: Download, folder: Path, pause: Pause = time.sleep) -> Path:
    """Download the file into `folder`, unless this folder already contains the file with the expected checksum, and
    return the path of the file.

    An interrupted download is resumed. The download fails after several attempts without progress. Raises SourceError
    if the server lacks the file or cannot be reached, if the file has another size or checksum, or if the disk is full.
    A file with another checksum is removed; a partial file is kept for the next run.
    """
    target = folder / download.file_name
    if target.exists() and target.stat().st_size == download.bytes and sha256_file(target) == download.sha256:
        return target
    target.unlink(missing_ok=True)
    with _disk(folder), requests.Session() as session:
        folder.mkdir(parents=True, exist_ok=True)
        partial = _Partial(folder / f".{download.file_name}.partial", download)
        _check_space(folder, download.bytes - partial.size)
        _transfer(session, download, partial, pause)
        sha256 = partial.finished()
        if sha256 != download.sha256 and partial.stitched:
            # If the server states no version, the received bytes may come from different versions of the file.
            # Therefore repeat the download once from the beginning.
            partial.drop()
            _transfer(session, download, partial, pause)
            sha256 = partial.finished()
        if sha256 != download.sha256:
            partial.drop()
            raise SourceError(
                f"{download.url}: checksum mismatch: expected sha256 {download.sha256}, got {sha256}; "
                "the file was removed"
            )
        partial.publish(target)
    return target


def _transfer(session: requests.Session, download: Download, partial: "_Partial", pause: Pause) -> None:
    failures, furthest = 0, partial.size
    with _MegabyteProgress(download, partial.size) as progress:
        while partial.size < download.bytes or not partial.path.exists():
            try:
                _attempt(session, download, partial, progress)
            except (requests.RequestException, _TransientError) as error:
                failures = 1 if partial.size > furthest else failures + 1
                furthest = max(furthest, partial.size)
                reason = _reason(error)
                if failures >= ATTEMPTS:
                    raise SourceError(
                        f"{download.url}: stopped after {failures} attempts: {reason}; the downloaded part is kept: "
                        "run again to continue, or download the file yourself and set its `path` in config/config.yaml"
                    ) from error
                requested_pause = error.after_seconds if isinstance(error, _TransientError) else None
                seconds = min(
                    2.0 ** (failures - 1) if requested_pause is None else requested_pause, LONGEST_PAUSE_SECONDS
                )
                progress.note(f"{download.url}: {reason}; trying again in {seconds:.0f} s")
                pause(seconds)


def _attempt(session: requests.Session, download: Download, partial: "_Partial", progress: "_MegabyteProgress") -> None:
    """Request the bytes that the partial file lacks, once, and add them to this file. If a further attempt may succeed,
    raises _TransientError or an error of `requests`.
    """
    headers = {"Accept-Encoding": "identity"}
    if partial.size:
        headers["Range"] = f"bytes={partial.size}-"
        if partial.version:
            headers["If-Range"] = partial.version
    with session.get(download.url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS) as response:
        start = _start(response, download, partial)
        if start == 0:
            partial.begin(_version(response))
        else:
            partial.stitched = True
        # Remove the header Content-Encoding of the response. Some servers declare a .tar.gz as a .tar with the content
        # encoding gzip, and `requests` would decompress it.
        response.raw.headers.pop("Content-Encoding", None)
        progress.jump(partial.size)
        with partial.path.open("ab") as output:
            for block in response.iter_content(_BLOCK_BYTES):
                if output.tell() + len(block) > download.bytes:
                    output.close()
                    partial.drop()
                    raise SourceError(
                        f"{download.url}: the server sends more than the expected {download.bytes:,} bytes"
                    )
                output.write(block)
                progress.jump(output.tell())
    if partial.size < download.bytes:
        raise _TransientError(f"the server ended the transfer after {partial.size:,} of {download.bytes:,} bytes")


def _start(response: requests.Response, download: Download, partial: "_Partial") -> int:
    """Return the position in the file at which the response begins: 0, or the size of the partial file.

    Raises SourceError or _TransientError if the response cannot be used.
    """
    status = response.status_code
    if status in _TRANSIENT_STATUS:
        raise _TransientError(f"the server answers {status} {response.reason}", _retry_after(response))
    if status == 416 and partial.size:
        partial.drop()
        raise _TransientError("the server cannot continue the transfer; the transfer starts again", 0.0)
    if status not in (200, 206):
        raise SourceError(f"{download.url}: the server answers {status} {response.reason}")
    start, total = 0, response.headers.get("Content-Length", "*")
    if status == 206:
        content_range = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if content_range is None or int(content_range[1]) != partial.size:
            partial.drop()
            raise _TransientError("the server sent another range than requested; the transfer starts again", 0.0)
        if partial.version and _version(response) not in ("", partial.version):
            partial.drop()
            raise _TransientError("the file has changed on the server; the transfer starts again", 0.0)
        start, total = int(content_range[1]), content_range[2]
    if total.isdecimal() and int(total) != download.bytes:
        partial.drop()
        raise SourceError(f"{download.url}: has {int(total):,} bytes, expected {download.bytes:,}")
    return start


def _version(response: requests.Response) -> str:
    """Return the version of the file for a later `If-Range` header: a strong ETag or, if there is none, the file's
    date; empty if the server states neither.
    """
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified", "")


def _retry_after(response: requests.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


def _reason(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "the server does not answer in time"
    if isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return f"the connection failed ({' '.join(str(error).split())[:200]})"
    return " ".join(str(error).split())[:300]


class _Partial:
    """A partially downloaded file, and the version (ETag or date) that the server has stated for this file."""

    def __init__(self, path: Path, download: Download) -> None:
        self.path = path
        self._note = path.with_name(f"{path.name}.json")
        self._of = {"url": download.url, "sha256": download.sha256}
        note = self._read_note()
        self.version: str = note.get("version", "")
        self.stitched = self.size > 0
        """True if the bytes may come from several responses of the server."""
        if {key: note.get(key) for key in self._of} != self._of or self.size > download.bytes:
            self.drop()

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, version: str) -> None:
        """Start an empty partial file for the file's version `version` on the server."""
        self.path.unlink(missing_ok=True)
        write_json(self._note, {**self._of, "version": version})
        self.version, self.stitched = version, False

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        self.version, self.stitched = "", False

    def finished(self) -> str:
        """Synchronise the downloaded file with the disk, and return the file's SHA-256."""
        with self.path.open("rb+") as handle:
            os.fsync(handle.fileno())
        return sha256_file(self.path)

    def publish(self, target: Path) -> None:
        self.path.replace(target)
        self._note.unlink(missing_ok=True)

    def _read_note(self) -> dict[str, str]:
        try:
            value = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


class _MegabyteProgress(Progress):
    """Progress of a download in megabytes. If the download starts again, the number of megabytes decreases."""

    def __init__(self, download: Download, initial_bytes: int) -> None:
        done = initial_bytes // 1_000_000
        super().__init__(download.bytes // 1_000_000, download.file_name, "MB", initial=done)

    def jump(self, bytes_done: int) -> None:
        """Set the number of downloaded bytes."""
        if steps := bytes_done // 1_000_000 - self.done:
            self.update(steps)


def _check_space(folder: Path, missing_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if missing_bytes > free:
        raise SourceError(
            f"{folder}: the disk has {free:,} bytes free, but the rest of the download needs {missing_bytes:,} bytes; "
            "make space, or set storage_root"
        )


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except requests.RequestException:
        raise
    except OSError as error:
        raise SourceError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}; the downloaded part is kept"
        ) from error
