"""Running text to paragraphs of sentences: where paragraphs end, how they are cleaned, how documents are cut.

The readers for text that is handed out as it was written (`plain_text`, `raw_text`) share this. Nothing is guessed
here: what ends a paragraph and how much is repaired is said by options, and of text of one's own by `line_forms`.
Tagged text follows the Brown corpus (Francis and Kucera 1979) as distributed with NLTK.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hatchery.corpora.cleaning import BABYLM_RULES, clean, clean_minimal
from hatchery.corpora.documents import RawDocument, ReaderContext, count_words, document_text
from hatchery.corpora.typography import repair_mojibake
from hatchery.settings.base import Count, Natural, Settings

Paragraph = list[str]
# Key and paragraphs of a document.
Named = tuple[tuple[str, ...], list[Paragraph]]


@dataclass(frozen=True)
class ProseOptions(Settings):
    """How running text becomes documents."""

    paragraphs: Literal["blank_line", "line"] = "blank_line"
    """What ends a paragraph: a blank line (lines are wrapped) or every line."""
    capitalise: bool = False
    """Begin each paragraph with an upper-case letter, for transcripts that have none."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "minimal"
    """encoding undoes wrong decodings and changes nothing else; minimal also makes quotes straight and ligatures,
    widths, accents and entities uniform, as the papers do, full also the spaces and quotes of words written apart."""
    lines_per_document: Count | None = None
    """Cut documents after so many paragraphs, rows, or lines that are kept; null leaves it to the text, or to
    `cut_files`."""
    minimum_words: Natural = 1
    """Documents with fewer words are left out and counted."""


def paragraphs_of(
    lines: Iterable[str], options: ProseOptions, split_sentences: Callable[[str], list[str]]
) -> Iterator[Paragraph]:
    """The paragraphs of a text given as lines, each a list of sentences, streamed."""
    for block in blocks_of(lines, options.paragraphs == "line"):
        yield split_sentences(finished(" ".join(block), options))


def blocks_of(lines: Iterable[str], every_line: bool, longest: int | None = None) -> Iterator[list[str]]:
    """The lines of each paragraph: up to a blank one, or one each; one ends after each `longest` lines, too."""
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
    """The text of a paragraph or line, cleaned as the options say."""
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


def _one(line: Iterable[Paragraph]) -> int:
    return 1


def pieces(
    key: tuple[str, ...],
    lines: Iterable[Iterable[Paragraph]],
    lines_per_document: int | None,
    before: int = 0,
    size: Callable[[Iterable[Paragraph]], int] = _one,
) -> Iterator[Named]:
    """The document called `key`, or numbered pieces of `lines_per_document` lines (groups of paragraphs) of it.

    Pieces are streamed; only one of them is in memory. A text without a line is one empty piece, to be counted.
    `before` is how many lines the text has before these, a multiple of `lines_per_document`; `size` says how many one
    counts as.
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
    file: str, named: Iterable[Named], context: ReaderContext, minimum_words: int
) -> Iterator[RawDocument]:
    """Documents from names and paragraphs; those with fewer words than `minimum_words` are counted as rejected.

    A document without any word is never kept.
    """
    minimum_words = max(minimum_words, 1)
    too_short = "no words" if minimum_words == 1 else f"fewer than {minimum_words} words"
    for key, paragraphs in named:
        text = document_text(paragraphs)
        if count_words(text) < minimum_words:
            context.rejections.count(too_short, sample=text)
        else:
            yield RawDocument("/".join((context.name, file, *key)), context.name, text)


_LEFT = re.compile(r" +([.,;:?!)\]}]+|''|%)(?= |$)")
_RIGHT = re.compile(r"(^| )([(\[{$]|``) +")


def tagged_sentence(line: str) -> str:
    """The sentence of one line: no tags, no space before marks or inside brackets and quotes, quotes as `"`."""
    words = " ".join(token.rsplit("/", 1)[0] for token in line.split())
    # Doubled final marks ("? ?", "; ;") are an artefact of how the corpus was tagged.
    words = re.sub(r"(^| )([?!;:]) \2(?= |$)", r"\1\2", words)
    words = _LEFT.sub(r"\1", words)
    words = _LEFT.sub(r"\1", words)
    return _RIGHT.sub(r"\1\2", words).replace("``", '"').replace("''", '"')
