"""WordPiece with a continuation prefix (`@@`: docs/papers/ltg-bert.md, "Tokenizer"), the same vocabulary and ids at
every run.

The library's trainer learns a good vocabulary but numbers the single characters that continue a word (`@@a`) in the
order of a randomly seeded hash table, and ties between pairs of equal count are broken by these ids: six runs give six
files. We train in two passes with the same trainer. The first has no room for merges and finds these characters; the
second gets them as fixed entries in the order of their code points, and then nothing random is left: pairs are merged
by falling count, ties by the ids of the left and the right part. So vocabulary and quality are the library's own, all
of its threads are used, and the price is one more pass (`benchmarks/train_tokenizer.py` measures both). A merge loop
of our own in Python was the other choice; it would be slower by far. A test compares the vocabulary with such a loop.
"""

from collections.abc import Callable, Iterable

from tokenizers import Tokenizer as Backend
from tokenizers import models, trainers

Lines = Iterable[str] | Iterable[list[str]]


def train_wordpiece(
    untrained: Callable[[], Backend],
    lines: Lines,
    vocabulary_size: int,
    min_frequency: int,
    special_tokens: list[str],
    prefix: str,
    initial_alphabet: list[str],
) -> dict[str, int]:
    """Ids of the entries: special tokens, then continuing and plain characters by code point, then merges as learned.

    `untrained` makes a tokenizer with the normaliser and pre-tokeniser to use; `lines` are gone through once with an
    empty prefix and otherwise twice, so they must not be a one-way iterator then. More entries than `vocabulary_size`
    come out when the characters alone are more.
    """

    def learn(fixed: list[str], size: int) -> dict[str, int]:
        backend = untrained()
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=min_frequency,
            special_tokens=fixed,
            initial_alphabet=initial_alphabet,
            continuing_subword_prefix=prefix,
            show_progress=False,
        )
        backend.train_from_iterator(lines, trainer)
        return backend.get_vocab(with_added_tokens=True)

    if not prefix:
        return learn(special_tokens, vocabulary_size)
    unmerged = learn(special_tokens, len(special_tokens))
    # Without merges a plain entry is a single character, so an entry of this length is a continuing one.
    continuing = sorted(
        entry
        for entry in unmerged
        if len(entry) == len(prefix) + 1 and entry.startswith(prefix) and entry not in special_tokens
    )
    return learn([*special_tokens, *continuing], vocabulary_size)


def wordpiece_model(vocabulary: dict[str, int], unknown: str, prefix: str, max_characters: int) -> models.WordPiece:
    """The model over a vocabulary: greedy, longest match first, a word that it cannot cover is `unknown` as a whole."""
    return models.WordPiece(
        vocab=vocabulary,
        unk_token=unknown,
        max_input_chars_per_word=max_characters,
        continuing_subword_prefix=prefix,
    )
