"""Read sentences of CoNLL-U files, the format of Universal Dependencies.

Source: docs/papers/ltg-bert.md, "Records of edge probing". Comments, the rows of multi-word tokens, and empty nodes are
skipped. The row of every word is checked: a file that is not CoNLL-U raises one error, which names file and line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import decode_lines, shorten
from hatchery.raw.registration import RawSource

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ROOT = "root"

_RANGE_OR_EMPTY_NODE = re.compile(r"[0-9]+[-.][0-9]+")
_MISSING = "_"


@dataclass(frozen=True)
class ConlluWord:
    """One word of a sentence. `columns` maps column names to the cells of the word's row; `where` is `file:line` of
    this row.
    """

    columns: dict[str, str]
    where: str

    @property
    def form(self) -> str:
        """The word's text (FORM) without inner spaces, as in `20 000` or `z. B.`."""
        return "".join(self.columns["FORM"].split())

    def label(self, column: str) -> str:
        """Return the word's cell in a column. Raises EvaluationError if the cell is empty."""
        value = self.columns[column]
        if value in ("", _MISSING):
            raise EvaluationError(f"{self.where}: the column {column} is empty, expected a label")
        return value


@dataclass(frozen=True)
class ConlluSentence:
    """The words of a sentence in order; `where` is `file:line` of the first word."""

    words: tuple[ConlluWord, ...]

    @property
    def where(self) -> str:
        """`file:line` of the first word."""
        return self.words[0].where

    def heads(self) -> list[int]:
        """Return, for each word, the position of its head, counted from 0; a root is its own head. Raises
        EvaluationError for an invalid HEAD.
        """
        heads = []
        for position, word in enumerate(self.words):
            text = word.columns["HEAD"]
            if not (text.isascii() and text.isdigit()):
                raise EvaluationError(f"{word.where}: HEAD is {shorten(text)}, expected a whole number")
            head = int(text)
            if head > len(self.words) or head == position + 1:
                raise EvaluationError(
                    f"{word.where}: HEAD is {head}, expected 0 or the number of another word of the sentence, "
                    f"which has {len(self.words)} words"
                )
            heads.append(position if head == 0 else head - 1)
        return heads


def read_sentences(source: RawSource, name: str) -> Iterator[ConlluSentence]:
    """Yield the sentences of a file; sentences without words are skipped.

    Raises EvaluationError naming file and line for a wrong number of columns, for an ID out of order, and for an empty
    FORM. Raises EvaluationError naming the file if the file has no sentence.
    """
    words: list[ConlluWord] = []
    previous, found = 0, False
    for line, text in decode_lines(source, name):
        # The reader skips blank lines, and a blank line ends a sentence. So a gap in the line numbers marks the end of
        # a sentence.
        if line != previous + 1 and words:
            yield ConlluSentence(tuple(words))
            found, words = True, []
        previous = line
        if text.startswith("#"):
            continue
        word = _word(text, f"{name}:{line}", expected=len(words) + 1)
        if word is not None:
            words.append(word)
    if words:
        yield ConlluSentence(tuple(words))
    elif not found:
        raise EvaluationError(f"{name}: the file contains no sentences")


def _word(text: str, where: str, expected: int) -> ConlluWord | None:
    fields = text.split("\t")
    if len(fields) != len(COLUMNS):
        raise EvaluationError(
            f"{where}: got {len(fields)} columns, expected the {len(COLUMNS)} columns of CoNLL-U, separated by tabs"
        )
    columns = dict(zip(COLUMNS, fields, strict=True))
    if _RANGE_OR_EMPTY_NODE.fullmatch(columns["ID"]):
        return None
    if columns["ID"] != str(expected):
        raise EvaluationError(
            f"{where}: ID is {shorten(columns['ID'])}, expected {expected}, or the ID of a range or an empty node"
        )
    word = ConlluWord(columns, where)
    if not word.form:
        raise EvaluationError(f"{where}: FORM is empty")
    return word
