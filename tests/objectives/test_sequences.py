"""Sequences of one or two segments, against plain implementations of the published code.

Source: docs/papers/ltg-bert.md, "Examples" and "Sentence pairs".
"""

import itertools
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hatchery.errors import TrainingError
from hatchery.objectives.sequences import N_REDRAWS, single_target
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings

LENGTH, DRAWS = 64, 6000


def drawn_lengths(collection, segments, short_probability=0.1):
    """Return the number of tokens in the first example, without special tokens, in each of many epochs."""
    settings = MaskedSettings("subword", short_probability=short_probability, segments=segments)
    examples = objective_of(settings).examples(collection, LENGTH)
    return np.array([len(examples.example(0, epoch, 0).labels) - 2 for epoch in range(DRAWS)])


@pytest.mark.parametrize("segments", ["babylm", "bnc", "documents"])
def test_a_tenth_of_the_examples_is_cut_to_a_uniform_length(make_collection, segments):
    lengths = drawn_lengths(make_collection([[100, 30]]), segments)
    full, shortest = LENGTH - 2, 1
    assert set(np.unique(lengths)) <= set(range(shortest, full + 1))
    short = lengths[lengths < full]
    n_values = full - shortest
    assert len(short) / DRAWS == pytest.approx(0.1, abs=3 * (0.1 * 0.9 / DRAWS) ** 0.5)
    counts = np.bincount(short, minlength=full)[shortest:]
    expected = len(short) / n_values
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < (n_values - 1) + 3 * (2 * (n_values - 1)) ** 0.5
    assert short.mean() == pytest.approx((1 + full - 1) / 2, abs=3 * (n_values**2 / 12 / len(short)) ** 0.5)


def test_the_shortest_and_the_longest_cut_are_reached():
    target = single_target(LENGTH, 0.1)
    assert (target(0.0, 0.0), target(0.0, 1 - 2**-53), target(0.1, 0.0)) == (1, LENGTH - 3, LENGTH - 2)


def test_shorter_segments_stay_whole(make_collection):
    lengths = drawn_lengths(make_collection([[20]]), "bnc")
    # An example is shorter than 20 only if its target length is: 19 of the 61 short targets are below 20.
    assert lengths.max() == 20
    share = 0.1 * 19 / 61
    assert (lengths < 20).mean() == pytest.approx(share, abs=3 * (share * (1 - share) / DRAWS) ** 0.5)


def test_nothing_is_cut_without_short_examples(make_collection):
    assert (drawn_lengths(make_collection([[100]]), "documents", 0.0) == LENGTH - 2).all()


CLS, SEP = 1, 2
UNMASKED = MaskedSettings("subword", mask_probability=0.0)


def pair_examples(collection, kind, sequence_length, segments="bnc", short_probability=0.1):
    settings = replace(UNMASKED, short_probability=short_probability, segments=segments, sentence_pairs=kind)
    return objective_of(settings).examples(collection, sequence_length)


def parts(example):
    """Return the texts of an example without its special tokens."""
    ids = example.input_ids.tolist()
    assert ids[0] == CLS and ids[-1] == SEP
    return [list(group) for is_sep, group in itertools.groupby(ids[1:], lambda id_: id_ == SEP) if not is_sep]


def joined(sentences):
    return list(itertools.chain.from_iterable(sentences))


class PlainPairs:
    """The published procedure, sentence by sentence, with Python's generator; `documents` are lists of sentences."""

    def __init__(self, documents, sequence_length, seed):
        self.random, self.length = random.Random(seed), sequence_length
        self.segments = []
        for number, sentences in enumerate(documents):
            for first in range(len(sentences)):
                taken = [sentences[first]]
                for sentence in sentences[first + 1 :]:
                    if sum(map(len, taken)) >= sequence_length - 3:
                        break
                    taken.append(sentence)
                self.segments.append((number, taken))

    def draw(self, kind, index):
        """Return (label, first text, second text or None)."""
        number, sentences = self.segments[index]
        label, first, second = self.positive(sentences) if len(sentences) > 1 else (0, joined(sentences), None)
        if kind == "order":
            if second is None:
                return 0, first[: self.target(self.length - 2, 1)], None
            if self.random.random() < 0.5:
                label, first, second = 0, second, first
        elif second is None or self.random.random() <= 0.5:
            for _ in range(11):
                other, text = self.random.choice(self.segments)
                if other != number:
                    label, first, second = 0, joined(sentences), joined(text)
                    break
            if second is None:
                return 0, first[: self.target(self.length - 2, 1)], None
        return label, *self.truncated(first, second)

    def positive(self, sentences):
        cut = self.random.randint(1, len(sentences) - 1)
        return 1, joined(sentences[:cut]), joined(sentences[cut:])

    def target(self, full, least):
        return full if self.random.random() < 0.9 else self.random.randint(least, full - 1)

    def truncated(self, first, second):
        cut = len(first) + len(second) - self.target(self.length - 3, 2)
        if cut <= 0:
            return first, second
        left = self.random.randint(max(0, cut - len(second) + 1), min(cut, len(first) - 1))
        return first[: len(first) - left], second[: len(second) - (cut - left)]


