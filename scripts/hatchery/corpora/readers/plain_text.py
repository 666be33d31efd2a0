"""Plain text that the user brings: a file, folder or zip archive of text files, CSV tables or JSON lines.

Text is read as it is: what its lines are is recognised (`line_forms`) unless an option says so, and what was assumed is
told. Tables can be filtered and grouped by a column (a transcript, a book). A text file is a document; where there are
few of them, or one is long, they are cut into documents (`cutting`), so that some can be held out. Encoding, columns
and grouping are options, and what does not fit them is an error with its place.
"""

import dataclasses
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from hatchery.corpora.cutting import Piece, cut_text, pieces_between, pieces_of
from hatchery.corpora.documents import RawDocument, ReaderContext
from hatchery.corpora.line_forms import LineForm, form_of
from hatchery.corpora.packed_files import matching_names, uncompressed_suffix
from hatchery.corpora.prose import (
    Named,
    Paragraph,
    ProseOptions,
    blocks_of,
    documents_of,
    finished,
    pieces,
    tagged_sentence,
)
from hatchery.corpora.raw_texts import Patterns
from hatchery.corpora.reader import Reader, SourceKeys
from hatchery.corpora.rows import Row, cell, csv_rows, field, has_surplus, json_lines, json_rows, kind_of
from hatchery.corpora.sentences import as_they_stand
from hatchery.corpora.text_files import Lines, decoded_lines, first_lines, piece_bytes, text_blocks, with_unified_ends
from hatchery.corpora.typography import repair_mojibake
from hatchery.errors import ConfigError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import RefusedError
from hatchery.settings.fields import Text

Format = Literal["text", "csv", "jsonl"]
_FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".md": "text",
    ".markdown": "text",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
}
# A twentieth of fewer text files, the default development split, is less than one.
FEW_FILES = 20
LONG_FILE_BYTES = 1 << 20
_REPAIRED = "line or paragraph whose broken encoding was repaired"
_FINAL_MARKS = (".", "?", "!", ":", ";", ",", '"')


SentencesName = Annotated[
    str, Text("^(line|none|punkt:[a-z]+)$", "line, none, or punkt: and a language, such as punkt:english")
]
Delimiter = Annotated[str, Text('^[^"\r\n]$', 'one character, such as ";" or "\\t"')]


@dataclass(frozen=True)
class PlainTextOptions(ProseOptions):
    """How files of one's own are read. Only `files` matters for plain text; tables need `column`."""

    cleaning: Literal["none", "encoding", "minimal", "full"] = "encoding"
    """encoding undoes wrong decodings and changes nothing else; minimal also makes quotes straight and ligatures,
    widths, accents and entities uniform, as the papers do, full also the spaces and quotes of words written apart."""
    sentences: SentencesName | None = None
    """What becomes the sentences of the corpus: line keeps every line as it is; none joins the lines of a paragraph,
    punkt:<language> cuts it into sentences, too. null looks at each file: wrapped lines are joined, all others kept;
    paragraphs are cut as English where `languages` of the corpus says en alone."""
    files: str | Patterns = ("*.txt", "*.md", "*.markdown", "*.csv", "*.tsv", "*.jsonl", "*.json")
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files that are left out."""
    format: Literal["text", "csv", "jsonl"] | None = None
    """Format of all files; null takes it from the suffix, also before .gz and the like."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    cut_files: Literal["auto", "always", "never"] = "auto"
    """Whether text files are cut into documents, at blank lines or else at line ends, where `lines_per_document` does
    not say how; auto cuts files of more than 1 MiB, and every file where there are fewer than 20."""
    delimiter: Delimiter | None = None
    """What separates the columns of a table, such as ";" or "\\t"; null is a tab for .tsv files, otherwise a comma."""
    column: str = "text"
    """Column or field with the text."""
    document_column: str | None = None
    """Rows of a file with the same value here form one document; null makes each row one."""
    keep: dict[str, Patterns] = dataclasses.field(default_factory=dict)
    """Only rows with one of these values in each of these columns."""
    tagged: bool = False
    """Text written as word/TAG, one sentence per line, as in the Brown corpus."""
    punctuation_column: str | None = None
    """Column that decides the final mark of a row without one, for transcripts."""
    punctuation: dict[str, str] = dataclasses.field(default_factory=lambda: {"question": "?"})
    """Final mark by the value of that column; a full stop for other values."""

    @property
    def punkt_language(self) -> str | None:
        """The language whose sentences the options say to cut at, if any."""
        return self.sentences.removeprefix("punkt:") if self.sentences and ":" in self.sentences else None

    def __post_init__(self) -> None:
        if self.sentences is not None and self.tagged:
            raise RefusedError("sentences", "cannot be set beside `tagged`, whose lines are sentences")
        if self.punctuation_column and self.tagged:
            raise RefusedError("punctuation_column", "cannot be set beside `tagged`, whose text has marks of its own")


