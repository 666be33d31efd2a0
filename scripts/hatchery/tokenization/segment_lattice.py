"""All ways to cut many short texts into pieces, and sums over them by the forward-backward algorithm (Kudo, 2018).

A text of n characters has the nodes 0 to n; a piece that stands at the characters i to j is an edge from node i to
node j. Nodes of all texts are numbered by level (distance from the start), so that one numpy operation takes a step in
every text at once. Sums run in a fixed order: the same input gives the same numbers.
"""

from array import array
from collections.abc import Sequence

import numpy as np

# Every probability of n characters is multiplied by exp(n x this): it cancels out in the end, and keeps long texts far
# from the smallest double (about exp(-745)).
NATS_PER_CHARACTER = 2.5


class SegmentLattice:
    """The edges of `texts`, which must be sorted by falling length, over pieces of at most `longest` characters.

    Without `whole_texts` a piece that is a whole text is no edge of that text.
    """

    def __init__(self, texts: Sequence[str], pieces: Sequence[str], longest: int, whole_texts: bool = True) -> None:
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        deepest = int(lengths[0]) if len(lengths) else 0
        # The texts that reach a level are the first so many, so a text keeps its place on every level.
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
        """Scaled probability of each piece; edges of pieces that are gone for good are forgotten."""
        living = alive[self._pieces]
        if living.mean() < 0.8:
            kept = (values[living] for values in (self._sources, self._targets, self._rows, self._pieces))
            self._set_edges(*kept)
        with np.errstate(over="raise"):
            return np.where(alive, np.exp(scores + NATS_PER_CHARACTER * self._piece_lengths), 0.0)

    def _sums_forward(self, probabilities: np.ndarray) -> np.ndarray:
        """For each node the scaled probability of all ways from the start."""
        sums = np.zeros(int(self._offsets[-1]))
        sums[: self._widths[0]] = 1.0
        for level in range(1, len(self._widths)):
            edges = slice(self._forward[level], self._forward[level + 1])
            weights = sums[self._sources[edges]] * probabilities[self._pieces[edges]]
            start, width = self._offsets[level], self._widths[level]
            sums[start : start + width] = np.bincount(self._rows[edges], weights=weights, minlength=width)
        return sums

    def _sums_backward(self, probabilities: np.ndarray) -> np.ndarray:
        """For each node the scaled probability of all ways to the end."""
        sums = np.zeros(int(self._offsets[-1]))
        sums[self._ends] = 1.0
        for level in range(len(self._widths) - 2, -1, -1):
            edges = self._by_source[self._backward[level] : self._backward[level + 1]]
            weights = sums[self._targets[edges]] * probabilities[self._pieces[edges]]
            start, width = self._offsets[level], self._widths[level]
            sums[start : start + width] += np.bincount(self._rows[edges], weights=weights, minlength=width)
        return sums

    def expected_counts(self, scores: np.ndarray, alive: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """How often each piece is expected to occur when each text occurs as often as `frequencies` says.

        `scores` are log probabilities of the pieces, `alive` says which of them may be used, for this and all later
        calls. A text that cannot be cut adds nothing.
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
        """Log of the summed probability of all ways to cut each text, in the order of the texts; -inf for none."""
        totals = self._sums_forward(self._probabilities(scores, alive))[self._ends]
        with np.errstate(divide="ignore"):
            return np.log(totals) - NATS_PER_CHARACTER * self._lengths
