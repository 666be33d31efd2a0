"""Downloads: continued and verified; a wrong or partial file never has the final name."""

import gzip
import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from hatchery.errors import SourceError
from hatchery.raw import downloads
from hatchery.raw.downloads import LONGEST_PAUSE_SECONDS, fetch
from hatchery.raw.settings import Download

CONTENT = random.Random("downloads").randbytes(3_000_000)
CUT = -983_040
OTHER = random.Random("another version").randbytes(3_000_000)


def download_of(web: Any, content: bytes = CONTENT, path: str = "data.bin") -> Download:
    return Download(web.url(path), len(content), hashlib.sha256(content).hexdigest())


def no_pause(seconds: float) -> None:
    pass


@pytest.fixture
def download(web: Any) -> Download:
    web.content["data.bin"] = CONTENT
    return download_of(web)


def test_a_file_is_fetched_and_kept_and_fetched_again_where_it_was_changed(
    web: Any, download: Download, tmp_path: Path, tree: Any
) -> None:
    for _twice in range(2):
        assert fetch(download, tmp_path / "new", no_pause).read_bytes() == CONTENT
        assert tree(tmp_path) == ["new/data.bin"]
    assert web.requests == [("/data.bin", None)]
    (tmp_path / "new/data.bin").write_bytes(OTHER)
    assert fetch(download, tmp_path / "new", no_pause).read_bytes() == CONTENT


def test_an_empty_file_can_be_fetched(web: Any, tmp_path: Path) -> None:
    web.content["empty"] = b""
    assert fetch(download_of(web, b"", "empty"), tmp_path, no_pause).read_bytes() == b""


@pytest.mark.parametrize(
    ("trouble", "attributes", "starts", "waited"),
    [
        (lambda number: CUT if number < 3 else None, {}, [None, "bytes=983040-", "bytes=1966080-"], [1.0, 1.0]),
        (lambda number: CUT if number == 1 else None, {"ranges": False}, [None, "bytes=983040-"], [1.0]),
        (lambda number: 429 if number <= 3 else None, {}, [None] * 4, [1.0, 2.0, 4.0]),
        (lambda number: 500 if number <= 3 else None, {}, [None] * 4, [1.0, 2.0, 4.0]),
        (lambda number: 503 if number == 1 else None, {"retry_after": "7"}, [None] * 2, [7.0]),
        (lambda number: 503 if number == 1 else None, {"retry_after": "99999"}, [None] * 2, [LONGEST_PAUSE_SECONDS]),
    ],
)
def test_what_passes_is_waited_for_and_a_part_is_continued_where_it_ended(
    trouble: Callable[[int], int | None],
    attributes: dict[str, object],
    starts: list[str | None],
    waited: list[float],
    web: Any,
    download: Download,
    tmp_path: Path,
) -> None:
    for name, value in {"trouble": trouble, **attributes}.items():
        setattr(web, name, value)
    pauses: list[float] = []
    assert fetch(download, tmp_path, pauses.append).read_bytes() == CONTENT
    assert [asked for _path, asked in web.requests] == starts
    assert pauses == waited


