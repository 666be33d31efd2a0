"""The plan of a workflow notices outputs that were deleted or cut, makes them again, and touches nothing itself."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import forked
import pytest

from hatchery.artifacts.manifests import stage_run
from hatchery.raw.registration import register_source
from hatchery.workflow.lost_outputs import lost_output

SNAKEFILE = """
import json
import shutil
import sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
from hatchery.workflow.lost_outputs import watch_rules
from hatchery.artifacts.manifests import stage_run

rule page:
    input: "results/x/figure.svg", "results/x/model/manifest.json"
    output: "results/x/index.html"
    benchmark: "results/benchmarks/page.tsv"
    shell: "cat {{input}} > {{output}}"

rule figure:
    output: "results/x/figure.svg"
    benchmark: "results/benchmarks/figure.tsv"
    shell: "echo drawing > {{output}}"

rule model:
    output: "results/x/model/manifest.json"
    benchmark: "results/benchmarks/model.tsv"
    run:
        with stage_run(output[0], {{}}) as made:
            made.add_output(made.folder / "model.safetensors").write_bytes(b"weights")

watch_rules(workflow, lambda path: False)
"""


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".snakemake" not in path.parts]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    folder = tmp_path_factory.mktemp("lost")
    (folder / "Snakefile").write_text(SNAKEFILE.format(scripts=str(repository / "scripts")), encoding="utf-8")
    assert "3 of 3 steps" in snakemake(folder, "--cores", "1")
    return folder


def snakemake(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", *arguments]
    result = forked.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def test_what_was_lost_is_planned_and_made_again(finished: Path) -> None:
    assert "Nothing to be done" in snakemake(finished, "--dry-run")
    lost = [finished / "results/x/model/model.safetensors", finished / "results/x/figure.svg"]
    for path in lost:
        path.unlink()
    before = tree(finished)
    plan = snakemake(finished, "--dry-run")
    for path in lost:
        assert f"{path.relative_to(finished)}: gone or cut off since it was made; it is made again" in plan
    assert tree(finished) == before
    assert "3 of 3 steps" in snakemake(finished, "--cores", "1")
    assert all(path.is_file() for path in lost)


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


LOSSES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "cut off": lambda path: path.write_bytes(b"sha"),
    "emptied": lambda path: path.write_bytes(b""),
    "a folder": replaced_by_folder,
    "a dangling link": replaced_by_dangling_link,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_listed_file_that_is_gone_or_of_another_size_is_lost(loss: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    with stage_run(manifest, {}) as run:
        run.add_output(run.folder / "shard").write_bytes(b"shard")
    LOSSES[loss](tmp_path / "shard")
    assert lost_output([manifest], was_made=True) == tmp_path / "shard"


def test_a_result_of_another_folder_stops_the_plan_and_is_left_alone(finished: Path) -> None:
    folder = finished / "results/x/model"
    folder.rename(finished / "results/x/other")
    shutil.copytree(finished / "results/x/other", folder)
    provenance = folder / "provenance.json"
    facts = json.loads(provenance.read_text(encoding="utf-8")) | {"place": "x/other"}
    del facts["checksum"]
    provenance.write_text(json.dumps(facts), encoding="utf-8")
    before = tree(finished)
    command = [sys.executable, "-m", "snakemake", "--dry-run"]
    result = forked.run(command, cwd=finished, capture_output=True, text=True, check=False)
    assert tree(finished) == before
    shutil.rmtree(folder)
    (finished / "results/x/other").rename(folder)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert "error: results/x/model/manifest.json: was made as results/x/other; put it back there" in result.stderr


def test_a_result_that_was_deleted_with_its_manifest_is_not_asked_for(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    assert lost_output([manifest], was_made=True) is None
    with stage_run(manifest, {}) as run:
        run.add_output(run.folder / "shard").write_bytes(b"shard")
    assert lost_output([manifest], was_made=True) is None
    (tmp_path / "shard").unlink()
    assert lost_output([manifest], was_made=True) == tmp_path / "shard"
    manifest.unlink()
    assert lost_output([manifest], was_made=True) is None


def test_a_damaged_manifest_is_lost(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    assert lost_output([tmp_path / "manifest.json"], was_made=True) == tmp_path / "manifest.json"


def test_fetched_files_are_looked_for_and_the_users_own_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for stamp in (".fetched.json", "nothing.json"):
        root = tmp_path / stamp.strip(".")
        root.mkdir()
        for name in (stamp, "a.txt"):
            (root / name).write_text("text", encoding="utf-8")
        manifest = Path("resources/sources") / f"{root.name}.json"
        register_source("x", root, manifest)
        (root / "a.txt").unlink()
        expected = root / "a.txt" if stamp.startswith(".") else None
        assert lost_output([manifest, manifest.with_name(f"{manifest.stem}.location.json")], True) == expected


def test_a_view_that_was_never_made_is_not_lost(tmp_path: Path) -> None:
    assert lost_output([tmp_path / "figure.svg"], was_made=False) is None
    assert lost_output([tmp_path / "figure.svg"], was_made=True) == tmp_path / "figure.svg"
