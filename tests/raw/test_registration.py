"""Raw inputs are registered by content and read in place."""

import hashlib
import io
import json
import os
import pickle
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.checksums import sha256_file
from hatchery.errors import SourceError
from hatchery.raw.archive_members import ArchiveLimits
from hatchery.raw.registration import location_of, open_source, register_source


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


@pytest.mark.parametrize(
    ("target", "message"), [("gone.txt", "nothing that can be read"), ("sub", "a folder; give it")]
)
def test_a_link_that_cannot_be_read_is_told_not_left_out(
    target: str, message: str, folder: Path, tmp_path: Path
) -> None:
    (folder / "link.txt").symlink_to(target)
    with pytest.raises(SourceError, match=rf"link\.txt: a link \({target}\) to {message}"):
        register_source("x", folder, tmp_path / "x.json")
    (folder / "link.txt").unlink()
    (folder / "link.txt").symlink_to("b.txt")
    register_source("x", folder, tmp_path / "x.json")
    assert open_source(tmp_path / "x.json").read_bytes("link.txt") == b"bee"


def test_a_broken_link_as_a_source_is_told(tmp_path: Path) -> None:
    (tmp_path / "raw").symlink_to("gone")
    with pytest.raises(SourceError, match="raw is a link to gone, which does not exist"):
        register_source("x", tmp_path / "raw", tmp_path / "x.json")


