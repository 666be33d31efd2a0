"""The surprisal of every word of the user's texts: -log2 of the word's probability, in bits.

Words are separated by white space or by a given separator. A word includes its punctuation, its apostrophes and all
parts of a compound with hyphens. The surprisal of a word is the sum over its tokens. Every scored token belongs to
exactly one word, so the surprisals of a text's words sum to minus the text's score (`ways_of_scoring.WAYS`) in bits.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import polars as pl
from tokenizers import decoders

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.scoring import scoring_name, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, TokenizedModel
from hatchery.evaluation.surprisal.splitting import Words, split_words
from hatchery.evaluation.ways_of_scoring import WAYS

LONGEST_INPUT_TOKENS = 1024
"""Maximum number of input tokens for a model that has no maximum of its own; `windows` splits longer texts."""

SCHEMA = {
    "sentence": pl.UInt32,
    "position": pl.UInt32,
    "word": pl.String,
    "surprisal": pl.Float64,
    "tokens": pl.UInt32,
    "unknown": pl.Boolean,
    "in_bytes": pl.Boolean,
}
"""Columns of the table of words. `sentence` is the number of the text, and `position` is the word's position in the
text, both counted from 1. `surprisal` is in bits, null if no token begins in the word. `tokens` is the word's number of
tokens. `unknown` is true if the word contains an unknown token. `in_bytes` is true if the word contains no unknown
token, but a character that no token of the vocabulary contains, so that bytes encode this character (`Alphabet`).
"""

TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 10_000, 1 << 20
"""Limits for the texts whose scores are in memory together: maximum number of texts, and approximate number of
characters.
"""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield lists of items. A list ends when it contains TEXTS_AT_ONCE items or at least CHARACTERS_AT_ONCE
    characters."""
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += characters(item)
        if len(chunk) >= TEXTS_AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@dataclass
class Alphabet:
    """The characters that occur in a model's vocabulary, and rare characters: characters that occur in texts, but in no
    token.

    A byte-level tokenizer can encode any character. Its vocabulary has tokens for the frequent characters of its
    training text. A character without a token is rare in the training text or absent from it. The surprisal of such a
    character reflects the vocabulary, not the predictability of the word.
    """

    model: TokenizedModel | BaselineModel
    rare: dict[str, int] = field(default_factory=dict)
    """For each rare character, the number of words that contain it."""

    def __post_init__(self) -> None:
        backend = self.model.tokenizer.backend
        # An imported byte-level tokenizer may have no decoder. Its vocabulary spells bytes as Latin letters, so decode
        # the vocabulary with the byte-level decoder.
        decoder = decoders.ByteLevel() if "ByteLevel" in repr(backend.pre_tokenizer) else backend.decoder
        texts = [token if decoder is None else decoder.decode([token]) for token in backend.get_vocab()]
        # A token that contains only some bytes of a character is decoded to U+FFFD. This character is not part of the
        # alphabet.
        self._known = {character for text in texts for character in text} - {"\ufffd"}
        self._found: dict[str, str] = {}

    def rare_characters(self, word: str) -> str:
        """Return the characters that occur in a word, or in the white space before the word, but in no token. Increase
        the count of each of these characters in `rare`.
        """
        if word.isascii():
            return ""
        if word not in self._found:
            normalizer = self.model.tokenizer.backend.normalizer
            written = word if normalizer is None else normalizer.normalize_str(word)
            strange = {character for character in written if character not in self._known and character != " "}
            self._found[word] = "".join(sorted(strange))
        for character in self._found[word]:
            self.rare[character] = self.rare.get(character, 0) + 1
        return self._found[word]


def windows(sentence: EncodedSentence, longest: int) -> Iterator[EncodedSentence]:
    """Yield the parts of a text that are inputs of at most `longest` tokens; each token is scored in exactly one input.

    In every input except the first, the first half is context and is not scored. Each token of a long text is thus
    predicted from at least half an input of earlier tokens, except near the beginning of the text.
    """
    length, step = len(sentence.ids), longest - longest // 2
    yield EncodedSentence(sentence.ids[:longest], sentence.words and sentence.words[:longest])
    for end in range(longest + step, length + step, step):
        first, last = end - longest, min(end, length)
        yield EncodedSentence(sentence.ids[first:last], sentence.words and sentence.words[first:last], longest - step)


def word_surprisals(
    model: TokenizedModel | BaselineModel,
    texts: Iterable[str | Words],
    *,
    separator: str | None = None,
    scoring: str = "auto",
    leading_blank: bool = False,
    tokens_per_batch: int | None = None,
    place: Callable[[int], str] = lambda index: f"text {index + 1:,}",
    alphabet: Alphabet | None = None,
    first: int = 0,
    on_texts: Callable[[int], None] = lambda number: None,
) -> pl.DataFrame:
    """Return a table with the columns of SCHEMA: a row for each word of the texts, with the surprisal of the word.

    If the words of a text are known, the text is a `Words`; other texts are split at white space or at `separator`.
    `scoring` is a scoring method (WAYS). With "auto", a causal model predicts a word from earlier words, and a masked
    or hybrid model predicts each token from the rest of the text; a hybrid model loaded for left-to-right use counts as
    causal. If `leading_blank` is true, a space is added before every text; if the attribute `leading_blank` of the
    model is not None, its value is used instead. `alphabet` counts rare characters; `first` is the index of the first
    text. `on_texts` is called with the number of texts that were scored since its last call.

    For a causal model, a text longer than the maximum input is scored in `windows`. Raises EvaluationError for a text
    without words or tokens and, for a masked model, for a text longer than the maximum input. In these messages,
    `place(index)` is the name of the text. Raises ConfigError for an encoder-decoder, and if the model does not support
    the scoring method.
    """
    if model.architecture == "encoder_decoder":
        raise ConfigError("surprisals: got an encoder-decoder, expected a causal, masked or hybrid model")
    chosen = scoring_name(scoring, model.architecture)
    alphabet = alphabet or Alphabet(model)
    asked = _Asked(model, chosen, leading_blank, tokens_per_batch, alphabet)
    split = (text if isinstance(text, Words) else split_words(text, separator) for text in texts)
    tables = [pl.DataFrame(schema=SCHEMA)]
    for chunk in chunks(split, lambda words: len(words.text)):
        tables.append(asked.table(chunk, first, place, on_texts))
        first += len(chunk)
    return pl.concat(tables)


