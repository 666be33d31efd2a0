"""Blocks are packed, and short spans masked, as in the published code of GPT-BERT with fresh counts."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hatchery.objectives.blocks import BlockExamples, BlockPieces, draw_blocks
from hatchery.objectives.masking import MaskingSettings
from hatchery.objectives.masking.short_span import ShortSpanMasking, chosen_tokens, rule
from hatchery.objectives.special_ids import Corruption, SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.tokenization.token_shards import Document
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.hybrid import HybridObjective, HybridSettings

SPECIAL = SpecialIds(cls=1, sep=2, pad=3, mask=4, n_protected=16, first_random=16, n_special=16, unknown=0)
VOCABULARY, STEPS, REPLICATES = 260, 1000, 12


class Corpus:
    def __init__(self, directory: Path) -> None:
        stored = np.load(directory / "corpus.npz")
        self.tokens, self.offsets = stored["tokens"].astype(np.uint16), stored["offsets"]
        self.n_documents = len(self.offsets) - 1

    def document(self, index: int) -> Document:
        ids = self.tokens[self.offsets[index] : self.offsets[index + 1]]
        return Document(ids, np.zeros(1, dtype=np.int32), np.zeros(len(ids) // 8 + 1, dtype=np.uint8), 0)

    def document_lengths(self) -> np.ndarray:
        return np.diff(self.offsets).astype(np.int64)


@pytest.fixture(scope="module")
def directory(golden_directory: Path) -> Path:
    return golden_directory / "gpt_bert" / "data"


@pytest.fixture(scope="module")
def corpus(directory: Path) -> Corpus:
    return Corpus(directory)


def masking(rate: float, published: bool = True) -> ShortSpanMasking:
    reading: Any = "as_published" if published else "corrected"
    settings = MaskingSettings("short_span", reading, rate)
    return rule(settings, Corruption(SPECIAL, VOCABULARY, 0.1, 0.1), 0)


@pytest.mark.parametrize("length", [32, 64, 128])
def test_documents_are_cut_into_the_published_pieces(corpus: Corpus, directory: Path, length: int) -> None:
    expected = json.loads((directory / "pieces.json").read_text("utf-8"))[f"pieces_L{length}"]
    pieces = BlockPieces(corpus, length)
    found = [[piece.number, piece.start, len(piece)] for piece in (pieces[index] for index in range(len(pieces)))]
    assert found == expected
    places = [corpus.offsets[number] + start for number, start, _ in expected]
    examples = BlockExamples(corpus, length, SPECIAL, None, fills=True)
    assert pieces.places().tolist() == examples.places().tolist() == places


def test_the_tokens_of_equal_counts_that_recorded_draws_hide_are_those_of_the_code(directory: Path) -> None:
    cases = json.loads((directory / "mask_cases.json").read_text("utf-8"))["cases"]
    checked = 0
    for case in cases:
        if case["kind"] != "training" or len(set(case["mask_counter"])) > 1:
            continue
        tokens = np.array(case["tokens"])
        ends = np.cumsum(case["span_lengths"])
        span_of = np.searchsorted(ends, np.arange(len(tokens)), side="right")
        wanted = max(1, int(len(tokens) * case["rate"] + case["U"]))
        assert wanted == case["k"]
        maskable = SPECIAL.maskable(tokens)
        if wanted > maskable.sum():
            maskable, wanted = np.ones(len(tokens), dtype=bool), len(tokens)
        hidden = chosen_tokens(maskable, span_of, np.array(case["r"]), wanted)
        assert (np.where(hidden, tokens, UNLABELLED) == case["target_ids"]).all(), case
        checked += 1
    assert checked >= 10


def samples(corpus: Corpus, length: int, rate: float | None, seed: int) -> Iterator[dict[str, Any]]:
    rule = None if rate is None else masking(rate)
    examples = BlockExamples(corpus, length, SPECIAL, rule, fills=True)
    for index in range(len(examples)):
        found = examples.example(seed, 0, index)
        ids, lengths = found.input_ids, found.piece_lengths
        assert lengths is not None and sum(lengths) == len(ids) and length - len(ids) in (0, 1)
        starts = np.cumsum([0, *lengths[:-1]])
        assert (ids[starts] == SPECIAL.cls).all() and (ids == SPECIAL.cls).sum() == len(lengths)
        # The texts include all visible tokens, also those of fillers; one token may be only a label.
        assert sum(1 + len(text) for text in found.texts) - len(ids) in (0, 1)
        targets = np.insert(found.labels[:-1], 0, UNLABELLED) != UNLABELLED
        assert not targets[starts].any()
        assert ((ids != SPECIAL.mask) | targets).all()
        yield {
            "blocks": len(lengths),
            "padding": length - len(ids),
            "labels": int((found.labels != UNLABELLED).sum()),
            "targets": targets,
            "originals": np.insert(found.labels[:-1], 0, UNLABELLED),
            "ids": ids,
            "starts": starts,
        }


def statistics_of(drawn: list[dict[str, Any]]) -> dict[str, float]:
    targets = np.concatenate([sample["targets"] for sample in drawn])
    ids = np.concatenate([sample["ids"] for sample in drawn])
    originals = np.concatenate([sample["originals"] for sample in drawn])
    text = ids != SPECIAL.cls
    firsts = np.concatenate(
        [sample["targets"][np.minimum(sample["starts"] + 1, len(sample["ids"]) - 1)] for sample in drawn]
    )
    runs = [len(run) for sample in drawn for run in "".join("x" if hit else " " for hit in sample["targets"]).split()]
    shown, answers = ids[targets], originals[targets]
    return {
        "blocks_per_sample": float(np.mean([sample["blocks"] for sample in drawn])),
        "padding_positions_per_sample": float(np.mean([sample["padding"] for sample in drawn])),
        "targets_per_sample": float(np.mean([sample["labels"] for sample in drawn])),
        "targets_of_visible_tokens": float(targets.sum() / text.sum()),
        "input_is_mask": float((shown == SPECIAL.mask).mean()),
        "input_is_original": float((shown == answers).mean()),
        "first_token_of_block_is_target": float(firsts.mean()),
        "run_length_mean": float(np.mean(runs)),
        "run_length_1": float(np.mean([run == 1 for run in runs])),
        "run_length_3": float(np.mean([run == 3 for run in runs])),
        "samples_with_1_blocks": float(np.mean([sample["blocks"] == 1 for sample in drawn])),
        "samples_with_2_blocks": float(np.mean([sample["blocks"] == 2 for sample in drawn])),
    }


OF_COUNTS = (
    "targets_per_sample",
    "targets_of_visible_tokens",
    "first_token_of_block_is_target",
    "run_length_mean",
    "run_length_1",
    "run_length_3",
)


@pytest.mark.parametrize(
    "name", ["masked_L32_step0", "masked_L32_step500", "masked_L32_step1000", "masked_L64_step500", "causal_L64_step0"]
)
def test_an_epoch_has_the_statistics_of_the_published_code_with_fresh_counts(
    corpus: Corpus, directory: Path, name: str
) -> None:
    golden = json.loads((directory / "statistics.json").read_text("utf-8"))["first_epoch"][name]
    rate = golden["rate"] if golden["objective"] == "masked" else None
    found = [statistics_of(list(samples(corpus, golden["length"], rate, seed))) for seed in range(REPLICATES)]
    for key in found[0]:
        expected = golden["statistics"][key]
        ours = np.array([one[key] for one in found])
        own_error = ours.std(ddof=1) / np.sqrt(REPLICATES)
        allowed = 5 * np.hypot(expected["standard_error"], own_error) + 0.002
        if rate is not None and key in OF_COUNTS:
            # In the published code, fillers keep the mask counts of their earlier use, which separates spans.
            allowed += 0.04 * expected["mean"]
        assert abs(ours.mean() - expected["mean"]) < allowed, (name, key, ours.mean(), expected)


def test_ten_epochs_of_a_falling_rate_hide_as_much_as_a_sampler_without_counts(corpus: Corpus, directory: Path) -> None:
    golden = json.loads((directory / "statistics.json").read_text("utf-8"))["epochs"]
    length, epochs = golden["length"], golden["epochs"]
    examples = BlockExamples(corpus, length, SPECIAL, masking(0.3), fills=True)
    ordinary = corpus.tokens >= SPECIAL.n_protected
    hidden, shown = (np.zeros(len(corpus.tokens), dtype=int) for _ in range(2))
    for epoch in range(epochs):
        rate = 0.3 - 0.15 * epoch / epochs
        for index in range(len(examples)):
            sample = examples.example(0, epoch, index, rate)
            labels = np.append(UNLABELLED, sample.labels)
            begin = 0
            for text in sample.texts:
                places = corpus.offsets[text.number] + np.arange(text.start, text.end)
                own = labels[begin + 1 : begin + 1 + len(text)] != UNLABELLED
                shown[places] += 1
                hidden[places[: len(own)][own]] += 1
                begin += 1 + len(text)
        expected = golden["independent_without_counters"][f"after_epoch_{epoch + 1}"]
        seen = hidden[ordinary & (shown > 0)]
        assert (seen == 0).mean() == pytest.approx(expected["never_masked"], abs=0.02), epoch
        assert seen.mean() == pytest.approx(expected["mask_counter_mean"], rel=0.03), epoch


def test_corrected_spans_never_hide_special_tokens() -> None:
    ids = np.array([8, 12, 40, 6, 10])
    generator = np.random.default_rng(0)
    for _ in range(50):
        _, labels = masking(0.9, published=False)(ids, None, generator)
        assert labels.tolist() == [UNLABELLED, UNLABELLED, 40, UNLABELLED, UNLABELLED]
    _, labels = masking(0.9)(ids, None, generator)
    assert (labels == ids).all()


def test_a_sequence_is_a_function_of_seed_epoch_and_number_and_the_rate_of_its_step(corpus: Corpus) -> None:
    examples = BlockExamples(corpus, 32, SPECIAL, masking(0.15), fills=True)
    first, again = (examples.example(4, 2, 7) for _ in range(2))
    assert np.array_equal(first.input_ids, again.input_ids) and np.array_equal(first.labels, again.labels)
    many = sum(int((examples.example(4, 2, index, 0.6).labels != UNLABELLED).sum()) for index in range(40))
    few = sum(int((examples.example(4, 2, index).labels != UNLABELLED).sum()) for index in range(40))
    assert many > 2 * few
    # The packing does not depend on the mask rate.
    assert examples.example(4, 2, 7, 0.6).piece_lengths == first.piece_lengths


def test_held_out_text_is_shown_once(corpus: Corpus) -> None:
    examples = BlockExamples(corpus, 32, SPECIAL, None, fills=False)
    shown = [examples.example(0, 0, index).texts for index in range(len(examples))]
    assert all(len(texts) == 1 for texts in shown)
    lengths = corpus.document_lengths()
    assert sum(len(text) for (text,) in shown) == sum(length - (length % 30 == 1) for length in lengths.tolist())


# Three pieces, of 10, 4 and 7 tokens, for 12 positions: with a start token before each piece, a sequence has at most 13
# tokens.
THREE = [[10], [4], [7]]


@pytest.mark.parametrize(
    ("index", "draws", "expected"),
    [
        (0, [], [(0, 0, 10)]),
        # After a piece of 4 tokens there is room for 7 tokens: they can start at four positions of the first piece, 0
        # to 3.
        (1, [(0.0, 0.0)], [(1, 0, 4), (0, 0, 7)]),
        (1, [(0.0, 0.25)], [(1, 0, 4), (0, 1, 8)]),
        (1, [(0.33, 0.999)], [(1, 0, 4), (0, 3, 10)]),
        # A whole piece leaves two free positions, which the last two tokens of the last piece fill.
        (1, [(0.34, 0.999), (0.999, 0.999)], [(1, 0, 4), (1, 0, 4), (2, 5, 7)]),
        (2, [(0.5, 0.5)], [(2, 0, 7), (1, 0, 4)]),
    ],
)
def test_what_fills_a_sequence_is_any_part_of_any_piece(
    make_collection: Any, given_draws: Any, index: int, draws: Any, expected: Any
) -> None:
    generator = given_draws(*draws)
    blocks = draw_blocks(BlockPieces(make_collection(THREE), 12), index, 12, generator)
    assert [(block.number, block.start, block.end) for block in blocks] == expected and not generator.draws


def test_what_fills_a_later_piece_of_a_document_is_a_part_of_that_piece(make_collection: Any, given_draws: Any) -> None:
    pieces = BlockPieces(make_collection([[10, 10], [4]]), 12)
    blocks = draw_blocks(pieces, 2, 12, given_draws((0.5, 0.999)))
    assert [(block.number, block.start, block.end) for block in blocks] == [(1, 0, 4), (0, 13, 20)]


def test_each_kind_seed_epoch_and_number_has_fillers_of_its_own_that_no_rate_changes(make_collection: Any) -> None:
    # All documents have 20 tokens, hence pieces of equal length, so only the drawn fillers distinguish sequences.
    collection = make_collection([[20]] * 20)

    def fillers(rate: float | None, *numbers: int) -> tuple[tuple[int, int], ...]:
        examples = BlockExamples(collection, 64, SPECIAL, None if rate is None else masking(rate), fills=True)
        assert not examples.same_in_every_epoch
        texts = examples.texts(*numbers)
        assert texts == examples.example(*numbers).texts
        return tuple((text.number, text.start) for text in texts[1:])

    keys = [(kind, *numbers) for kind in (0.15, None) for numbers in ((3, 0, 5), (4, 0, 5), (3, 1, 5), (3, 2, 5))]
    keys += [(0.15, 3, 0, 6), (None, 3, 0, 6)]
    found = [fillers(*key) for key in keys]
    assert len(set(found)) == len(keys) and fillers(0.6, 3, 0, 5) == found[0]
    assert BlockExamples(collection, 64, SPECIAL, None, fills=False).same_in_every_epoch
    kinds = [
        BlockExamples(collection, 64, SPECIAL, rule, True).example(0, 0, 0).causal for rule in (masking(0.5), None)
    ]
    assert kinds == [False, True]


def test_whole_words_of_blocks_begin_where_words_of_their_piece_begin(make_traceable: Any) -> None:
    # A word starts at each id that is not a multiple of three; the ids of the document are 7 to 26, in pieces of ten.
    settings = HybridSettings(kind="whole_word", mask_probability=0.999, segments="blocks", causal_share=0.0)
    examples = HybridObjective(settings).examples(replace(make_traceable([[20]]), split="dev"), 12)
    labels = [examples.example(0, 0, index).labels.tolist() for index in range(2)]
    assert labels == [[*range(7, 17), UNLABELLED], [*range(17, 27), UNLABELLED]]
    within = replace(make_traceable([[1, 20]]), split="dev")
    begun = [HybridObjective(settings).examples(within, 7).example(0, 0, index).labels[0] for index in range(4)]
    assert begun == [7, UNLABELLED, 17, 22]


@pytest.mark.parametrize(
    ("rate", "rounding", "hidden"),
    # Of ten tokens, 2.5, 0.4 or 1.6 should be masked; each token is a span, and spans are masked in the order of the
    # text.
    [
        (0.25, 0.49, 2),
        (0.25, 0.5, 3),
        (0.25, 0.0, 2),
        (0.25, 0.999, 3),
        (0.04, 0.59, 1),
        (0.04, 0.6, 1),
        (0.16, 0.4, 2),
    ],
)
def test_the_number_of_hidden_tokens_is_rounded_up_as_often_as_its_fraction_says(
    given_draws: Any, rate: float, rounding: float, hidden: int
) -> None:
    each = np.arange(10) / 10
    generator = given_draws([np.zeros(10), each, np.zeros(10)], rounding, np.zeros(hidden))
    inputs, labels = masking(rate, published=False)(np.arange(20, 30), None, generator)
    assert labels.tolist() == [*range(20, 20 + hidden), *[UNLABELLED] * (10 - hidden)]
    assert inputs.tolist() == [*[SPECIAL.mask] * hidden, *range(20 + hidden, 30)]


@pytest.mark.parametrize(("at_least_one", "hidden"), [(True, 1), (False, 0)])
def test_a_text_stays_without_a_hidden_token_only_where_that_is_allowed(
    given_draws: Any, at_least_one: bool, hidden: int
) -> None:
    settings = MaskingSettings("short_span", mask_probability=0.04, at_least_one=at_least_one)
    generator = given_draws([np.zeros(10), np.arange(10) / 10, np.zeros(10)], 0.59, np.zeros(hidden))
    _, labels = rule(settings, Corruption(SPECIAL, VOCABULARY, 0.1, 0.1), 0)(np.arange(20, 30), None, generator)
    assert int((labels != UNLABELLED).sum()) == hidden


def test_spans_have_one_to_three_tokens_and_one_decision_each(given_draws: Any) -> None:
    # Span lengths 1, 2, 3, 3 and a truncated span cover the ten tokens; the fourth span is masked first, then the
    # third.
    lengths = [0.0, 0.34, 0.999, 0.67, *[0.5] * 6]
    order = [0.9, 0.8, 0.2, 0.1, *[0.5] * 6]
    # Decisions below 0.8 mask a span, those below 0.9 replace it by random tokens, and the others keep it.
    decisions = [0.0, 0.0, 0.85, 0.95, *[0.0] * 6]
    generator = given_draws([lengths, order, decisions], 0.0, [0.0, 0.5, 0.999, 0.0, 0.0, 0.0])
    inputs, labels = masking(0.4, published=False)(np.arange(20, 30), None, generator)
    assert labels.tolist() == [UNLABELLED] * 3 + [23, 24, 25, 26, 27, 28, UNLABELLED]
    # Random tokens are drawn from 244 ids, which start at 16.
    assert inputs.tolist() == [20, 21, 22, 16, 138, 259, 26, 27, 28, 29]


def test_as_published_special_tokens_are_hidden_only_where_more_is_wanted_than_can_be_hidden(given_draws: Any) -> None:
    ids = np.array([20, 0, 21, 1])
    for rate, expected in ((0.5, [20, UNLABELLED, 21, UNLABELLED]), (0.75, ids.tolist())):
        count = sum(label != UNLABELLED for label in expected)
        generator = given_draws([np.zeros(4), np.arange(4) / 10, np.zeros(4)], 0.0, np.zeros(count))
        assert masking(rate)(ids, None, generator)[1].tolist() == expected


def test_targets_of_blocks_are_the_tokens_alone_and_of_packed_text_the_ends_too(make_collection: Any) -> None:
    collection = make_collection([[3, 2], [4], [], [1]], vocab_size=300)
    tokens = np.bincount(np.concatenate([document.ids for document in collection.documents]), minlength=300)
    separator = SPECIAL_SETS["babylm"].ids["[SEP]"]
    for segments, ends in (("packed", 3), ("blocks", 0)):
        expected = tokens.copy()
        expected[separator] = ends
        settings = CausalSettings(segments=segments)  # type: ignore[arg-type]
        assert CausalObjective(settings).target_counts(collection).tolist() == expected.tolist()
        # Held-out text is masked if some sequences are masked, and causal if all sequences are causal.
        for share, counts in ((0.25, tokens), (1.0, expected)):
            hybrid = HybridSettings(segments=segments, causal_share=share)  # type: ignore[arg-type]
            assert HybridObjective(hybrid).target_counts(collection).tolist() == counts.tolist()
