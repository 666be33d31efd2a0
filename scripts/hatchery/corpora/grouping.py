"""Grouping of sentences and spans into sequences that fill a model's input: ordering, and greedy grouping by number of
words.

Source: "Honey, I Shrunk the Language" (docs/papers/reduced-vocabulary.md, "Grouping"). Items (sentences or spans) are
concatenated in order. An item is added to a sequence only if the estimated number of tokens (1.2 times the number of
words) stays below the input length of 128 tokens.

The option `reading` has two values. `as_published` reproduces the paper's published code. This code adds a space after
each item and counts the pieces between spaces as words. The last space adds one empty piece, so a sequence has at most
105 words. If the first item does not fit, an empty sequence is written before it. The last sequence is lost if it is
not full. A sequence that is not full at the end of a corpus continues with the next corpus (inferred). `corrected`
counts words, writes no empty sequence and loses no sequence. With `corrected`, a sequence contains items of only one
selection (text selected from one corpus), and newlines separate its items, so that sentence boundaries are kept. With
both values, an item longer than a sequence (a span of 110 words) is a separate sequence.

The paper's code puts the texts of each save unit (the texts that the code writes together; see "Selection of text" on
the same page) into a Python set, whose order no seed determines. Here `as_published` orders these texts by a seeded
permutation, and `corrected` keeps their order. The permutation stores sorted parts on disk and merges them, so memory
does not grow with the size of a save unit.
"""

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hatchery.corpora.corpus_writer import point
from hatchery.corpora.settings import SequenceLength
from hatchery.settings.base import ReadingName


class Item(NamedTuple):
    """An accepted sentence or span, and the name of the selection that it comes from."""

    selection: str
    text: str


class Sequence(NamedTuple):
    """A sequence of grouped items. `selection` is the name of the selection (text selected from one corpus) from which
    the first item comes; if the sequence is empty, from which the following item comes. `items` is the number of items.
    """

    selection: str
    text: str
    items: int


def grouped(
    items: Iterable[Item], length: SequenceLength, reading: ReadingName, lost: Callable[[Item], None]
) -> Iterator[Sequence]:
    """Yield the sequences into which the items are grouped; the items are either all sentences or all spans. For each
    item that is in no sequence, call `lost`.
    """
    if reading == "as_published":
        yield from _as_published(items, length, lost)
        return
    for _, part in groupby(items, key=lambda item: item.selection):
        yield from _corrected(part, length, lost)


def _as_published(items: Iterable[Item], length: SequenceLength, lost: Callable[[Item], None]) -> Iterator[Sequence]:
    group: list[Item] = []
    # The count begins at 1, because the text of a sequence ends in a space, and splitting at this space yields an empty
    # last piece.
    pieces = 1
    for item in items:
        size = item.text.count(" ") + 1
        if length.holds(pieces + size):
            group.append(item)
            pieces += size
            continue
        selection = group[0].selection if group else item.selection
        yield Sequence(selection, "".join(f"{member.text} " for member in group), len(group))
        group, pieces = [item], 1 + size
    for item in group:
        lost(item)


def _corrected(items: Iterable[Item], length: SequenceLength, lost: Callable[[Item], None]) -> Iterator[Sequence]:
    group: list[str] = []
    words = 0
    selection = ""
    for item in items:
        # Keep line ends inside an item, because they are sentence boundaries, like the boundary between two items.
        lines = [line for part in item.text.splitlines() if (line := " ".join(part.split()))]
        size = sum(line.count(" ") + 1 for line in lines)
        if not size:
            lost(item)
            continue
        if group and not length.holds(words + size):
            yield Sequence(selection, "\n".join(group), len(group))
            group, words = [], 0
        selection = item.selection
        group.append("\n".join(lines))
        words += size
    if group:
        yield Sequence(selection, "\n".join(group), len(group))


