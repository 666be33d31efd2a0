"""Measures of a tokenizer: word-split ratio (isolated words), fertility (running text), and ESMS (exact sub-token
matching score, the agreement of tokens with morphemes).

Any `tokenizer.json` of the library `tokenizers` can be measured, so the reference tokenizers of the reduced-vocabulary
study ("Honey, I Shrunk the Language": roberta-base, bert-base-uncased, t5-base) can be compared with tokenizers of this
project. Truncation and padding are off.

Word-split ratio (reduced-vocabulary study, Section 3.3; docs/papers/reduced-vocabulary.md, "Word-split ratio and
choice"): mean number of tokens per word when each word is tokenised alone, without a space before it. Words are
separated by single spaces; an empty string between two spaces counts as a word of 0 tokens. In running text, a space
precedes each word, and most entries of a byte-level vocabulary begin with this space. Words without the space are split
into more tokens, so the ratio overstates the number of tokens per word. The corrected measure is `fertility`: the
number of tokens of running text per word between white space, in the same sample.

The sample contains sequences drawn without replacement from the splits `sample_splits`. Every sequence gets a random
number, in the order of the corpus, and the sequences with the smallest random numbers are the sample. So one pass with
constant memory is enough, and the sample depends only on corpus and seed.

ESMS (Section 3.3; docs/papers/reduced-vocabulary.md, "Exact sub-token matching score"): agreement of a word's tokens
with its morphemes. `definition` is the share of words whose tokens are exactly their morphemes. `published_code`, the
source of all printed values, gives partial credit. Every token that is one of its word's morphemes counts 1. In a word
with one token, or with one token per letter, no token counts. The sum is divided by the number of morphemes of all
words. This code deletes `#` and underscores but not U+2581, so the first token of a SentencePiece word never counts;
`published_code_corrected` compares the letters that tokens represent.

The words of ESMS come from the user's list or from a shipped list. A list is a CSV file with the columns `word` and
`morphemes`, where spaces separate morphemes; lines that begin with `#` are comments. The study's authors never
published their 127 words. `public_13` contains the 13 words printed in the study's Table 5; `own` is this project's
list.
"""

import csv
import heapq
import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer as Backend
from tokenizers import decoders

from hatchery.errors import CorpusError, SourceError, TokenizationError
from hatchery.raw.registration import open_source
from hatchery.sums import plain_sum
from hatchery.tokenization.definitions import SPACE
from hatchery.tokenization.documents import read_batches
from hatchery.tokenization.selection.settings import MORPHEME_FILE
from hatchery.tokenization.tokenizer_file import Definition, open_backend

WORD_MARKER = "\u2581"
"""The character at the beginning of a word in SentencePiece vocabularies."""
_BATCH = 4096


def read_definition(text: str, where: str) -> Definition:
    """Return the content of a `tokenizer.json` from its text. Raises TokenizationError, naming `where`, if the text
    does not define a tokenizer.
    """
    try:
        definition = json.loads(text)
        vocabulary, kind = definition["model"]["vocab"], definition["model"]["type"]
    except (ValueError, KeyError, TypeError) as error:
        raise TokenizationError(
            f"{where}: not a tokenizer: a key is missing or has a wrong type ({type(error).__name__}: {error})"
        ) from error
    if not vocabulary or not isinstance(kind, str):
        raise TokenizationError(f"{where}: not a tokenizer: its model has no vocabulary")
    return dict(definition)


def isolated(definition: Definition) -> Definition:
    """Return the tokenizer for isolated words: its byte-level pre-tokeniser adds no space before a text.

    A Metaspace pre-tokeniser still adds its word marker, because the marker is part of the first token in the published
    code of "Honey, I Shrunk the Language".
    """
    return {**definition, "pre_tokenizer": _without_prefix_space(definition.get("pre_tokenizer"))}


