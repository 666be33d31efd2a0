"""Outputs are written completely or not at all; manifests and checksums identify their content."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts import checksums, host, manifests
from hatchery.artifacts.atomic import atomic_path, write_json, write_text
from hatchery.artifacts.checksums import checksums_of, sha256_file, verified_view, write_checksums
from hatchery.artifacts.manifests import read_manifest, reuse_complete, stage_run, volatile_facts
from hatchery.errors import ManifestError, MisplacedError


def test_a_failure_leaves_the_old_file_and_no_partial_one(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError), atomic_path(target) as partial:
        partial.write_text("half", encoding="utf-8")
        raise RuntimeError("killed")
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


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


SETTINGS = {"stage": "example", "stage_version": 3, "size": 2}


def make(folder: Path, content: str = "hello") -> Path:
    output = folder / "manifest.json"
    source = folder.parent / "input.txt"
    write_text(source, "input")
    with stage_run(output, SETTINGS, {"input": source}) as run:
        write_text(folder / "data.txt", content)
        run.add_output(folder / "data.txt")
        run.measures["lines"] = 1
    return output


def test_a_manifest_says_what_was_made_from_what_and_is_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    first, second = make(tmp_path / "one" / "out"), make(tmp_path / "two" / "out")
    assert first.read_bytes() == second.read_bytes()
    facts = volatile_facts(first)
    assert facts["wall_seconds"] >= 0 and facts["peak_memory_mib"] > 0 and facts["packages"]["torch"]
    manifest = read_manifest(first)
    manifest.verify()
    assert manifest.stage == "example"
    assert manifest.settings == SETTINGS
    assert manifest.measures == {"lines": 1}
    assert [path.name for path in manifest.files(".txt")] == ["data.txt"]
    assert len(manifest.inputs["input"]) == 64


def test_outputs_are_listed_by_name_and_files_that_are_no_result_with_their_checksums(tmp_path: Path) -> None:
    with stage_run(tmp_path / "manifest.json", SETTINGS) as run:
        for name in ("b.txt", "a.txt"):
            write_text(run.add_output(tmp_path / name), name)
        write_text(tmp_path / "speed.jsonl", "hello")
        run.volatile_files.append(tmp_path / "speed.jsonl")
    assert [path.name for path in read_manifest(tmp_path / "manifest.json").files()] == ["a.txt", "b.txt"]
    files = volatile_facts(tmp_path / "manifest.json")["files"]
    assert files == {"speed.jsonl": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}


def test_a_finished_result_is_taken_only_while_its_files_are_as_they_were_written(tmp_path: Path) -> None:
    output = tmp_path / "manifest.json"
    with stage_run(output, SETTINGS, keep=True) as run:
        write_text(run.add_output(tmp_path / "data.txt"), "hello")
    output.unlink()
    write_text(tmp_path / "data.txt", "hallo")
    assert not reuse_complete(output, SETTINGS, {}) and not output.exists()
    write_text(tmp_path / "data.txt", "hello")
    assert reuse_complete(output, SETTINGS, {}) and read_manifest(output).settings == SETTINGS


def test_provenance_states_start_time_memory_and_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spent() -> float:
        return sum(os.times()[:2])

    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    before = spent()
    facts: dict[str, Any] = host.surroundings(time.time() - 7200.5)
    assert datetime.fromisoformat(facts["started"]).timestamp() == pytest.approx(time.time() - 7200.5, abs=2)
    assert facts["wall_seconds"] == pytest.approx(7200.5, abs=2)
    assert before - 0.05 <= facts["cpu_seconds"] <= spent() + 0.05
    # The kernel also counts the process before its program was started, so its peak may be higher.
    assert peak and 0.9 < facts["peak_memory_mib"] / (int(peak[1]) / 1024) < 100
    # The revision of a checkout is its commit; edits are marked, and other folders have no revision.
    monkeypatch.setattr(host, "__file__", str(tmp_path / "host.py"))
    revision = host._code_revision.__wrapped__
    assert revision() == "unknown"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "host.py").write_text("")
    for arguments in (["init", "--quiet"], ["add", "host.py"], ["commit", "--quiet", "--message=first"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert revision() == head.stdout[:12]
    (tmp_path / "host.py").write_text("edited")
    assert revision() == f"{head.stdout[:12]}-dirty"


PLACES = {
    "models": ("models/tiny-1", "models/tiny-2"),
    "evaluations of two tasks": ("finetuning/tiny-1/cola-3", "finetuning/tiny-1/sst2-4"),
    "evaluations of two models": ("finetuning/tiny-1/cola-3", "finetuning/tiny-2/cola-3"),
    "corpora": ("corpora/bnc", "corpora/wiki"),
    "tokens": ("tokens/bnc/small", "tokens/wiki/small"),
    "analyses of two experiments": ("strict/analyses/leaderboard", "small/analyses/leaderboard"),
    "exports of two experiments": ("strict/export/ltg-s1", "small/export/ltg-s1"),
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_folders_that_were_exchanged_are_refused(places: tuple[str, str], tmp_path: Path) -> None:
    first, second = (tmp_path / "results" / place for place in places)
    for folder in (first, second):
        read_manifest(make(folder))
    for old, new in ((first, tmp_path / "kept"), (second, first), (tmp_path / "kept", second)):
        old.rename(new)
    (tmp_path / "results/exp").mkdir()
    (tmp_path / "results/exp/link").symlink_to(first)
    for folder, place in ((first, places[1]), (second, places[0]), (tmp_path / "results/exp/link", places[1])):
        with pytest.raises(
            MisplacedError,
            match=rf"{folder}/manifest\.json: the result was made in results/{place}; move the result back",
        ):
            read_manifest(folder / "manifest.json")


def test_links_copies_outside_and_a_moved_project_are_as_good_as_the_place_itself(tmp_path: Path) -> None:
    folder = tmp_path / "project/results/models/tiny-1"
    make(folder)
    (tmp_path / "project/results/exp").mkdir()
    (tmp_path / "project/results/exp/run").symlink_to("../models/tiny-1")
    shutil.copytree(folder, tmp_path / "my_model")
    (tmp_path / "project").rename(tmp_path / "moved")
    # A separate disk for models, linked by hand.
    (tmp_path / "moved/results/models").rename(tmp_path / "disk")
    (tmp_path / "moved/results/models").symlink_to(tmp_path / "disk")
    for place in ("my_model", "moved/results/models/tiny-1", "moved/results/exp/run", "disk/tiny-1"):
        assert read_manifest(tmp_path / place / "manifest.json").stage == "example"


def test_a_failed_stage_leaves_no_manifest_not_even_a_stale_one(tmp_path: Path) -> None:
    output = make(tmp_path / "out")
    with pytest.raises(RuntimeError), stage_run(output, SETTINGS, {}):
        raise RuntimeError("broken")
    assert not output.exists()


def test_the_next_attempt_removes_what_a_killed_one_was_writing(tmp_path: Path) -> None:
    output = make(tmp_path / "out")
    ended = subprocess.Popen(["true"])
    ended.wait()
    killed = output.parent / f"inner/.data.parquet.{ended.pid}-0123abcd.partial"
    writing, other = (output.with_name(f".a.{name}.partial") for name in (f"{os.getpid()}-0123abcd", "download"))
    for path in (killed, writing, other):
        write_text(path, "half")
    make(tmp_path / "out")
    assert [path.exists() for path in (killed, writing, other)] == [False, True, True]


def test_a_kill_while_the_manifest_was_written_leaves_nothing_beside_it(tmp_path: Path) -> None:
    output, digests = tmp_path / "out/manifest.json", {"input": "0" * 64}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(output), json.dumps(SETTINGS), json.dumps(digests)],
        env={**os.environ, "PYTHONPATH": str(Path(manifests.__file__).parents[2])},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL and list(output.parent.glob(".manifest.json.*.partial"))
    assert not output.exists() and reuse_complete(output, SETTINGS, digests)
    assert {path.name for path in output.parent.iterdir()} == {"manifest.json", "provenance.json", "finished.json"}


KILLED = """
import json, os, signal, sys
from pathlib import Path
from hatchery.artifacts.manifests import stage_run

