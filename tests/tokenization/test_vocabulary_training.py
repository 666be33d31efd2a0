"""The vocabularies that our own code trains: Unigram and WordPiece with a prefix.

Unigram is compared with sums over all splits of a text, and WordPiece with a plain merge loop and with the library.
"""

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from hatchery.tokenization.trainer import train_wordpiece
from hatchery.tokenization.unigram_training import (
    SegmentLattice,
    count_pre_tokens,
    seed_pieces,
    train_unigram,
    training_segments,
)

PIECES = ["a", "ab", "abc", "b", "bc", "c"]
SCORES = np.log([0.2, 0.1, 0.05, 0.3, 0.15, 0.2])


def ways(text: str) -> list[tuple[str, ...]]:
    """Return all splits of a text into PIECES, by enumeration."""
    found = []
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        bounds = [0, *(i + 1 for i, chosen in enumerate(cuts) if chosen), len(text)]
        parts = tuple(text[i:j] for i, j in itertools.pairwise(bounds))
        if all(part in PIECES for part in parts):
            found.append(parts)
    return found


def probability(parts: tuple[str, ...]) -> float:
    return math.exp(sum(SCORES[PIECES.index(part)] for part in parts))


def untrained() -> Backend:
    backend = Backend(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    return backend


def lines(seed: int = 0, count: int = 200) -> list[str]:
    rng = random.Random(seed)
    stems, endings = ["walk", "talk", "jump", "want", "look"], ["ing", "ed", "s", "er", ""]
    return [" ".join(rng.choice(stems) + rng.choice(endings) for _ in range(8)) for _ in range(count)]


def test_expected_counts_are_sums_over_all_ways_to_cut() -> None:
    texts, frequencies = ["abcab", "abc", "ca", "b"], np.array([2.0, 5.0, 1.0, 4.0])
    expected: Counter[str] = Counter()
    for text, frequency in zip(texts, frequencies, strict=True):
        total = sum(map(probability, ways(text)))
        for parts in ways(text):
            for part in parts:
                expected[part] += frequency * probability(parts) / total
    lattice = SegmentLattice(texts, PIECES, 16)
    counts = lattice.expected_counts(SCORES, np.ones(6, dtype=bool), frequencies)
    assert counts == pytest.approx([expected[piece] for piece in PIECES])


def test_pieces_that_are_gone_take_part_in_no_way() -> None:
    alive = np.array([piece not in ("ab", "abc", "bc") for piece in PIECES])
    counts = SegmentLattice(["abc"], PIECES, 16).expected_counts(SCORES, alive, np.array([3.0]))
    assert counts == pytest.approx([3, 0, 0, 3, 0, 3])


def test_probabilities_without_the_whole_text_as_a_piece() -> None:
    texts = ["abc", "ab", "c"]
    lattice = SegmentLattice(texts, PIECES, 16, whole_texts=False)
    found = lattice.log_probabilities(SCORES, np.ones(6, dtype=bool))
    assert found[:2] == pytest.approx([math.log(sum(probability(w) for w in ways(t) if len(w) > 1)) for t in texts[:2]])
    assert found[2] == -math.inf


def test_seeds_are_the_frequent_substrings_that_go_on_in_more_than_one_way() -> None:
    segments = {"▁abab": 3, "▁abc": 2, "x": 9, "▁once": 1}
    counts: Counter[str] = Counter()
    for text, frequency in segments.items():
        for i, j in itertools.combinations(range(len(text) + 1), 2):
            counts[text[i:j]] += frequency
    grown = {
        piece: count
        for piece, count in counts.items()
        if len(piece) > 1 and count >= 2 and not any(counts[piece + more] == count for more in "▁abcxone")
    }
    assert seed_pieces(segments, 1000) == grown
    assert list(seed_pieces(segments, 2)) == sorted(grown, key=lambda piece: (-grown[piece] * len(piece), piece))[:2]


def test_rare_characters_cut_segments_and_long_pre_tokens_are_cut() -> None:
    # The character "ü" occurs exactly twice, so that it is not rare.
    segments = training_segments(Counter({"▁ab": 5, "▁aéb": 1, "▁üb": 2, "▁" + "a" * 100: 1}), 2)
    assert segments == {"▁ab": 5, "▁a": 1, "b": 1, "▁üb": 2, "▁" + "a" * 47: 1, "a" * 48: 1, "a" * 5: 1}


def test_lines_and_lists_of_lines_are_counted_alike() -> None:
    expected = Counter({"▁one": 2, "▁two": 1})
    assert count_pre_tokens(untrained(), ["one two", "one"]) == expected
    assert count_pre_tokens(untrained(), [["one two", "one"], []]) == expected


def test_stems_and_endings_are_found() -> None:
    pieces = dict(train_unigram(untrained(), lines(), 45, 0))
    assert len(pieces) == 45
    assert {"▁walk", "▁jump", "ing"} <= set(pieces)
    assert set("walktjumpnoingeders") <= set(pieces), "every character must have a piece"
    assert list(pieces.values()) == sorted(pieces.values(), reverse=True)
    assert sum(map(math.exp, pieces.values())) <= 1.01


def test_the_order_of_lines_changes_nothing() -> None:
    text = lines()
    expected = train_unigram(untrained(), text, 40, 0)
    random.Random(1).shuffle(text)
    assert train_unigram(untrained(), text, 40, 0) == expected


def test_a_text_that_supports_fewer_pieces_gives_fewer() -> None:
    pieces = train_unigram(untrained(), ["ab ab"], 100, 0)
    assert {"a", "b", "▁"} <= {piece for piece, _ in pieces}
    assert len(pieces) < 10


def test_scores_are_those_of_two_rounds_of_expectation_maximisation() -> None:
    # The initial pieces of two words `▁ab` are ▁ab, ab, a, b and ▁, with the probability 0.2 each. In the first round,
    # the expected count of ▁ab is 2 * 0.2 / (0.2 + 0.04 + 0.008) = 1.6129. The count of ab is 0.3226, so ab is removed.
    # The second round gives ▁ab the count 1.9993. Characters have at least the count 0.5, so the scores are
    # digamma(1.9993) - digamma(3.4993) and digamma(0.5) - digamma(3.4993).
    assert train_unigram(untrained(), ["ab ab"], 100, 0) == [
        ("▁ab", -0.680592),
        ("a", -3.066436),
        ("b", -3.066436),
        ("▁", -3.066436),
    ]


def test_no_text_gives_no_pieces() -> None:
    assert train_unigram(untrained(), [], 100, 0) == []


def test_words_of_rare_characters_without_spaces_keep_finite_scores() -> None:
    text = ["".join(chr(0x4E00 + (i * 37 + j) % 900) for j in range(200)) for i in range(60)]
    assert all(math.isfinite(score) for _, score in train_unigram(untrained(), text, 1200, 0))


SPECIAL = ["[UNK]", "[CLS]"]


def syllable_lines(seed: int = 3) -> list[str]:
    rng = random.Random(seed)
    syllables = ["ba", "ti", "ko", "run", "sel", "mar", "né", "lan", "ing"]
    return [" ".join("".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(8)) for _ in range(120)]


def untrained_wordpiece() -> Backend:
    backend = Backend(models.WordPiece({}, unk_token="[UNK]", continuing_subword_prefix="@@"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return backend


def trained(text: list[str], size: int, min_frequency: int = 0) -> dict[str, int]:
    return train_wordpiece(untrained_wordpiece, text, size, min_frequency, SPECIAL, "@@", [])


def plain_merges(text: list[str], size: int, min_frequency: int = 0) -> list[str]:
    """Merge the most frequent pair until the size is reached, with ties broken by the ids of left and
    right; quadratic."""
    words = Counter(word for line in text for word in line.split())
    split = {word: [word[0], *(f"@@{character}" for character in word[1:])] for word in words}
    continuing = sorted({part for parts in split.values() for part in parts[1:]})
    entries = [*SPECIAL, *continuing, *sorted({character for word in words for character in word})]
    ids = {entry: index for index, entry in enumerate(dict.fromkeys(entries))}
    while len(ids) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:], strict=False):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]))
        if pairs[best] < max(1, min_frequency):
            break
        merged = best[0] + best[1].removeprefix("@@")
        ids.setdefault(merged, len(ids))
        for word, parts in split.items():
            joined, index = [], 0
            while index < len(parts):
                if tuple(parts[index : index + 2]) == best:
                    joined.append(merged)
                    index += 2
                else:
                    joined.append(parts[index])
                    index += 1
            split[word] = joined
    return list(ids)