def _without_prefix_space(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "ByteLevel":
        return {**part, "add_prefix_space": False}
    if part.get("type") == "Metaspace" and part.get("replacement") == SPACE:
        return {**part, "prepend_scheme": "never"}
    if part.get("type") == "Sequence":
        return {**part, "pretokenizers": [_without_prefix_space(inner) for inner in part["pretokenizers"]]}
    return part


def model_only(definition: Definition) -> Definition:
    """Return a tokenizer that consists only of the model of `definition`. The input of this tokenizer is one normalised
    pre-token.
    """
    parts = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
    return {**definition, **dict.fromkeys(parts), "added_tokens": []}


def unknown_token(definition: Definition) -> str | None:
    """Return the name of the unknown token; None if the model has no unknown token."""
    model = definition["model"]
    if model["type"] == "Unigram":
        index = model.get("unk_id")
        return None if index is None else str(model["vocab"][index][0])
    name = model.get("unk_token")
    return None if name is None else str(name)


def surfaces(definition: Definition, tokens: Sequence[str]) -> list[str]:
    """Return the letters that each token represents, without continuation prefix and word marker; bytes become
    characters.

    A token that consists only of the word marker is left out.
    """
    prefix = definition["model"].get("continuing_subword_prefix") or ""
    part = definition.get("pre_tokenizer") or {}
    is_byte_level = any(inner.get("type") == "ByteLevel" for inner in part.get("pretokenizers", [part]))
    byte_level = decoders.ByteLevel() if is_byte_level else None
    surface_texts = []
    for index, token in enumerate(tokens):
        letters = token.removeprefix(prefix) if index else token
        letters = byte_level.decode([letters]) if byte_level is not None else letters.replace(WORD_MARKER, "")
        if letters := letters.strip():
            surface_texts.append(letters)
    return surface_texts


def tokens_of(backend: Backend, texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the tokens of every text, without [CLS] and other added tokens; an empty text has no tokens.

    The library `tokenizers` encodes the texts in parallel.
    """
    # `encode_batch_fast` returns only ids, so the tokens are looked up in the vocabulary.
    names = {index: token for token, index in backend.get_vocab(with_added_tokens=True).items()}
    for start in range(0, len(texts), _BATCH):
        batch = list(texts[start : start + _BATCH])
        for text, encoding in zip(batch, backend.encode_batch_fast(batch, add_special_tokens=False), strict=True):
            yield [names[index] for index in encoding.ids] if text else []


Unit = Literal["documents", "lines"]


def sequences_of(texts: Iterable[str], unit: Unit) -> Iterator[str]:
    """Yield the sequences of texts: the texts themselves or their lines, without sequences of only white space."""
    for text in texts:
        for sequence in [text] if unit == "documents" else text.split("\n"):
            if sequence.strip():
                yield sequence


def texts_of(shards: Mapping[str, Sequence[Path]], splits: Sequence[str]) -> Iterator[str]:
    """Yield the documents of `splits`, in the order of splits and shards."""
    for split in splits:
        for path in shards.get(split, ()):
            for batch in read_batches(path):
                yield from batch.texts


def draw(sequences: Iterable[str], count: int, seed: int) -> list[str]:
    """Return `count` sequences drawn without replacement, in their original order. If there are fewer than `count`
    sequences, return all sequences."""
    rng = random.Random(f"word-split sample {seed}")
    kept = heapq.nsmallest(count, ((rng.random(), number, text) for number, text in enumerate(sequences)))
    return [text for _, _, text in sorted(kept, key=itemgetter(1))]


def count_words(sequences: Iterable[str]) -> Counter[str]:
    """Return the frequency of each space-separated word; an empty word is counted between two adjacent spaces.

    The lines of a sequence that are not blank are joined by single spaces, so line ends add no empty words.
    """
    words: Counter[str] = Counter()
    for sequence in sequences:
        words.update(" ".join(line for line in sequence.split("\n") if line).split(" "))
    return words


def word_split_ratio(definition: Definition, words: Counter[str], where: str) -> float:
    """Return the mean number of tokens per isolated word. Raises CorpusError, naming `where`, if there is no word."""
    total = words.total()
    if not any(words):
        raise CorpusError(f"{where}: word-split ratio: the sample contains no words, expected at least one word")
    backend = open_backend(isolated(definition), where)
    distinct = sorted(words)
    tokens = sum(words[word] * len(found) for word, found in zip(distinct, tokens_of(backend, distinct), strict=True))
    return tokens / total


def running_text(definition: Definition, sequences: Sequence[str], where: str) -> tuple[float, float]:
    """Return two measures of the text in `sequences`: the fertility (tokens per word; white space separates words) and
    the share of unknown tokens. Each line of a sequence is encoded separately.

    Raises CorpusError if there is no word.
    """
    backend = open_backend(definition, where)
    unknown = unknown_token(definition)
    lines = [line.strip() for sequence in sequences for line in sequence.split("\n") if line.strip()]
    words = sum(len(line.split()) for line in lines)
    if not words:
        raise CorpusError(f"{where}: fertility: the sample contains no words, expected at least one word")
    tokens = unknown_tokens = 0
    for found in tokens_of(backend, lines):
        tokens += len(found)
        unknown_tokens += sum(token == unknown for token in found)
    return tokens / words, unknown_tokens / tokens if tokens else 0.0


COLUMNS = ["word", "morphemes"]


@dataclass(frozen=True)
class Word:
    """A word and its morphemes; the concatenated morphemes are the word."""

    text: str
    morphemes: tuple[str, ...]


def shipped_words(name: str) -> list[Word]:
    """Return the words of the shipped list `name`, `public_13` or `own`."""
    path = Path(__file__).with_name(f"morphemes_{name}.csv")
    return parse_words(path.read_text(encoding="utf-8"), path.name)


def source_words(manifest: str | Path) -> list[Word]:
    """Return the words of a raw input (registered files) that contains exactly one CSV file.

    Raises SourceError, naming file and line, if the file is not a valid list of words.
    """
    source = open_source(manifest)
    name = source.one_name(MORPHEME_FILE)
    content = source.read_bytes(name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{source.root}: {name!r} is not UTF-8: byte {error.start}") from error
    return parse_words(text, f"{source.root}: {name!r}")


def parse_words(text: str, where: str) -> list[Word]:
    """Return the words of a list from its text.

    Raises SourceError, naming `where` and the line, for morphemes that do not spell their word, a repeated word, a
    missing column, damaged CSV, or a list without words.
    """
    lines = list(_lines(text))
    rows = csv.reader((line for _, line in lines), strict=True)
    words: dict[str, Word] = {}
    try:
        header = next(rows, None)
        if header != COLUMNS:
            raise SourceError(f"{where}: expected the columns {', '.join(COLUMNS)}, got {', '.join(header or [])!r}")
        for row in rows:
            place = f"{where}: line {lines[rows.line_num - 1][0]}"
            if len(row) != len(COLUMNS):
                raise SourceError(f"{place}: expected {len(COLUMNS)} columns, got {len(row)}")
            word = Word(row[0].strip(), tuple(row[1].split()))
            if not word.text or "".join(word.morphemes) != word.text:
                raise SourceError(f"{place}: the morphemes {row[1]!r} do not spell the word {row[0]!r}")
            if word.text in words:
                raise SourceError(f"{place}: the word {word.text!r} is listed twice")
            words[word.text] = word
    except csv.Error as error:
        raise SourceError(f"{where}: line {lines[rows.line_num - 1][0]}: not CSV: {error}") from error
    if not words:
        raise SourceError(f"{where}: the list has no words")
    return list(words.values())


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """Yield the lines of `text` that are neither empty nor comments, with their line numbers."""
    for number, line in enumerate(io.StringIO(text), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line


@dataclass(frozen=True)
class EsmsScores:
    """Scores by the three versions of ESMS (exact sub-token matching score), each from 0 to 1."""

    definition: float
    published_code: float
    published_code_corrected: float


def equals_morphemes(pieces: Sequence[str], word: Word) -> bool:
    """Return whether `pieces`, the letters of each token, equal the word's morphemes, as in the definition of ESMS
    (exact sub-token matching score) in "Honey, I Shrunk the Language" (docs/papers/reduced-vocabulary.md, "Exact
    sub-token matching score").
    """
    return tuple(pieces) == word.morphemes


def partial_credit(tokens: Sequence[str], word: Word) -> int:
    """Return the number of a word's tokens that are among its morphemes, as in the published code of "Honey, I Shrunk
    the Language" (docs/papers/reduced-vocabulary.md, "Exact sub-token matching score").

    The number is 0 for a word with one token, and for a word with one token per letter.
    """
    if len(tokens) in (1, len(word.text)):
        return 0
    return sum(token.replace("#", "").replace("_", "") in word.morphemes for token in tokens)


def esms(definition: Definition, words: Sequence[Word], where: str) -> EsmsScores:
    """Return the ESMS (exact sub-token matching score) of a tokenizer over isolated words; there must be at least one
    word.
    """
    backend = open_backend(isolated(definition), where)
    tokenised = list(tokens_of(backend, [word.text for word in words]))
    pieces = [surfaces(definition, tokens) for tokens in tokenised]
    morphemes = sum(len(word.morphemes) for word in words)
    equal = sum(equals_morphemes(found, word) for found, word in zip(pieces, words, strict=True))
    published = plain_sum(partial_credit(found, word) for found, word in zip(tokenised, words, strict=True))
    corrected = plain_sum(partial_credit(found, word) for found, word in zip(pieces, words, strict=True))
    return EsmsScores(equal / len(words), published / morphemes, corrected / morphemes)
