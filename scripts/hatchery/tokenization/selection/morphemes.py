"""ESMS: how well a tokenizer cuts words into their morphemes, as the paper defines it and as its code does.

Source: reduced-vocabulary study, Section 3.3; docs/papers/reduced-vocabulary.md, "Exact sub-token matching score".
`definition` is the share of words whose tokens are exactly the reference morphemes. `published_code` is partial credit:
every token that occurs among the word's morphemes counts 1, words of one token or of as many tokens as letters count 0,
and the sum is divided by the number of all morphemes; the printed values are all of this kind. It deletes `#` and
underscores but not U+2581, so the first piece of a SentencePiece word never counts; `published_code_corrected` takes
the letters that tokens stand for.

The words are the user's, or one of two lists that are shipped. A list is CSV with the columns `word` and `morphemes`,
these separated by blanks; lines that begin with `#` are comments. The 127 words of the study were never released.
`public_13` are the 13 words that its Table 5 prints; `own` is a longer list that we made ourselves and that is not the
paper's.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.errors import SourceError
from hatchery.raw.registration import open_source
from hatchery.tokenization.selection.backends import isolated, surfaces, tokens_of
from hatchery.tokenization.tokenizer_file import Definition, open_backend

COLUMNS = ["word", "morphemes"]


@dataclass(frozen=True)
class Word:
    """A word and the morphemes that spell it."""

    text: str
    morphemes: tuple[str, ...]


def shipped_words(name: str) -> list[Word]:
    """The words of the shipped list `public_13` or `own`."""
    path = Path(__file__).with_name(f"morphemes_{name}.csv")
    return parse_words(path.read_text(encoding="utf-8"), path.name)


def source_words(manifest: str | Path) -> list[Word]:
    """The words of a registered source that holds exactly one CSV file. Raises SourceError naming file and line."""
    source = open_source(manifest)
    names = source.names("*.csv")
    if len(names) != 1:
        raise SourceError(f"{source.root}: expected one .csv file of morphemes in it, found {len(names)}")
    content = source.read_bytes(names[0])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{source.root}: {names[0]!r} is not UTF-8: byte {error.start}") from error
    return parse_words(text, f"{source.root}: {names[0]!r}")


def parse_words(text: str, where: str) -> list[Word]:
    """Parse a list. Raises SourceError naming `where` and the line for morphemes that do not spell their word,

    a word given twice, a missing column, broken CSV, or a list without words.
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
    """The lines that are neither empty nor comments, with their numbers."""
    for number, line in enumerate(io.StringIO(text), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line


@dataclass(frozen=True)
class EsmsScores:
    """ESMS in all readings, each from 0 to 1."""

    definition: float
    published_code: float
    published_code_corrected: float


def equals_morphemes(pieces: Sequence[str], word: Word) -> bool:
    """The paper's definition for one word; `pieces` are the letters of its tokens."""
    return tuple(pieces) == word.morphemes


def partial_credit(tokens: Sequence[str], word: Word) -> int:
    """The published code's credit for one word: the number of its tokens that occur among its morphemes."""
    if len(tokens) in (1, len(word.text)):
        return 0
    return sum(token.replace("#", "").replace("_", "") in word.morphemes for token in tokens)


def esms(definition: Definition, words: Sequence[Word], where: str) -> EsmsScores:
    """ESMS of a tokenizer over words in isolation. `words` must not be empty (reading a list makes sure of it)."""
    backend = open_backend(isolated(definition), where)
    tokenised = list(tokens_of(backend, [word.text for word in words]))
    pieces = [surfaces(definition, tokens) for tokens in tokenised]
    morphemes = sum(len(word.morphemes) for word in words)
    equal = sum(equals_morphemes(found, word) for found, word in zip(pieces, words, strict=True))
    published = sum(partial_credit(found, word) for found, word in zip(tokenised, words, strict=True))
    corrected = sum(partial_credit(found, word) for found, word in zip(pieces, words, strict=True))
    return EsmsScores(equal / len(words), published / morphemes, corrected / morphemes)
