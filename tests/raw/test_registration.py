"""A registered source: names, sizes and checksums; changed files are detected, and archives are read by member."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.experiment.project import Project
from hatchery.raw import listings
from hatchery.raw.listings import kept_listing, location_of
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import open_source, register_source
from hatchery.workflow.raw_files import RawFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "raw"
    (root / "sub").mkdir(parents=True)
    (root / "b.txt").write_text("bee", encoding="utf-8")
    (root / "sub/a.txt").write_text("ay", encoding="utf-8")
    (root / ".hidden").write_text("no", encoding="utf-8")
    return root


def test_the_files_of_a_folder_are_known_by_name_size_and_checksum_without_hidden_ones(
    folder: Path, tmp_path: Path
) -> None:
    names = ['say "yes".txt', "日本.txt", "new\nline.txt", "a\\b.txt"]
    for name in names:
        (folder / "sub" / name).write_text(name, encoding="utf-8")
    register_source("x", folder, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    assert source.names() == sorted(["b.txt", "sub/a.txt", *(f"sub/{name}" for name in names)])
    assert source.names("a.*") == ["sub/a.txt"]
    assert [source.read_bytes(f"sub/{name}").decode() for name in names] == names
    assert source.read_bytes("sub/a.txt") == b"ay"
    assert (source.size("b.txt"), source.sha256("b.txt")) == (3, hashlib.sha256(b"bee").hexdigest())
    for ask in (source.size, source.sha256, source.check, source.open, source.read_bytes):
        with pytest.raises(SourceError, match=r"contains no file 'c\.txt'"):
            ask("c.txt")
    moved = folder.rename(tmp_path / "moved")
    register_source("x", moved, tmp_path / "moved.json")
    assert (tmp_path / "moved.json").read_bytes() == (tmp_path / "x.json").read_bytes()
    register_source("x", moved / "b.txt", tmp_path / "file.json")
    assert open_source(tmp_path / "file.json").read_bytes("b.txt") == b"bee"


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link to a folder": (
        lambda folder: (folder / "link.txt").symlink_to("sub"),
        r"link\.txt: a link \(sub\), which is not followed; set `follow_links: true`",
    ),
    "a name that is not UTF-8": (
        lambda folder: (folder / "b.txt").rename(folder / os.fsdecode(b"b\xff.txt")),
        r"the file name 'b\\udcff\.txt' is not UTF-8",
    ),
    "no files": (lambda folder: (shutil.rmtree(folder), folder.mkdir()), "contains no files"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_told_not_left_out(what: str, folder: Path, tmp_path: Path) -> None:
    spoil, message = REFUSED[what]
    spoil(folder)
    with pytest.raises(SourceError, match=message):
        register_source("x", folder, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("error", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_folder_that_cannot_be_read_is_told_not_left_out(
    error: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(folder / "sub"):
            raise OSError(error, os.strerror(error), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(SourceError, match=rf"raw/sub: cannot be read: {os.strerror(error)}$"):
        register_source("x", folder, tmp_path / "x.json")


def test_a_listing_without_an_unreadable_file_has_the_files_after_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = listings._listed

    def listed(status: os.stat_result) -> listings.Listed:
        if status.st_ino == (folder / "b.txt").stat().st_ino:
            raise OSError(errno.EIO, "unreadable")
        return real(status)

    monkeypatch.setattr(listings, "_listed", listed)
    assert [*listings.listing_of(folder)] == ["sub/a.txt"]


def test_links_are_followed_where_the_source_says_so_and_never_round_and_round(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/c.txt").write_text("sea", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "other/c.txt")
    (folder / "linked").symlink_to(tmp_path / "other")
    (tmp_path / "other/back").symlink_to(folder / "sub")
    (folder / "sub/loop").symlink_to(folder / "sub")
    register_settings({"name": "x", "path": str(folder), "follow_links": True}, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    assert source.names() == ["b.txt", "link.txt", "linked/back/a.txt", "linked/c.txt", "sub/a.txt"]
    assert source.read_bytes("linked/c.txt") == b"sea"
    source.verify()


def test_a_zip_that_was_registered_to_be_read_in_place_is_to_be_registered_again(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    for name, key, value in (("x.json", "kind", "zip"), ("x.location.json", "root", str(folder / "b.txt"))):
        found = json.loads((tmp_path / name).read_text())
        found.pop("manifest_sha256", None)
        (tmp_path / name).write_text(json.dumps(found | {key: value}))
    with pytest.raises(SourceError, match=r"was registered by an earlier version .* --force .*x\.json"):
        open_source(tmp_path / "x.json")


def test_place_origin_licence_and_terms_are_beside_the_manifest_and_not_in_it(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json", licence="CC0", terms="anything", origin={"hub": "y"})
    source = open_source(tmp_path / "x.json")
    assert (source.licence, source.terms) == ("CC0", "anything")
    assert set(json.loads((tmp_path / "x.json").read_text())) == {"name", "kind", "files"}
    location = json.loads((tmp_path / "x.location.json").read_text())
    assert location.pop("manifest_sha256") == sha256_file(tmp_path / "x.json")
    assert location == {
        "root": folder.as_posix(),
        "origin": {"hub": "y"},
        "licence": "CC0",
        "terms": "anything",
    }


def test_sources_that_were_exchanged_are_refused(folder: Path, tmp_path: Path) -> None:
    first, second = (tmp_path / "sources" / name for name in ("a.json", "b.json"))
    first.parent.mkdir()
    for manifest in (first, second):
        register_source(manifest.stem, folder, manifest)
        assert open_source(manifest).name == manifest.stem
    for one, other in ((first, second), (location_of(first), location_of(second))):
        one.rename(tmp_path / "kept")
        other.rename(one)
        (tmp_path / "kept").rename(other)
    with pytest.raises(
        SourceError,
        match=r"sources/a\.json: got the manifest of the source 'b', expected the manifest of 'a'; remove this "
        "manifest to have the source",
    ):
        open_source(first)


def test_a_changed_file_is_told_and_one_that_looks_as_it_did_is_read_only_where_that_is_asked(
    folder: Path, tmp_path: Path
) -> None:
    register_source("x", folder, tmp_path / "x.json")
    before, source = (folder / "b.txt").stat(), open_source(tmp_path / "x.json")
    source.verify()
    for text, message in (
        ("longer", r"'b\.txt': has 6 bytes, expected 3 .*--force .*x\.json"),
        ("BEE", r"'b\.txt': has the SHA-256 \w{16}, expected \w{16} "),
    ):
        (folder / "b.txt").write_text(text, encoding="utf-8")
        with pytest.raises(SourceError, match=message):
            source.verify()
    os.utime(folder / "b.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    source.verify()
    with pytest.raises(SourceError, match=r"'b\.txt': has the SHA-256"):
        source.check("b.txt")
    kept_listing(tmp_path / "x.json").unlink()
    with pytest.raises(SourceError, match=r"'b\.txt': has the SHA-256"):
        source.verify()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"name": 1}', '{"name": "x", "kind": "file", "files": [{}]}'])
def test_a_damaged_manifest_is_told(content: str, folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(SourceError, match=r"x\.json: (cannot be read as a source manifest|has the SHA-256)"):
        open_source(tmp_path / "x.json")


MANIFEST = Path("resources/sources/my_text.json")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of texts, registered as `my_text` in the working directory."""
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
    assert not after.are_the_same(str(MANIFEST))
    expected = {
        "edited": ["edited a.txt"],
        "longer": ["edited a.txt"],
        "added below": ["added sub/c.txt"],
        "removed": ["removed sub/b.txt"],
        "renamed": ["removed sub/b.txt", "added sub/z.txt"],
    }
    assert [text.replace(f"{data}/", "") for text in after.edited_files("my_text")] == expected[change]


