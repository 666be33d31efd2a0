"""Only regular files and folders are raw data; whatever else a path leads to is said in one line."""

import os
from pathlib import Path

import pytest

from hatchery.errors import SourceError
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources, usable_path
from hatchery.raw.obtain import obtain
from hatchery.raw.registration import register_source
from hatchery.raw.settings import SourceSettings, path_problem


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Paths by what is wrong with them."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "a{b}c").mkdir()
    return {
        "device": "/dev/zero",
        "pipe": str(tmp_path / "pipe"),
        "link": str(tmp_path / "link"),
        "braces": str(tmp_path / "a{b}c"),
        "nothing": str(tmp_path / "nothing"),
        "null": "a\0b",
        "long": "x" * 5000,
    }


EXPECTED = {
    "device": "lies at /dev/zero, which is a device or a pipe, expected a file or a folder",
    "pipe": "which is a device or a pipe, expected a file or a folder",
    "link": "gone, which does not exist",
    "braces": "a path with { or }, which Snakemake would fill in; rename it or link to it",
    "nothing": "is not at ",
    "null": "cannot be read at a",
    "long": "cannot be read at x",
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_path_that_nothing_can_be_read_at_says_why_in_one_line(kind: str, places: dict[str, str]) -> None:
    assert EXPECTED[kind] in (path_problem(places[kind]) or "")
    with pytest.raises(SourceError) as caught:
        obtain(SourceSettings(name="mine", path=places[kind], obtain="ask Ann", licence="CC0"))
    said = str(caught.value)
    assert EXPECTED[kind] in said
    assert said.startswith("source 'mine' ")
    assert "set data.mine.path in config/config.yaml; ask Ann; licence: CC0" in said
    assert "\n" not in said


def test_files_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("text", encoding="utf-8")
    assert path_problem(tmp_path) is None
    assert path_problem(tmp_path / "x.txt") is None


def test_a_device_is_not_registered(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="/dev/zero is a device or a pipe, expected a file or a folder"):
        register_source("mine", "/dev/zero", tmp_path / "mine.json")


def test_all_missing_sources_are_told_with_where_to_get_them(tmp_path: Path) -> None:
    text = """
data:
  first: {path: /dev/zero}
  second: {path: null, obtain: "ask Ann", terms: research}
  fetched: {download: [{url: "https://x.org/a.zip", bytes: 1, sha256: "%s"}]}
  there: {path: .}
""" % ("0" * 64)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/demo.yaml").touch()
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    project = Project(tmp_path)

    lines = missing_sources(project, ["there", "second", "first", "fetched", "embedded_bnc", "second"])

    assert len(lines) == 2
    assert "source 'first' lies at /dev/zero" in lines[0]
    assert (
        lines[1] == "source 'second' has no path: set data.second.path in config/config.yaml; ask Ann; terms: research"
    )
    assert (usable_path(project, "first"), usable_path(project, "there")) == (None, ".")