@dataclass(frozen=True, kw_only=True)
class PlainTextSource(SourceKeys):
    """A source of one's own."""

    reader: Literal["plain_text"]
    """Reads text files, tables and JSON lines."""
    options: PlainTextOptions = dataclasses.field(default_factory=PlainTextOptions)
    """How it is read."""


def files(source: RawSource, options: PlainTextOptions) -> list[str]:
    """The names of all matching files, sorted. Raises SourceError when there is none."""
    patterns = (options.files,) if isinstance(options.files, str) else options.files
    return matching_names(source, patterns, options.exclude)


def skipped(source: RawSource, options: PlainTextOptions) -> Counter[str]:
    """How many files are not read, by the ending of their names, where no option says which files are."""
    if options.files != PlainTextOptions.files:
        return Counter()
    excluded = (name for pattern in options.exclude for name in source.names(pattern))
    chosen = {*files(source, options), *excluded}
    return Counter(PurePosixPath(name).suffix or "no ending" for name in source.names() if name not in chosen)


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """The documents of one file, streamed: a text file cut into pieces, and a table, pass in the memory of a document.

    Rows of one document may stand apart in the file; then all documents that are open at the same time are in memory.
    """
    options: PlainTextOptions = context.options
    form = _form(source, file, options, context.english)
    begins = context.piece is None or context.piece.start == 0
    if options.sentences is None and not options.tagged and begins:
        context.assumed[form.description] += 1
    make = _text if format_of(file, options) == "text" else _table
    return documents_of(file, make(source, file, context, form), context, options.minimum_words)


def _form(source: RawSource, file: str, options: PlainTextOptions, english: bool = False) -> LineForm:
    """What the lines of a file are; `english` matters only to whether they are cut."""
    if options.tagged:
        return LineForm("wrapped")
    return form_of(options, english, lambda: _beginning(source, file, options))


def _beginning(source: RawSource, file: str, options: PlainTextOptions) -> Iterator[str]:
    """The lines of a file from its beginning on, those of different documents with a blank one between them."""
    if format_of(file, options) == "text":
        yield from first_lines(source, file, options.encoding)
        return
    for place, row in _rows(_table_lines(source, file, options, None), options):
        text, problem = _kept(row, place, options)
        if text is not None and not problem:
            yield from with_unified_ends(text).split("\n")
            yield ""


def divide(source: RawSource, file: str, options: PlainTextOptions, count: int) -> Iterator[Piece]:
    """The pieces of a file; none of a text that is one document. It is read once, to its end.

    Raises SourceError where it cannot be read.
    """
    size = piece_bytes(source, file, options.encoding)
    every = options.lines_per_document
    if format_of(file, options) != "text":
        lines = _table_lines(source, file, options, None)
        if options.document_column is not None:
            yield from _closed_pieces(lines, options.document_column, options, size)
        else:
            kept = (not _kept(row, place, options)[1] for place, row in _rows(lines, options))
            yield from pieces_between(kept, lines, size, every or 1)
    elif is_cut(source, file, options, count):
        yield from pieces_of(text_blocks(source, file, options.encoding), size)
    elif every is not None:
        form = _form(source, file, options)
        lines = Lines(source, file, options.encoding)
        # Lines that are kept count themselves, others by their paragraphs.
        counted = blocks_of(lines, every_line=form.kind != "wrapped")
        yield from pieces_between((True for _ in counted), lines, size, every)