def test_a_touched_file_reruns_nothing_after_registering(data: Path, repository: Path) -> None:
    before = raw_files(repository, data).source_listing("my_text")
    os.utime(data / "a.txt", (2_000_000, 2_000_000))
    after = raw_files(repository, data)
    assert after.source_listing("my_text") != before
    assert after.are_the_same(str(MANIFEST))


@pytest.mark.parametrize("copy", [shutil.copytree, lambda old, new: old.rename(new)], ids=["copied", "moved"])
def test_the_same_files_in_another_place_rerun_nothing_after_registering(
    copy: Callable[[Path, Path], object], data: Path, repository: Path, tmp_path: Path
) -> None:
    copy(data, tmp_path / "elsewhere")
    assert raw_files(repository, tmp_path / "elsewhere").are_the_same(str(MANIFEST))


def test_other_files_of_the_same_size_in_another_place_are_other_files(
    data: Path, repository: Path, tmp_path: Path
) -> None:
    shutil.copytree(data, tmp_path / "elsewhere")
    edited_in_place(tmp_path / "elsewhere")
    assert not raw_files(repository, tmp_path / "elsewhere").are_the_same(str(MANIFEST))


@pytest.mark.parametrize("suffix", ["zip", "tar"])
def test_an_archive_is_told_by_itself_and_its_files_by_what_was_unpacked(
    suffix: str, data: Path, repository: Path, tmp_path: Path
) -> None:
    for path in data.rglob("*.txt"):
        path.touch()  # zip cannot store times before 1980
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), suffix, data))
    register_settings({"name": "my_text", "path": str(archive)}, MANIFEST)
    before = raw_files(repository, archive)
    assert before.edited_files("my_text") == []
    assert before.are_the_same(str(MANIFEST))
    open_source(MANIFEST).verify()
    archive.rename(tmp_path / "unplugged")
    assert raw_files(repository, archive).source_listing("my_text") == before.source_listing("my_text")
    (tmp_path / "unplugged").rename(archive)
    archive.touch()
    assert raw_files(repository, archive).edited_files("my_text") == [f"edited {archive}"]
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
    raw_files(repository, data).are_the_same(str(MANIFEST))
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