@dataclass(frozen=True)
class _Asked:
    """A model with a scoring method and its settings. The method `table` scores the words of texts."""

    model: TokenizedModel | BaselineModel
    scoring: str
    leading_blank: bool
    tokens_per_batch: int | None
    alphabet: Alphabet

    def table(
        self, split: Sequence[Words], first: int, place: Callable[[int], str], on_texts: Callable[[int], None]
    ) -> pl.DataFrame:
        """Return a table with a row for each word of the texts `split`; `first` is the index of the first of these
        texts. `place` returns the place of a text, by index, for messages. Raises EvaluationError for a text without a
        word or token, and for a text that is too long for a masked model.
        """
        model, way = self.model, WAYS[self.scoring]
        for index, words in enumerate(split, first):
            if not words.spans:
                raise EvaluationError(f"{place(index)}: the text has no word")
        blank = " " * (self.leading_blank if model.leading_blank is None else model.leading_blank)
        written = [blank + words.text for words in split]
        encoded = model.encode(written, words=way.needs_words)
        framing = len(model.frame.before) + len(model.frame.after)
        longest = (model.longest_input or LONGEST_INPUT_TOKENS) - framing
        inputs: list[EncodedSentence] = []
        of: list[int] = []
        for index, sentence in enumerate(encoded):
            if not sentence.ids:
                raise EvaluationError(f"{place(first + index)}: the tokenizer returns no token for this text")
            if len(sentence.ids) > longest and model.architecture == "masked":
                raise EvaluationError(
                    f"{place(first + index)}: becomes {len(sentence.ids):,} tokens, expected at most {longest:,} for a "
                    "masked model: put every sentence on a line of its own"
                )
            parts = list(windows(sentence, longest))
            inputs += parts
            of += [index] * len(parts)
        total = sum(way.rows(one.scored) * (len(one.ids) + framing) for one in set(inputs))
        scores = token_scores(
            model, inputs, self.scoring, self.tokens_per_batch, _in_texts(total, len(split), on_texts)
        )
        nats: list[list[np.ndarray]] = [[] for _ in split]
        for index, values in zip(of, scores, strict=True):
            nats[index].append(values)
        encodings = model.tokenizer.backend.encode_batch(written, add_special_tokens=False)
        columns: dict[str, list[Any]] = {name: [] for name in SCHEMA}
        for index, (words, encoding, parts_of_it, sentence) in enumerate(
            zip(split, encodings, nats, encoded, strict=True), first
        ):
            offsets = [(max(0, a - len(blank)), max(0, b - len(blank))) for a, b in encoding.offsets]
            unknown = np.array(sentence.ids) == model.tokenizer.unknown_id
            rare = [bool(self.alphabet.rare_characters(word)) for word in words.with_blanks()]
            for name, cells in _rows(index, words, offsets, np.concatenate(parts_of_it), unknown, rare).items():
                columns[name] += cells
        return pl.DataFrame(columns, schema=SCHEMA)


def _in_texts(total: int, texts: int, on_texts: Callable[[int], None]) -> Callable[[int], None]:
    """Return a function that is called with numbers of scored tokens, adds up these numbers, and calls `on_texts` with
    the number of texts scored since the last call. This number of texts is estimated: `total` tokens count as `texts`
    texts of equal length.
    """
    done = [0, 0]

    def count(tokens: int) -> None:
        done[0] += tokens
        if (reached := texts * done[0] // total) > done[1]:
            on_texts(reached - done[1])
            done[1] = reached

    return count


def _rows(
    index: int,
    words: Words,
    offsets: Sequence[tuple[int, int]],
    nats: np.ndarray,
    unknown: np.ndarray,
    rare: Sequence[bool],
) -> dict[str, Iterable[Any]]:
    """Return the columns of SCHEMA for the words of one text. For each token, `nats` is its log-probability, and
    `unknown` is true for the unknown token. For each word, `rare` is true if the word contains a rare character.
    """
    word, count = np.array(words.of_tokens(offsets)), len(words.spans)
    is_unknown = np.bincount(word, weights=unknown, minlength=count) > 0
    tokens = np.bincount(word, minlength=count).tolist()
    bits = np.bincount(word, weights=-nats.astype(np.float64), minlength=count) / math.log(2)
    return {
        "sentence": [index + 1] * count,
        "position": range(1, count + 1),
        "word": (words.text[start:end] for start, end in words.spans),
        "surprisal": (value if n else None for value, n in zip(bits.tolist(), tokens, strict=True)),
        "tokens": tokens,
        "unknown": is_unknown.tolist(),
        "in_bytes": (np.array(rare, dtype=bool) & ~is_unknown).tolist(),
    }
