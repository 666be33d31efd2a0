"""Deterministic training of a Unigram vocabulary, as in SentencePiece (Kudo, 2018).

The library's trainer is not deterministic, even with one thread and a fixed order of the text. It adds up probabilities
in the order of a randomly seeded hash table, and pruning resolves ties at random. So scores differ between runs by more
than rounding errors. This module uses sorted distinct pre-tokens. Frequent substrings are the initial pieces; then
rounds of expectation-maximisation alternate with pruning of the pieces whose removal lowers the likelihood least. Ties
are resolved by the text of the pieces.

The segmentations of a text of n characters are paths over the nodes 0 to n. A piece that begins at character i and ends
before character j is an edge from node i to node j. The forward-backward algorithm computes sums over all paths. Nodes
of all texts are numbered by level (distance from the start), so that one numpy operation advances all texts by one
level. Sums are computed in a fixed order, so the same input gives the same vocabulary.
"""

from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer as Backend

from hatchery.tokenization.documents import Lines

# The probability of a piece of n characters is multiplied by exp(n x NATS_PER_CHARACTER), so that probabilities of long
# texts do not underflow below exp(-745). The factor cancels in the result.
NATS_PER_CHARACTER = 2.5


class SegmentLattice:
    """All segmentations of `texts` into pieces of at most `longest` characters.

    `texts` must be sorted from the longest to the shortest. If `whole_texts` is false, segmentations of a text into one
    piece are left out.
    """

    def __init__(self, texts: Sequence[str], pieces: Sequence[str], longest: int, whole_texts: bool = True) -> None:
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        deepest = int(lengths[0]) if len(lengths) else 0
        # Level i is the position after i characters. The texts are sorted from the longest to the shortest. So texts
        # with at least i characters are the first texts, and a text has the same index on every level.
        self._widths = [int(np.searchsorted(-lengths, -level, side="right")) for level in range(deepest + 1)]
        self._offsets = np.concatenate([[0], np.cumsum(self._widths)]).astype(np.int64)
        self._ends = self._offsets[lengths] + np.arange(len(lengths))
        self._lengths = lengths
        self._piece_lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        numbers = {piece: number for number, piece in enumerate(pieces)}
        edges = (array("i"), array("i"), array("i"), array("i"))
        offsets = self._offsets.tolist()
        for row, text in enumerate(texts):
            size = len(text)
            for start in range(size):
                for end in range(start + 1, min(start + longest, size) + 1):
                    number = numbers.get(text[start:end])
                    if number is not None and (whole_texts or end - start < size):
                        for values, value in zip(
                            edges, (offsets[start] + row, offsets[end] + row, row, number), strict=True
                        ):
                            values.append(value)
        self._set_edges(*(np.array(values, dtype=np.int32) for values in edges))

    def _set_edges(self, sources: np.ndarray, targets: np.ndarray, rows: np.ndarray, pieces: np.ndarray) -> None:
        order = np.argsort(targets, kind="stable")
        self._sources, self._targets = sources[order], targets[order]
        self._rows, self._pieces = rows[order], pieces[order]
        self._forward = np.searchsorted(self._targets, self._offsets)
        self._by_source = np.argsort(self._sources, kind="stable").astype(np.int32)
        self._backward = np.searchsorted(self._sources[self._by_source], self._offsets)

    def _probabilities(self, scores: np.ndarray, alive: np.ndarray) -> np.ndarray:
        """Return the probability of each piece, scaled by the piece's length to avoid underflow; 0 for removed pieces.

        If more than a fifth of the lattice's edges belong to removed pieces, these edges are deleted from the lattice.
        """
        living = alive[self._pieces]
        if living.mean() < 0.8:
            kept = (values[living] for values in (self._sources, self._targets, self._rows, self._pieces))
            self._set_edges(*kept)
        with np.errstate(over="raise"):
            return np.where(alive, np.exp(scores + NATS_PER_CHARACTER * self._piece_lengths), 0.0)

    def _sums_forward(self, probabilities: np.ndarray) -> np.ndarray:
        """Return for each node the sum of the scaled probabilities of all paths from the beginning of the node's text
        to this node.
        """
        sums = np.zeros(int(self._offsets[-1]))
        sums[: self._widths[0]] = 1.0
        for level in range(1, len(self._widths)):
            edges = slice(self._forward[level], self._forward[level + 1])
            weights = sums[self._sources[edges]] * probabilities[self._pieces[edges]]
            start, width = self._offsets[level], self._widths[level]
            sums[start : start + width] = np.bincount(self._rows[edges], weights=weights, minlength=width)
        return sums

    def _sums_backward(self, probabilities: np.ndarray) -> np.ndarray:
        """Return for each node the sum of the scaled probabilities of all paths from this node to the end of the node's
        text.
        """
        sums = np.zeros(int(self._offsets[-1]))
        sums[self._ends] = 1.0
        for level in range(len(self._widths) - 2, -1, -1):
            edges = self._by_source[self._backward[level] : self._backward[level + 1]]
            weights = sums[self._targets[edges]] * probabilities[self._pieces[edges]]
            start, width = self._offsets[level], self._widths[level]
            sums[start : start + width] += np.bincount(self._rows[edges], weights=weights, minlength=width)
        return sums

    def expected_counts(self, scores: np.ndarray, alive: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Return the expected count of each piece if text i occurs `frequencies[i]` times.

        `scores` are the pieces' log-probabilities. `alive` is False for removed pieces, which must also be False in all
        later calls. A text without segmentation adds nothing.
        """
        probabilities = self._probabilities(scores, alive)
        forward, backward = self._sums_forward(probabilities), self._sums_backward(probabilities)
        totals = forward[self._ends]
        shares = np.divide(frequencies, totals, out=np.zeros_like(totals), where=totals > 0)
        expected = np.zeros(len(probabilities))
        for level in range(1, len(self._widths)):
            edges = slice(self._forward[level], self._forward[level + 1])
            pieces = self._pieces[edges]
            inner = forward[self._sources[edges]] * probabilities[pieces] * backward[self._targets[edges]]
            expected += np.bincount(pieces, weights=shares[self._rows[edges]] * inner, minlength=len(expected))
        return expected

    def log_probabilities(self, scores: np.ndarray, alive: np.ndarray) -> np.ndarray:
        """Return for each text the log of the sum of the probabilities of its segmentations; -inf without
        segmentation."""
        totals = self._sums_forward(self._probabilities(scores, alive))[self._ends]
        with np.errstate(divide="ignore"):
            return np.log(totals) - NATS_PER_CHARACTER * self._lengths


LONGEST_PIECE = 16
"""Maximum number of characters of a piece, as in SentencePiece."""
LEAST_SEEDS = 200_000
SEEDS_PER_ENTRY = 8
"""Number of seeds (initial pieces) per vocabulary entry; there are at least LEAST_SEEDS seeds. SentencePiece uses a
million seeds.
"""
KEPT_PER_ROUND = 0.75
"""Share of the pieces that each round of pruning keeps. Like ROUNDS_PER_PRUNING and BEFORE_LAST_CUT, this is
SentencePiece's default.
"""
ROUNDS_PER_PRUNING = 2
BEFORE_LAST_CUT = 1.1
"""Pruning stops at this multiple of the vocabulary size; then the least probable pieces are removed in one step."""
LEAST_EXPECTED_COUNT = 0.5
LONGEST_SEGMENT = 48
"""Maximum number of characters of a training segment; longer pre-tokens are divided."""
SCORE_DECIMALS = 6


def train_unigram(backend: Backend, lines: Lines, size: int, min_frequency: int) -> list[tuple[str, float]]:
    """Return `size` pieces or fewer, including every frequent character, with their log-probabilities; the most
    probable piece is first.

    `backend` has the normaliser and the pre-tokeniser. A character with a frequency below `min_frequency` is no piece,
    so a text with this character has unknown tokens. Only if there are more than `size` frequent characters, more
    pieces are returned.
    """
    segments = training_segments(count_pre_tokens(backend, lines), min_frequency)
    if not segments:
        return []
    characters = _character_counts(segments)
    seeds = seed_pieces(segments, max(LEAST_SEEDS, SEEDS_PER_ENTRY * size))
    pieces = sorted({*seeds, *characters})
    counts = np.array([seeds.get(piece) or characters[piece] for piece in pieces], dtype=np.float64)
    scores = np.log(counts) - np.log(counts.sum())
    texts = sorted(segments, key=lambda text: (-len(text), text))
    lattice = SegmentLattice(texts, pieces, LONGEST_PIECE)
    frequencies = np.array([segments[text] for text in texts], dtype=np.float64)
    required = np.array([len(piece) == 1 for piece in pieces])
    by_length = sorted(range(len(pieces)), key=lambda index: (-len(pieces[index]), index))
    inside = SegmentLattice([pieces[index] for index in by_length], pieces, LONGEST_PIECE, whole_texts=False)
    alive = np.ones(len(pieces), dtype=bool)
    target = max(int(size * BEFORE_LAST_CUT), int(required.sum()))
    while True:
        for _ in range(ROUNDS_PER_PRUNING):
            expected = lattice.expected_counts(scores, alive, frequencies)
            alive &= (expected >= LEAST_EXPECTED_COUNT) | required
            scores = _estimate(expected, alive)
        if alive.sum() <= target:
            break
        keep = max(target, int(alive.sum() * KEPT_PER_ROUND))
        without = np.empty(len(pieces))
        without[by_length] = inside.log_probabilities(scores, alive)
        with np.errstate(invalid="ignore"):  # The score of a removed piece is -inf, and -inf minus -inf is invalid.
            losses = np.where(alive & ~required, expected * (scores - without), np.inf)
        alive = _prune(losses, alive, required, keep)
        scores = np.where(alive, scores, -np.inf)
    order = sorted(np.flatnonzero(alive).tolist(), key=lambda index: (not required[index], -scores[index], index))
    chosen = order[: max(size, int(required.sum()))]
    return sorted(
        ((pieces[index], round(float(scores[index]), SCORE_DECIMALS)) for index in chosen),
        key=lambda piece: (-piece[1], piece[0]),
    )


def count_pre_tokens(backend: Backend, lines: Lines) -> Counter[str]:
    """Return the frequency of each pre-token in the lines; `backend` normalises and splits the lines."""
    counts: Counter[str] = Counter()
    normalizer, pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    for item in lines:
        # The lines of a document are split in one call, because no pre-token extends over a line end.
        text = item if isinstance(item, str) else "\n".join(item)
        normalised = text if normalizer is None else normalizer.normalize_str(text)
        counts.update(piece for piece, _ in pre_tokenizer.pre_tokenize_str(normalised))
    return counts


def training_segments(pre_tokens: Counter[str], min_frequency: int) -> dict[str, int]:
    """Return the training segments with their counts: pre-tokens split at rare characters and after LONGEST_SEGMENT
    characters."""
    characters = _character_counts(pre_tokens)
    rare = {ord(character): "\0" for character, count in characters.items() if count < min_frequency} | {0: "\0"}
    segments: Counter[str] = Counter()
    for text, count in pre_tokens.items():
        for part in text.translate(rare).split("\0"):
            for start in range(0, len(part), LONGEST_SEGMENT):
                segments[part[start : start + LONGEST_SEGMENT]] += count
    return dict(segments)


def _character_counts(texts: dict[str, int] | Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, count in texts.items():
        for character in text:
            counts[character] += count
    return counts


def seed_pieces(segments: dict[str, int], most: int) -> dict[str, int]:
    """Return the substrings of the training `segments` with the largest product of count and length, with their counts:
    at most `most` substrings.

    Substrings have 2 to LONGEST_PIECE characters and occur at least twice. If the same character always follows a
    substring, only the longer substring with this character is returned. The search extends substrings by one character
    per step, beginning with single characters; substrings that occur once are not extended.
    """
    texts = sorted(segments)
    lengths = np.array([len(text) for text in texts])
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    ends = np.repeat(np.cumsum(lengths), lengths)
    weights = np.repeat(np.array([segments[text] for text in texts], dtype=np.int64), lengths)
    joined = "".join(texts)
    alphabet, codes = np.unique(codes, return_inverse=True)
    positions = np.arange(len(codes))
    grams = codes
    candidates: list[tuple[int, str]] = []
    pending: tuple[np.ndarray, np.ndarray, int] | None = None
    for length in range(2, LONGEST_PIECE + 2):
        going_on = positions + length <= ends[positions]
        positions, parents = positions[going_on], grams[going_on]
        if not len(positions):
            positions, parents = np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys = parents * len(alphabet) + codes[positions + length - 1]
        _, first, grams = np.unique(keys, return_index=True, return_inverse=True)
        counts = np.bincount(grams, weights=weights[positions]).astype(np.int64) if len(grams) else np.zeros(0, int)
        if pending is not None:
            starts, previous, known = pending
            longest = np.zeros(known, dtype=np.int64)
            np.maximum.at(longest, parents[first], counts)
            for index in np.flatnonzero((longest < previous) & (previous >= 2)).tolist():
                start = int(starts[index])
                candidates.append((int(previous[index]), joined[start : start + length - 1]))
        pending = (positions[first], counts, len(counts))
        frequent = counts[grams] >= 2 if len(grams) else np.zeros(0, bool)
        positions, grams = positions[frequent], grams[frequent]
    candidates.sort(key=lambda piece: (-piece[0] * len(piece[1]), piece[1]))
    return {text: count for count, text in candidates[:most]}


def _estimate(expected: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Return log-probabilities of the pieces from their expected counts, with SentencePiece's sparse prior (digamma
    instead of log).
    """
    from scipy.special import digamma

    held = np.where(alive, np.maximum(expected, LEAST_EXPECTED_COUNT), 1.0)
    return np.where(alive, digamma(held) - digamma(held[alive].sum()), -np.inf)


def _prune(losses: np.ndarray, alive: np.ndarray, required: np.ndarray, keep: int) -> np.ndarray:
    """Return a mask, bool, that is True for the pieces to keep. All `required` pieces (single characters) are kept, and
    then the pieces whose removal would lower the log-likelihood most (`losses`), until `keep` pieces are kept. Pieces
    that were removed before (`alive` is False) stay removed.
    """
    order = sorted(np.flatnonzero(alive).tolist(), key=lambda index: (not required[index], -losses[index], index))
    kept = np.zeros_like(alive)
    kept[order[: max(keep, int(required.sum()))]] = True
    return kept
