"""Lines of raw files: streamed, decompressed, decoded, with the place of what is damaged."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hatchery.corpora import packed_files
from hatchery.corpora.text_files import Lines, read_text
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource, open_source, register_source

TEXT = "one\ntwo\n\nthree é\n"


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd)],
)
def test_compressed_files_give_the_lines_of_the_plain_one(
    source_of: Callable[..., RawSource], suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    name = f"a.txt{suffix}"
    source = source_of(**{name: compress(TEXT.encode())})
    assert list(Lines(source, name)) == ["one", "two", "", "three é"]


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
    whole = read_text(source, "a.txt")
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


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd)]
)
def test_a_truncated_compressed_file_is_named(
    source_of: Callable[..., RawSource], suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    content = compress(bytes(range(256)) * 2000 + TEXT.encode() * 500)
    source = source_of(**{f"a.txt{suffix}": content[: len(content) // 2]})
    with pytest.raises(SourceError, match=rf"a\.txt\{suffix}: damaged after byte \d+"):
        list(Lines(source, f"a.txt{suffix}", "latin-1"))


def test_an_unknown_encoding_is_a_mistake_of_the_configuration(source_of: Callable[..., RawSource]) -> None:
    with pytest.raises(ConfigError, match="no encoding called 'utf-88'"):
        list(Lines(source_of(**{"a.txt": b"a"}), "a.txt", "utf-88"))