RUN_CHARACTERS = 32 << 20
_POINTS_PER_BLOCK = 1 << 20
_ROWS_PER_BATCH = 1000
# Approximate number of bytes that Python needs for a short text, in addition to its characters.
_OVERHEAD = 200
_RUN_SCHEMA = pa.schema([("point", pa.uint64()), ("index", pa.int64()), ("text", pa.string())])
Keyed = tuple[int, int, str]


def drawn(points: "array[int]", *numbers: int) -> np.ndarray:
    """Return, for each item, the number of the random sample that contains the item, or 0 if no sample contains it:
    uint8 [items]. Samples are drawn without replacement, in ascending order of the items' random numbers `points`: the
    first `numbers[0]` items are sample 1, the next `numbers[1]` items are sample 2, and so on.
    """
    order = np.argsort(np.frombuffer(points, dtype=np.uint64), kind="stable") if len(points) else np.zeros(0, np.int64)
    codes = np.zeros(len(points), dtype=np.uint8)
    start = 0
    for code, number in enumerate(numbers, start=1):
        codes[order[start : start + number]] = code
        start += number
    return codes


def point_of_the_last(points: Iterable[int], number: int) -> int:
    """Return the `number`-th smallest of the random numbers `points` (1 for the smallest). Memory holds a few
    times `number` random numbers, and at least a few times _POINTS_PER_BLOCK.

    Raises ValueError if there are fewer random numbers.
    """
    points = iter(points)
    kept = np.zeros(0, dtype=np.uint64)
    while len(block := np.fromiter(islice(points, max(number, _POINTS_PER_BLOCK)), dtype=np.uint64)):
        kept = np.concatenate([kept, block])
        if len(kept) > number:
            kept = np.partition(kept, number - 1)[:number].copy()
    if len(kept) < number:
        raise ValueError(f"got {len(kept)} random numbers, expected at least {number}")
    return int(kept.max())


def shuffled_units(texts: Iterable[tuple[int, str]], seed: int, name: str, folder: Path) -> Iterator[str]:
    """Yield the texts of each save unit in random order. A save unit consists of the texts that the code of the study
    "Honey, I Shrunk the Language" writes together. `texts` are pairs of unit and text, ordered by unit; the order of
    the units is kept.

    The order depends on `seed`, `name`, unit and position within the unit. Large units are sorted with temporary files
    in `folder`.
    """
    for unit, group in groupby(texts, key=itemgetter(0)):
        keyed = ((point("order", seed, name, unit, index), index, text) for index, (_, text) in enumerate(group))
        for _, _, text in _sorted(keyed, folder):
            yield text


def _sorted(keyed: Iterable[Keyed], folder: Path) -> Iterator[Keyed]:
    """Yield the elements of `keyed` sorted by their random numbers; an element contains a random number, an index and a
    text. Large inputs are sorted in parts, which are stored in `folder` and merged.
    """
    runs: list[Path] = []
    held: list[Keyed] = []
    characters = 0
    try:
        for item in keyed:
            held.append(item)
            characters += len(item[2]) + _OVERHEAD
            if characters >= RUN_CHARACTERS:
                held.sort()
                runs.append(_write_run(held, folder / f"run-{len(runs):05d}.arrow"))
                held, characters = [], 0
        held.sort()
        with ExitStack() as stack:
            yield from heapq.merge(*(_read_run(run, stack.callback) for run in runs), held)
    finally:
        for run in runs:
            run.unlink(missing_ok=True)


def _write_run(keyed: list[Keyed], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(path, _RUN_SCHEMA, options=options) as writer:
        for start in range(0, len(keyed), _ROWS_PER_BATCH):
            columns = zip(*keyed[start : start + _ROWS_PER_BATCH], strict=True)
            arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _RUN_SCHEMA, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=_RUN_SCHEMA))
    return path


def _read_run(path: Path, at_end: Callable[..., object]) -> Iterator[Keyed]:
    handle = pa.OSFile(str(path))
    at_end(handle.close)
    for batch in pa.ipc.open_stream(handle):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
