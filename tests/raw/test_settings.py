"""Settings of a source: what is pinned, and what is refused before anything is fetched."""

import os
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError, SourceError
from hatchery.experiment.kinds import FILES
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources, usable_path
from hatchery.raw.archives import ArchiveLimits
from hatchery.raw.obtain import obtain
from hatchery.raw.registration import register_source
from hatchery.raw.settings import SourceSettings, path_problem, source_settings
from hatchery.typed import keys_of, validated

COMMIT = "607bd4c8450a42878aa9ddc051a65a055450ef87"
CHECKSUM = "ab" * 32
HUB = {"dataset": "allenai/c4", "revision": COMMIT}
DOWNLOAD = {"url": "https://example.org/a/CBTest.tgz", "bytes": 5, "sha256": CHECKSUM}


def test_a_bare_entry_has_the_defaults() -> None:
    source = source_settings({"name": "x", "path": None, "obtain": ""})
    assert (source.path, source.hub, source.download, source.limits) == (None, None, None, ArchiveLimits())


def test_the_settings_of_the_stage_are_accepted() -> None:
    document = {"data": {"x": {"hub": HUB}, "y": {"download": [DOWNLOAD]}}}
    entry = validated(FILES["config"], document, "config.yaml").data
    x = source_settings({"stage": "register_source", "stage_version": 2, "name": "x", **keys_of(entry["x"])})
    y = source_settings({"stage": "register_source", "stage_version": 2, "name": "y", **keys_of(entry["y"])})
    assert x.hub is not None
    assert (x.hub.splits, x.hub.columns, x.hub.documents) == (("train",), ("text",), None)
    assert y.download is not None
    assert (y.download[0].file_name, y.download[0].unpack) == ("CBTest.tgz", False)


def test_the_limits_of_the_schema_are_those_of_the_library() -> None:
    entry = validated(FILES["config"], {"data": {"x": {}}}, "config.yaml").data["x"]
    assert source_settings({"name": "x", **keys_of(entry)}) == source_settings({"name": "x"})


def test_the_name_of_a_download_is_the_end_of_its_address() -> None:
    source = source_settings({"name": "x", "download": [{**DOWNLOAD, "url": "https://example.org/a%20b.zip?raw=1"}]})
    assert source.download is not None
    assert source.download[0].file_name == "a b.zip"


@pytest.mark.parametrize("revision", ["main", "607bd4c", COMMIT.upper(), COMMIT + "0", "v1.1.0", ""])
def test_a_hub_revision_that_is_no_commit_is_refused(revision: str) -> None:
    with pytest.raises(ConfigError, match=r"data\.x\.hub\.revision: got '.*', expected a commit"):
        source_settings({"name": "x", "hub": {**HUB, "revision": revision}})
    with pytest.raises(ConfigError, match=r"data\.x\.hub\.revision"):
        validated(FILES["config"], {"data": {"x": {"hub": {**HUB, "revision": revision}}}}, "config.yaml")


def test_a_hub_data_set_without_a_revision_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"data\.x\.hub\.revision: the key is missing"):
        source_settings({"name": "x", "hub": {"dataset": "allenai/c4"}})
    with pytest.raises(ConfigError, match=r"revision: the key is missing"):
        validated(FILES["config"], {"data": {"x": {"hub": {"dataset": "allenai/c4"}}}}, "config.yaml")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hub": {**HUB, "documents": 0}}, r"hub\.documents: got 0"),
        ({"hub": {**HUB, "splits": []}}, r"hub\.splits"),
        ({"hub": {**HUB, "splits": ["train[:10%]"]}}, r"hub\.splits\.0: got 'train\[:10%\]'"),
        ({"hub": {**HUB, "splits": ["train", "train"]}}, r"hub\.splits"),
        ({"hub": {**HUB, "columns": []}}, r"hub\.columns"),
        ({"hub": HUB, "download": [DOWNLOAD]}, "both `hub` and `download`"),
        ({"download": [{**DOWNLOAD, "url": "ftp://example.org/a"}]}, r"download\.0\.url"),
        ({"download": [{**DOWNLOAD, "url": "file:///etc/passwd"}]}, r"download\.0\.url"),
        ({"download": [{**DOWNLOAD, "sha256": "abc"}]}, r"download\.0\.sha256"),
        ({"download": [{**DOWNLOAD, "bytes": -1}]}, r"download\.0\.bytes"),
        ({"download": [{**DOWNLOAD, "file": "../evil"}]}, r"download\.0\.file: '\.\./evil' is not a plain file name"),
        ({"download": [{**DOWNLOAD, "file": ".hidden"}]}, r"download\.0\.file"),
        ({"download": [{**DOWNLOAD, "url": "https://example.org/"}]}, "'' is not a plain file name; set `file`"),
        ({"download": [DOWNLOAD, DOWNLOAD]}, "2 files are called 'CBTest.tgz'"),
        ({"download": [{**DOWNLOAD, "url": "https://example.org/a.rar", "unpack": True}]}, r"a\.rar is none of \.zip"),
        ({"limits": {"members": 0}}, r"limits\.members: got 0, expected at least 1"),
        ({"licence": 3}, r"data\.x\.licence: got 3, expected text"),
        ({"colour": 3}, r"data\.x\.colour: unknown key"),
    ],
)
def test_an_impossible_value_is_told_with_its_key(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        source_settings({"name": "x", **changes})


def test_every_shipped_source_is_possible_and_says_where_to_get_it(repository: Path) -> None:
    data = validated(FILES["config"], read_yaml(repository / "config/config.yaml"), "config.yaml").data
    for name, entry in data.items():
        source = source_settings({"name": name, **keys_of(entry)})
        # What is said about a user's own data is the user's to say.
        assert source.obtain or name.startswith("my_"), name
        assert source.licence or source.terms or name.startswith("my_"), name


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
