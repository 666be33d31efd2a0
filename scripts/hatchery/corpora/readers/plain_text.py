"""The user's own text: a file, folder or zip archive of text files, tables, JSON lines or Parquet.

By default, the reader repairs only wrong decodings in the text. Unless an option sets the role of the lines (sentences,
paragraphs, or lines of wrapped paragraphs), the reader recognises this role from the text (module `prose`) and reports
the role. Options can select the rows of a table, and can join rows with the same value in a column to one document (a
transcript, a book). By default, a text file is one document, with two exceptions: large files are divided into
documents (module `raw_files`), and if the source has only a few files, all its files are divided, so that some
documents can be held out. Encoding, columns and grouping are options; input that does not fit the options is an error
with its position.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext
from hatchery.corpora.plain_text_options import PlainTextOptions
from hatchery.corpora.prose import (
    LineForm,
    Named,
    NamedRow,
    Paragraph,
    blocks_of,
    documents_of,
    paragraphs_in,
    pieces,
    recognised,
)
from hatchery.corpora.raw_files import Piece, cut_text, matching_names, pieces_of
from hatchery.corpora.tables import documents_of_table, format_of, pieces_of_table, texts_of_table
from hatchery.corpora.text_files import (
    Lines,
    decoded_lines,
    first_lines,
    piece_bytes,
    pieces_between,
    text_blocks,
    with_unified_ends,
)
from hatchery.errors import SourceError
from hatchery.raw.archives import archive_suffix
from hatchery.raw.registration import RawSource

# If a source has fewer text files than this number, all files are divided into documents. With one document per file, a
# development split of 1/20 would be less than one document.
FEW_FILES = 20
LONG_FILE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PlainTextSource(CorpusSourceKeys):
    """Source with your own text."""

    reader: Literal["plain_text"]
    """Reader of text files, tables and JSON lines."""
    options: PlainTextOptions = dataclasses.field(default_factory=PlainTextOptions)
    """Options of the reader."""


def files(source: RawSource, options: PlainTextOptions) -> list[str]:
    """Return the names of all matching files, sorted. Raises SourceError, with a remedy, if no file matches."""
    patterns = (options.files,) if isinstance(options.files, str) else options.files
    try:
        return matching_names(source, patterns, options.exclude)
    except SourceError as error:
        raise SourceError(f"{error}{_remedy(source)}") from None


_DOCUMENTS = (".docx", ".doc", ".odt", ".rtf", ".pdf", ".epub")


def _remedy(source: RawSource) -> str:
    """If the source contains text documents (such as .docx) or archives, return advice to append to an error message,
    because the reader `plain_text` cannot read these files. If the source contains neither, return an empty text.
    """
    names = [str(source.root), *source.names()]
    if any(name.endswith(_DOCUMENTS) for name in names):
        return ", or save documents as plain text (.txt)"
    if any(archive_suffix(name) for name in names):
        return ", or unpack archives"
    return ""


def skipped(source: RawSource, options: PlainTextOptions) -> Counter[str]:
    """Return the number of unread files by file suffix; empty if the option `files` selects files. Files that the
    default of `exclude` excludes are counted by file name.
    """
    if options.files != PlainTextOptions.files:
        return Counter()
    excludes_by_default = options.exclude == PlainTextOptions.exclude
    excluded = {name for pattern in options.exclude for name in source.names(pattern)}
    chosen = {*files(source, options), *(() if excludes_by_default else excluded)}
    return Counter(
        PurePosixPath(name).name if name in excluded else PurePosixPath(name).suffix or "no ending"
        for name in source.names()
        if name not in chosen
    )


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the documents of one file, streamed. If the file is a table, or a text file that is divided into documents,
    only one document is in memory.

    There is one exception: in a table, rows of other documents can interrupt the rows of a document. Then all
    incomplete documents are in memory.
    """
    options: PlainTextOptions = context.options
    form = form_of(source, file, options, context.english)
    begins = context.piece is None or context.piece.start == 0
    if options.sentences is None and not options.tagged and begins:
        context.assumed[form.description] += 1
    is_text = format_of(file, options) == "text"
    make: Callable[..., Iterator[Named | NamedRow]] = _text if is_text else documents_of_table
    return documents_of(file, make(source, file, context, form), context, options.minimum_words)


