"""Raw inputs are registered by content and read in place."""

import zipfile
from pathlib import Path

import pytest

from hatchery.errors import SourceError
from hatchery.storage.sources import open_source, register_settings, register_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "raw"
    (root / "sub").mkdir(parents=True)
    (root / "b.txt").write_text("bee", encoding="utf-8")
    (root / "sub/a.txt").write_text("ay", encoding="utf-8")
    (root / ".hidden").write_text("no", encoding="utf-8")
    return root


def zipped(folder: Path) -> Path:
    archive = folder.parent / "raw.zip"
    with zipfile.ZipFile(archive, "w") as handle:
        handle.write(folder / "sub/a.txt", "raw/sub/a.txt")
        handle.write(folder / "b.txt", "raw/b.txt")
    return archive


def test_a_folder_lists_its_files_sorted_without_hidden_ones(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    assert source.names() == ["b.txt", "sub/a.txt"]
    assert source.names("a.*") == ["sub/a.txt"]
    assert source.read_bytes("sub/a.txt") == b"ay"


def test_a_zip_is_read_in_place(folder: Path, tmp_path: Path) -> None:
    register_source("x", zipped(folder), tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    assert source.names() == ["raw/b.txt", "raw/sub/a.txt"]
    assert source.read_bytes("raw/b.txt") == b"bee"


def test_a_single_file_is_a_source(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder / "b.txt", tmp_path / "x.json")
    assert open_source(tmp_path / "x.json").read_bytes("b.txt") == b"bee"


def test_identity_does_not_depend_on_the_place(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "one.json")
    moved = folder.rename(tmp_path / "moved")
    register_source("x", moved, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_a_file_that_grew_since_registration_is_told(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    (folder / "b.txt").write_text("longer", encoding="utf-8")
    with pytest.raises(SourceError, match=r"'b\.txt' has 6 bytes, 3 when it was registered"):
        open_source(tmp_path / "x.json").read_bytes("b.txt")


def test_a_truncated_zip_is_told(folder: Path, tmp_path: Path) -> None:
    archive = zipped(folder)
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(SourceError, match="not a readable zip archive"):
        register_source("x", archive, tmp_path / "x.json")


def test_a_corrupt_member_is_told(folder: Path, tmp_path: Path) -> None:
    archive = zipped(folder)
    content = bytearray(archive.read_bytes())
    content[content.index(b"bee")] ^= 0xFF
    archive.write_bytes(bytes(content))
    with pytest.raises(SourceError, match="damaged"):
        register_source("x", archive, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_missing_data_is_told_with_the_key_to_set_and_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"set data\.bnc\.path in config/config\.yaml; from the archive"):
        register_settings({"name": "bnc", "path": None, "obtain": "from the archive"}, tmp_path / "x.json")


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="holds no files"):
        register_source("x", tmp_path / "empty", tmp_path / "x.json")
