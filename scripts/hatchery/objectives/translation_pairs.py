"""Sentence pairs as translation examples. Each batch contains sentence pairs of similar length.

A document of a parallel corpus is a pair (`corpora.readers.parallel_text`): its two sentences are source and target.
The encoder reads `x1 .. xn end`; the decoder reads `start y1 .. ym` and predicts `y1 .. ym end`. Source:
docs/papers/natural-bias.md, "The bias", "Data" and "Training". Batches are functions of seed and step, and do not
depend on the number of processes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.segments import DocumentCollection, Segment
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.tokenization.token_shards import TokenShards

if TYPE_CHECKING:
    from torch import Tensor

    from hatchery.training.objectives.translation import TranslationSettings

LINES_OF_A_PAIR = 2
WHOLE = 1_000_000
"""A maximum number of tokens per sentence that is so large that no sentence is truncated."""


class TranslationPairs:
    """The sentence pairs of a split as translation examples."""

    def __init__(
        self,
        documents: DocumentCollection,
        special: SpecialIds,
        longest: int,
        rules: "TranslationSettings",
        filtered: bool,
    ) -> None:
        """`longest` is the maximum number of tokens of a sentence, end token included.

        A pair is omitted if one of its sentences has no tokens. If `filtered` is true, a pair is also omitted if one of
        its sentences is too long, or if the lengths of its two sentences differ too much. If `filtered` is false,
        sentences that are too long are truncated. Raises TrainingError for a document that is not a pair. If `filtered`
        is true, also raises TrainingError if all pairs are omitted.
        """
        self._documents, self._special, self._longest = documents, special, longest
        self._backward = rules.direction == "backward"
        lengths = _side_lengths(documents)
        if self._backward:
            lengths = lengths[:, ::-1]
        kept = (lengths > 0).all(axis=1)
        if filtered:
            kept &= (lengths < longest).all(axis=1)
            if rules.longest_ratio is not None:
                kept &= lengths.max(axis=1) <= rules.longest_ratio * lengths.min(axis=1)
        self._numbers = np.flatnonzero(kept)
        if filtered and not len(self._numbers):
            raise TrainingError(
                "the split contains no sentence pair within the limits `sequence_length` and `longest_ratio`"
            )
        self.lengths = np.minimum(lengths[kept] + 1, longest)
        """Number of source tokens and of target tokens of each pair, end tokens included: int64 [pairs, 2]."""
        self._order = lru_cache(maxsize=2)(self._epoch_order)
        self._cuts = lru_cache(maxsize=2)(self._batch_cuts)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def left_out(self) -> int:
        """Number of pairs of the split that are omitted."""
        return self._documents.n_documents - len(self)

    @property
    def fillers(self) -> Mapping[str, int | bool]:
        """Padding value of each tensor of a batch, by name of the tensor."""
        pad = self._special.pad
        return {"input_ids": pad, "attention_mask": False, "target_ids": pad, "labels": UNLABELLED}

    def sides(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the source ids and the target ids of a pair, without end tokens. Each sentence is truncated so that,
        with an end token, it has at most the maximum number of tokens (`longest`).
        """
        source, target = self.whole_sides(index)
        return source[: self._longest - 1], target[: self._longest - 1]

    def whole_sides(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the source ids and the target ids of a pair, not truncated, without end tokens."""
        document = self._documents.document(int(self._numbers[index]))
        cut = int(document.sentence_starts[1])
        first, second = document.ids[:cut], document.ids[cut:]
        return (second, first) if self._backward else (first, second)

    def places(self) -> np.ndarray:
        """Return the document index of each pair, int64, one index per pair. Other objectives return positions of
        tokens, but a pair is never divided.
        """
        return self._numbers.astype(np.int64)

    def batch(
        self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray, mask_rate: float | None = None
    ) -> "dict[str, Tensor]":
        """Return a batch with `input_ids` and `attention_mask` [pairs, source length] of the sources, and `target_ids`
        and `labels` [pairs, target length] of the targets.

        The batch has no random or masked parts, so seed, epoch and mask rate have no effect.
        """
        # Import PyTorch only here: the import takes seconds, and code that only counts targets does not need PyTorch.
        import torch

        pairs = [self.sides(int(index)) for index in indices]
        start, end = self._special.cls, self._special.sep
        rows: dict[str, list[np.ndarray]] = {"input_ids": [], "target_ids": [], "labels": []}
        for source, target in pairs:
            rows["input_ids"].append(np.append(source, end))
            rows["target_ids"].append(np.insert(target, 0, start))
            rows["labels"].append(np.append(target, end))
        batch = {name: _padded(sides, int(self.fillers[name])) for name, sides in rows.items()}
        lengths = torch.tensor([len(source) for source in rows["input_ids"]])
        width = batch["input_ids"].shape[1]
        return {
            "input_ids": batch["input_ids"],
            "attention_mask": torch.arange(width)[None] < lengths[:, None],
            "target_ids": batch["target_ids"],
            "labels": batch["labels"],
        }

    def counted_batch(
        self, seed: int, epoch: int, indices: np.ndarray, mask_rate: float | None = None
    ) -> "tuple[dict[str, Tensor], int]":
        """Return the same batch as the method `batch`, and the number of words in its source and target sentences."""
        return self.batch(seed, epoch, indices, mask_rate), int(self.words(seed, epoch, indices).sum())

    @property
    def same_in_every_epoch(self) -> bool:
        """True, because the pairs have no random parts."""
        return True

    def words(self, seed: int, epoch: int, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return, for each pair, the number of words in its source and target sentence together: int64
        [len(indices)]."""
        return np.array([self._words(int(index)) for index in indices], dtype=np.int64)

    def _words(self, index: int) -> int:
        number = int(self._numbers[index])
        document, source_and_target = self._documents.document(number), self.sides(index)
        first, second = map(len, source_and_target[::-1] if self._backward else source_and_target)
        cut = int(document.sentence_starts[1])
        shown = (Segment(number, document, 0, first), Segment(number, document, cut, cut + second))
        return sum(side.text_words(self._special) for side in shown)

    def counted(self, batch: "Mapping[str, Tensor]") -> tuple[int, ...]:
        """Return the number of labels of a batch, by which the sum of the labels' losses is divided."""
        return (int((batch["labels"] != UNLABELLED).sum()),)

    def n_tokens(self, batch: "Mapping[str, Tensor]") -> int:
        """Return the number of source tokens plus target tokens of a batch, without padding."""
        return int(batch["attention_mask"].sum()) + self.counted(batch)[0]

    def batches_per_epoch(self, budget: int) -> int:
        """Return the number of batches in an epoch, if each batch has at most `budget` target tokens."""
        return len(self._cuts(budget)) - 1

    def batch_at(self, seed: int, step: int, budget: int) -> tuple[int, np.ndarray]:
        """Return two values: the epoch of training step `step` (counted from 0), and the indices of the sentence pairs
        in the step's batch, int64. The batch has at most `budget` target tokens.

        In every epoch, pairs of equal lengths are shuffled among each other, and the order of the batches is shuffled.
        """
        cuts = self._cuts(budget)
        epoch, number = divmod(step, len(cuts) - 1)
        order, shuffled = self._order(seed, epoch, budget)
        chosen = int(shuffled[number])
        return epoch, order[cuts[chosen] : cuts[chosen + 1]]

    def smallest_batch(self, budget: int) -> int:
        """Return the number of sentence pairs in the smallest batch, if each batch has at most `budget` target
        tokens."""
        return int(np.diff(self._cuts(budget)).min())

    def _batch_cuts(self, budget: int) -> np.ndarray:
        """Return the boundaries of batches: the index of each batch's first sentence pair, followed by the number of
        pairs. The sentence pairs are sorted by length, and a batch has at most `budget` target tokens, but at least one
        pair.

        The number of batches is the minimum under this limit. The batches have about equal numbers of target tokens, so
        that the last batch is not small: if `budget` allows this, the boundaries divide the total number of target
        tokens into equal parts.
        """
        tokens = np.sort(self.lengths[:, 1])
        until = np.concatenate([[0], np.cumsum(tokens)])
        # Find the earliest possible boundary of each batch, by filling batches from the longest pair to the shortest
        # pair. Reverse the order of the boundaries, because `tokens` is in ascending order.
        earliest = len(tokens) - _full_cuts(np.concatenate([[0], np.cumsum(tokens[::-1])]), budget)[::-1]
        cuts, number = [0], len(earliest) - 1
        for batch in range(1, number + 1):
            equal = int(np.searchsorted(until, batch * until[-1] / number))
            wanted = max(equal, int(earliest[batch]), cuts[-1] + 1)
            cuts.append(min(wanted, _end_of_batch(until, cuts[-1], budget)))
        return np.array(cuts, dtype=np.int64)

    def _epoch_order(self, seed: int, epoch: int, budget: int) -> tuple[np.ndarray, np.ndarray]:
        # Use the raw output of Philox, as in `training.data_order`, because numpy guarantees the stream of raw outputs
        # in all versions.
        of_pairs, of_batches = np.random.SeedSequence([seed, epoch]).spawn(2)
        keys = np.random.Philox(of_pairs).random_raw(len(self))
        order = np.lexsort((keys, self.lengths[:, 0], self.lengths[:, 1]))
        batches = np.argsort(np.random.Philox(of_batches).random_raw(self.batches_per_epoch(budget)), kind="stable")
        return order, batches


def pairs_of(shards: TokenShards, longest: int, rules: "TranslationSettings", filtered: bool) -> TranslationPairs:
    """Return the sentence pairs of the documents in `shards`; `TranslationPairs` describes the other arguments. Raises
    the TrainingErrors of `TranslationPairs`; the messages also name the shards' manifest.
    """
    try:
        return TranslationPairs(shards, SpecialIds.of(shards.special), longest, rules, filtered)
    except TrainingError as error:
        raise TrainingError(f"{shards.manifest.path}: {error}") from None


def target_ids(pairs: TranslationPairs) -> Iterator[np.ndarray]:
    """Yield, for each pair, the token ids of its target sentence, without the end token."""
    return (pairs.sides(index)[1] for index in range(len(pairs)))


def _end_of_batch(until: np.ndarray, start: int, budget: int) -> int:
    """Return the boundary after the last pair of the largest batch that begins with pair `start` and has at most
    `budget` target tokens, but at least one pair. `until`, int64 [pairs + 1], is the cumulative number of target
    tokens.
    """
    return max(start + 1, int(np.searchsorted(until, until[start] + budget, side="right")) - 1)


def _full_cuts(until: np.ndarray, budget: int) -> np.ndarray:
    """Return batch boundaries: the index of each batch's first pair, followed by the number of pairs. Each batch
    contains as many pairs as `budget` target tokens allow, but at least one pair. `until`, int64 [pairs + 1], is the
    cumulative number of target tokens.
    """
    cuts = [0]
    while cuts[-1] < len(until) - 1:
        cuts.append(_end_of_batch(until, cuts[-1], budget))
    return np.array(cuts, dtype=np.int64)


def _side_lengths(documents: DocumentCollection) -> np.ndarray:
    """Return the number of source tokens and of target tokens of every document: int64 [documents, 2]. Raises
    TrainingError for a document that is not a pair.
    """
    lengths = np.zeros((documents.n_documents, LINES_OF_A_PAIR), dtype=np.int64)
    for number in range(documents.n_documents):
        document = documents.document(number)
        starts = document.sentence_starts
        if len(starts) != LINES_OF_A_PAIR:
            raise TrainingError(
                f"document {number + 1} of the split has {len(starts)} sentences, expected two: a sentence and its "
                "translation; the task translation needs a corpus whose sources have the reader parallel_text"
            )
        lengths[number] = starts[1], len(document.ids) - starts[1]
    return lengths


def _padded(rows: list[np.ndarray], filler: int) -> "Tensor":
    import torch

    padded = np.full((len(rows), max(map(len, rows))), filler, dtype=np.int64)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return torch.from_numpy(padded)