@pytest.mark.parametrize(("size", "min_frequency"), [(90, 0), (140, 0), (5000, 6)])
def test_the_vocabulary_is_that_of_a_plain_merge_loop(size: int, min_frequency: int) -> None:
    text = syllable_lines()
    vocabulary = trained(text, size, min_frequency)
    assert sorted(vocabulary, key=vocabulary.__getitem__) == plain_merges(text, size, min_frequency)


def test_the_order_of_lines_changes_no_entry() -> None:
    text = syllable_lines()
    expected = trained(text, 120)
    for seed in range(5):
        random.Random(seed).shuffle(text)
        assert trained(text, 120) == expected


def test_the_entries_are_those_of_the_library_when_all_merges_are_made() -> None:
    text = syllable_lines()
    backend = untrained_wordpiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=5000, special_tokens=SPECIAL, continuing_subword_prefix="@@", show_progress=False
    )
    backend.train_from_iterator(text, trainer)
    # Ties determine a word's merges, so a few entries of the library's vocabulary differ from run to run.
    ours, library = set(trained(text, 5000)), set(backend.get_vocab())
    assert {entry for entry in ours if len(entry.removeprefix("@@")) == 1} <= library
    words = {word for line in text for word in line.split()}
    assert words <= ours
    assert words <= library


def test_ids_are_special_tokens_then_characters_by_code_point_then_merges() -> None:
    vocabulary = trained(["ba ab abc é"], 100)
    assert sorted(vocabulary, key=vocabulary.__getitem__)[:9] == [*SPECIAL, "@@a", "@@b", "@@c", "a", "b", "c", "é"]


def test_a_text_of_prefix_characters_is_learned_as_any_other() -> None:
    vocabulary = trained(["@@ @@@ a@@ @"] * 3, 100)
    assert {"@", "@@@", "a"} <= set(vocabulary)
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
