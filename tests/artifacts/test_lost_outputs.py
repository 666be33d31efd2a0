"""A file that was lost or damaged after its creation is reported in one line, with the command that makes it again."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from faults import DAMAGE

from hatchery.artifacts.checksums import verified_view, write_checksums
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ManifestError, SourceError
from hatchery.raw.registration import open_source, register_source

SNAKEFILE = """
import sys
sys.path.insert(0, {scripts!r})
from hatchery.artifacts.manifests import stage_run

rule page:
    input: "results/model/manifest.json"
    output: "results/index.html"
    shell: "{python} page.py {{input}} {{output}}"

rule model:
    output: "results/model/manifest.json"
    run:
        with stage_run(output[0], {{}}) as made:
            made.add_output(made.folder / "weights").write_bytes(b"weights")
"""
READER = """
import sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import HatcheryError
try:
    manifest = read_manifest(sys.argv[1])
    manifest.verify()
    Path(sys.argv[2]).write_bytes(manifest.file("weights").read_bytes())
except HatcheryError as error:
    sys.exit(f"error: {{error}}")
"""
PAGE = Path("results/index.html")


def snakemake(folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / PAGE).unlink(missing_ok=True)
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    return forked.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_workflow_stops_at_a_lost_file_and_its_remedy_makes_it_anew(tmp_path: Path, repository: Path) -> None:
    for name, text in (("Snakefile", SNAKEFILE), ("page.py", READER)):
        filled = text.format(scripts=str(repository / "scripts"), python=sys.executable)
        (tmp_path / name).write_text(filled, encoding="utf-8")
    assert snakemake(tmp_path).returncode == 0
    (tmp_path / "results/model/weights").unlink()
    stopped = snakemake(tmp_path)
    assert stopped.returncode != 0
    found = re.search(
        r"^error: results/model/weights: is missing \(.*\); remove (\S+) and run .*$", stopped.stderr, re.M
    )
    assert found is not None, stopped.stderr
    (tmp_path / found[1]).unlink()
    again = snakemake(tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / PAGE).read_bytes() == b"weights"


LOSSES = [damage for damage in DAMAGE if damage not in ("byte flipped", "digit changed")]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_listed_file_that_is_lost_is_told_with_the_manifest_to_remove(loss: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    with stage_run(manifest, {}) as run:
        run.add_output(run.folder / "shard").write_bytes(b"shard")
    DAMAGE[loss](tmp_path / "shard")
    with pytest.raises(
        ManifestError,
        match=rf"^{tmp_path}/shard: [^\n]+; remove {manifest} and run the same command again to make the result again$",
    ):
        read_manifest(manifest).verify()
    manifest.unlink()
    with pytest.raises(ManifestError, match=rf"missing; to make it: snakemake --cores 1 {manifest}$"):
        read_manifest(manifest)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_view_is_told_with_what_makes_it_again(loss: str, tmp_path: Path) -> None:
    view = tmp_path / "summary.csv"
    view.write_text("a,b\n", encoding="utf-8")
    write_checksums([view])
    DAMAGE[loss](view)
    remedy = (
        "run the same command again to make the file" if not view.exists() else f"remove {view} to have it made again"
    )
    with pytest.raises(ManifestError, match=rf"^{view}: [^\n]+; {remedy}$"):
        verified_view(view)


def test_a_view_of_another_experiment_is_not_taken_for_this_one(tmp_path: Path) -> None:
    mine, other = (tmp_path / "results" / name / "measurements.parquet" for name in ("mine", "other"))
    for path in (mine, other):
        path.parent.mkdir(parents=True)
        path.write_text(path.parent.name, encoding="utf-8")
        write_checksums([path])
        assert verified_view(path) == path
    for name in ("measurements.parquet", "measurements.sha256"):
        shutil.copy2(other.parent / name, mine.parent / name)
    with pytest.raises(ManifestError, match=rf"^{mine}: the file was made in results/other/, expected"):
        verified_view(mine)
    # Moved together with all results of the project, a file remains valid.
    moved = shutil.move(tmp_path / "results", tmp_path / "elsewhere/results")
    assert verified_view(moved / "other/measurements.parquet")


REMEDIES = {
    "embedded_x": "remove {root}/manifest.json to have the file generated again",
    "fetched": "to download the file again: rm -r {root}/raw && snakemake --cores 1 --force {manifest}",
    "own": "to register the changed file: snakemake --cores 1 --force {manifest}",
}


@pytest.mark.parametrize("name", REMEDIES)
def test_a_lost_raw_file_is_told_with_what_brings_it_back(name: str, tmp_path: Path) -> None:
    root, manifest = tmp_path / "raw", tmp_path / f"{name}.json"
    root.mkdir()
    for file in ("a.txt", *([".fetched.json"] if name == "fetched" else [])):
        (root / file).write_text("text", encoding="utf-8")
    register_source(name, root, manifest)
    (root / "a.txt").unlink()
    with pytest.raises(SourceError) as raised:
        open_source(manifest).verify()
    remedy = REMEDIES[name].format(root=tmp_path, manifest=manifest)
    assert str(raised.value) == f"{root}: 'a.txt': is missing ({manifest}); {remedy}"
