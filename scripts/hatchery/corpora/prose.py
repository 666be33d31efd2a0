"""Conversion of running text to paragraphs of sentences. The functions recognise the role of lines, find the ends of
paragraphs, and divide text into documents.

The readers of unprocessed text (`plain_text`, `raw_text`) share this module. Options determine where a paragraph ends,
and which errors of the text are repaired. Tagged text follows the Brown corpus (Francis and Kucera 1979) as distributed
with NLTK.

If no option sets the role of the lines in the user's own text, the role is recognised from the beginning of each file.
There are three roles: lines are sentences (or utterances), paragraphs, or lines of hard-wrapped paragraphs. A text
counts as wrapped if many lines break off at a common line width in the middle of a sentence. Such a line has no final
punctuation mark, and the first word of the next line would not have fitted into the line and has no capital. If most of
the text is in lines longer than a sentence, the lines are paragraphs. In doubt, lines stay unchanged.

The thresholds were chosen from measurements. In wrapped prose (five languages, widths from 55 to 120 characters), the
fraction of lines that break off at the line width is at least 0.32. In transcripts without punctuation marks, this
fraction is at most 0.22; in captions, dialogue, lists of titles, ads and treebanks, at most 0.07. Lines of more than
200 characters contain at least half of the text in 121 of 124 speeches with a paragraph per line, but only in a tenth
of 2,000 short film reviews.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from hatchery.corpora.cleaning import BABYLM_RULES, clean, clean_minimal
from hatchery.corpora.documents import RawDocument, ReaderContext, document_text
from hatchery.corpora.sentences import as_they_stand
from hatchery.corpora.typography import repair_mojibake
from hatchery.settings.base import Count, Natural, Settings

SEEN_CHARACTERS = 1 << 20
# A text counts as wrapped if at least this share of its lines ends at the line width in the middle of a sentence. Last
# lines of paragraphs are not counted.
_WRAPPED_SHARE = 0.25
# Minimum line width of wrapped prose, in characters; utterances without punctuation marks have shorter lines.
_NARROWEST = 50
# A line reaches the line width if the line together with the first word of the next line is at least _MARGIN times as
# long as the 95th percentile of line lengths. The 95th percentile replaces the maximum, because single long lines
# (addresses, rows of tables) hardly change the percentile.
_PERCENTILE, _MARGIN = 0.95, 0.8
# Lines with more characters than this number are long; sentences are seldom this long. If long lines contain more than
# half of the characters of a text, every line of the text is taken as a paragraph.
_LONGEST_SENTENCE = 200

_REPAIRED = "line or paragraph whose broken encoding was repaired"
_FINAL_MARKS = tuple(".!?…:;。！？؟।")
_CLOSING = "\"'”’»«›‹“)]}*_ "
# This pattern finds lines that are not joined to the previous line: list items, headings, quotations and rows of tables
# in Markdown.
_BEGINS_LINE = re.compile(r"(?:[-*+•–—>]|#{1,6}|\d{1,3}[.)])\s|\|")


@dataclass(frozen=True)
class LineForm:
    """The role of the lines of a text. The role determines how the lines become sentences."""

    kind: Literal["lines", "paragraphs", "wrapped"]
    margin: float | None = None
    """Minimum length, in characters, of a line that is joined to the next line. The length includes the first word of
    the next line. If None, all lines up to a blank line are joined.
    """
    cut: bool = False
    """True if paragraphs are split into sentences."""

    @property
    def description(self) -> str:
        """Return a description in words, for the log and the card of a corpus."""
        words = {
            "lines": "lines kept as they are",
            "paragraphs": "every line a paragraph",
            "wrapped": "wrapped lines joined to paragraphs",
        }[self.kind]
        if self.kind == "lines":
            return words
        kept = "not cut into sentences (sentences: punkt:<language> does)"
        return f"{words}, {'cut into sentences as English' if self.cut else kept}"

    def units(self, block: list[str]) -> list[str]:
        """Return the lines of a paragraph after joining wrapped lines; `block` contains the lines before joining.

        Lines are joined only if the text is wrapped. If `margin` (the line width) is None, all lines are joined.
        Otherwise, a line is joined to the next line under two conditions: its length, with the first word of the next
        line, reaches `margin`; and the next line begins no list item, heading, quotation or table row.
        """
        if self.kind != "wrapped":
            return block
        if self.margin is None:
            return [" ".join(block)]
        lines = [line.strip() for line in block]
        joined = lines[:1]
        for line, following in pairwise(lines):
            if _reaches(line, following, self.margin) and not _BEGINS_LINE.match(following):
                joined[-1] += f" {following}"
            else:
                joined.append(following)
        return joined


def recognised(lines: Iterable[str]) -> LineForm:
    """Return the `LineForm` that is recognised in the first SEEN_CHARACTERS characters of a text."""
    seen = [line.strip() for line in _beginning(lines)]
    lengths = sorted(len(line) for line in seen if line)
    if not lengths:
        return LineForm("lines")
    width = lengths[int(_PERCENTILE * len(lengths))]
    pairs = [(line, following) for line, following in pairwise(seen) if line and following]
    broken = sum(_breaks_off(line, following, _MARGIN * width) for line, following in pairs)
    if width >= _NARROWEST and broken > 0 and broken >= _WRAPPED_SHARE * len(pairs):
        return LineForm("wrapped", _MARGIN * width)
    in_long_lines = sum(length for length in lengths if length > _LONGEST_SENTENCE)
    return LineForm("paragraphs" if 2 * in_long_lines > sum(lengths) else "lines")


def _beginning(lines: Iterable[str]) -> Iterator[str]:
    seen = 0
    for line in lines:
        yield line
        seen += len(line) + 1
        if seen > SEEN_CHARACTERS:
            return


def _reaches(line: str, following: str, margin: float) -> bool:
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) >= margin


def _breaks_off(line: str, following: str, margin: float) -> bool:
    """Return True if a line ends in the middle of a sentence because the next word would have crossed `margin`, the
    line width.
    """
    return (
        " " in line
        and _reaches(line, following, margin)
        and not line.rstrip(_CLOSING).endswith(_FINAL_MARKS)
        and not following[0].isupper()
    )


Paragraph = list[str]
# A document, as (key, paragraphs); the key consists of the parts of the document's name.
Named = tuple[tuple[str, ...], list[Paragraph]]
# A row of a table, as (key, paragraphs, licence, numbers); the licence is None if the source has no column of licences.
NamedRow = tuple[tuple[str, ...], list[Paragraph], str | None, dict[str, float]]


@dataclass(frozen=True)
class ProseOptions(Settings):
    """Settings that turn running text into documents."""

    paragraphs: Literal["blank_line", "line"] = "blank_line"
    """Text that ends a paragraph: a blank line (for text with wrapped lines), or every line break."""
    capitalise: bool = False
    """Capitalise the first letter of each paragraph, for transcripts without capitals."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "minimal"
    """Cleaning of the text. `encoding` only repairs wrongly decoded characters. `minimal` also makes quotes straight,
    and unifies ligatures, widths, accents and entities, as the papers do. `full` also repairs the spaces and quotes of
    text whose tokens are separated by spaces.
    """
    lines_per_document: Count | None = None
    """Number of paragraphs, rows or kept lines in a document; `null` keeps the text's own document boundaries, or
    divides files according to `cut_files`.
    """
    minimum_words: Natural = 1
    """Minimum number of words in a document; shorter documents are dropped and counted."""


