"""Plain text that the user brings: a file, folder or zip archive of text files, CSV tables or JSON lines.

Text is split into paragraphs and sentences; tables can be filtered and grouped by a column (a transcript, a book).
Nothing is guessed: encoding, columns and grouping are options, and what does not fit them is an error with its place.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.cleaning import BABYLM_RULES, clean, clean_minimal
from hatchery.corpora.documents import RawDocument, Rejections, count_words, document_text
from hatchery.corpora.rows import Row, cell, csv_rows, json_rows
from hatchery.corpora.sentences import split_sentences
from hatchery.corpora.tagged_text import tagged_sentence
from hatchery.corpora.text_files import matching_names, read_text
from hatchery.errors import ConfigError
from hatchery.storage.sources import RawSource

Format = Literal["text", "csv", "jsonl"]
Paragraph = list[str]
_FORMATS: dict[str, Format] = {".txt": "text", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
_FINAL_MARKS = (".", "?", "!", ":", ";", ",", '"')


@dataclass(frozen=True)
class PlainTextOptions:
    """How the files are read. Only `files` matters for plain text; tables need `column`."""

    files: str | tuple[str, ...] = ("*.txt", "*.csv", "*.jsonl", "*.json")
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files that are left out."""
    format: Format | None = None
    """Format of all files; by default from the suffix (.txt, .csv, .jsonl, .json, also with .gz for the last two)."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    column: str = "text"
    """Column or field with the text."""
    document_column: str | None = None
    """Rows of a file with the same value here form one document; without it every row is a document."""
    keep: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Only rows with one of these values in each of these columns."""
    tagged: bool = False
    """Whether the text is "word/TAG word/TAG", one sentence per line, as in the Brown corpus."""
    paragraphs: Literal["blank_line", "line"] = "blank_line"
    """What ends a paragraph: a blank line (lines are wrapped) or every line."""
    capitalise: bool = False
    """Whether each paragraph begins with an upper-case letter, for transcripts that have none."""
    punctuation_column: str | None = None
    """Column that decides the final mark of a row without one, for transcripts."""
    punctuation: dict[str, str] = field(default_factory=lambda: {"question": "?"})
    """Final mark by the value of that column; `.` for other values."""
    cleaning: Literal["none", "minimal", "full"] = "minimal"
    """`minimal` repairs encodings; `full` also the spaces and quotes of text whose words were written apart."""
    lines_per_document: int | None = None
    """Cut documents after so many paragraphs of text, or so many rows."""
    minimum_words: int = 1
    """Documents with fewer words are left out, and counted."""

    def __post_init__(self) -> None:
        if self.lines_per_document is not None and self.lines_per_document < 1:
            raise ConfigError(f"lines_per_document: got {self.lines_per_document}, expected 1 or more")
        if self.punctuation_column and self.tagged:
            raise ConfigError("punctuation_column: cannot be set beside `tagged`, whose text has marks of its own")


def read(source: RawSource, name: str, options: PlainTextOptions, rejections: Rejections) -> Iterator[RawDocument]:
    """The documents of all matching files, in the order of their names. `name` is the source's name in the corpus."""
    patterns = (options.files,) if isinstance(options.files, str) else options.files
    for file in matching_names(source, patterns, options.exclude):
        for key, paragraphs in _documents(source, file, options, rejections):
            text = document_text(paragraphs)
            if count_words(text) < options.minimum_words:
                rejections.count(f"fewer than {options.minimum_words} words")
            else:
                yield RawDocument("/".join((name, file, *key)), name, text)


def _format_of(file: str, options: PlainTextOptions) -> Format:
    suffix = PurePosixPath(file.removesuffix(".gz")).suffix
    if options.format is None and suffix not in _FORMATS:
        raise ConfigError(f"{file}: the suffix does not tell the format; set the option `format`")
    return options.format or _FORMATS[suffix]


def _documents(
    source: RawSource, file: str, options: PlainTextOptions, rejections: Rejections
) -> Iterator[tuple[tuple[str, ...], list[Paragraph]]]:
    """Pairs of what the name of the document needs beyond the file, and its paragraphs."""
    kind = _format_of(file, options)
    if kind == "text":
        paragraphs = list(_paragraphs(read_text(source, file, options.encoding), options))
        yield from _pieces((), [[paragraph] for paragraph in paragraphs], options)
        return
    rows = (csv_rows if kind == "csv" else json_rows)(source, file, options.encoding)
    if options.document_column is None:
        texts = (row for _, row in _row_paragraphs(rows, options, rejections))
        if options.lines_per_document is not None:
            yield from _pieces((), list(texts), options)
        else:
            for index, paragraphs in enumerate(texts):
                yield (f"{index:06d}",), paragraphs
        return
    grouped: dict[str, list[list[Paragraph]]] = {}
    for key, paragraphs in _row_paragraphs(rows, options, rejections):
        grouped.setdefault(key, []).append(paragraphs)
    for key, group in grouped.items():
        yield from _pieces((key,), group, options)


def _pieces(
    key: tuple[str, ...], lines: list[list[Paragraph]], options: PlainTextOptions
) -> Iterator[tuple[tuple[str, ...], list[Paragraph]]]:
    """The document, or pieces of `lines_per_document` lines of it, numbered."""
    size = options.lines_per_document
    if size is None:
        yield key, [paragraph for line in lines for paragraph in line]
        return
    for index, start in enumerate(range(0, len(lines), size)):
        yield (*key, f"{index:06d}"), [paragraph for line in lines[start : start + size] for paragraph in line]


def _row_paragraphs(
    rows: Iterable[Row], options: PlainTextOptions, rejections: Rejections
) -> Iterator[tuple[str, list[Paragraph]]]:
    """The key of its document and the paragraphs of each row that is kept."""
    for place, row in rows:
        if any(cell(row, column, place) not in values for column, values in options.keep.items()):
            rejections.count("row not kept by the option `keep`")
            continue
        text = cell(row, options.column, place)
        if text is None or not text.strip():
            rejections.count("row without text")
            continue
        if options.punctuation_column is not None:
            text = _with_mark(text, options.punctuation.get(cell(row, options.punctuation_column, place) or "", "."))
        key = "" if options.document_column is None else cell(row, options.document_column, place) or ""
        yield key, list(_paragraphs(text, options))


def _with_mark(text: str, mark: str) -> str:
    text = text.rstrip()
    return text if text.endswith(_FINAL_MARKS) else text + mark


def _paragraphs(text: str, options: PlainTextOptions) -> Iterator[Paragraph]:
    """The paragraphs of a text, each a list of sentences."""
    lines = text.split("\n")
    for block in _blocks(lines) if options.paragraphs == "blank_line" else ([line] for line in lines if line.strip()):
        if options.tagged:
            yield [_finished(tagged_sentence(line), options) for line in block]
            continue
        paragraph = _finished(" ".join(block), options)
        yield split_sentences(paragraph)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _finished(text: str, options: PlainTextOptions) -> str:
    match options.cleaning:
        case "minimal":
            text = clean_minimal(text)
        case "full":
            text = clean(text, BABYLM_RULES)
        case _:
            text = text.strip()
    return text[:1].upper() + text[1:] if options.capitalise else text