def is_cut(source: RawSource, file: str, options: PlainTextOptions, count: int | None) -> bool:
    """Whether one of `count` files is cut into documents by its size, not by a number of lines."""
    if options.lines_per_document is not None or options.tagged or options.cut_files == "never":
        return False
    few = count is not None and count < FEW_FILES
    return options.cut_files == "always" or few or source.size(file) > LONG_FILE_BYTES


def format_of(file: str, options: PlainTextOptions) -> Format:
    """How a file is read. Raises ConfigError where neither its ending nor an option says it."""
    suffix = uncompressed_suffix(file)
    if options.format is None and suffix not in _FORMATS:
        raise ConfigError(f"{file}: the suffix does not tell the format; set the option `format`")
    return options.format or _FORMATS[suffix]


def _delimiter(file: str, options: PlainTextOptions) -> str:
    return options.delimiter or ("\t" if uncompressed_suffix(file) == ".tsv" else ",")


def _text(source: RawSource, file: str, context: ReaderContext, form: LineForm) -> Iterator[Named]:
    options: PlainTextOptions = context.options
    if is_cut(source, file, options, context.files):
        return _cut(source, file, context, form)
    every = options.lines_per_document
    lines = Lines(source, file, options.encoding, context.piece)
    if form.kind != "lines":
        paragraphs = _paragraphs(lines, context, form)
        return pieces((), ([paragraph] for paragraph in paragraphs), every, context.before)
    # Of lines that are kept, so many make a document; a paragraph ends with them.
    paragraphs = _paragraphs(lines, context, form, longest=every)
    return pieces((), ([paragraph] for paragraph in paragraphs), every, context.before, size=_lines_of)


def _cut(source: RawSource, file: str, context: ReaderContext, form: LineForm) -> Iterator[Named]:
    """The numbered documents of a text file, or of a piece of it."""
    encoding = context.options.encoding
    start, end = (0, None) if context.piece is None else (context.piece.start, context.piece.end)
    cuts = cut_text(text_blocks(source, file, encoding, start, end), start)
    for number, (offset, content) in enumerate(cuts, context.before):
        lines = decoded_lines(source, file, encoding, offset, content)
        yield (f"{number:06d}",), list(_paragraphs(lines, context, form))


def _table_lines(source: RawSource, file: str, options: PlainTextOptions, piece: Piece | None) -> Lines:
    is_json = format_of(file, options) == "jsonl"
    return (json_lines if is_json else Lines)(source, file, options.encoding, piece)


def _rows(lines: Lines, options: PlainTextOptions) -> Iterator[Row]:
    if format_of(lines.name, options) == "jsonl":
        return json_rows(lines)
    return csv_rows(lines, _delimiter(lines.name, options))


def _table(source: RawSource, file: str, context: ReaderContext, form: LineForm) -> Iterator[Named]:
    options: PlainTextOptions = context.options

    def rows() -> Iterator[Row]:
        return _rows(_table_lines(source, file, options, context.piece), options)

    if options.document_column is not None:
        yield from _grouped(rows, options.document_column, context, form)
        return
    kept = (row for _, row in _row_paragraphs(rows(), context, form) if row is not None)
    if options.lines_per_document is not None:
        yield from pieces((), kept, options.lines_per_document, context.before)
        return
    for index, paragraphs in enumerate(kept, context.before):
        yield (f"{index:06d}",), paragraphs


def _grouped(rows: Callable[[], Iterator[Row]], column: str, context: ReaderContext, form: LineForm) -> Iterator[Named]:
    """Documents in the order of their first rows, each as soon as its last row and all documents before it are read.

    The table is read twice, first to count the rows of each document: nothing else says where a document ends.
    """
    left = Counter(cell(row, column, place) or "" for place, row in rows())
    kept: dict[str, list[list[Paragraph]]] = {}
    waiting = iter(dict.fromkeys(left))
    current = next(waiting, None)
    for key, paragraphs in _row_paragraphs(rows(), context, form):
        left[key] -= 1
        if paragraphs is not None:
            kept.setdefault(key, []).append(paragraphs)
        while current is not None and not left[current]:
            lines = kept.pop(current, None)
            if lines is not None:
                yield from pieces((current,), lines, context.options.lines_per_document)
            current = next(waiting, None)