def test_identity_does_not_depend_on_the_place(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "one.json")
    moved = folder.rename(tmp_path / "moved")
    register_source("x", moved, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_a_file_that_grew_since_registration_is_told(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    (folder / "b.txt").write_text("longer", encoding="utf-8")
    with pytest.raises(SourceError, match=r"'b\.txt': has 6 bytes, expected 3 .*--force .*x\.json"):
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


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="holds no files"):
        register_source("x", tmp_path / "empty", tmp_path / "x.json")


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
    with pytest.raises(SourceError, match=r"sources/a\.json: is that of the source 'b'; remove it to have the source"):
        open_source(first)


def test_size_and_checksum_of_a_member_are_known(folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    assert source.size("b.txt") == 3
    assert source.sha256("b.txt") == hashlib.sha256(b"bee").hexdigest()
    for ask in (source.size, source.sha256, source.verify, source.open, source.read_bytes):
        with pytest.raises(SourceError, match=r"there is no file 'c\.txt'"):
            ask("c.txt")


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_verification_notices_content_of_the_same_size(kind: str, folder: Path, tmp_path: Path) -> None:
    root, name = (folder, "b.txt") if kind == "folder" else (zipped(folder), "raw/b.txt")
    register_source("x", root, tmp_path / "x.json")
    open_source(tmp_path / "x.json").verify(name)
    (folder / "b.txt").write_text("BEE", encoding="utf-8")
    if kind == "zip":
        zipped(folder)
    with pytest.raises(SourceError, match=r"'(raw/)?b\.txt': has the SHA-256 \w{16}, expected \w{16} "):
        open_source(tmp_path / "x.json").verify(name)


def test_a_zip_member_that_is_cut_off_after_registration_is_told_while_it_is_read(tmp_path: Path) -> None:
    archive = tmp_path / "raw.zip"
    content = os.urandom(500_000)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as handle:
        handle.writestr("a.bin", content)
    register_source("x", archive, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    stream = source.open("a.bin")
    assert stream.read(10) == content[:10]
    os.truncate(archive, 400_000)
    with pytest.raises(SourceError, match=r"raw\.zip: 'a\.bin' cannot be read: it ends too early"):
        stream.read()


def test_a_zip_member_that_is_damaged_after_registration_is_told_with_its_name(folder: Path, tmp_path: Path) -> None:
    archive = zipped(folder)
    register_source("x", archive, tmp_path / "x.json")
    content = bytearray(archive.read_bytes())
    content[content.index(b"bee")] ^= 0xFF
    archive.write_bytes(bytes(content))
    source = open_source(tmp_path / "x.json")
    for read in (source.read_bytes, source.verify, lambda name: list(source.open(name))):
        with pytest.raises(SourceError, match=r"'raw/b\.txt' cannot be read: Bad CRC"):
            read("raw/b.txt")


def test_a_zip_member_is_a_stream_of_lines_that_can_be_rewound(tmp_path: Path) -> None:
    archive = tmp_path / "raw.zip"
    content = b"".join(b"line %d\n" % index for index in range(200_000))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as handle:
        handle.writestr("a.txt", content)
    register_source("x", archive, tmp_path / "x.json")
    with open_source(tmp_path / "x.json").open("a.txt") as stream:
        assert b"".join(stream) == content
        assert stream.seek(0) == 0
        assert io.TextIOWrapper(stream).readline() == "line 0\n"


def test_a_source_can_be_sent_to_another_process_while_its_archive_is_open(folder: Path, tmp_path: Path) -> None:
    register_source("x", zipped(folder), tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    source.read_bytes("raw/b.txt")
    assert pickle.loads(pickle.dumps(source)).read_bytes("raw/b.txt") == b"bee"


def test_a_forked_process_reads_the_archive_through_a_handle_of_its_own(tmp_path: Path) -> None:
    archive = tmp_path / "raw.zip"
    with zipfile.ZipFile(archive, "w") as handle:
        for index in range(20):
            handle.writestr(f"{index}.txt", f"{index}" * 50_000)
    register_source("x", archive, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    source.read_bytes("0.txt")
    child = os.fork()
    for _repeat in range(20):
        good = all(source.read_bytes(name) == name[:-4].encode() * 50_000 for name in source.files)
        if not good:
            break
    if child == 0:
        os._exit(0 if good else 1)
    assert good
    assert os.waitpid(child, 0)[1] == 0


def raw_zip(path: Path, *members: tuple[str, bytes], **fields: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as handle:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            for key, value in fields.items():
                setattr(info, key, value)
            handle.writestr(info, content)
    return path


UNSAFE_NAMES = {
    "../evil.txt": "leads outside",
    "a/../../evil.txt": "leads outside",
    "/etc/evil": "absolute path",
    "C:/evil.txt": "absolute path",
    "c:evil.txt": "absolute path",
    "..\\evil.txt": "backslash",
}


@pytest.mark.parametrize("name", UNSAFE_NAMES)
def test_a_zip_with_an_unsafe_name_is_refused(name: str, tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("good.txt", b"good"), (name, b"evil"))
    with pytest.raises(SourceError) as caught:
        register_source("x", archive, tmp_path / "x.json")
    assert f"raw.zip: the member {name!r} has a" in str(caught.value)
    assert UNSAFE_NAMES[name] in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["raw.zip"]


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("link", b"/etc/passwd"), external_attr=(stat.S_IFLNK | 0o777) << 16)
    with pytest.raises(SourceError, match=r"raw\.zip: the member 'link' is a link or a device"):
        register_source("x", archive, tmp_path / "x.json")


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("secret.txt", b"secret"))
    content = bytearray(archive.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(SourceError, match=r"raw\.zip: the member 'secret\.txt' is encrypted"):
        register_source("x", archive, tmp_path / "x.json")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["a.txt", "./a.txt", "x//../a.txt"])
def test_a_zip_with_two_members_of_one_path_is_refused(second: str, tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("a.txt", b"one"), (second, b"two"))
    with pytest.raises(SourceError, match=r"comes twice|leads outside"):
        register_source("x", archive, tmp_path / "x.json")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("zeros", bytes(30_000_000)))
    with pytest.raises(SourceError, match=r"raw\.zip: the member 'zeros' looks like a decompression bomb: 30,000,000"):
        register_source("x", archive, tmp_path / "x.json")
    register_source("x", archive, tmp_path / "x.json", limits=ArchiveLimits(ratio=2000))


def test_a_zip_past_the_limits_is_refused_with_the_limit_to_raise(tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("a", b"12345"), ("b", b"67890"))
    with pytest.raises(SourceError, match=r"'b' makes the unpacked files larger than 9 bytes \(limits\.unpacked"):
        register_source("x", archive, tmp_path / "x.json", limits=ArchiveLimits(unpacked_bytes=9))
    with pytest.raises(SourceError, match=r"has more than 1 members \(limits\.members\)"):
        register_source("x", archive, tmp_path / "x.json", limits=ArchiveLimits(members=1))


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    archive = raw_zip(tmp_path / "raw.zip", ("a.txt", b"x" * 1000))
    content = bytearray(archive.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = (10).to_bytes(4, "little")
    archive.write_bytes(bytes(content))
    with pytest.raises(SourceError, match=r"damaged: the member 'a\.txt': Bad CRC-32"):
        register_source("x", archive, tmp_path / "x.json")


def test_system_files_in_a_zip_are_not_part_of_the_source(tmp_path: Path) -> None:
    archive = raw_zip(
        tmp_path / "raw.zip", ("data/a.txt", b"a"), ("__MACOSX/data/._a.txt", b"?"), ("data/.DS_Store", b"?")
    )
    register_source("x", archive, tmp_path / "x.json")
    assert open_source(tmp_path / "x.json").names() == ["data/a.txt"]


def test_a_file_name_that_is_not_utf_8_is_told(folder: Path, tmp_path: Path) -> None:
    (folder / "b.txt").rename(folder / os.fsdecode(b"b\xff.txt"))
    with pytest.raises(SourceError, match=r"the file name 'b\\udcff\.txt' is not UTF-8"):
        register_source("x", folder, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_names_with_quotes_and_letters_of_other_scripts_come_back_unchanged(folder: Path, tmp_path: Path) -> None:
    names = ['say "yes".txt', "日本.txt", "new\nline.txt", "a\\b.txt"]
    for name in names:
        (folder / name).write_text(name, encoding="utf-8")
    register_source("x", folder, tmp_path / "x.json")
    source = open_source(tmp_path / "x.json")
    assert [source.read_bytes(name).decode() for name in names] == names


@pytest.mark.parametrize("content", ["", "[]", "{", '{"name": 1}', '{"name": "x", "kind": "file", "files": [{}]}'])
def test_a_damaged_manifest_is_told(content: str, folder: Path, tmp_path: Path) -> None:
    register_source("x", folder, tmp_path / "x.json")
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(SourceError, match=r"x\.json: (not a source manifest|has the SHA-256)"):
        open_source(tmp_path / "x.json")
