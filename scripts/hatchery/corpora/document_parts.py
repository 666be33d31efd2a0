"""One part of a conversion: some files of a source, read to one file of documents in one process.

Files are grouped to about GROUP_BYTES, so that four thousand small texts are not four thousand tasks, and a large file
that its reader can divide is several tasks. A part holds the documents in reading order without their splits where the
source does not say them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.artifacts.parquet import TableWriter
from hatchery.corpora.corpus_writer import SCHEMA, document_row
from hatchery.corpora.cutting import PIECE_BYTES, Piece
from hatchery.corpora.documents import ReaderContext, Rejections
from hatchery.corpora.packed_files import unpacked_bytes
from hatchery.corpora.readers import reader_and_options
from hatchery.corpora.sentences import open_splitter
from hatchery.corpora.settings import ENGLISH, SplitSettings
from hatchery.corpora.splits import draw, smallest
from hatchery.errors import CorpusError
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source
from hatchery.settings.base import ReadingName

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
    files_digest: str
    """Digest of the names of all files that are read of this source: a reader may look at which there are."""
    sentence_model: Path | None
    sentence_reading: ReadingName
    split: SplitSettings
    count: int
    """How many files of the source are read."""
    languages: tuple[str, ...] = ()
    """Languages of the corpus, as far as it says them."""
    piece: Piece | None = None
    """The part of its one file that is read; None for whole files."""

    @property
    def bytes(self) -> int:
        """How much there is to read."""
        if self.piece is not None:
            return self.piece.end - self.piece.start
        source = opened(self.manifest)
        return sum(source.files[file][0] for file in (*self.files, *self._beside(source)))

    def _beside(self, source: RawSource) -> list[str]:
        """What is read together with the files."""
        reader, options = reader_and_options(self.reader, self.options, f"source {self.name!r}")
        return (
            []
            if reader.beside is None
            else [other for file in self.files for other in reader.beside(source, file, options)]
        )

    def key(self) -> list[Any]:
        """What determines the part: the reader's settings and the content of the files."""
        source = opened(self.manifest)
        files = [[file, *source.files[file]] for file in (*self.files, *self._beside(source))]
        model = None if self.sentence_model is None else opened(self.sentence_model).files
        return [
            self.name,
            self.reader,
            self.options,
            files,
            self.files_digest,
            model,
            self.languages,
            [self.split.seed, self.split.development_documents, self.split.development_fraction > 0],
            None if self.piece is None else asdict(self.piece),
        ]


def file_groups(
    name: str,
    reader: str,
    options: dict[str, Any],
    manifest: Path,
    split: SplitSettings,
    sentence_model: Path | None = None,
    sentence_reading: ReadingName = "corrected",
    languages: tuple[str, ...] = (),
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
        files_digest=digest(names),
        sentence_model=sentence_model,
        sentence_reading=sentence_reading,
        split=split,
        count=len(names),
        languages=languages,
    )
    files: list[str] = []
    size = 0
    for file in names:
        if chosen.divide is not None and source.files[file][0] > PIECE_BYTES:
            pieces = list(_counted(chosen.divide(source, file, built, len(names)), source, file))
            if pieces:
                if files:
                    yield group(files=tuple(files))
                    files, size = [], 0
                for piece in pieces:
                    yield group(files=(file,), piece=piece)
                continue
        if files and size + source.files[file][0] > GROUP_BYTES:
            yield group(files=tuple(files))
            files, size = [], 0
        files.append(file)
        size += source.files[file][0]
    if files:
        yield group(files=tuple(files))


def _counted(pieces: Iterator[Piece], source: RawSource, file: str) -> Iterator[Piece]:
    total = unpacked_bytes(source, file) // 1000
    with Progress(total, f"find the documents of {file}", "kB") as progress:
        for piece in pieces:
            progress.update(min((piece.end - piece.start) // 1000, total - progress.done))
            yield piece


def write_documents(group: FileGroup, path: Path) -> dict[str, Any]:
    """Read the group's files and write their documents to `path`.

    Returns the number of documents, how many of them the source gives to the development split, what was rejected and
    assumed, and the draws that could decide which documents are for development. Raises CorpusError when two documents
    of one file have the same name.
    """
    source = opened(group.manifest)
    reader, options = reader_and_options(group.reader, group.options, f"source {group.name!r}")
    model = None if group.sentence_model is None else opened(group.sentence_model)
    language = getattr(options, "punkt_language", None) or ENGLISH
    splitter = open_splitter(model, group.sentence_reading, language)
    rejections = Rejections()
    english = group.languages == ("en",)
    context = ReaderContext(group.name, options, rejections, splitter.split, group.count, group.piece, english)
    points: list[int] = []
    development = 0
    with TableWriter(path, SCHEMA) as table:
        for file in group.files:
            seen: set[str] = set()
            for document in reader.read(source, file, context):
                if document.doc_id in seen:
                    raise CorpusError(
                        f"source {group.name!r}: {file}: the document name {document.doc_id!r} occurs twice"
                    )
                seen.add(document.doc_id)
                table.write(document_row(document.doc_id, document.source, document.split, document.text))
                development += document.split == "dev"
                if document.split is None:
                    points = smallest([*points, draw(document.doc_id, group.split.seed)], group.split)
        written = table.rows
    return {
        "documents": written,
        "development": development,
        "points": points,
        "rejected": dict(sorted(rejections.counts.items())),
        "samples": dict(sorted(rejections.samples.items())),
        "assumed": dict(sorted(context.assumed.items())),
    }


def rejections_of(facts: dict[str, Any]) -> Rejections:
    """The rejections of a part from its facts."""
    return Rejections(Counter(facts["rejected"]), {reason: list(texts) for reason, texts in facts["samples"].items()})
