"""Raw sources to document shards: reads each source, assigns splits, writes shards and the tables of counts.

The shards hold the documents in the order of the configuration and of the file names, so the same sources give the
same bytes. Nothing is left behind when a source turns out to be damaged.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchery.corpora.documents import SCHEMA, SPLITS, RawDocument, Rejections, count_sentences, count_words
from hatchery.corpora.registry import reader_and_options
from hatchery.corpora.splits import SplitSettings, assign_split
from hatchery.errors import ConfigError, CorpusError
from hatchery.progress import Progress
from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import StageRun
from hatchery.storage.parquet import ShardWriter
from hatchery.storage.sources import open_source

_MEASURES = ("documents", "sentences", "words", "characters")


@dataclass(frozen=True)
class SourceSettings:
    """One source of a corpus and how it is read."""

    name: str
    """Name of the source in the corpus; the command's `--source NAME=path` says where its manifest lies."""
    reader: str
    """Name of the reader."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of that reader."""


@dataclass(frozen=True)
class ConvertSettings:
    """A corpus: its sources, how documents are split, and how large a shard is."""

    sources: tuple[SourceSettings, ...]
    split: SplitSettings = field(default_factory=SplitSettings)
    documents_per_shard: int = 2000

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        if not names:
            raise ConfigError("sources: a corpus needs at least one source")
        if len(set(names)) < len(names):
            raise ConfigError(f"sources: a name occurs twice among {', '.join(names)}")
        if self.documents_per_shard < 1:
            raise ConfigError(f"documents_per_shard: got {self.documents_per_shard}, expected 1 or more")


def convert_corpus(settings: ConvertSettings, manifests: Mapping[str, Path], run: StageRun) -> None:
    """Write the shards, `statistics.csv` and `rejected.csv` of a corpus into `run.folder`.

    `manifests` maps the name of each source to its source manifest. Raises ConfigError for a source without one or
    with wrong options, SourceError for damaged input, CorpusError for a source without documents.
    """
    names = [source.name for source in settings.sources]
    if set(names) != set(manifests):
        raise ConfigError(f"--source: got {', '.join(sorted(manifests))}, the settings name {', '.join(sorted(names))}")
    for index, source in enumerate(settings.sources):
        reader_and_options(source.reader, source.options, f"sources[{index}]")
    counts: dict[tuple[str, str], Counter[str]] = {(name, split): Counter() for name in names for split in SPLITS}
    rejected: dict[str, Rejections] = {name: Rejections() for name in names}
    with ExitStack() as stack:
        writers = {
            split: stack.enter_context(ShardWriter(run.folder, split, SCHEMA, settings.documents_per_shard))
            for split in SPLITS
        }
        progress = stack.enter_context(Progress(len(names), "convert corpus", "sources"))
        seen: set[str] = set()
        for source in settings.sources:
            for document in _documents(source, manifests[source.name], rejected[source.name]):
                if document.doc_id in seen:
                    raise CorpusError(f"source {source.name!r}: the document name {document.doc_id!r} occurs twice")
                seen.add(document.doc_id)
                row = _row(document, settings.split)
                writers[row["split"]].write(row)
                _count(counts[source.name, row["split"]], row)
            progress.update(1, documents=len(seen))
    for writer in writers.values():
        for path in writer.paths:
            run.add_output(path)
    _write_tables(run, counts, rejected)
    for split in SPLITS:
        run.measures[split] = {key: sum(counts[name, split][key] for name in names) for key in _MEASURES}


def _documents(source: SourceSettings, manifest: Path, rejections: Rejections) -> Iterator[RawDocument]:
    reader, options = reader_and_options(source.reader, source.options, f"source {source.name!r}")
    found = False
    for document in reader.read(open_source(manifest), source.name, options, rejections):
        found = True
        yield document
    if not found:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(rejections.counts.items()))
        raise CorpusError(f"source {source.name!r}: no document was found ({reasons or 'the files are empty'})")


def _row(document: RawDocument, split: SplitSettings) -> dict[str, Any]:
    return {
        "doc_id": document.doc_id,
        "source": document.source,
        "split": document.split or assign_split(document.doc_id, split),
        "text": document.text,
        "n_sentences": count_sentences(document.text),
        "n_words": count_words(document.text),
    }


def _count(counts: Counter[str], row: Mapping[str, Any]) -> None:
    counts["documents"] += 1
    counts["sentences"] += row["n_sentences"]
    counts["words"] += row["n_words"]
    counts["characters"] += len(row["text"])


def _write_tables(
    run: StageRun, counts: Mapping[tuple[str, str], Counter[str]], rejected: Mapping[str, Rejections]
) -> None:
    statistics = [(name, split, *(count[key] for key in _MEASURES)) for (name, split), count in counts.items()]
    _write_csv(run, "statistics.csv", ("source", "split", *_MEASURES), statistics)
    reasons = [
        (name, reason, n) for name, rejections in rejected.items() for reason, n in sorted(rejections.counts.items())
    ]
    _write_csv(run, "rejected.csv", ("source", "reason", "count"), reasons)


def _write_csv(run: StageRun, name: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    path = run.folder / name
    write_text(path, table.getvalue())
    run.add_output(path)
