"""Our maskers against statistics of the authors' five maskers on a fixed corpus in three layouts.

Every bound is a number of standard errors of the difference between five published passes and our passes. If both
spreads are known, the variance is pooled, because five passes alone are a poor estimate. Of some seventy independent
fractions, one occasionally exceeds three standard errors by chance (with 12 passes instead of 20: 3.06 for
`input_is_other` of corrected spans at 512); seeds are fixed, so a failure means a change of the code.
"""

import json
from typing import NamedTuple

import numpy as np
import pytest

from hatchery.objectives.masking import masking_rule
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.training.objectives.masked import MaskedSettings

SPECIAL = SpecialIds.of(SPECIAL_SETS["bnc"])
VOCAB_SIZE, FIRST_CONTINUATION = 1000, 606
PUBLISHED_PASSES, PASSES = 5, 10
LAYOUTS = ("full_128", "full_512", "one_third_padding_128")
MASKERS = {
    "subword": MaskedSettings("subword", "as_published"),
    "whole_word": MaskedSettings("whole_word", "as_published"),
    "span": MaskedSettings("span", "as_published"),
    "span_babylm_revision": MaskedSettings("span"),
    "span_elc_bert": MaskedSettings("span", at_least_one=False),
}
CASES = [(layout, masker) for layout in LAYOUTS for masker in MASKERS]
SPAN_CASES = [case for case in CASES if case[1].startswith("span")]
WORD_CASES = [case for case in CASES if case not in SPAN_CASES]
POSITION_CASES = [case for case in SPAN_CASES if case[0] != "full_512"]
# Variance of the difference of the means, divided by the variance of one pass.
BOTH = 1 / PUBLISHED_PASSES + 1 / PASSES


class Layout(NamedTuple):
    """The corpus split into framed sequences, padded with [PAD]."""

    sequence_length: int
    ids: np.ndarray
    """int64 [sequences, longest]."""
    lengths: np.ndarray
    """int64 [sequences]."""
    word_starts: np.ndarray
    """bool [sequences, longest]."""


def cut(corpus, sequence_length, chunk):
    pieces = [corpus[start : start + chunk] for start in range(0, len(corpus), chunk)]
    ids = np.full((len(pieces), chunk + 2), SPECIAL.pad)
    for row, piece in zip(ids, pieces, strict=True):
        row[: len(piece) + 2] = [SPECIAL.cls, *piece, SPECIAL.sep]
    return Layout(sequence_length, ids, np.array([len(piece) + 2 for piece in pieces]), ids < FIRST_CONTINUATION)


def one_pass(rule, layout, seed):
    """Return inputs and labels int64 [sequences, longest] of one pass."""
    generator = np.random.Generator(np.random.Philox(seed))
    inputs, labels = layout.ids.copy(), np.full(layout.ids.shape, UNLABELLED)
    for row, length in enumerate(layout.lengths):
        clean, starts = layout.ids[row, :length], layout.word_starts[row, :length]
        inputs[row, :length], labels[row, :length] = rule(clean, starts, generator)
    return inputs, labels


def drawn_spans(rule, layout, seed):
    """Return the number of spans in each sequence of one pass, and the lengths of all spans."""
    generator = np.random.Generator(np.random.Philox(seed))
    maskable = SPECIAL.maskable(layout.ids)
    lengths = [
        rule.cover(row[:length], generator).drawn_lengths for row, length in zip(maskable, layout.lengths, strict=True)
    ]
    return np.array([len(spans) for spans in lengths]), np.concatenate(lengths)


def run_lengths(labelled):
    """Return the lengths of the maximal runs of labelled positions; [CLS] and [SEP] separate the sequences' runs."""
    edges = np.flatnonzero(np.diff(labelled.ravel().astype(np.int8)))
    return edges[1::2] - edges[::2]


def words(layout):
    """Return the word index of each position, -1 outside of words, and the number of pieces of each word."""
    ordinary = layout.ids >= SPECIAL.n_protected
    starts = layout.word_starts & ordinary
    last_special = np.maximum.accumulate(np.where(ordinary, -1, np.arange(ordinary.shape[1])), axis=1)
    last_start = np.maximum.accumulate(np.where(starts, np.arange(ordinary.shape[1]), -1), axis=1)
    number = np.where(last_start > last_special, np.cumsum(starts).reshape(starts.shape) - 1, -1)
    return number, np.bincount(number[number >= 0])


def fractions(layout, inputs, labels):
    at = labels != UNLABELLED
    shown, wanted, original = inputs[at], labels[at], layout.ids[at]
    return {
        "labelled_of_maskable": at.sum() / (layout.ids >= SPECIAL.n_protected).sum(),
        "labelled_of_nonpadding": at.sum() / layout.lengths.sum(),
        "input_is_mask": (shown == SPECIAL.mask).mean(),
        "input_is_original": (shown == original).mean(),
        "input_is_other": ((shown != original) & (shown != SPECIAL.mask)).mean(),
        "input_is_PAR": (shown == SPECIAL.first_random).mean(),
        "label_differs_from_original": (wanted != original).mean(),
        "label_is_mask_token": (wanted == SPECIAL.mask).mean(),
        "sequences_without_label": (~at.any(axis=1)).mean(),
    }


class Case(NamedTuple):
    """One masker in one layout: the published statistics and our passes."""

    masker: str
    layout: Layout
    published: dict
    fractions: dict
    """Arrays [passes] by name."""
    labelled: np.ndarray
    """bool [passes, sequences, longest]."""


@pytest.fixture(scope="module")
def corpus(golden_directory):
    return np.load(golden_directory / "masking/corpus_200k.npz")["tokens"].astype(np.int64)