def paragraphs_of(
    lines: Iterable[str], options: ProseOptions, split_sentences: Callable[[str], list[str]]
) -> Iterator[Paragraph]:
    """Yield the paragraphs of a text, each as a list of sentences. The lines are streamed."""
    for block in blocks_of(lines, options.paragraphs == "line"):
        yield split_sentences(finished(" ".join(block), options))


def blocks_of(lines: Iterable[str], every_line: bool, longest: int | None = None) -> Iterator[list[str]]:
    """Yield the lines of each paragraph.

    A paragraph ends at a blank line. If `longest` is set, a paragraph also ends wherever the number of non-blank lines
    since the beginning of the text is a multiple of `longest`. If `every_line` is True, a paragraph ends after each
    line.
    """
    block: list[str] = []
    number = 0
    for line in lines:
        blank = not line or line.isspace()
        if not blank:
            block.append(line)
            number += 1
        if block and (blank or every_line or (longest is not None and number % longest == 0)):
            yield block
            block = []
    if block:
        yield block


def finished(text: str, options: ProseOptions) -> str:
    """Return the text of a paragraph or line, cleaned according to the options."""
    match options.cleaning:
        case "encoding":
            text = repair_mojibake(text).strip()
        case "minimal":
            text = clean_minimal(text)
        case "full":
            text = clean(text, BABYLM_RULES)
        case _:
            text = text.strip()
    return text[:1].upper() + text[1:] if options.capitalise else text


