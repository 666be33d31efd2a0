"""Large corpora as documents: web pages, articles and books of any raw format, split into paragraphs and sentences.

Source: the Wikipedia and BookCorpus part of LTG-BERT (appendix F), and C4 where it is a training corpus of its own.
The paper splits sentences with spaCy; here the corpus's own splitter does, as everywhere. A title that the format
keeps apart becomes a Markdown heading.
"""

from collections.abc import Iterator

from hatchery.corpora.documents import RawDocument, Reading
from hatchery.corpora.prose import Paragraph, documents_of, finished, paragraphs_of, pieces
from hatchery.corpora.raw_texts import raw_text_files, raw_texts
from hatchery.corpora.settings import RawTextReaderOptions
from hatchery.storage.sources import RawSource


def files(source: RawSource, options: RawTextReaderOptions) -> list[str]:
    """The names of the files to read, sorted. Raises SourceError when no file matches."""
    return raw_text_files(source, options)


def read(source: RawSource, file: str, reading: Reading) -> Iterator[RawDocument]:
    """The documents of one file, streamed. Raises SourceError naming file and place of what is damaged."""
    options: RawTextReaderOptions = reading.options
    named = (_joined if options.texts_are_sentences else _separate)(source, file, reading)
    return documents_of(file, named, reading, options.minimum_words)


def _separate(source: RawSource, file: str, reading: Reading) -> Iterator[tuple[tuple[str, ...], list[Paragraph]]]:
    options: RawTextReaderOptions = reading.options
    for key, text, title in raw_texts(source, file, options):
        if not text or text.isspace():
            # An article without text is a redirect or the like; its title alone would make a document of it.
            reading.rejections.count("text without content", sample=title or None)
            continue
        lines = [[paragraph] for paragraph in paragraphs_of(text.split("\n"), options, reading.split_sentences)]
        heading = [[[f"# {finished(title, options)}"]]] if title and options.titles else []
        yield from pieces((key,) if key else (), [*heading, *lines], options.lines_per_document)


def _joined(source: RawSource, file: str, reading: Reading) -> Iterator[tuple[tuple[str, ...], list[Paragraph]]]:
    options: RawTextReaderOptions = reading.options
    sentences = ([[finished(text, options)]] for _, text, _ in raw_texts(source, file, options))
    for key, paragraphs in pieces((), sentences, options.lines_per_document):
        yield key, [[sentence for paragraph in paragraphs for sentence in paragraph]]