replace = Path.replace
def killed(self, target):
    if Path(target).name == "manifest.json":
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = killed
with stage_run(sys.argv[1], json.loads(sys.argv[2]), keep=True, digests=json.loads(sys.argv[3])):
    pass
"""


def test_a_changed_file_is_named(tmp_path: Path) -> None:
    manifest = read_manifest(make(tmp_path / "out"))
    (tmp_path / "out/data.txt").write_text("hallo", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"data\.txt: has the SHA-256 d3751d33f9cd5049, expected 2cf24dba5fb0a30e"):
        manifest.verify()


def test_a_file_that_looks_as_it_was_written_is_not_read_again_and_any_other_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path / "out")
    read: list[str] = []
    monkeypatch.setattr(checksums, "sha256_file", lambda path: (read.append(path.name), sha256_file(path))[1])
    read_manifest(path).verify()
    assert read == []
    os.utime(tmp_path / "out/data.txt", (1, 1))
    read_manifest(path).verify()
    path.with_name("provenance.json").unlink()
    read_manifest(path).verify()
    assert read == ["data.txt", "data.txt"]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"outputs": [{}]}', "[" * 200_000])
def test_a_damaged_manifest_is_told_in_one_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        read_manifest(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_an_output_outside_the_folder_and_a_missing_input_are_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "elsewhere.txt", "x")
    with (
        pytest.raises(ManifestError, match="expected an output in"),
        stage_run(tmp_path / "out/manifest.json", SETTINGS) as run,
    ):
        run.add_output(tmp_path / "elsewhere.txt")
    missing = {"corpus": tmp_path / "nowhere.json"}
    with (
        pytest.raises(ManifestError, match="the file of the input 'corpus' is missing"),
        stage_run(tmp_path / "m", {}, missing),
    ):
        pass


def test_a_view_without_a_line_of_its_own_is_refused(tmp_path: Path) -> None:
    views = [tmp_path / f"summary.{suffix}" for suffix in ("csv", "md")]
    for view in views:
        view.write_text("as it was made", encoding="utf-8")
    write_checksums(views)
    assert [verified_view(view) for view in views] == views
    listing = checksums_of(views[0])
    # Earlier versions did not write the line with the folder.
    listing.write_text("".join(listing.read_text("ascii").splitlines(keepends=True)[1:]), encoding="ascii")
    assert [verified_view(view) for view in views] == views
    lines = listing.read_text("ascii").splitlines(keepends=True)
    listing.write_text("".join(line for line in lines if "summary.csv" not in line), encoding="ascii")
    assert verified_view(views[1]) == views[1]
    with pytest.raises(ManifestError, match=r"summary\.sha256: has no line for summary\.csv; remove .*csv to"):
        verified_view(views[0])