DOCUMENTS = [[4, 9, 3, 7, 12, 2, 5], [8], [3] * 30, [70, 6, 5], [11, 14, 9, 9, 9, 1, 1, 6] * 3, [2, 2], [26, 1, 31]]


def sentences_of(collection):
    return [
        [ids.tolist() for ids in np.split(document.ids, document.sentence_starts[1:])]
        for document in collection.documents
    ]


def measures(label, first, second):
    """Return the measures of one example that are compared between the two implementations."""
    return {
        "label": label,
        "single": second is None,
        "first length": len(first),
        "second length": len(second or []),
        "squared first length": len(first) ** 2,
        "total": len(first) + len(second or []),
        "adjacent": second is not None and second[0] == first[-1] + 1,
        "hole": second is not None and first[-1] + 1 < second[0] <= first[-1] + 40 and label == 1,
        "first of the second": second[0] if second else 0,
        "one token": len(first) == 1 or len(second or []) == 1,
    }


@pytest.mark.parametrize("kind", ["document", "order"])
def test_statistics_are_those_of_the_published_procedure(make_traceable, kind):
    """Each mean is within 3 standard errors of the difference between two samples."""
    collection = make_traceable(DOCUMENTS)
    examples, plain = pair_examples(collection, kind, 40), PlainPairs(sentences_of(collection), 40, seed=3)
    assert len(examples) == len(plain.segments)
    ours, theirs = [], []
    for epoch in range(120):
        for index in range(len(examples)):
            example = examples.example(7, epoch, index)
            first, *second = parts(example)
            assert example.pair_label is not None and len(second) <= 1
            ours.append(measures(example.pair_label, first, second[0] if second else None))
            theirs.append(measures(*plain.draw(kind, index)))
    for name in ours[0]:
        a, b = (np.array([row[name] for row in sample], dtype=float) for sample in (ours, theirs))
        error = ((a.var() + b.var()) / len(a)) ** 0.5
        assert a.mean() == pytest.approx(b.mean(), abs=3 * error + 1e-12), name


def exact_lengths(first, second, sequence_length):
    """Return the probabilities of (length of A, length of B) after truncation of one pair, by enumeration."""
    full = sequence_length - 3
    targets = {full: Fraction(9, 10)}
    targets |= {target: Fraction(1, 10) / (full - 2) for target in range(2, full)}
    found = Counter()
    for target, probability in targets.items():
        cut = max(0, first + second - target)
        lefts = range(max(0, cut - second + 1), min(cut, first - 1) + 1)
        for left in lefts:
            found[first - left, second - (cut - left)] += probability / len(lefts)
    return found


def test_cuts_are_distributed_as_the_rule_says(make_traceable):
    """Three sentences, hence two boundaries, longer than the sequence; a chi-square test against exact
    probabilities."""
    collection, draws = make_traceable([[6, 5, 7]]), 20_000
    examples = pair_examples(collection, "order", 16)
    drawn = Counter()
    for epoch in range(draws):
        example = examples.example(0, epoch, 0)
        first, second = parts(example)
        if not example.pair_label:
            first, second = second, first
        drawn[second[0], len(first), len(second)] += 1
    expected = Counter()
    for boundary in (6, 11):
        lengths = Counter()
        for (a, b), share in exact_lengths(boundary, 18 - boundary, 16).items():
            lengths[a, b] += share / 2
        for (b, a), share in exact_lengths(18 - boundary, boundary, 16).items():
            lengths[a, b] += share / 2
        for (a, b), share in lengths.items():
            expected[7 + boundary, a, b] += share / 2
    assert sum(expected.values()) == 1 and set(drawn) <= set(expected)
    common = [cell for cell, share in expected.items() if share * draws >= 5]
    rest = draws - sum(drawn[cell] for cell in common)
    cells = [(drawn[cell], float(expected[cell]) * draws) for cell in common]
    cells.append((rest, draws - sum(mean for _, mean in cells)))
    chi_square = sum((count - mean) ** 2 / mean for count, mean in cells if mean > 1e-6)
    freedom = len(cells) - 1
    assert chi_square < freedom + 3 * (2 * freedom) ** 0.5


def test_document_labels_are_balanced_where_every_segment_has_two_sentences(make_traceable):
    examples = pair_examples(make_traceable([[5, 5]] * 300), "document", 32, segments="babylm")
    labels = examples.batch(0, 0, np.arange(300))["pair_labels"]
    assert labels.shape == (300,) and str(labels.dtype) == "torch.int64"
    many = np.concatenate([examples.batch(0, epoch, np.arange(300))["pair_labels"].numpy() for epoch in range(10)])
    # 3000 labels; a draw of another document fails only with probability 300 ** -11.
    assert many.mean() == pytest.approx(0.5, abs=3 * 0.5 / 3000**0.5)


