"""A sweep of tokenizers and the training of one read no altered corpus."""

from pathlib import Path

import pytest
from faults import DAMAGE

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ManifestError
from hatchery.tokenization.selection.candidates import open_corpus

SHARD = "train-00000-of-00001.parquet"


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_altered_document_shard_is_named(damage: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    with stage_run(manifest, {}) as run:
        run.add_output(run.folder / SHARD).write_bytes(b"a shard of 20 documents")
    assert open_corpus(read_manifest(manifest)).shards == {"train": [tmp_path / SHARD]}
    DAMAGE[damage](tmp_path / SHARD)
    with pytest.raises(ManifestError, match=SHARD):
        open_corpus(read_manifest(manifest))
