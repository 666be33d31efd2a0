"""The vocabulary of the prefix trainer beside a plain merge loop written down from its definition, and the library."""

import random
from collections import Counter

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from hatchery.tokenization.trainer import train_wordpiece

SPECIAL = ["[UNK]", "[CLS]"]


def lines(seed: int = 3) -> list[str]:
    rng = random.Random(seed)
    syllables = ["ba", "ti", "ko", "run", "sel", "mar", "né", "lan", "ing"]
    return [" ".join("".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(8)) for _ in range(120)]


def untrained() -> Backend:
    backend = Backend(models.WordPiece({}, unk_token="[UNK]", continuing_subword_prefix="@@"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return backend


def trained(text: list[str], size: int, min_frequency: int = 0) -> dict[str, int]:
    return train_wordpiece(untrained, text, size, min_frequency, SPECIAL, "@@", [])


def plain_merges(text: list[str], size: int, min_frequency: int = 0) -> list[str]:
    """Merge the most frequent pair until the size is reached, ties by the ids of left and right; quadratic."""
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
    text = lines()
    vocabulary = trained(text, size, min_frequency)
    assert sorted(vocabulary, key=vocabulary.__getitem__) == plain_merges(text, size, min_frequency)


def test_the_order_of_lines_changes_nothing() -> None:
    text = lines()
    expected = trained(text, 120)
    for seed in range(5):
        random.Random(seed).shuffle(text)
        assert trained(text, 120) == expected


def test_the_entries_are_those_of_the_library_when_all_merges_are_made() -> None:
    text = lines()
    backend = untrained()
    trainer = trainers.WordPieceTrainer(
        vocab_size=5000, special_tokens=SPECIAL, continuing_subword_prefix="@@", show_progress=False
    )
    backend.train_from_iterator(text, trainer)
    # Ties decide which merges a word goes through, so a few entries differ from run to run in the library's own.
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