def paragraphs_in(
    lines: Iterable[str], context: ReaderContext, form: LineForm, longest: int | None = None
) -> Iterator[Paragraph]:
    """Yield the paragraphs of a user's text (options of `plain_text`), each as a list of sentences.

    `longest` has the same effect as in `blocks_of`. Lines or paragraphs with a repaired encoding are counted in
    `context.assumed`.
    """
    options = context.options
    for block in blocks_of(lines, form.kind == "paragraphs", longest):
        if options.tagged:
            yield [finished(tagged_sentence(line), options) for line in block]
            continue
        units = form.units(block)
        if options.cleaning == "encoding" and (repaired := sum(repair_mojibake(unit) != unit for unit in units)):
            context.assumed[_REPAIRED] += repaired
        units = [finished(unit, options) for unit in units]
        yield [sentence for unit in units for sentence in _sentences(unit, context)] if form.cut else units


def _sentences(text: str, context: ReaderContext) -> list[str]:
    sentences = context.split_sentences(text)
    return sentences if context.options.cleaning in ("minimal", "full") else as_they_stand(sentences, text)


def _one(line: Iterable[Paragraph]) -> int:
    return 1


def pieces(
    key: tuple[str, ...],
    lines: Iterable[Iterable[Paragraph]],
    lines_per_document: int | None,
    before: int = 0,
    size: Callable[[Iterable[Paragraph]], int] = _one,
) -> Iterator[Named]:
    """Yield the document with the name `key`, or its numbered parts of `lines_per_document` lines each.

    Each element of `lines` is a group of paragraphs, and `size` returns the number of lines of a group. `before` is the
    number of earlier lines of the text, a multiple of `lines_per_document`. Only one part is in memory. For a text
    without lines, one empty document is yielded, so that the text is counted as rejected.
    """
    first = index = before // (lines_per_document or 1)
    held = 0
    piece: list[Paragraph] = []
    for line in lines:
        piece.extend(line)
        held += size(line)
        if held == lines_per_document:
            yield (*key, f"{index:06d}"), piece
            index, held, piece = index + 1, 0, []
    if lines_per_document is None:
        yield key, piece
    elif held or index == first:
        yield (*key, f"{index:06d}"), piece


def documents_of(
    file: str, named: Iterable[Named | NamedRow], context: ReaderContext, minimum_words: int
) -> Iterator[RawDocument]:
    """Yield a document for each element of `named`. An element contains the parts of a document's name and the
    document's paragraphs. Documents with fewer words than `minimum_words` are counted as rejected.

    A document without any word is never kept.
    """
    minimum_words = max(minimum_words, 1)
    too_short = "no words" if minimum_words == 1 else f"fewer than {minimum_words} words"
    for row in named:
        key, paragraphs = row[0], row[1]
        text = document_text(paragraphs)
        # Stop splitting after `minimum_words` words, because further words need not be counted.
        if len(text.split(None, minimum_words - 1)) < minimum_words:
            context.rejections.count(too_short, sample=text)
        else:
            name = "/".join((context.name, file, *key))
            licence, numbers = (row[2], row[3]) if len(row) == 4 else (None, None)
            yield RawDocument(name, context.name, text, licence=licence, numbers=numbers)


_LEFT = re.compile(r" +([.,;:?!)\]}]+|''|%)(?= |$)")
_RIGHT = re.compile(r"(^| )([(\[{$]|``) +")


def tagged_sentence(line: str) -> str:
    """Return the sentence of one line of word/TAG, without tags and without spaces before punctuation marks or inside
    brackets and quotes. Every quote becomes `"`, and a repeated mark (`? ?`) becomes one mark.
    """
    words = " ".join(token.rsplit("/", 1)[0] for token in line.split())
    # The tagged Brown corpus repeats final punctuation marks ("? ?", "; ;"); keep one mark.
    words = re.sub(r"(^| )([?!;:]) \2(?= |$)", r"\1\2", words)
    words = _LEFT.sub(r"\1", words)
    words = _LEFT.sub(r"\1", words)
    return _RIGHT.sub(r"\1\2", words).replace("``", '"').replace("''", '"')
