"""Large corpora as documents: web pages, articles and books of any raw format, split into paragraphs and sentences.

Wikipedia and BookCorpus (LTG-BERT's paper, Appendix F) and C4 are read with this reader. LTG-BERT's paper splits
sentences with spaCy; Hatchery uses the sentence splitter of the corpus. If the format stores titles separately from the
texts, a title becomes a Markdown heading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext
from hatchery.corpora.prose import Named, ProseOptions, blocks_of, documents_of, finished, paragraphs_of, pieces
from hatchery.corpora.raw_files import Piece
from hatchery.corpora.raw_texts import RawText, RawTextOptions, format_of, raw_lines, raw_text_files, texts_in
from hatchery.corpora.rows import is_json_list
from hatchery.corpora.text_files import Lines, piece_bytes, pieces_between
from hatchery.errors import CorpusError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import refused


@dataclass(frozen=True)
class RawTextReaderOptions(ProseOptions, RawTextOptions):
    """Options of the reader `raw_text`: files with the texts, and their conversion into documents."""

    titles: bool = True
    """If true, the title of each text is added before the text as a heading, for formats with titles. If
    `lines_per_document` divides a text into several documents, only the first document has the title.
    """
    texts_are_sentences: bool = False
    """True if every text is one sentence; `lines_per_document` sentences form a document of one paragraph."""

    def __post_init__(self) -> None:
        if self.texts_are_sentences and self.lines_per_document is None:
            expected = "the number of sentences in a document, because `texts_are_sentences` is true"
            raise refused("lines_per_document", None, expected)


@dataclass(frozen=True, kw_only=True)
class RawTextSource(CorpusSourceKeys):
    """Source in the format of a large corpus."""

    reader: Literal["raw_text"]
    """Reader of web pages, articles and books in their distributed formats."""
    options: RawTextReaderOptions
    """Options of the reader."""


def files(source: RawSource, options: RawTextReaderOptions) -> list[str]:
    """Return the sorted names of the files to read. Raises SourceError if no file matches."""
    return raw_text_files(source, options)


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the documents of one file, streamed. Raises SourceError naming file and position of damaged input."""
    options: RawTextReaderOptions = context.options
    lines = raw_lines(source, file, options, context.piece)
    if options.texts_are_sentences:
        named = _joined(lines, context)
    elif _is_stream(lines, options):
        named = _streamed(lines, context)
    else:
        named = _separate(lines, context)
    return documents_of(file, named, context, options.minimum_words)


def divide(source: RawSource, file: str, options: RawTextReaderOptions, count: int) -> Iterator[Piece]:
    """Yield the pieces into which a file is divided; yield no piece for an undivided file, which is a single text or
    one JSON list. `count` is not used. To find the pieces, a file is read completely, unless it is a Parquet file.

    Raises SourceError if the file cannot be read, and CorpusError if two articles of a WikiExtractor file have the same
    id.
    """
    lines = raw_lines(source, file, options)
    name = format_of(source, file, options)
    size = piece_bytes(source, file, options.encoding)
    every = (options.lines_per_document or 1) if options.texts_are_sentences else 1
    if name == "parquet":
        from hatchery.corpora.parquet_files import pieces_of_column

        yield from pieces_of_column(lines, options.field, size, every)
    elif name == "json_lines" and is_json_list(source, file, options.encoding):
        return
    elif _is_stream(lines, options):
        paragraphs = blocks_of(lines, options.paragraphs == "line")
        yield from pieces_between((True for _ in paragraphs), lines, size, options.lines_per_document or 1)
    elif name != "text":
        texts = texts_in(lines, options)
        checked = _unique(texts, lines.where) if name == "wikiextractor" else texts
        yield from pieces_between((True for _ in checked), lines, size, every)


def _unique(texts: Iterator[RawText], where: str) -> Iterator[RawText]:
    """Yield the texts of a file, or of a piece of a file. Raise CorpusError if two of these texts have equal keys."""
    seen: set[str] = set()
    for text in texts:
        if text.key in seen:
            raise CorpusError(f"{where}: the document name {text.key!r} occurs twice")
        seen.add(text.key)
        yield text


def _is_stream(lines: Lines, options: RawTextReaderOptions) -> bool:
    """Return True if the file is one text that is divided into documents of `lines_per_document` paragraphs."""
    is_text = format_of(lines.source, lines.name, options) == "text"
    return is_text and options.lines_per_document is not None and not options.texts_are_sentences


def _streamed(lines: Lines, context: ReaderContext) -> Iterator[Named]:
    options: RawTextReaderOptions = context.options
    paragraphs = paragraphs_of(lines, options, context.split_sentences)
    first = next(paragraphs, None)
    if first is None:
        context.rejections.count("text without content")
        return
    yield from pieces((), ([item] for item in chain([first], paragraphs)), options.lines_per_document, context.before)


def _separate(lines: Lines, context: ReaderContext) -> Iterator[Named]:
    options: RawTextReaderOptions = context.options
    for key, text, title in texts_in(lines, options):
        if not text or text.isspace():
            # Leave out an article without text, which is a redirect; otherwise its title alone would become a document.
            context.rejections.count("text without content", sample=title or None)
            continue
        paragraphs = [[paragraph] for paragraph in paragraphs_of(text.split("\n"), options, context.split_sentences)]
        heading = [[[f"# {finished(title, options)}"]]] if title and options.titles else []
        yield from pieces((key,) if key else (), [*heading, *paragraphs], options.lines_per_document)


def _joined(lines: Lines, context: ReaderContext) -> Iterator[Named]:
    options: RawTextReaderOptions = context.options
    sentences = ([[finished(text, options)]] for _, text, _ in texts_in(lines, options))
    for key, paragraphs in pieces((), sentences, options.lines_per_document, context.before):
        yield key, [[sentence for paragraph in paragraphs for sentence in paragraph]]


READER = Reader(RawTextSource, files, read, divide)