def each(cases):
    return pytest.mark.parametrize("case", cases, indirect=True, ids="-".join)


@pytest.fixture(scope="module")
def case(request, golden_directory, corpus):
    name, masker = request.param
    published = json.loads((golden_directory / "masking/masking_statistics.json").read_text())["results"][name]
    layout = cut(corpus, published["T"], published["tokens_per_sequence"])
    rule = masking_rule(MASKERS[masker], layout.sequence_length, VOCAB_SIZE, SPECIAL)
    passes = [one_pass(rule, layout, seed) for seed in range(PASSES)]
    found = [fractions(layout, *made) for made in passes]
    by_name = {key: np.array([row[key] for row in found]) for key in found[0]}
    return Case(masker, layout, published[masker], by_name, np.stack([labels for _, labels in passes]) != UNLABELLED)


@each(CASES)
def test_every_fraction_is_within_three_standard_errors(case):
    expected = case.published["fractions"]
    assert case.fractions.keys() == expected.keys()
    assert len(case.layout.ids) == case.published["sequences"]
    for name, row in expected.items():
        ours = case.fractions[name]
        squares = (PUBLISHED_PASSES - 1) * row["std_over_passes"] ** 2 + (PASSES - 1) * ours.var(ddof=1)
        error = (squares / (PUBLISHED_PASSES + PASSES - 2) * BOTH) ** 0.5
        assert ours.mean() == pytest.approx(row["mean"], abs=3 * error), name


@each(CASES)
def test_labels_per_sequence_spread_as_published(case):
    expected, ours = case.published["labelled_per_sequence"], case.labelled.sum(axis=2)
    error = expected["std"] * (BOTH / len(case.layout.ids)) ** 0.5
    assert ours.mean() == pytest.approx(expected["mean"], abs=3 * error)
    assert ours.std() == pytest.approx(expected["std"], abs=3 * error / 2**0.5)


@each(CASES)
def test_runs_of_labelled_positions_are_as_long_as_published(case):
    per_pass = np.stack([np.bincount(run_lengths(labelled), minlength=40) for labelled in case.labelled])
    expected = case.published["labelled_run_length_histogram"]
    check_histogram(expected, per_pass)
    assert (per_pass * np.arange(40)).sum() / per_pass.sum() == pytest.approx(
        case.published["labelled_run_length_mean"], rel=0.015
    )


def check_histogram(expected, per_pass):
    """Compare each value's share within four standard errors, because fifteen cases have some ten shares each."""
    shares, total = per_pass / per_pass.sum(axis=1, keepdims=True), sum(expected.values())
    for value, count in expected.items():
        if count >= 25:
            ours = shares[:, int(value)]
            # Values of one sequence are dependent; the variance over passes includes this dependence.
            error = (ours.var(ddof=1) * BOTH) ** 0.5
            assert ours.mean() == pytest.approx(count / total, abs=4 * error), value


@each(SPAN_CASES)
def test_spans_are_as_many_and_as_long_as_published(case):
    rule = masking_rule(MASKERS[case.masker], case.layout.sequence_length, VOCAB_SIZE, SPECIAL)
    drawn = [drawn_spans(rule, case.layout, seed) for seed in range(PASSES)]
    check_histogram(
        case.published["drawn_span_length_histogram"], np.stack([np.bincount(row[1], minlength=10) for row in drawn])
    )
    spans, expected = np.stack([row[0] for row in drawn]), case.published["spans_per_sequence"]
    error = expected["std"] * (BOTH / len(case.layout.ids)) ** 0.5
    assert spans.mean() == pytest.approx(expected["mean"], abs=3 * error)
    assert spans.std() == pytest.approx(expected["std"], rel=0.05)


@each(POSITION_CASES)
def test_every_position_is_labelled_as_often_as_published(case):
    maskable = SPECIAL.maskable(case.layout.ids).sum(axis=0)
    ours = case.labelled.sum(axis=(0, 1)) / np.maximum(maskable * PASSES, 1)
    for position, share in enumerate(case.published["labelled_fraction_by_position"]):
        if share is None:
            assert position >= len(ours) or ours[position] == 0
        else:
            error = (share * (1 - share) / maskable[position] * BOTH) ** 0.5
            assert ours[position] == pytest.approx(share, abs=4.5 * error), position


@each(WORD_CASES)
def test_words_are_chosen_as_published(case):
    number, pieces = words(case.layout)
    expected = case.published["words_by_pieces_first_pass"]
    assert {str(size): int(count) for size, count in enumerate(np.bincount(pieces)) if count} == expected
    hits = np.stack([np.bincount(number[row & (number >= 0)], minlength=len(pieces)) for row in case.labelled])
    full = hits == pieces
    for size, count in case.published["fully_labelled_words_by_pieces_first_pass"].items():
        check_count(full[:, pieces == int(size)].sum() / PASSES, count)
    partly = ((hits > 0) & ~full).sum() / PASSES
    check_count(partly, case.published["partly_labelled_words_first_pass"])
    continued = case.layout.ids[:, 1] >= FIRST_CONTINUATION
    assert continued.sum() == case.published["sequences_starting_with_a_continuation_piece"]
    check_count(case.labelled[:, continued, 1].sum() / PASSES, case.published["of_these_first_piece_labelled"])
    if case.masker == "whole_word":
        assert partly == 0 and not case.labelled[:, continued, 1].any()


def check_count(ours, published):
    """Compare the mean of our counts with one published count, which is nearly Poisson-distributed."""
    assert ours == pytest.approx(published, abs=4 * (max(ours, published) * (1 + 1 / PASSES)) ** 0.5)
