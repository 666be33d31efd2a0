"""Raw files that were edited change the plan; those that were only moved or touched are registered anew, no more."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake.io import is_flagged

from hatchery.errors import SourceError
from hatchery.experiment.project import Project
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import open_source, register_source
from hatchery.workflow.raw_files import RawFiles

MANIFEST = Path("resources/sources/my_text.json")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts that is registered as `my_text` in the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt"):
        (folder / name).write_text(f"text of {name}", encoding="utf-8")
        os.utime(folder / name, (1_000_000, 1_000_000))
    register_source("my_text", folder, MANIFEST)
    return folder


def raw_files(repository: Path, data: Path) -> RawFiles:
    return RawFiles(Project(repository / "config", {"data": {"my_text": {"path": str(data)}}}))


def edited_in_place(data: Path) -> None:
    (data / "a.txt").write_text("TEXT of a.txt", encoding="utf-8")


def added(data: Path) -> None:
    (data / "sub/c.txt").write_text("more", encoding="utf-8")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited": edited_in_place,
    "longer": lambda data: (data / "a.txt").write_text("a longer text", encoding="utf-8"),
    "added below": added,
    "removed": lambda data: (data / "sub/b.txt").unlink(),
    "renamed": lambda data: (data / "sub/b.txt").rename(data / "sub/z.txt"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_noticed_and_all_that_reads_it_runs_again(change: str, data: Path, repository: Path) -> None:
    before = raw_files(repository, data).source_listing("my_text")
    assert raw_files(repository, data).source_listing("my_text") == before
    CHANGES[change](data)
    after = raw_files(repository, data)
    assert after.source_listing("my_text") != before
    assert not is_flagged(after.as_input(str(MANIFEST)), "ancient")


def test_a_touched_file_reruns_nothing_after_registering(data: Path, repository: Path) -> None:
    before = raw_files(repository, data).source_listing("my_text")
    os.utime(data / "a.txt", (2_000_000, 2_000_000))
    after = raw_files(repository, data)
    assert after.source_listing("my_text") != before
    assert is_flagged(after.as_input(str(MANIFEST)), "ancient")


@pytest.mark.parametrize("copy", [shutil.copytree, lambda old, new: old.rename(new)], ids=["copied", "moved"])
def test_the_same_files_in_another_place_rerun_nothing_after_registering(
    copy: Callable[[Path, Path], object], data: Path, repository: Path, tmp_path: Path
) -> None:
    copy(data, tmp_path / "elsewhere")
    assert is_flagged(raw_files(repository, tmp_path / "elsewhere").as_input(str(MANIFEST)), "ancient")


def test_other_files_of_the_same_size_in_another_place_are_other_files(
    data: Path, repository: Path, tmp_path: Path
) -> None:
    shutil.copytree(data, tmp_path / "elsewhere")
    edited_in_place(tmp_path / "elsewhere")
    assert not is_flagged(raw_files(repository, tmp_path / "elsewhere").as_input(str(MANIFEST)), "ancient")


@pytest.mark.parametrize("suffix", ["zip", "tar"])
def test_an_archive_is_told_by_itself_and_its_files_by_what_was_unpacked(
    suffix: str, data: Path, repository: Path, tmp_path: Path
) -> None:
    for path in data.rglob("*.txt"):
        path.touch()  # zip knows no time before 1980
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), suffix, data))
    register_settings({"name": "my_text", "path": str(archive)}, MANIFEST)
    before = raw_files(repository, archive)
    assert before.edited_files("my_text") == []
    assert is_flagged(before.as_input(str(MANIFEST)), "ancient")
    open_source(MANIFEST).verify()
    archive.rename(tmp_path / "unplugged")
    assert raw_files(repository, archive).source_listing("my_text") == before.source_listing("my_text")
    (tmp_path / "unplugged").rename(archive)
    archive.touch()
    assert raw_files(repository, archive).edited_files("my_text") == [str(archive)]
    (open_source(MANIFEST).root / "a.txt").write_text("TEXT of a.txt", encoding="utf-8")
    with pytest.raises(SourceError, match=r"'a\.txt': has the SHA-256"):
        open_source(MANIFEST).verify()


def test_what_was_registered_stays_registered_while_its_files_are_not_there(data: Path, repository: Path) -> None:
    before = raw_files(repository, data).source_listing("my_text")
    data.rename(data.with_name("unplugged"))
    assert raw_files(repository, data).source_listing("my_text") == before


def test_planning_writes_nothing_and_registered_files_that_look_alike_are_not_read_again(
    data: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = sorted(tmp_path.rglob("*"))
    raw_files(repository, data).as_input(str(MANIFEST))
    assert sorted(tmp_path.rglob("*")) == tree
    (data / "a.txt").write_text("edited", encoding="utf-8")
    read: list[str] = []
    from hatchery.raw import listings

    real = listings.sha256_file
    monkeypatch.setattr(listings, "sha256_file", lambda path: (read.append(Path(path).name), real(path))[1])
    register_source("my_text", data, MANIFEST)
    assert read == ["a.txt"]
    register_source("my_text", data, MANIFEST)
    assert sorted(read[1:]) == ["a.txt", "b.txt"]