def form_of(source: RawSource, file: str, options: PlainTextOptions, english: bool = False) -> LineForm:
    """Return the role of a file's lines: sentences, paragraphs, or lines of hard-wrapped paragraphs. If the options do
    not set this role, it is recognised from the file's beginning.

    `english` is True if the corpus's text is English; this argument only affects whether paragraphs are split into
    sentences.
    """
    if options.tagged:
        return LineForm("wrapped")
    if options.sentences is None:
        form = recognised(_beginning(source, file, options))
        if options.paragraphs == "line":
            return LineForm("paragraphs", cut=english and form.kind == "paragraphs")
        return replace(form, cut=english and form.kind != "lines")
    if options.paragraphs == "line":
        return LineForm("paragraphs", cut=options.punkt_language is not None)
    if options.sentences == "line":
        return LineForm("lines")
    return LineForm("wrapped", cut=options.punkt_language is not None)


def _beginning(source: RawSource, file: str, options: PlainTextOptions) -> Iterator[str]:
    """Yield the lines of a file from its beginning, with a blank line between two documents."""
    if format_of(file, options) == "text":
        yield from first_lines(source, file, options.encoding)
        return
    for text in texts_of_table(source, file, options):
        yield from with_unified_ends(text).split("\n")
        yield ""


def divide(source: RawSource, file: str, options: PlainTextOptions, count: int) -> Iterator[Piece]:
    """Yield the pieces into which a file, one of `count` files of its source, is divided. Yield no piece if the file
    cannot be divided. A file cannot be divided if it is one document, one JSON list, or a Parquet file in which a
    document has several rows. To find the pieces, a file is read completely, unless it is a Parquet file.

    Raises SourceError if the file cannot be read.
    """
    size = piece_bytes(source, file, options.encoding)
    every = options.lines_per_document
    if format_of(file, options) != "text":
        yield from pieces_of_table(source, file, options, size)
    elif is_cut(source, file, options, count):
        yield from pieces_of(text_blocks(source, file, options.encoding), size)
    elif every is not None:
        form = form_of(source, file, options)
        lines = Lines(source, file, options.encoding)
        # `lines_per_document` counts lines or, if wrapped lines are joined, paragraphs.
        counted = blocks_of(lines, every_line=form.kind != "wrapped")
        yield from pieces_between((True for _ in counted), lines, size, every)


def is_cut(source: RawSource, file: str, options: PlainTextOptions, count: int | None) -> bool:
    """Return True if a file is divided into documents by size, and not by a number of lines; `count` is the number of
    files of the source.
    """
    if options.lines_per_document is not None or options.tagged or options.cut_files == "never":
        return False
    few = count is not None and count < FEW_FILES
    return options.cut_files == "always" or few or source.size(file) > LONG_FILE_BYTES


def _text(source: RawSource, file: str, context: ReaderContext, form: LineForm) -> Iterator[Named]:
    options: PlainTextOptions = context.options
    if is_cut(source, file, options, context.files):
        return _cut(source, file, context, form)
    every = options.lines_per_document
    lines = Lines(source, file, options.encoding, context.piece)
    if form.kind != "lines":
        paragraphs = paragraphs_in(lines, context, form)
        return pieces((), ([paragraph] for paragraph in paragraphs), every, context.before)
    # A document has `every` lines, so a paragraph must end after `every` lines.
    paragraphs = paragraphs_in(lines, context, form, longest=every)
    return pieces((), ([paragraph] for paragraph in paragraphs), every, context.before, size=_lines_of)


def _cut(source: RawSource, file: str, context: ReaderContext, form: LineForm) -> Iterator[Named]:
    """Yield the numbered documents of a text file or, if `context.piece` is set, of this piece of the file."""
    encoding = context.options.encoding
    start, end = (0, None) if context.piece is None else (context.piece.start, context.piece.end)
    cuts = cut_text(text_blocks(source, file, encoding, start, end), start)
    for number, (offset, content) in enumerate(cuts, context.before):
        lines = decoded_lines(source, file, encoding, offset, content)
        yield (f"{number:06d}",), list(paragraphs_in(lines, context, form))


def _lines_of(paragraphs: Iterable[Paragraph]) -> int:
    return sum(map(len, paragraphs))


READER = Reader(PlainTextSource, files, read, divide, skipped=skipped)
