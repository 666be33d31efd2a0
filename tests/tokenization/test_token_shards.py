import hashlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from hatchery.artifacts.manifests import stage_run
from hatchery.errors import HatcheryError, TokenizationError
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import Document, TokenShards, TokenTable, id_dtype, write_shard


def same(first: Document, second: Document) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("ids", "sentence_starts", "word_starts")
    )


def address_ranges(path: Path) -> list[tuple[int, int]]:
    """Return the address ranges of this process that map `path` (Linux)."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    hits = [line.split()[0].split("-") for line in lines if line.endswith(str(path.resolve()))]
    return [(int(first, 16), int(end, 16)) for first, end in hits]


@pytest.fixture
def copied(tokens: Path, tmp_path: Path) -> Path:
    """A copy of the token shards, which tests may damage."""
    shutil.copytree(tokens.parent, tmp_path / "tokens")
    # provenance.json has the checksum of the manifest, which some tests change.
    (tmp_path / "tokens/provenance.json").unlink()
    return tmp_path / "tokens" / "manifest.json"


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads the memory map of Linux")
def test_ids_lie_in_the_mapped_file_and_are_read_only(copied: Path) -> None:
    shards = TokenShards.open(copied, "train")
    path = copied.parent / "train-00000-of-00005.arrow"
    for document in (shards.document(0), shards.document(19)):
        for column in (document.ids, document.sentence_starts):
            assert any(first <= column.ctypes.data < end for first, end in address_ranges(path))
            assert not column.flags.writeable
    assert shards.document(0).ids.dtype == np.uint16


def test_documents_outlive_the_shards_they_came_from(copied: Path) -> None:
    shards = TokenShards.open(copied, "train")
    document = shards.document(3)
    expected = document.ids.tolist()
    del shards
    assert document.ids.tolist() == expected


def test_random_access_gives_what_reading_in_order_gives(tokens: Path) -> None:
    shards = TokenShards.open(tokens, "train")
    in_order = list(shards)
    assert len(in_order) == len(shards) == shards.n_documents == 90
    for index in random.Random(0).sample(range(90), 90):
        assert same(shards.document(index), in_order[index])
    assert shards.document_lengths().tolist() == [len(document.ids) for document in in_order]
    assert shards.n_tokens == sum(len(document.ids) for document in in_order)


def test_word_starts_survive_bit_packing_at_every_offset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lengths = [*range(1, 20), 0, 8, 16, 3]
    starts = [rng.random(length) < 0.5 for length in lengths]
    manifest = write_by_hand(tmp_path, 100, lengths, np.concatenate(starts))
    shards = TokenShards.open(manifest, "train")
    for index, expected in enumerate(starts):
        assert shards.document(index).word_starts.dtype == np.bool_
        assert shards.document(index).word_starts.tolist() == expected.tolist()


def write_by_hand(folder: Path, vocabulary_size: int, lengths: list[int], word_starts: np.ndarray) -> Path:
    total = sum(lengths)
    bounds = np.cumsum([0, *lengths])
    table = TokenTable(
        doc_ids=[str(index) for index in range(len(lengths))],
        ids=(vocabulary_size - 1 - np.arange(total)).astype(id_dtype(vocabulary_size)),
        word_starts=word_starts,
        document_starts=bounds,
        sentence_starts=np.zeros(sum(length > 0 for length in lengths), dtype=np.int64),
        sentence_bounds=np.cumsum([0, *(length > 0 for length in lengths)]),
    )
    manifest = folder / "manifest.json"
    with stage_run(manifest, {}) as run:
        write_shard(folder / "train-00000-of-00001.arrow", table, vocabulary_size)
        run.add_output(folder / "train-00000-of-00001.arrow")
        run.measures.update(vocabulary_size=vocabulary_size, special_tokens=SPECIAL_SETS["bnc"].record())
    return manifest


@pytest.mark.parametrize(("vocabulary_size", "dtype"), [(65_535, np.uint16), (65_536, np.uint32), (70_000, np.uint32)])
def test_large_vocabularies_are_stored_in_32_bits(tmp_path: Path, vocabulary_size: int, dtype: type) -> None:
    manifest = write_by_hand(tmp_path, vocabulary_size, [3, 2], np.ones(5, dtype=bool))
    shards = TokenShards.open(manifest, "train")
    assert shards.document(0).ids.dtype == dtype
    assert shards.document(0).ids.tolist() == [vocabulary_size - 1, vocabulary_size - 2, vocabulary_size - 3]
    assert shards.vocabulary_size == vocabulary_size


def test_the_special_tokens_are_those_that_the_shards_were_encoded_with(tokens: Path, tmp_path: Path) -> None:
    assert TokenShards.open(tokens, "dev").special is SPECIAL_SETS["babylm"]
    by_hand = write_by_hand(tmp_path, 100, [3], np.ones(3, dtype=bool))
    assert TokenShards.open(by_hand, "train").special is SPECIAL_SETS["bnc"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "got no mapping with the list `order`"),
        ({"order": ["[UNK]", "[MASK]"], "unknown": 0}, r"got the tokens \[UNK\] \[MASK\], expected one of"),
        ({**SPECIAL_SETS["bnc"].record(), "pad": 4}, "the ids in the manifest differ from the ids of the set"),
    ],
)
def test_shards_with_unknown_special_tokens_are_refused(copied: Path, record: object, message: str) -> None:
    described = json.loads(copied.read_text("utf-8"))
    described["measures"]["special_tokens"] = record
    copied.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(TokenizationError, match=f"manifest.json: special_tokens: {message}") as caught:
        TokenShards.open(copied, "train")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("index", [-1, 90, 1000])
def test_documents_outside_of_the_split_do_not_exist(tokens: Path, index: int) -> None:
    with pytest.raises(IndexError, match=f"got {index}, expected 0 to 89 in split .train."):
        TokenShards.open(tokens, "train").document(index)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_shard_is_named_even_when_the_manifest_agrees_with_it(copied: Path, kept: float) -> None:
    path = copied.parent / "dev-00000-of-00001.arrow"
    content = path.read_bytes()
    write_with_matching_manifest(copied, path, content[: int(len(content) * kept)])
    with pytest.raises(TokenizationError, match=r"dev-00000-of-00001\.arrow: not a readable token shard"):
        TokenShards.open(copied, "dev")


def write_with_matching_manifest(manifest: Path, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    described = json.loads(manifest.read_text("utf-8"))
    for output in described["outputs"]:
        if output["path"] == path.name:
            output |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest.write_text(json.dumps(described), encoding="utf-8")


def test_flipped_bytes_that_the_manifest_vouches_for_end_in_a_named_error_or_in_documents_of_sound_shape(
    copied: Path,
) -> None:
    path = copied.parent / "dev-00000-of-00001.arrow"
    sound = path.read_bytes()
    rng = random.Random(7)
    refused = 0
    for _ in range(300):
        damaged = bytearray(sound)
        for _ in range(rng.choice((1, 8, 64))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        write_with_matching_manifest(copied, path, bytes(damaged))
        try:
            shards = TokenShards.open(copied, "dev")
        except TokenizationError as error:
            assert str(error).startswith(f"{path}: ")
            refused += 1
            continue
        for index in range(shards.n_documents):
            document = shards.document(index)
            shards.doc_id(index)
            assert len(document.ids) == len(document.word_starts)
            assert np.all(document.sentence_starts < max(len(document.ids), 1))
    assert refused > 30


def test_an_unknown_split_is_told_with_the_known_ones(tokens: Path) -> None:
    with pytest.raises(TokenizationError, match="there is no split 'test'; there are: dev, train"):
        TokenShards.open(tokens, "test")


@pytest.mark.parametrize("change", [{"measures": {}}, {"outputs": []}, {"measures": {"vocabulary_size": 70_000}}])
def test_a_manifest_of_something_else_is_refused(copied: Path, change: dict[str, object]) -> None:
    described = json.loads(copied.read_text("utf-8"))
    copied.write_text(json.dumps({**described, **change}), encoding="utf-8")
    with pytest.raises(HatcheryError, match=str(copied.parent)):
        TokenShards.open(copied, "train")
