"""A Unigram vocabulary in the manner of SentencePiece (Kudo, 2018), the same at every run.

The library's trainer adds up probabilities in the order of a randomly seeded hash table: scores differ from run to run
beyond rounding, ties at the pruning may fall either way, and neither threads nor the order of the text can pin that.
Here the same procedure runs on sorted distinct pre-tokens: frequent substrings as seeds, rounds of
expectation-maximisation and pruning of the pieces without which the likelihood falls least, ties by a piece's text.
"""

from collections import Counter

import numpy as np
from tokenizers import Tokenizer as Backend

from hatchery.tokenization.segment_lattice import SegmentLattice
from hatchery.tokenization.wordpiece_training import Lines

LONGEST_PIECE = 16
"""Characters of the longest piece, SentencePiece's default."""
LEAST_SEEDS = 200_000
SEEDS_PER_ENTRY = 8
"""Seeds: this many times the vocabulary, and not fewer than LEAST_SEEDS (SentencePiece takes a million)."""
KEPT_PER_ROUND = 0.75
"""Share of the pieces that a pruning keeps, SentencePiece's default as the two that follow."""
ROUNDS_PER_PRUNING = 2
BEFORE_LAST_CUT = 1.1
"""Pruning stops at this many times the size; the least probable pieces are cut off then."""
LEAST_EXPECTED_COUNT = 0.5
LONGEST_SEGMENT = 48
"""Characters of the longest training segment; a longer pre-token is learned from in parts."""
SCORE_DECIMALS = 6


def train_unigram(backend: Backend, lines: Lines, size: int, min_frequency: int) -> list[tuple[str, float]]:
    """At most `size` pieces with their log probabilities, falling; every character that is frequent enough is one.

    `backend` gives the normaliser and the pre-tokeniser. Characters rarer than `min_frequency` get no piece, so a text
    with them has unknown tokens. More than `size` come out when the characters alone are more.
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
        with np.errstate(invalid="ignore"):  # -inf minus -inf of pieces that are gone
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
    """How often each pre-token occurs in the lines, as normaliser and pre-tokeniser of `backend` cut them."""
    counts: Counter[str] = Counter()
    normalizer, pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    for item in lines:
        # Pre-tokens end at white space, so lines may be cut together: one call for a document.
        text = item if isinstance(item, str) else "\n".join(item)
        normalised = text if normalizer is None else normalizer.normalize_str(text)
        counts.update(piece for piece, _ in pre_tokenizer.pre_tokenize_str(normalised))
    return counts


def training_segments(pre_tokens: Counter[str], min_frequency: int) -> dict[str, int]:
    """Pre-tokens without rare characters, in parts of at most LONGEST_SEGMENT characters, with their counts."""
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
    """Substrings of 2 to LONGEST_PIECE characters that occur twice or more, the `most` of largest count x length.

    One that always goes on with the same character is left out for the longer one. Lengths grow one by one over arrays
    of positions: an occurrence goes on only when its beginning is frequent.
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
    found: list[tuple[int, str]] = []
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
                found.append((int(previous[index]), joined[start : start + length - 1]))
        pending = (positions[first], counts, len(counts))
        frequent = counts[grams] >= 2 if len(grams) else np.zeros(0, bool)
        positions, grams = positions[frequent], grams[frequent]
    found.sort(key=lambda piece: (-piece[0] * len(piece[1]), piece[1]))
    return {text: count for count, text in found[:most]}


def _estimate(expected: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Log probabilities from expected counts, under the sparse prior of SentencePiece (digamma instead of log)."""
    from scipy.special import digamma

    held = np.where(alive, np.maximum(expected, LEAST_EXPECTED_COUNT), 1.0)
    return np.where(alive, digamma(held) - digamma(held[alive].sum()), -np.inf)


def _prune(losses: np.ndarray, alive: np.ndarray, required: np.ndarray, keep: int) -> np.ndarray:
    """Keep the characters, and of the other pieces those without which the likelihood would fall most."""
    order = sorted(np.flatnonzero(alive).tolist(), key=lambda index: (not required[index], -losses[index], index))
    kept = np.zeros_like(alive)
    kept[order[: max(keep, int(required.sum()))]] = True
    return kept
