"""Readable places are relative links; folders of results that lie in their way are never lost."""

from pathlib import Path

import pytest

from hatchery.artifacts.links import links_to, put_link
from hatchery.artifacts.manifests import stage_run, take_finished
from hatchery.errors import ConfigError


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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


def test_results_of_an_earlier_version_are_moved_and_taken_where_they_hold() -> None:
    with stage_run(PLACE / "manifest.json", {"stage": "pretrain"}) as run:
        run.add_output(PLACE / "weights").write_text("1")
    # Which did not note the place.
    (PLACE / "provenance.json").unlink()
    put_link(PLACE, TARGET)
    (TARGET / "manifest.json").unlink()
    assert not take_finished(TARGET / "manifest.json", {"stage": "pretrain", "steps": 1}, {})
    assert take_finished(TARGET / "manifest.json", {"stage": "pretrain"}, {})
    assert (PLACE / "weights").read_text() == "1" and (PLACE / "manifest.json").is_file()


def test_a_folder_in_the_way_of_another_result_is_left_alone_and_named() -> None:
    for folder in (PLACE, TARGET):
        folder.mkdir(parents=True)
        (folder / "file").write_text("mine")
    with pytest.raises(ConfigError, match=f"{PLACE}: a folder is in the way of a link to {TARGET}"):
        put_link(PLACE, TARGET)
    assert (PLACE / "file").read_text() == "mine"
