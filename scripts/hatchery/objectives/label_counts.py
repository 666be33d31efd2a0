"""Count how often each token id is a label in training, for the initial bias of the output layer.

Source: "A Natural Bias for Language Generation Models", Section 3; docs/papers/natural-bias.md, "The bias" and "Other
objectives". The labels of the loss are counted, so the counted units are subwords (not words) that the model must
predict (not input tokens). For masked models, the labels are counted in masked training examples. Counts of the text
would differ, because masking of spans or whole words, shortened examples and reproduced errors of published code change
the labels.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.special_ids import SpecialIds
from hatchery.progress import Progress
from hatchery.tokenization.special_tokens import UNLABELLED

if TYPE_CHECKING:
    from hatchery.tokenization.token_shards import Document, TokenShards
    from hatchery.training.examples import Examples

_EXAMPLES_PER_BATCH = 128
# Number of ids that are collected before one call of `bincount`, because each call takes time proportional to the
# vocabulary size.
_IDS_PER_COUNT = 1_000_000


def label_counts(
    examples: "Examples", seed: int, vocab_size: int, limit: int | None = None, show: bool = True
) -> np.ndarray:
    """Return, for each token id, the number of labels with this id in the first epoch of a training with `seed`: int64
    [vocab_size].

    At most `limit` examples are counted (None: all examples). The counted examples are evenly spaced in `examples`,
    because the parts of a corpus differ. If `show` is true, progress is printed. Raises TrainingError for a label
    outside of the vocabulary, and if there is no label.
    """
    chosen = counted_examples(len(examples), limit)
    pieces = [chosen[first : first + _EXAMPLES_PER_BATCH] for first in range(0, len(chosen), _EXAMPLES_PER_BATCH)]
    if not show:
        return _counted((_labels(examples, seed, piece) for piece in pieces), vocab_size)
    with Progress(len(chosen), "counting labels", "examples") as progress:

        def labels() -> Iterator[np.ndarray]:
            for piece in pieces:
                yield _labels(examples, seed, piece)
                progress.update(len(piece))

        return _counted(labels(), vocab_size)


def counted_examples(n_examples: int, limit: int | None) -> np.ndarray:
    """Return the indices of the examples that `label_counts` counts, ascending and evenly spaced: at most `limit`
    indices, or all if `limit` is None.
    """
    n_chosen = n_examples if limit is None else min(n_examples, limit)
    return np.arange(n_chosen, dtype=np.int64) * n_examples // max(1, n_chosen)


def corpus_counts(documents: "Iterable[Document]", special: SpecialIds, vocab_size: int) -> np.ndarray:
    """Return, for each token id that masking can choose, the number of tokens with this id in `documents`: int64
    [vocab_size].

    These counts are proportional to the expected counts of labels if each token is masked with the same probability.
    The count of ids below `special.n_protected` is 0, because these special tokens are masked only with
    `special_tokens_maskable`. Raises TrainingError for an id outside of the vocabulary, and if masking can choose no
    token.
    """
    counts = _counted((document.ids for document in documents), vocab_size)
    counts[: special.n_protected] = 0
    return _with_something(counts)


def maskable_tokens(shards: "TokenShards") -> np.ndarray:
    """Return, for each token id that masking can choose, the number of tokens with this id in a split: int64
    [vocabulary size].
    """
    return corpus_counts(shards, SpecialIds.of(shards.special), shards.vocabulary_size)


def next_token_counts(sentences: Iterable[np.ndarray], end_id: int, start_id: int, vocab_size: int) -> np.ndarray:
    """Return, for each token id, the number of targets with this id: int64 [vocab_size]. The decoder reads `start y1 ..
    yn` and predicts `y1 .. yn end`.

    The end token counts once per sentence. `sentences` contain only the ids y1 .. yn. Raises TrainingError for a
    sentence that begins with the start token or ends with the end token, for an id outside of the vocabulary, and if
    there is no target.
    """
    n_sentences = 0

    def ids() -> Iterator[np.ndarray]:
        nonlocal n_sentences
        for sentence in sentences:
            if len(sentence) and (sentence[0] == start_id or sentence[-1] == end_id):
                raise TrainingError(
                    f"sentence {n_sentences}: contains the start token {start_id} or the end token {end_id}, expected "
                    "sentences without these tokens"
                )
            n_sentences += 1
            yield sentence

    counts = _counted(ids(), vocab_size, allow_nothing=True)
    counts[end_id] += n_sentences
    return _with_something(counts)


def _labels(examples: "Examples", seed: int, indices: np.ndarray) -> np.ndarray:
    labels = examples.batch(seed, 0, indices)["labels"].numpy()
    return labels[labels != UNLABELLED]


def _counted(parts: Iterable[np.ndarray], size: int, allow_nothing: bool = False) -> np.ndarray:
    counts = np.zeros(size, dtype=np.int64)
    for ids in _gathered(parts):
        if ids.min() < 0 or ids.max() >= size:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise TrainingError(f"labels: got {wrong}, expected 0 to {size - 1}")
        counts += np.bincount(ids, minlength=size)
    return counts if allow_nothing else _with_something(counts)


def _gathered(parts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the ids of all `parts`, regrouped into arrays of about `_IDS_PER_COUNT` ids; no array is empty."""
    waiting: list[np.ndarray] = []
    n_waiting = 0
    for part in parts:
        for first in range(0, len(part), _IDS_PER_COUNT):
            waiting.append(part[first : first + _IDS_PER_COUNT])
            n_waiting += len(waiting[-1])
            if n_waiting >= _IDS_PER_COUNT:
                yield np.concatenate(waiting)
                waiting, n_waiting = [], 0
    if n_waiting:
        yield np.concatenate(waiting)


def _with_something(counts: np.ndarray) -> np.ndarray:
    if not counts.any():
        raise TrainingError("labels: got no labels, expected at least one label for the prior")
    return counts
