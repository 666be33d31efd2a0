"""Readable paths are relative links; result folders in the place of a link are never lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hatchery.artifacts.links import RECORD, ROOTS, check_roots, expanded, hold_root, link_roots, links_to, put_link
from hatchery.errors import ConfigError

pytestmark = pytest.mark.usefixtures("folder_of_its_own")


PLACE, OTHER = Path("results/demo/pretraining/a-s1"), Path("results/other/pretraining/b-s1")
TARGET, NEXT = Path("results/models/x-1"), Path("results/models/x-2")


def test_a_link_is_relative_may_dangle_and_follows_its_target() -> None:
    put_link(PLACE, TARGET)
    put_link(OTHER, TARGET)
    assert str(PLACE.readlink()) == "../../models/x-1" and not PLACE.exists()
    assert links_to(TARGET, Path("results").glob("*/pretraining/*")) == [PLACE, OTHER]
    put_link(PLACE, NEXT)
    assert str(PLACE.readlink()) == "../../models/x-2"
    Path("results").rename("elsewhere")
    Path("elsewhere/models/x-2").mkdir(parents=True)
    assert ("elsewhere" / PLACE.relative_to("results")).is_dir()


def test_a_folder_in_the_way_is_left_alone_and_named_unless_it_is_empty() -> None:
    OTHER.mkdir(parents=True)
    put_link(OTHER, TARGET)
    assert OTHER.is_symlink()
    PLACE.mkdir(parents=True)
    (PLACE / "file").write_text("mine")
    with pytest.raises(ConfigError, match=f"{PLACE}: got a folder with files, expected a link to {TARGET}"):
        put_link(PLACE, TARGET)
    assert (PLACE / "file").read_text() == "mine"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A project folder."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def test_links_are_made_once_and_another_root_takes_over(here: Path, tmp_path: Path) -> None:
    storage = tmp_path / "scratch"
    assert link_roots(storage, here) == []
    assert link_roots(storage, here) == []
    (here / "results/a.txt").write_text("x", encoding="utf-8")
    assert (storage / "results/a.txt").is_file()
    link_roots(tmp_path / "two", here)
    assert {(here / name).readlink() for name in ROOTS} == {tmp_path / "two" / name for name in ROOTS}
    assert (storage / "results/a.txt").is_file()


def test_looking_makes_nothing(here: Path, tmp_path: Path) -> None:
    (tmp_path / "old/results").mkdir(parents=True)
    (tmp_path / "old/results/a.txt").touch()
    assert check_roots(tmp_path / "new", here) == []
    notes = check_roots(tmp_path / "old", here)
    assert [line.split(": ")[1].split(" contains")[0] for line in notes] == [str(tmp_path / "old/results")]
    assert list(here.iterdir()) == [] and not (tmp_path / "new").exists()
    with pytest.raises(ConfigError, match="does not exist"):
        check_roots(tmp_path / "srcatch/hatchery", here)


@pytest.mark.parametrize("root", ["no/such/folder", "a_file", "a_file/below", "here", "here/results", "here/results/x"])
def test_a_place_that_cannot_be_one_is_refused(here: Path, tmp_path: Path, root: str) -> None:
    (tmp_path / "a_file").touch()
    (here / "results").mkdir()
    with pytest.raises(ConfigError, match=r"^storage_root: got "):
        link_roots(tmp_path / root, here)
    with pytest.raises(ConfigError, match="move its content there"):
        link_roots(tmp_path / "scratch", here)
    assert not any((here / name).is_symlink() for name in ROOTS)
    assert not (tmp_path / "no").exists()


def test_a_folder_that_may_not_be_written_is_refused_and_can_be_looked_at(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path / "locked", here / "results"):
        folder.mkdir()
    # Tests may run as root, who ignores permissions but cannot write to a read-only mount.
    monkeypatch.setattr(os, "access", lambda path, mode: path not in (tmp_path / "locked", here / "results"))
    with pytest.raises(ConfigError, match="is not writable"):
        link_roots(tmp_path / "locked", here)
    assert check_roots(None, here) == []
    with pytest.raises(ConfigError, match=r"results: this folder is not writable; results need a writable folder"):
        link_roots(None, here)


def test_a_disk_that_is_not_mounted_is_one_line(here: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link_roots(tmp_path / "disk/hatchery", here)
    shutil.rmtree(tmp_path / "disk/hatchery")
    for look in (check_roots, link_roots):
        with pytest.raises(
            ConfigError, match=r"resources links to .*/hatchery/resources, which is not a folder; mount"
        ):
            look(tmp_path / "disk/hatchery", here)
    # The same error appears if the user made the link by hand.
    (here / RECORD).unlink()
    with pytest.raises(ConfigError, match="which is not a folder; mount the disk"):
        link_roots(None, here)
    for name in ROOTS:
        (here / name).unlink()
    (here / "results").touch()
    with pytest.raises(ConfigError, match="results: is a file, expected a folder"):
        link_roots(None, here)


def test_null_takes_the_links_away_and_leaves_the_files(here: Path, tmp_path: Path) -> None:
    link_roots(tmp_path / "scratch", here)
    (here / "results/a.txt").touch()
    assert check_roots(None, here) == [
        f"storage_root: {name} still links to {tmp_path / 'scratch' / name}, whose files this plan uses; a run removes "
        "the link"
        for name in ("resources", "results", "logs")
    ]
    notes = link_roots(None, here)
    assert not any((here / name).is_symlink() for name in ROOTS)
    assert (tmp_path / "scratch/results/a.txt").is_file()
    former = tmp_path / "scratch/results"
    assert notes == [
        f"storage_root: results no longer links to {former}; to continue with the files in this folder, move them"
    ]
    assert link_roots(None, here) == check_roots(None, here) == []
    # A link that the user now makes to the same folder is the user's.
    (here / "results").symlink_to(former)
    assert check_roots(None, here) == link_roots(None, here) == []
    assert (here / "results").readlink() == former


def test_links_by_hand_are_not_touched(here: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (here / "results").symlink_to(tmp_path / "mine")
    assert link_roots(None, here) == []
    assert (here / "results").readlink() == tmp_path / "mine"
    with pytest.raises(ConfigError, match="that no run created"):
        link_roots(tmp_path / "scratch", here)


def test_a_tilde_is_the_home_folder_and_an_unknown_user_a_name(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    link_roots("~/scratch", here)
    assert (here / "results").readlink() == tmp_path / "scratch/results"
    assert expanded("~nobody_of_this_name/x") == "~nobody_of_this_name/x"
    assert expanded("data/a~b/") == "data/a~b/"


def test_git_ignores_the_links_too(here: Path, tmp_path: Path, repository: Path) -> None:
    (here / ".gitignore").write_bytes((repository / ".gitignore").read_bytes())
    link_roots(tmp_path / "scratch", here)
    (here / "tests/results").mkdir(parents=True)
    (here / "tests/results/kept.txt").touch()
    subprocess.run(["git", "init", "--quiet"], cwd=here, check=True)
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    shown = subprocess.run(status, cwd=here, check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["??", ".gitignore", "??", "tests/results/kept.txt"]


HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from hatchery.artifacts.links import hold_root
hold_root(sys.argv[2])
print("held", flush=True)
time.sleep(60)
"""


def test_two_checkouts_do_not_compute_in_one_storage_root_at_once(tmp_path: Path, repository: Path) -> None:
    root, first, second = (tmp_path / name for name in ("large", "first", "second"))
    for folder in (root, first, second):
        folder.mkdir()
    command = [sys.executable, "-c", HOLDER, str(repository / "scripts"), str(root)]
    with subprocess.Popen(command, cwd=first, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        # Snakemake itself reports a second call in the same checkout.
        hold_root(root, first)
        hold_root(None, second)
        message = rf"storage_root: the checkout {first} is running in {root} \(process {holder.pid} on .*\); wait until"
        with pytest.raises(ConfigError, match=message):
            hold_root(root, second)
        holder.kill()
    hold_root(root, second)
