"""From settings to a registered source: the path and the fetched files, or an error message."""

import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import forked
import pytest
from stage_command import stage_command

from hatchery.errors import SourceError
from hatchery.raw import downloads, obtain
from hatchery.raw.obtain import register_settings
from hatchery.raw.registration import STAMP, open_source

ADVICE = {"obtain": "from the archive", "licence": "BNC User Licence", "terms": "research only"}


def tar_of(*members: tuple[str, bytes], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as handle:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            handle.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as handle:
        for name, content in members:
            handle.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def offer(web: Any, name: str, content: bytes, **more: Any) -> dict[str, Any]:
    """Put a file on the server, and return its entry under `download`."""
    web.content[name] = content
    return {"url": web.url(name), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **more}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    original = downloads.fetch
    monkeypatch.setattr(downloads, "fetch", lambda download, folder: original(download, folder, lambda seconds: None))


@pytest.fixture
def register(tmp_path: Path) -> Any:
    def run(**settings: Any) -> Any:
        output = tmp_path / "resources/sources/x.json"
        register_settings({"name": "x", **settings}, output, tmp_path / "resources/fetched")
        return open_source(output)

    return run


def test_a_path_wins_over_a_download_also_where_nothing_is_there(web: Any, register: Any, tmp_path: Path) -> None:
    entry = offer(web, "a.txt", b"a")
    with pytest.raises(SourceError) as caught:
        register(path="no/such", download=[entry], **ADVICE)
    assert str(caught.value).startswith(
        "source 'x' is not at no/such: set data.x.path in config/config.yaml, or to null to have it downloaded; from"
    )
    (tmp_path / "mine.txt").write_bytes(b"mine")
    assert register(path=str(tmp_path / "mine.txt"), download=[entry]).read_bytes("mine.txt") == b"mine"
    assert web.requests == []


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip", ""])
def test_a_local_archive_is_unpacked_once(
    suffix: str, register: Any, tmp_path: Path, tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packed(*members: tuple[str, bytes]) -> bytes:
        mode = {".tgz": "w:gz", ".tar": "w"}.get(suffix, f"w:{suffix[5:]}")
        return zip_of(*members) if suffix in (".zip", "") else tar_of(*members, mode=mode)

    archive = tmp_path / f"books{suffix}"
    archive.write_bytes(packed(("books/one.txt", b"one"), ("__MACOSX/books/._one.txt", b"?")))
    source = register(path=str(archive))
    assert source.read_bytes("books/one.txt") == b"one"
    assert source.kind == ("zip" if suffix in (".zip", "") else "folder")
    assert tree(tmp_path / "resources/fetched") == [f"x/{STAMP}", "x/books/one.txt"]
    with monkeypatch.context() as patch:
        patch.setattr(obtain, "unpack", lambda *arguments: pytest.fail("unpacked again"))
        register(path=str(archive))
    archive.write_bytes(packed(("books/two.txt", b"two")))
    source = register(path=str(archive))
    assert source.names() == ["books/two.txt"]
    # A source is identified by its files, so the unpacked folder equals the archive.
    (tmp_path / "raw/books").mkdir(parents=True)
    (tmp_path / "raw/books/two.txt").write_bytes(b"two")
    of_archive = json.loads(source.manifest.read_text())["files"]
    assert json.loads(register(path=str(tmp_path / "raw")).manifest.read_text())["files"] == of_archive


def test_a_bad_local_tar_leaves_nothing_and_the_older_files_stay(register: Any, tmp_path: Path, tree: Any) -> None:
    archive = tmp_path / "books.tgz"
    archive.write_bytes(tar_of(("one.txt", b"one")))
    register(path=str(archive))
    before = tree(tmp_path / "resources")
    archive.write_bytes(tar_of(("two.txt", b"two"), ("../evil.txt", b"evil")))
    with pytest.raises(SourceError, match=r"books\.tgz: the member '\.\./evil\.txt'"):
        register(path=str(archive))
    assert tree(tmp_path / "resources") == before
    assert not (tmp_path / "resources/fetched/.x.partial").exists()


def test_a_downloaded_file_is_itself_the_source_until_another_takes_its_place(
    web: Any, register: Any, tmp_path: Path, tree: Any
) -> None:
    source = register(download=[offer(web, "words.txt", b"words")])
    assert (source.kind, source.names()) == ("file", ["words.txt"])
    made = [f"fetched/x/{STAMP}", "fetched/x/words.txt"]
    made += ["sources/.x.listing.json", "sources/x.json", "sources/x.location.json"]
    assert tree(tmp_path / "resources") == made
    wrong = {**offer(web, "words.txt", b"wrong"), "sha256": "0" * 64}
    with pytest.raises(SourceError, match="checksum mismatch"):
        register(download=[wrong])
    assert [name for name in tree(tmp_path / "resources") if "begun" not in name] == made
    assert register(download=[offer(web, "words.txt", b"new")]).read_bytes("words.txt") == b"new"


def test_a_downloaded_archive_is_a_source_of_its_files_and_lies_beside_other_downloads(web: Any, register: Any) -> None:
    entry = offer(web, "words.zip", zip_of(("words/en", b"a\nb\n")))
    zipped = register(download=[entry])
    assert (zipped.kind, zipped.names(), zipped.read_bytes("words/en")) == ("zip", ["words/en"], b"a\nb\n")
    unpacked = register(download=[{**entry, "unpack": True}])
    assert (unpacked.kind, unpacked.names()) == ("folder", ["words/en"])
    assert not (unpacked.root / "words.zip").exists()
    downloads = [offer(web, "a.tgz", tar_of(("data/one.txt", b"one")), unpack=True), offer(web, "two.txt", b"two")]
    web.requests.clear()
    for _twice in range(2):
        source = register(download=downloads)
        assert source.names() == ["data/one.txt", "two.txt"]
    assert [path for path, _range in web.requests] == ["/a.tgz", "/two.txt"], "each is fetched once"
    location = json.loads(source.manifest.with_name("x.location.json").read_text())
    assert [entry["url"] for entry in location["origin"]["download"]] == [web.url("a.tgz"), web.url("two.txt")]


def test_downloads_whose_files_collide_are_refused(web: Any, register: Any, tmp_path: Path) -> None:
    archive = offer(web, "a.tgz", tar_of(("two.txt", b"one")), unpack=True)
    with pytest.raises(SourceError, match="an unpacked file already has the name of this download"):
        register(download=[archive, offer(web, "two.txt", b"two")])
    second = offer(web, "b.tgz", tar_of(("two.txt", b"three")), unpack=True)
    with pytest.raises(SourceError, match=r"b\.tgz: cannot be unpacked into .*: the member 'two\.txt': File exists"):
        register(download=[archive, second])
    assert not (tmp_path / "resources/fetched/x").exists()
    assert not (tmp_path / "resources/sources").exists()


def test_a_run_that_breaks_off_between_downloads_keeps_the_finished_ones(web: Any, register: Any) -> None:
    entries = [offer(web, "one.txt", b"one"), offer(web, "two.txt", b"two")]
    del web.content["two.txt"]
    with pytest.raises(SourceError, match="404"):
        register(download=entries)
    web.content["two.txt"] = b"two"
    assert register(download=entries).names() == ["one.txt", "two.txt"]
    assert [path for path, _range in web.requests] == ["/one.txt", "/two.txt", "/two.txt"]


@pytest.mark.parametrize("where", ["unpack", "publish", "register_source"])
def test_a_run_that_is_killed_after_the_downloads_goes_on_without_them(
    where: str, web: Any, register: Any, tmp_path: Path, tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [offer(web, "a.tgz", tar_of(("one.txt", b"one")), unpack=True), offer(web, "two.txt", b"two")]

    def killed(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if where == "publish":
            patch.setattr(Path, "rename", killed)
        else:
            patch.setattr(obtain, where, killed)
        register(download=entries)
    assert not (tmp_path / "resources/sources").exists()
    asked = len(web.requests)
    assert register(download=entries).names() == ["one.txt", "two.txt"]
    assert len(web.requests) == asked
    assert tree(tmp_path / "resources/fetched") == [f"x/{STAMP}", "x/one.txt", "x/two.txt"]


def test_the_command_says_what_it_registered_or_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")

    def run(settings: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        command = stage_command("register_source", settings, "x.json")
        return forked.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    good = run({"stage": "register_source", "stage_version": 2, "name": "x", "path": "a.txt", **ADVICE})
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout == "source 'x': 1 file, 3 bytes; licence: BNC User Licence; terms: research only\n"
    bad = run({"name": "y", "path": None, **ADVICE})
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("error: source 'y' has no path: set data.y.path in config/config.yaml; from the")
    assert bad.stderr.count("\n") == 1
