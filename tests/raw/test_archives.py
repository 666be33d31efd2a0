"""Archives from other parties are unpacked inside their folder, or refused with the names of archive and member."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import SourceError
from hatchery.raw.archives import ArchiveLimits, unpack, zipped_sizes

LIMITS = ArchiveLimits()
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def tar(path: Path, *members: tuple[tarfile.TarInfo | str, bytes]) -> Path:
    compression = {".gz": "gz", ".tgz": "gz", ".bz2": "bz2", ".xz": "xz"}.get(path.suffix, "")
    with tarfile.open(path, f"w:{compression}") as handle:  # type: ignore[call-overload]
        for info, content in members:
            info = member(info) if isinstance(info, str) else info
            info.size = len(content)
            handle.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as handle:
        for name, content in members:
            handle.writestr(name, content)
    return path


def refused(archive: Path, reason: str, limits: ArchiveLimits = LIMITS) -> str:
    """Unpack, and check for an error of one line with archive and reason, and for no changes outside the target."""
    target = archive.parent / "target"
    before = {path for path in archive.parent.iterdir() if path != target}
    with pytest.raises(SourceError, match=reason) as caught:
        unpack(archive, target, limits)
    assert str(archive) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {path for path in archive.parent.iterdir() if path != target} == before
    return str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_tar_archive_is_unpacked(suffix: str, tmp_path: Path, tree: Callable[[Path], list[str]]) -> None:
    long_name = "/".join(["folder" * 10] * 4) + "/é.txt"
    archive = tar(
        tmp_path / f"a{suffix}",
        (member("./", tarfile.DIRTYPE), b""),
        (member("books", tarfile.DIRTYPE), b""),
        ("./books/one.txt", b"one" * 1000),
        (long_name, b"long"),
        ("empty.txt", b""),
        ("books/._one.txt", b"a system's own file"),
    )
    unpack(archive, tmp_path / "target", LIMITS)
    assert tree(tmp_path / "target") == sorted(["books/one.txt", "empty.txt", long_name])
    assert (tmp_path / "target/books/one.txt").read_bytes() == b"one" * 1000
    assert (tmp_path / "target" / long_name).read_bytes() == b"long"


def test_a_zip_archive_is_unpacked(tmp_path: Path, tree: Callable[[Path], list[str]]) -> None:
    archive = zipped(tmp_path / "a.zip", ("books/", b""), ("books/one.txt", b"one"), ("__MACOSX/x", b"?"))
    unpack(archive, tmp_path / "target", LIMITS)
    assert tree(tmp_path / "target") == ["books/one.txt"]


@pytest.mark.parametrize("suffix", [".tar", ".tgz", ".zip"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.txt", "leads outside"),
        ("/evil.txt", "leads outside"),
    ],
)
def test_a_member_outside_the_target_is_refused(suffix: str, name: str, reason: str, tmp_path: Path) -> None:
    make: Any = zipped if suffix == ".zip" else tar
    archive = make(tmp_path / f"a{suffix}", ("good.txt", b"good"), (name, b"evil"))
    assert f"the member {name!r}" in refused(archive, reason)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (tarfile.SYMTYPE, {"linkname": "/etc/passwd"}),
        (tarfile.LNKTYPE, {"linkname": "good.txt"}),
        (tarfile.CHRTYPE, {"devmajor": 1, "devminor": 3}),
        (tarfile.FIFOTYPE, {}),
    ],
)
def test_a_link_or_device_in_a_tar_is_refused(kind: bytes, fields: dict[str, Any], tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", ("good.txt", b"good"), (member("evil", kind, **fields), b""))
    refused(archive, r"the member 'evil' is a link or a device")
    assert not (tmp_path / "target/evil").exists()


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("evil")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as handle:
        handle.writestr(info, "/etc/passwd")
    refused(tmp_path / "a.zip", "the member 'evil' is a link")


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", ("secret.txt", b"secret"))
    content = bytearray(archive.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(bytes(content))
    refused(archive, r"the member 'secret\.txt': .* is encrypted")


@pytest.mark.parametrize("field", ["the size", "a byte"])
def test_a_zip_whose_content_is_not_what_its_directory_says_is_refused(field: str, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", ("a.txt", b"x" * 1000))
    content = bytearray(archive.read_bytes())
    if field == "the size":
        at = content.index(b"PK\x01\x02") + 24
        content[at : at + 4] = (10).to_bytes(4, "little")
    else:
        content[content.index(b"a.txt") + 6] ^= 0xFF
    archive.write_bytes(bytes(content))
    refused(archive, r"is damaged: the member 'a\.txt': ")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (10, 99, r"the member 'é\.txt': .*compression"),
        (6, 99, "zip file version"),
        (8, 0x840, r"the member 'é\.txt': strong encryption"),
        (46, 0xFFFF, "'utf-8' codec can't decode"),
    ],
)
def test_a_zip_that_cannot_be_understood_is_refused_and_nothing_is_expected_of_it(
    field: int, value: int, reason: str, tmp_path: Path
) -> None:
    archive = zipped(tmp_path / "a.zip", ("é.txt", b"x"))
    content = bytearray(archive.read_bytes())
    at = content.index(b"PK\x01\x02") + field
    content[at : at + 2] = value.to_bytes(2, "little")
    archive.write_bytes(bytes(content))
    refused(archive, f"is damaged: {reason}")
    assert set(zipped_sizes(archive)) <= {"é.txt"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("suffix", [".tar", ".zip"])
@pytest.mark.parametrize("second", ["a.txt", "./a.txt", "a.txt/b.txt"])
def test_two_members_of_one_place_are_refused(suffix: str, second: str, tmp_path: Path) -> None:
    make: Any = zipped if suffix == ".zip" else tar
    archive = make(tmp_path / f"a{suffix}", ("a.txt", b"one"), (second, b"two"))
    refused(archive, r"cannot be unpacked into .*: the member '[a-z./]+': ")
    written = tmp_path / "target/a.txt"
    assert not written.exists() or written.read_bytes() == b"one"


def test_a_file_that_is_there_already_is_not_replaced(tmp_path: Path) -> None:
    unpack(tar(tmp_path / "a.tar", ("a.txt", b"one")), tmp_path / "target", LIMITS)
    refused(tar(tmp_path / "b.tar", ("a.txt", b"two")), r"the member 'a\.txt': File exists")
    assert (tmp_path / "target/a.txt").read_bytes() == b"one"


@pytest.mark.parametrize("suffix", [".tar", ".zip"])
def test_what_is_larger_than_the_limit_is_refused_before_it_is_written(suffix: str, tmp_path: Path) -> None:
    make: Any = zipped if suffix == ".zip" else tar
    archive = make(tmp_path / f"a{suffix}", ("a", b"12345"), ("b", b"67890"))
    refused(archive, r"'b' makes the unpacked files larger than 9 bytes", ArchiveLimits(unpacked_bytes=9))
    assert not (tmp_path / "target/b").exists()


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".zip"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_truncated_archive_is_told(suffix: str, share: float, tmp_path: Path) -> None:
    make: Any = zipped if suffix == ".zip" else tar
    archive = make(tmp_path / f"a{suffix}", *((f"{i}.txt", bytes(str(i), "ascii") * 3000) for i in range(20)))
    content = archive.read_bytes()
    # Truncating the padding at the end of a plain tar loses no content.
    whole = len(content) if suffix != ".tar" else content.rindex(b"19.txt") + 512 + 6000
    archive.write_bytes(content[: int(share * whole)])
    refused(archive, "is damaged")


@pytest.mark.parametrize("damage", ["cut behind a member", "cut within a header", "a damaged header"])
def test_a_tar_that_ends_between_members_is_not_whole(damage: str, tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", *((f"{i}.txt", b"text" * 100) for i in range(3)))
    content = bytearray(archive.read_bytes())
    at = content.index(b"1.txt")
    content[at] ^= damage == "a damaged header"
    end = {"cut behind a member": at, "cut within a header": at + 100}.get(damage, len(content))
    archive.write_bytes(content[:end])
    refused(
        archive, r"is damaged: after the member '0\.txt': expected the header of a member or the end of the archive: "
    )


def test_a_damaged_byte_is_told(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tgz", ("a.txt", bytes(range(256)) * 100))
    content = bytearray(archive.read_bytes())
    content[-6] ^= 0xFF  # the checksum of the archive, which is compared only at the end of the stream
    archive.write_bytes(bytes(content))
    refused(archive, "is damaged")


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".zip"])
def test_a_file_that_is_no_archive_is_told(suffix: str, tmp_path: Path) -> None:
    archive = tmp_path / f"a{suffix}"
    archive.write_bytes(b"<html>404</html>" * 100)
    refused(archive, "is damaged")


def test_an_unknown_kind_is_told_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "a.rar").write_bytes(b"Rar!")
    refused(tmp_path / "a.rar", r"expected one of \.zip, \.tar, \.tar\.gz, \.tgz, \.tar\.bz2, \.tar\.xz")


@pytest.mark.parametrize("suffix", [".tar", ".zip"])
def test_a_full_disk_is_told(suffix: str, tmp_path: Path, small_disk: Path) -> None:
    make: Any = zipped if suffix == ".zip" else tar
    archive = make(tmp_path / f"a{suffix}", ("a.txt", bytes(3_000_000)))
    with pytest.raises(SourceError, match=r"cannot be unpacked into .*: No space left on device"):
        unpack(archive, small_disk / "target", LIMITS)


@settings(max_examples=150)
@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), suffix=st.sampled_from([".tar", ".zip"]))
def test_whatever_a_member_is_called_nothing_is_written_outside(
    name: str, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("names")
    make: Any = zipped if suffix == ".zip" else tar
    try:
        archive = make(folder / f"a{suffix}", (name, b"x"))
    except (ValueError, IndexError, tarfile.TarError):
        return  # this archive format cannot store the name
    try:
        unpack(archive, folder / "target", LIMITS)
    except SourceError as error:
        assert "\n" not in str(error)
    assert {path.name for path in folder.iterdir()} <= {archive.name, "target"}
