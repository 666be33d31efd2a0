"""The texts that a selection chooses from: those of a raw source, or the documents of a corpus, cleaned by its readers.

What sentences are differs. A raw text is split by Punkt; the documents of a corpus have one sentence per line already.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from hatchery.artifacts.manifests import OutputFile, read_manifest
from hatchery.artifacts.parquet import read_groups
from hatchery.corpora.document_parts import opened
from hatchery.corpora.raw_texts import RawTextOptions, raw_text_files, raw_texts
from hatchery.raw.registration import RawSource


@dataclass(frozen=True)
class Texts:
    """Files of texts by their names with (bytes, sha256), in reading order, and how one of them is read."""

    name: str
    """Of the raw source or the corpus."""
    files: dict[str, tuple[int, str]]
    read: Callable[[str], Iterator[tuple[str, str]]]
    """Pairs of name and text of a file's documents, streamed. Raises SourceError or ManifestError for a damaged one."""


@cache
def opened_texts(manifest: Path, options: RawTextOptions | None) -> Texts:
    """The texts of a source manifest or, without options, of a corpus's manifest; read once per process.

    Raises SourceError or ManifestError where it is damaged, SourceError when no file matches the options.
    """
    if options is None:
        corpus = read_manifest(manifest)
        shards = {shard.path.name: shard for shard in corpus.listed(".parquet")}
        files = {name: (shard.bytes, shard.sha256) for name, shard in shards.items()}
        return Texts(corpus.folder.name, files, lambda file: _documents(shards[file]))
    source = opened(manifest)
    names = raw_text_files(source, options)
    return Texts(source.name, {name: source.files[name] for name in names}, partial(_raw_documents, source, options))


def _documents(shard: OutputFile) -> Iterator[tuple[str, str]]:
    for table in read_groups(shard.path, ["doc_id", "text"]):
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def _raw_documents(source: RawSource, options: RawTextOptions, file: str) -> Iterator[tuple[str, str]]:
    for key, text, _ in raw_texts(source, file, options):
        yield f"{file}/{key}" if key else file, text


def source_of(document: str) -> str:
    """The source that a corpus's document is of, which is the first part of its name."""
    return document.partition("/")[0]


def lines_of(text: str) -> Iterator[str]:
    """The sentences of a corpus's document."""
    return (line for line in text.split("\n") if line)
