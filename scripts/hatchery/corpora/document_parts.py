"""One part of a conversion: some files of a source, read to one file of documents in one process.

Files are grouped to about GROUP_BYTES, so that four thousand small texts are not four thousand tasks. A part holds
the documents in reading order without their splits where the source does not say them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from hatchery.corpora.corpus_writer import document_row
from hatchery.corpora.documents import SCHEMA, Reading, Rejections
from hatchery.corpora.registry import reader_and_options
from hatchery.corpora.sentences import SentenceReading, open_splitter
from hatchery.corpora.splits import SplitSettings, draw, smallest
from hatchery.errors import CorpusError
from hatchery.storage.checksums import digest
from hatchery.storage.parquet import TableWriter
from hatchery.storage.sources import RawSource, open_source

GROUP_BYTES = 16 << 20


@cache
def opened(manifest: Path) -> RawSource:
    """The source of a manifest, read once per process: some have a hundred thousand entries."""
    return open_source(manifest)


@dataclass(frozen=True)
class FileGroup:
    """A task: files of one source, and how to read them."""

    name: str
    reader: str
    options: dict[str, Any]
    manifest: Path
    files: tuple[str, ...]
    beside: str
    """Digest of the names of all files that are read of this source: a reader may look at which there are."""
    sentence_model: Path | None
    sentence_reading: SentenceReading
    split: SplitSettings

    def key(self) -> list[Any]:
        """What determines the part: the reader's settings and the content of the files."""
        source = opened(self.manifest)
        files = [[file, *source.files[file]] for file in self.files]
        model = None if self.sentence_model is None else opened(self.sentence_model).files
        return [
            self.name,
            self.reader,
            self.options,
            files,
            self.beside,
            model,
            [self.split.seed, self.split.development_documents],
        ]


def file_groups(
    name: str,
    reader: str,
    options: dict[str, Any],
    manifest: Path,
    split: SplitSettings,
    sentence_model: Path | None = None,
    sentence_reading: SentenceReading = "corrected",
) -> Iterator[FileGroup]:
    """The tasks of one source, in reading order. Raises SourceError when the reader finds no file in it."""
    source = opened(manifest)
    chosen, built = reader_and_options(reader, options, f"source {name!r}")
    names = chosen.files(source, built)
    group = partial(
        FileGroup,
        name,
        reader,
        options,
        manifest,
        beside=digest(names),
        sentence_model=sentence_model,
        sentence_reading=sentence_reading,
        split=split,
    )
    files: list[str] = []
    size = 0
    for file in names:
        if files and size + source.files[file][0] > GROUP_BYTES:
            yield group(files=tuple(files))
            files, size = [], 0
        files.append(file)
        size += source.files[file][0]
    if files:
        yield group(files=tuple(files))


def write_documents(group: FileGroup, path: Path) -> dict[str, Any]:
    """Read the group's files and write their documents to `path`.

    Returns the number of documents, what was rejected, and the draws that could make a document one of the
    development split. Raises CorpusError when two documents of one file have the same name.
    """
    source = opened(group.manifest)
    reader, options = reader_and_options(group.reader, group.options, f"source {group.name!r}")
    model = None if group.sentence_model is None else opened(group.sentence_model)
    splitter = open_splitter(model, group.sentence_reading)
    rejections = Rejections()
    reading = Reading(group.name, options, rejections, splitter.split)
    points: list[int] = []
    with TableWriter(path, SCHEMA) as table:
        for file in group.files:
            seen: set[str] = set()
            for document in reader.read(source, file, reading):
                if document.doc_id in seen:
                    raise CorpusError(
                        f"source {group.name!r}: {file}: the document name {document.doc_id!r} occurs twice"
                    )
                seen.add(document.doc_id)
                table.write(document_row(document.doc_id, document.source, document.split, document.text))
                if document.split is None and group.split.development_documents is not None:
                    points = smallest([*points, draw(document.doc_id, group.split.seed)], group.split)
        documents = table.rows
    return {
        "documents": documents,
        "points": points,
        "rejected": dict(sorted(rejections.counts.items())),
        "samples": dict(sorted(rejections.samples.items())),
    }


def rejections_of(facts: dict[str, Any]) -> Rejections:
    """The rejections of a part from its facts."""
    return Rejections(Counter(facts["rejected"]), {reason: list(texts) for reason, texts in facts["samples"].items()})
