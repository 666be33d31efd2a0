"""An input that lies outside of results/, as an imported model does, is followed to where the command read it."""

import json
from pathlib import Path

import pytest

from hatchery.artifacts.checksums import digest
from hatchery.artifacts.manifests import read_manifest, stage_run, volatile_facts
from hatchery.provenance.chain import Chain, follow
from hatchery.provenance.manifest_index import ManifestIndex


def made(manifest: Path, inputs: dict[str, Path], command: list[str]) -> Path:
    with stage_run(manifest, {"stage": manifest.parent.name, "stage_version": 1}, inputs):
        pass
    facts = {**volatile_facts(manifest), "command": command}
    manifest.with_name("provenance.json").write_text(json.dumps({**facts, "checksum": digest(facts)}))
    return manifest


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "config.json"
    path.parent.mkdir()
    path.write_text("{}")
    return path


def chain_of(tmp_path: Path, weights: Path) -> Chain:
    initial = tmp_path / "elsewhere" / "imported" / "manifest.json"
    made(initial, {"config": weights}, ["import_checkpoint.py", "--config", str(weights)])
    project = tmp_path / "project"
    run = project / "results" / "pretraining" / "manifest.json"
    made(run, {"initial_model": initial}, ["pretrain.py", "--initial-model", "../elsewhere/imported/manifest.json"])
    return follow(ManifestIndex(project), [read_manifest(run).digest], "the run")


def test_the_chain_leads_through_an_imported_model_to_its_files(tmp_path: Path, weights: Path) -> None:
    chain = chain_of(tmp_path, weights)
    assert chain.problems == []
    assert [node.kind for node in chain.nodes.values()] == ["stage", "stage", "file"]


def test_a_changed_file_outside_is_named(tmp_path: Path, weights: Path) -> None:
    chain_of(tmp_path, weights)
    weights.write_text("{} ")
    project = tmp_path / "project"
    run = read_manifest(project / "results" / "pretraining" / "manifest.json")
    chain = follow(ManifestIndex(project), [run.digest], "the run")
    assert len(chain.problems) == 1 and "input 'config'" in chain.problems[0]
