"""Speed of one core in reading token shards into arrays, on generated shards.

As in pretraining, tokens are written to contiguous padded int64 arrays [batch, length]. Four ways are measured: the
segments of a training split, in order and in random order (as in each epoch), and whole documents with their word
starts, in order and in random order. The division of the split into segments is timed, too. The minimum speed of each
way is 20 million tokens per CPU second; if a way is slower, the exit code is 1. Most of the time is a fixed cost of
each document and segment, so the speed is lowest for very short documents.

    benchmarks/read_tokens.py [--tokens 20000000] [--median-tokens 500] [--rounds 3]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.artifacts.manifests import stage_run
from hatchery.objectives.segments import BabylmSegments
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import TokenShards, TokenTable, write_shard

LIMIT = 20e6
SHARDS = 4
VOCABULARY_SIZE = 16_384
SEQUENCE_LENGTH = 128
SEGMENTS_PER_BATCH = 256
DOCUMENTS_PER_BATCH = 32
SPECIAL = SPECIAL_SETS["babylm"]
PAD = SPECIAL.ids[SPECIAL.pad]


def write_shards(
    folder: Path,
    tokens: int,
    median: int,
    vocabulary_size: int = VOCABULARY_SIZE,
    inputs: Mapping[str, Path] | None = None,
) -> Path:
    """Write shards of documents with 10 to 20,000 tokens, and with sentences of 1 to 30 tokens. Half of the documents
    have fewer than `median` tokens.

    `inputs` are manifests that the manifest of the shards names as its inputs.
    """
    random = np.random.default_rng(0)
    with stage_run(folder / "manifest.json", {"stage": "encode_corpus"}, inputs) as run:
        for number in range(SHARDS):
            drawn = random.lognormal(np.log(median), 1.0, size=tokens // SHARDS // median + 1)
            lengths = np.clip(drawn, 10, 20_000).astype(int)
            bounds = np.concatenate([[0], np.cumsum(lengths)])
            starts = [np.cumsum(np.append(0, random.integers(1, 31, size=length // 8))) for length in lengths]
            kept = [part[part < length] for part, length in zip(starts, lengths, strict=True)]
            table = TokenTable(
                doc_ids=[f"{number}/{index}" for index in range(len(lengths))],
                ids=random.integers(len(SPECIAL.order), vocabulary_size, size=bounds[-1]).astype(np.uint16),
                word_starts=random.random(bounds[-1]) < 0.8,
                document_starts=bounds,
                sentence_starts=np.concatenate(kept),
                sentence_bounds=np.cumsum([0, *map(len, kept)]),
            )
            path = folder / f"train-{number:05}-of-{SHARDS:05}.arrow"
            write_shard(path, table, vocabulary_size)
            run.add_output(path)
        run.measures.update(vocabulary_size=vocabulary_size, special_tokens=SPECIAL.record())
    return folder / "manifest.json"


def read_segments(segments: BabylmSegments, order: np.ndarray) -> int:
    """Read the segments with the indices `order` in batches, as a training reads them; return the number of tokens."""
    read = 0
    for first in range(0, len(order), SEGMENTS_PER_BATCH):
        batch = order[first : first + SEGMENTS_PER_BATCH]
        ids = np.full((len(batch), SEQUENCE_LENGTH), PAD, dtype=np.int64)
        for row, index in enumerate(batch):
            tokens = segments[index].tokens
            ids[row, 1 : len(tokens) + 1] = tokens
            read += len(tokens)
    return read


def read_documents(shards: TokenShards, order: np.ndarray) -> int:
    """Read whole documents and their word starts in padded batches; return the number of tokens."""
    read = 0
    for first in range(0, len(order), DOCUMENTS_PER_BATCH):
        documents = [shards.document(int(index)) for index in order[first : first + DOCUMENTS_PER_BATCH]]
        lengths = [len(document.ids) for document in documents]
        ids = np.full((len(documents), max(lengths)), PAD, dtype=np.int64)
        starts = np.zeros(ids.shape, dtype=bool)
        for row, document in enumerate(documents):
            ids[row, : lengths[row]] = document.ids
            starts[row, : lengths[row]] = document.word_starts
        read += sum(lengths)
    return read


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--median-tokens", type=int, default=500, help="median number of tokens per document")
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of measurements of each speed; the maximum is printed"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        manifest = write_shards(Path(name), arguments.tokens, arguments.median_tokens)
        shards = TokenShards.open(manifest, "train")
        segments = BabylmSegments(shards, SEQUENCE_LENGTH)
        random = np.random.default_rng(1)
        shuffled_segments, shuffled_documents = random.permutation(len(segments)), random.permutation(len(shards))
        ways: dict[str, Callable[[], int]] = {
            "segments in order": lambda: read_segments(segments, np.arange(len(segments))),
            "segments at random": lambda: read_segments(segments, shuffled_segments),
            "documents in order": lambda: read_documents(shards, np.arange(len(shards))),
            "documents at random": lambda: read_documents(shards, shuffled_documents),
            "(division into segments)": lambda: len(BabylmSegments(shards, SEQUENCE_LENGTH)) and shards.n_tokens,
        }
        rates: dict[str, list[float]] = {way: [] for way in ways}
        # Alternate the ways, so that other jobs slow all ways equally.
        for _ in range(arguments.rounds):
            for way, read in ways.items():
                started = time.process_time()
                tokens = read()
                rates[way].append(tokens / (time.process_time() - started))
        print(f"{len(shards):,} documents, {shards.n_tokens:,} tokens, {len(segments):,} segments")
    for way, values in rates.items():
        print(f"{way + ':':25} {max(values) / 1e6:7.1f} million tokens per CPU second")
    slowest = min(max(values) for way, values in rates.items() if not way.startswith("("))
    kept = slowest >= LIMIT
    print(
        f"slowest reading: {slowest / 1e6:.1f} million tokens per CPU second, minimum {LIMIT / 1e6:.0f} million: "
        f"{'reached' if kept else 'MISSED'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