def _closed_pieces(lines: Lines, column: str, options: PlainTextOptions, piece_bytes: int) -> Iterator[Piece]:
    """The pieces of a table with documents of several rows: one begins where no document before it has a row left."""
    last: dict[str, int] = {}
    begins = array("Q")
    offset, line, rows = 0, 0, 0
    for place, row in _rows(lines, options):
        key = cell(row, column, place) or ""
        if key not in last:
            begins.extend((offset, line, rows))
        last[key] = rows
        offset, line, rows = lines.offset, lines.line, rows + 1
    start = (0, 0, 0)
    done = -1
    for index, end in enumerate(last.values()):
        offset, line, row_number = begins[3 * index : 3 * index + 3]
        if row_number > done and offset - start[0] >= piece_bytes:
            yield Piece(start[0], offset, start[1], start[2], row_number - start[2])
            start = (offset, line, row_number)
        done = max(done, end)
    yield Piece(start[0], lines.offset, start[1], start[2], rows - start[2])


def _row_paragraphs(
    rows: Iterable[Row], context: ReaderContext, form: LineForm
) -> Iterator[tuple[str, list[Paragraph] | None]]:
    """The key of its document and the paragraphs of each row; None for a row that is left out."""
    options: PlainTextOptions = context.options
    for place, row in rows:
        key = "" if options.document_column is None else cell(row, options.document_column, place) or ""
        text, reason = _kept(row, place, options)
        if reason or text is None:
            context.rejections.count(reason, sample=text)
            yield key, None
            continue
        if options.punctuation_column is not None:
            text = _with_mark(text, options.punctuation.get(cell(row, options.punctuation_column, place) or "", "."))
        yield key, list(_paragraphs(with_unified_ends(text).split("\n"), context, form))


def _kept(row: Mapping[str, Any], place: str, options: PlainTextOptions) -> tuple[str | None, str]:
    """The text of a row, and why it is left out, which is empty for one that is kept."""
    text = field(row, options.column, place)
    if has_surplus(row):
        return text, "row with more fields than the header: quote texts with the delimiter"
    if not isinstance(text, str | None):
        return json.dumps(text, ensure_ascii=False), f"row whose text is {kind_of(text)}"
    if any(cell(row, column, place) not in values for column, values in options.keep.items()):
        return text, "row not kept by the option `keep`"
    if text is None or not text.strip():
        return None, "row without text"
    return text, ""


def _with_mark(text: str, mark: str) -> str:
    text = text.rstrip()
    return text if text.endswith(_FINAL_MARKS) else text + mark


def _lines_of(paragraphs: Iterable[Paragraph]) -> int:
    return sum(map(len, paragraphs))


def _paragraphs(
    lines: Iterable[str], context: ReaderContext, form: LineForm, longest: int | None = None
) -> Iterator[Paragraph]:
    """The paragraphs of a text, each a list of sentences; none goes beyond a multiple of `longest` lines."""
    options: PlainTextOptions = context.options
    for block in blocks_of(lines, form.kind == "paragraphs", longest):
        if options.tagged:
            yield [finished(tagged_sentence(line), options) for line in block]
            continue
        units = [_finished(unit, context) for unit in form.units(block)]
        yield [sentence for unit in units for sentence in _sentences(unit, context)] if form.cut else units


def _finished(text: str, context: ReaderContext) -> str:
    """The text of a line or a paragraph, cleaned; what had a broken encoding is counted."""
    found = finished(text, context.options)
    if context.options.cleaning == "encoding" and repair_mojibake(text) != text:
        context.assumed[_REPAIRED] += 1
    return found


def _sentences(text: str, context: ReaderContext) -> list[str]:
    sentences = context.split_sentences(text)
    return sentences if context.options.cleaning in ("minimal", "full") else as_they_stand(sentences, text)


READER = Reader(PlainTextSource, files, read, divide, skipped=skipped)