def test_consecutive_texts_are_the_two_sides_of_a_sentence_boundary(make_traceable):
    collection = make_traceable(DOCUMENTS)
    examples = pair_examples(collection, "document", 128)
    starts = {int(d.ids[start]) for d in collection.documents for start in d.sentence_starts}
    origin = {int(id_): number for number, d in enumerate(collection.documents) for id_ in d.ids}
    labels = set()
    for index, epoch in itertools.product(range(len(examples)), range(4)):
        example = examples.example(3, epoch, index)
        first, second = parts(example)
        assert first[0] in starts and second[0] in starts
        assert first == list(range(first[0], first[0] + len(first)))
        assert second == list(range(second[0], second[0] + len(second)))
        assert (origin[first[0]] == origin[second[0]]) == bool(example.pair_label)
        labels.add(example.pair_label)
    assert labels == {0, 1}


def test_a_stranger_is_drawn_eleven_times_before_the_pair_becomes_consecutive(make_traceable):
    """One document has nearly all segments, so a negative pair is consecutive if all draws miss the other document."""
    collection = make_traceable([[3] * 9, [3]])
    examples = pair_examples(collection, "document", 64)
    draws = 6000
    labels = np.array([examples.example(5, epoch, 0).pair_label for epoch in range(draws)])
    expected = 0.5 + 0.5 * 0.9 ** (1 + N_REDRAWS)
    assert N_REDRAWS == 10
    assert labels.mean() == pytest.approx(expected, abs=3 * (expected * (1 - expected) / draws) ** 0.5)


def test_in_a_single_document_all_pairs_are_consecutive_but_single_sentences(make_traceable):
    examples = pair_examples(make_traceable([[4, 4, 4]]), "document", 32)
    drawn = [(index, examples.example(0, epoch, index)) for index in range(3) for epoch in range(20)]
    assert {(index, example.pair_label, len(parts(example))) for index, example in drawn} == {
        (0, 1, 2),
        (1, 1, 2),
        (2, 0, 1),
    }


def test_order_shows_a_single_sentence_alone_with_a_label_that_is_noise(make_traceable):
    examples = pair_examples(make_traceable([[9]] * 5), "order", 32, short_probability=0.0)
    for index in range(5):
        example = examples.example(0, 0, index)
        assert example.pair_label == 0 and [len(part) for part in parts(example)] == [9]


def test_single_sentences_of_order_fill_a_single_sequence(make_traceable):
    """A single sentence has one special token less than a pair."""
    examples = pair_examples(make_traceable([[90]]), "order", 32, short_probability=0.0)
    assert len(parts(examples.example(0, 0, 0))[0]) == 30


def test_order_shows_the_two_texts_in_either_order(make_traceable):
    examples = pair_examples(make_traceable([[5, 6]]), "order", 32, short_probability=0.0)
    seen = {
        (example.pair_label, tuple(map(tuple, parts(example))))
        for example in (examples.example(0, epoch, 0) for epoch in range(40))
    }
    a, b = tuple(range(7, 12)), tuple(range(12, 18))
    assert seen == {(1, (a, b)), (0, (b, a))}


@pytest.mark.parametrize("segments", ["bnc", "babylm"])
@pytest.mark.parametrize("kind", ["document", "order"])
@pytest.mark.parametrize("sequence_length", [5, 6, 9, 33])
def test_pairs_always_fit_and_no_text_is_empty(make_traceable, segments, kind, sequence_length):
    examples = pair_examples(make_traceable(DOCUMENTS), kind, sequence_length, segments, short_probability=0.5)
    lengths = set()
    for index, epoch in itertools.product(range(len(examples)), range(3)):
        example = examples.example(1, epoch, index)
        assert all(parts(example)) and 1 <= len(parts(example)) <= 2
        assert [text.tokens.tolist() for text in example.texts] == parts(example)
        lengths.add(len(example.labels))
    assert max(lengths) == sequence_length


def test_word_starts_follow_their_tokens(make_traceable):
    settings = MaskedSettings(
        "whole_word",
        mask_probability=1.0,
        random_probability=0.0,
        keep_probability=0.0,
        segments="bnc",
        sentence_pairs="order",
    )
    examples = objective_of(settings).examples(make_traceable([[6, 7, 8]]), 64)
    for epoch in range(20):
        labels = examples.example(0, epoch, 0).labels
        texts = [list(run) for wanted, run in itertools.groupby(labels, lambda id_: id_ != -100) if wanted]
        # Words start at ids that are not multiples of 3; a text whose first id is a multiple begins within a word,
        # which is not masked.
        assert all(text[0] % 3 for text in texts) and sum(map(len, texts)) >= 1


def test_sequences_without_room_for_two_texts_are_refused(make_traceable):
    with pytest.raises(TrainingError, match="sequence_length: got 4, expected 5 or more"):
        pair_examples(make_traceable([[3, 3]]), "order", 4)
