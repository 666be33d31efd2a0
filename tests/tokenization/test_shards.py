"""Shards are compared once, ahead of the reader where there is time for it, and a damaged one is named all the same."""

import os
import threading
from pathlib import Path

import pytest
from faults import DAMAGE

from hatchery.artifacts import verified
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ManifestError
from hatchery.tokenization.shards import TOKEN_SHARDS, TRAINING_SPLIT, check_ahead, shards_by_split

NAMES = [f"train-{index:05}-of-00003.arrow" for index in range(3)]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    manifest = tmp_path / "manifest.json"
    with stage_run(manifest, {}) as run:
        for name in [*NAMES, "dev-00000-of-00001.arrow"]:
            path = run.add_output(run.folder / name)
            path.write_bytes(name.encode())
            # What was written this very second is not remembered as sound.
            os.utime(path, (1, 1))
    return manifest


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    sha256_file = verified.sha256_file

    def note(path: Path) -> str:
        names.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr(verified, "sha256_file", note)
    return names


def wait() -> None:
    for thread in threading.enumerate():
        if thread.name == "check ahead":
            thread.join(30)


def test_the_reader_hashes_nothing_again(manifest: Path, hashed: list[str]) -> None:
    check_ahead(manifest, TOKEN_SHARDS, TRAINING_SPLIT)
    wait()
    assert hashed == NAMES  # of one split alone
    assert [path.name for path in shards_by_split(read_manifest(manifest), TOKEN_SHARDS, "train")["train"]] == NAMES
    assert hashed == NAMES


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_shard_is_named_by_the_reader(damage: str, manifest: Path) -> None:
    DAMAGE[damage](manifest.with_name(NAMES[1]))
    check_ahead(manifest, TOKEN_SHARDS, TRAINING_SPLIT)
    wait()
    with pytest.raises(ManifestError, match=NAMES[1]):
        shards_by_split(read_manifest(manifest), TOKEN_SHARDS, TRAINING_SPLIT)


def test_what_is_altered_after_the_first_look_is_compared_again(manifest: Path) -> None:
    check_ahead(manifest, TOKEN_SHARDS, TRAINING_SPLIT)
    wait()
    manifest.with_name(NAMES[2]).write_bytes(NAMES[2].upper().encode())
    with pytest.raises(ManifestError, match=NAMES[2]):
        shards_by_split(read_manifest(manifest), TOKEN_SHARDS, TRAINING_SPLIT)


@pytest.mark.parametrize("content", [None, "{}", "no JSON", '{"outputs": []}'])
def test_a_manifest_that_cannot_be_read_is_left_to_the_reader(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    if content is not None:
        path.write_text(content)
    check_ahead(path, TOKEN_SHARDS, TRAINING_SPLIT)
