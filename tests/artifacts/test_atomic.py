"""Outputs appear whole or not at all."""

import json
from pathlib import Path

import pytest

from hatchery.artifacts.atomic import atomic_path, json_value, write_json, write_text


def test_a_failure_leaves_the_old_file_and_no_partial_one(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError), atomic_path(target) as partial:
        partial.write_text("half", encoding="utf-8")
        raise RuntimeError("killed")
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, b"[" * 200_000, "{"])
def test_json_that_is_none_is_one_kind_of_error_however_deep_it_is(text: str | bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        json_value(text)


def test_success_replaces_the_file(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "out.txt"
    write_text(target, "old")
    write_text(target, "new\r\n")
    assert target.read_bytes() == b"new\r\n"


def test_json_has_sorted_keys_and_refuses_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": 2})
    assert (tmp_path / "a.json").read_text(encoding="utf-8").index('"a"') < 8
    with pytest.raises(ValueError, match="Out of range"):
        write_json(tmp_path / "b.json", {"x": float("nan")})
    assert not (tmp_path / "b.json").exists()


def test_an_output_gets_the_permissions_of_any_new_file_whoever_writes_it(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "weights") as partial:
        own = tmp_path / "own"
        own.touch(mode=0o600)
        own.replace(partial)
    (tmp_path / "plain").touch()
    assert (tmp_path / "weights").stat().st_mode == (tmp_path / "plain").stat().st_mode
