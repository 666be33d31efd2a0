"""Search for documents that resemble an earlier document, so that a corpus can leave these documents out.

The similarity of two documents is the Jaccard index of their runs of n consecutive words. The index is the number of
different runs that occur in both documents, divided by the number of different runs that occur in at least one of the
documents. Case and punctuation are ignored. Documents with fewer than n words have no run, so they are never removed. A
document is compared with the earlier documents that remain, so each removed document has a similar document that
remains.

MinHash signatures and locality-sensitive hashing (Broder 1997; Indyk and Motwani 1998; library datasketch) find
candidates; then the similarity of each candidate is computed exactly. So no document below the required similarity is
removed, but some near duplicates are missed. With the default settings, one of 20 document pairs with a similarity of
exactly 0.8 is missed, and one of 170 document pairs with a similarity of 0.85. Memory grows by 7 kB per document,
measured with 20,000 documents. The runs of words are not in memory, but in a temporary file.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hatchery.artifacts.parquet import read_groups
from hatchery.corpora.decontamination import runs
from hatchery.corpora.settings import NearDuplicatesSettings
from hatchery.progress import Progress

if TYPE_CHECKING:
    from datasketch import MinHash

NEAR = "near duplicate of an earlier document"
NEAR_ELSEWHERE = "near duplicate of an earlier document in another split"
SIGNATURES = [pa.field("signature", pa.binary()), pa.field("runs", pa.binary())]
"""Columns with a document's MinHash signature (uint32) and with the sorted keys of the document's runs of consecutive
words (uint64 hashes).
"""
NOT_NEAR = -1
SEED = 1
"""Seed of the permutations of all signatures."""
WEIGHTS = (0.05, 0.95)
"""Weights of false and of missed candidates when datasketch chooses the bands of the hash. Missed candidates have the
higher weight: a false candidate only costs time, because candidates are compared exactly.
"""
_AT_ONCE = 10_000
"""Number of runs of words (word n-grams) whose keys are permuted at once. The limit bounds the memory for long
documents.
"""

Uints = npt.NDArray[np.uint64]


@lru_cache(maxsize=1)
def _empty(permutations: int) -> "MinHash":
    # Import datasketch only if near duplicates are removed, because the library loads SciPy.
    from datasketch import MinHash

    return MinHash(permutations, seed=SEED, hashfunc=int)


def signature_row(text: str, settings: NearDuplicatesSettings) -> dict[str, bytes]:
    """Return the values of a document in the columns SIGNATURES: its MinHash signature and the keys (hashes) of its
    runs of `settings.words` consecutive words. Both values are empty if the document has fewer words.
    """
    keys = np.unique(np.fromiter(runs(text, settings.words), dtype=np.uint64))
    if not len(keys):
        return {"signature": b"", "runs": b""}
    minhash = _empty(settings.permutations).copy()
    # Use only the lower half of each key of 64 bits, because the library permutes numbers of 32 bits.
    short = (keys & np.uint64(0xFFFFFFFF)).tolist()
    for start in range(0, len(short), _AT_ONCE):
        minhash.update_batch(short[start : start + _AT_ONCE])
    return {"signature": minhash.hashvalues.tobytes(), "runs": keys.tobytes()}


def similarity(first: Uints, second: Uints) -> float:
    """Return the Jaccard index of two sets of keys (hashes of word n-grams), each without repetitions."""
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / (len(first) + len(second) - common)


def near_duplicates(
    parts: Iterable[Path], documents: int, settings: NearDuplicatesSettings, folder: Path
) -> npt.NDArray[np.int64]:
    """Return for each document the index of the first kept document that it resembles, or NOT_NEAR if it resembles no
    kept document; int64, shape (documents,).

    `parts` are the Parquet files in the order of the corpus; each file has the columns SIGNATURES. `folder` is used for
    a temporary file.
    """
    from datasketch import LeanMinHash, MinHashLSH

    index = MinHashLSH(threshold=settings.similarity, num_perm=settings.permutations, weights=WEIGHTS)
    found = np.full(documents, NOT_NEAR, dtype=np.int64)
    ends = np.zeros(documents + 1, dtype=np.int64)
    with (
        tempfile.TemporaryFile(dir=folder, buffering=0) as stored,
        Progress(documents, "find near duplicates", "documents") as progress,
    ):
        for document, (signature, keys) in enumerate(_signatures(parts)):
            ends[document + 1] = ends[document]
            progress.update(1)
            if not signature:
                continue
            minhash = LeanMinHash(seed=SEED, hashvalues=np.frombuffer(signature, np.uint32), scheme="affine32")
            own = np.frombuffer(keys, np.uint64)
            for other in sorted(index.query(minhash)):
                data = os.pread(stored.fileno(), int(ends[other + 1] - ends[other]), int(ends[other]))
                if similarity(own, np.frombuffer(data, np.uint64)) >= settings.similarity:
                    found[document] = other
                    break
            else:
                index.insert(document, minhash, check_duplication=False)
                stored.write(keys)
                ends[document + 1] += len(keys)
    return found


def _signatures(parts: Iterable[Path]) -> Iterator[tuple[bytes, bytes]]:
    for part in parts:
        for table in read_groups(part, [field.name for field in SIGNATURES]):
            yield from zip(*(table[field.name].to_pylist() for field in SIGNATURES), strict=True)
