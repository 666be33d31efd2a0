"""Large storage behind links of the usual names."""

from pathlib import Path

import pytest

from hatchery.errors import ConfigError
from hatchery.storage.roots import expanded, link_roots


def test_links_are_made_once(tmp_path: Path) -> None:
    here, storage = tmp_path / "here", tmp_path / "scratch"
    here.mkdir()
    link_roots(storage, here)
    link_roots(storage, here)
    (here / "results/a.txt").write_text("x", encoding="utf-8")
    assert (storage / "results/a.txt").is_file()


def test_an_existing_folder_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "here/results").mkdir(parents=True)
    with pytest.raises(ConfigError, match="move its content there first"):
        link_roots(tmp_path / "scratch", tmp_path / "here")


def test_a_tilde_is_the_home_folder_and_an_unknown_user_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    link_roots("~/scratch", tmp_path / "here")
    assert (tmp_path / "here/results").readlink() == tmp_path / "home/scratch/results"
    assert expanded("~nobody_of_this_name/x") == "~nobody_of_this_name/x"
    assert expanded("data/a~b/") == "data/a~b/"
    assert expanded(None) is None