def test_a_killed_run_is_continued_by_the_next(
    web: Any, download: Download, tmp_path: Path, tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = requests.Response.iter_content

    def killed(self: requests.Response, size: int) -> Any:
        for index, block in enumerate(original(self, size)):
            if index == 1:
                raise KeyboardInterrupt
            yield block

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(requests.Response, "iter_content", killed)
        fetch(download, tmp_path, no_pause)
    assert tree(tmp_path) == [".data.bin.partial", ".data.bin.partial.json"]
    assert fetch(download, tmp_path, no_pause).read_bytes() == CONTENT
    assert web.requests[1:] == [("/data.bin", "bytes=65536-")]
    assert tree(tmp_path) == ["data.bin"]


def test_a_run_that_was_killed_before_comparing_needs_no_byte_more(
    web: Any, download: Download, tmp_path: Path
) -> None:
    web.trouble = lambda number: CUT if number == 1 else 503
    with pytest.raises(SourceError, match="stopped after"):
        fetch(download, tmp_path, no_pause)
    asked = len(web.requests)
    partial = tmp_path / ".data.bin.partial"
    assert 0 < partial.stat().st_size < len(CONTENT)
    with partial.open("ab") as handle:
        handle.write(CONTENT[partial.stat().st_size :])
    assert fetch(download, tmp_path, no_pause).read_bytes() == CONTENT
    assert len(web.requests) == asked


@pytest.mark.parametrize(
    ("first", "second", "heed_if_range"), [('"one"', '"two"', True), ('"one"', '"two"', False), (None, None, True)]
)
def test_a_file_that_changed_on_the_server_meanwhile_is_not_stitched_together(
    first: str | None, second: str | None, heed_if_range: bool, web: Any, download: Download, tmp_path: Path
) -> None:
    web.content["data.bin"], web.etag, web.heed_if_range = OTHER, first, heed_if_range

    def trouble(number: int) -> int | None:
        if number == 2:
            web.content["data.bin"], web.etag = CONTENT, second
        return CUT if number == 1 else None

    web.trouble = trouble
    assert fetch(download, tmp_path, no_pause).read_bytes() == CONTENT
    # Without an ETag, only the checksum detects the change, and the file is downloaded again from the start.
    assert first or [asked for _path, asked in web.requests] == [None, "bytes=983040-", None]


def test_a_wrong_checksum_is_told_with_both_and_the_file_is_removed(
    web: Any, download: Download, tmp_path: Path, tree: Any
) -> None:
    web.content["data.bin"] = OTHER
    with pytest.raises(SourceError) as caught:
        fetch(download, tmp_path, no_pause)
    assert str(caught.value) == (
        f"{download.url}: checksum mismatch: expected sha256 {download.sha256}, "
        f"got {hashlib.sha256(OTHER).hexdigest()}; the file was removed"
    )
    assert tree(tmp_path) == []


@pytest.mark.parametrize("length", [2_999_999, 3_000_001])
def test_a_wrong_size_is_told_before_the_file_is_fetched(
    length: int, web: Any, download: Download, tmp_path: Path, tree: Any
) -> None:
    web.content["data.bin"] = (CONTENT + b"x")[:length]
    with pytest.raises(SourceError, match=rf"data\.bin: has {length:,} bytes, expected 3,000,000"):
        fetch(download, tmp_path, no_pause)
    assert tree(tmp_path) == []


@pytest.mark.parametrize(
    ("trouble", "said", "requests"),
    [
        (lambda number: 404, "the server answers 404 ", 1),
        (lambda number: 503, "stopped after 6 attempts: the server answers 503 .* set its `path` in config/config", 6),
        (lambda number: CUT if number % 2 else 416, "stopped after 6 attempts: ", 6),
    ],
)
def test_a_file_that_the_server_does_not_give_is_told_in_one_line(
    trouble: Callable[[int], int], said: str, requests: int, web: Any, download: Download, tmp_path: Path, tree: Any
) -> None:
    web.trouble = trouble
    with pytest.raises(SourceError, match=said) as caught:
        fetch(download, tmp_path, no_pause)
    assert "\n" not in str(caught.value)
    assert len(web.requests) == requests
    assert "data.bin" not in tree(tmp_path) and (requests > 1 or tree(tmp_path) == [])


def test_a_server_that_cannot_be_reached_is_told_in_one_line(web: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="stopped after 6 attempts: the connection failed") as caught:
        fetch(Download("http://127.0.0.1:9/data.bin", 1, "0" * 64), tmp_path, no_pause)
    assert "\n" not in str(caught.value)


def test_a_compressed_file_that_the_server_calls_encoded_stays_compressed(web: Any, tmp_path: Path) -> None:
    content = gzip.compress(CONTENT, 1, mtime=0)
    web.content["data.gz"], web.encoding = content, "gzip"
    assert fetch(download_of(web, content, "data.gz"), tmp_path, no_pause).read_bytes() == content


def test_what_was_kept_of_another_download_is_not_continued(web: Any, download: Download, tmp_path: Path) -> None:
    web.trouble = lambda number: CUT
    with pytest.raises(SourceError):
        fetch(
            Download(download.url, download.bytes, "0" * 64), tmp_path, lambda seconds: web.__setattr__("ranges", False)
        )
    web.trouble, web.ranges, web.requests = lambda number: None, True, []
    assert fetch(download, tmp_path, no_pause).read_bytes() == CONTENT
    assert web.requests == [("/data.bin", None)]


def test_a_disk_without_room_is_told_before_anything_is_fetched(web: Any, download: Download, small_disk: Path) -> None:
    with pytest.raises(
        SourceError, match=r"the disk has [\d,]+ bytes free, but the rest of the download needs 3,000,000 bytes"
    ):
        fetch(download, small_disk, no_pause)
    assert web.requests == []


def test_a_disk_that_fills_up_is_told_in_one_line_and_the_beginning_is_kept(
    web: Any, download: Download, small_disk: Path, tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "_check_space", lambda folder, missing: None)
    with pytest.raises(
        SourceError, match=r"cannot be written: No space left on device; the downloaded part is kept"
    ) as caught:
        fetch(download, small_disk, no_pause)
    assert "\n" not in str(caught.value)
    assert tree(small_disk) == [".data.bin.partial", ".data.bin.partial.json"]


@pytest.mark.parametrize("cuts", range(3))
def test_any_place_of_interruption_gives_the_same_file(
    cuts: int, web: Any, download: Download, tmp_path: Path, tree: Callable[[Path], list[str]]
) -> None:
    generator = random.Random(f"cuts {cuts}")
    web.trouble = lambda number: -generator.randrange(1, 1_500_000) if number < 8 else None
    assert fetch(download, tmp_path, no_pause).read_bytes() == CONTENT
    assert tree(tmp_path) == ["data.bin"]
    assert os.access(tmp_path / "data.bin", os.R_OK)
