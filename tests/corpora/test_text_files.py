"""Lines of raw files: streamed, decoded, with the place of what is damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchery.corpora import packed_files
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource, open_source, register_source


@given(st.text(alphabet="ab\r\né\ufeff", max_size=40), st.integers(1, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_are_those_of_the_whole_text_wherever_the_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, block: int
) -> None:
    monkeypatch.setattr(packed_files, "_BLOCK_BYTES", block)
    folder = tmp_path / "raw"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_bytes(text.encode())
    register_source("raw", folder, tmp_path / "raw.json")
    source = open_source(tmp_path / "raw.json")
    whole = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert list(Lines(source, "a.txt")) == (whole.removesuffix("\n").split("\n") if whole else [])


def test_a_wrong_byte_is_named_by_its_offset_in_any_block(
    source_of: Callable[..., RawSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_files, "_BLOCK_BYTES", 5)
    source = source_of(**{"a.txt": b"caf\xc3\xa9 abc\n" * 3 + b"\xff\n"})
    with pytest.raises(SourceError, match=r"a\.txt: byte 30 is not utf-8"):
        list(Lines(source, "a.txt"))


def test_a_character_cut_at_the_end_is_named(source_of: Callable[..., RawSource]) -> None:
    source = source_of(**{"a.txt": b"caf\xc3"})
    with pytest.raises(SourceError, match=r"a\.txt: byte 3 is not utf-8"):
        list(Lines(source, "a.txt"))
