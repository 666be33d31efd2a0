"""Settings of a source: what is pinned, and what is refused before anything is fetched."""

from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.kinds import FILES
from hatchery.raw.archives import ArchiveLimits
from hatchery.raw.settings import source_settings
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
