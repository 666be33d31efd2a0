"""Settings of a source: pinned versions, and values that are refused before a download."""

from collections.abc import Callable
from dataclasses import replace
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
from hatchery.raw.settings import HubModel, SourceSettings, path_problem, source_problem, source_settings
from hatchery.typed import keys_of, validated

COMMIT = "607bd4c8450a42878aa9ddc051a65a055450ef87"
CHECKSUM = "ab" * 32
HUB = {"dataset": "allenai/c4", "revision": COMMIT}
DOWNLOAD = {"url": "https://example.org/a/CBTest.tgz", "bytes": 5, "sha256": CHECKSUM}


def test_the_settings_of_the_stage_are_accepted_and_have_the_defaults_of_the_configuration() -> None:
    encoded = {**DOWNLOAD, "url": "https://example.org/a%20b.zip?raw=1"}
    document = {"data": {"x": {"hub": HUB}, "y": {"download": [DOWNLOAD, encoded]}, "z": {}}}
    entry = validated(FILES["config"], document, "config.yaml").data
    stage = {"stage": "register_source", "stage_version": 2}
    x, y, z = (source_settings({**stage, "name": name, **keys_of(entry[name])}) for name in "xyz")
    assert x.hub is not None
    assert (x.hub.splits, x.hub.columns, x.hub.documents) == (("train",), ("text",), None)
    assert y.download is not None
    assert [(part.file_name, part.unpack) for part in y.download] == [("CBTest.tgz", False), ("a b.zip", False)]
    assert z == source_settings({"name": "z", "path": None, "obtain": ""})
    assert (z.path, z.hub, z.download, z.limits) == (None, None, None, ArchiveLimits())


@pytest.mark.parametrize("revision", ["main", "607bd4c", COMMIT.upper(), COMMIT + "0", "v1.1.0", "", None])
def test_a_hub_revision_that_is_no_commit_is_refused(revision: str | None) -> None:
    hub = {key: value for key, value in {**HUB, "revision": revision}.items() if value is not None}
    expected = "the key is missing" if revision is None else "got '.*', expected a commit"
    with pytest.raises(ConfigError, match=rf"data\.x\.hub\.revision: {expected}"):
        source_settings({"name": "x", "hub": hub})
    with pytest.raises(ConfigError, match=rf"data\.x\.hub\.revision: {expected}"):
        validated(FILES["config"], {"data": {"x": {"hub": hub}}}, "config.yaml")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hub": HUB, "download": [DOWNLOAD]}, "got `hub` and `download`, expected only one"),
        ({"download": [{**DOWNLOAD, "file": "../evil"}]}, r"download\.0\.file: got '\.\./evil', expected a file name"),
        ({"download": [{**DOWNLOAD, "url": "https://example.org/"}]}, "got '', expected a file name"),
        ({"download": [DOWNLOAD, DOWNLOAD]}, "got 2 files called 'CBTest.tgz', expected different names"),
        (
            {"download": [{**DOWNLOAD, "url": "https://example.org/a.rar", "unpack": True}]},
            r"unpack: got true for a\.rar, expected a file name with one of the suffixes \.zip",
        ),
    ],
)
def test_an_impossible_value_is_told_with_its_key(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        source_settings({"name": "x", **changes})


def test_every_shipped_source_is_possible_and_says_where_to_get_it(repository: Path) -> None:
    data = validated(FILES["config"], read_yaml(repository / "config/config.yaml"), "config.yaml").data
    for name, entry in data.items():
        source = source_settings({"name": name, **keys_of(entry)})
        # Only the user can describe the user's own data.
        assert source.obtain or name.startswith("my_"), name
        assert source.licence or source.terms or name.startswith("my_"), name


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "/dev/zero": (Path, "is at /dev/zero, which is a device or a pipe, expected a file or a folder"),
    "link": (lambda path: path.symlink_to("gone"), "gone, which does not exist"),
    "a{b}c": (
        Path.mkdir,
        "a path with { or }, which Snakemake would treat as a wildcard; rename the path or link to it",
    ),
    "nothing": (Path, "is not at "),
    "a\0b": (Path, "cannot be read at a"),
    "x" * 5000: (Path, "cannot be read at x"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_path_that_nothing_can_be_read_at_says_why_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, why = PLACES[name]
    make(Path(name))
    assert why in (path_problem(name) or "")
    assert path_problem(tmp_path) is None and path_problem(Path(__file__)) is None
    with pytest.raises(SourceError) as caught:
        obtain(SourceSettings(name="mine", path=name, obtain="ask Ann", licence="CC0"))
    message = str(caught.value)
    assert why in message and "\n" not in message
    assert message.startswith("source 'mine' ")
    assert "set data.mine.path in config/config.yaml; ask Ann; licence: CC0" in message


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
    assert "source 'first' is at /dev/zero" in lines[0]
    assert (
        lines[1] == "source 'second' has no path: set data.second.path in config/config.yaml; ask Ann; terms: research"
    )
    assert (usable_path(project, "first"), usable_path(project, "there")) == (None, ".")


def test_a_folder_of_links_is_available_only_if_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("One.\n")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/texts").symlink_to(tmp_path / "texts")
    source = SourceSettings(name="x", path=str(tmp_path / "links"), follow_links=True)
    assert source_problem(source) is None
    problem = source_problem(replace(source, follow_links=False))
    assert problem is not None and "a folder without files: set data.x.path in config/config.yaml" in problem


def test_a_model_of_the_hub_is_available_without_a_path_or_with_null_instead_of_a_wrong_one() -> None:
    model = HubModel(repository="somebody/bert", revision="0" * 40)
    assert source_problem(SourceSettings(name="bert", hub_model=model)) is None
    problem = source_problem(SourceSettings(name="bert", hub_model=model, path="no/such"), "bert.yaml: path")
    assert problem == "source 'bert' is not at no/such: set bert.yaml: path, or to null to have it downloaded"
