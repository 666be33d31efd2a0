"""Raw sources to document shards: files are read in parallel, merged in order, given splits, counted.

The shards hold the documents in the order of the configuration and of the file names, whatever the number of
processes, so the same sources give the same bytes. Memory stays flat: a process holds one row group of documents. A
killed conversion goes on with the files that are missing; a damaged source leaves no shard and no table behind.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchery.corpora.corpus_writer import CorpusWriter
from hatchery.corpora.document_parts import FileGroup, file_groups, rejections_of, write_documents
from hatchery.corpora.documents import Rejections
from hatchery.corpora.registry import reader_and_options
from hatchery.corpora.sentences import SentenceReading
from hatchery.corpora.splits import SplitSettings, Splitter, splitter_of
from hatchery.errors import ConfigError, CorpusError
from hatchery.progress import Progress
from hatchery.storage.manifests import StageRun
from hatchery.storage.parquet import read_rows
from hatchery.storage.parts import Part, make_parts, remove_parts

_REASONS_SHOWN = 3
CUTTING = "options of the source: lines_per_document, or cut_files: always"


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
    sentence_model: str | None = None
    """Name of a source with Punkt parameters; None takes the model that comes with Hatchery."""
    sentence_reading: SentenceReading = "corrected"
    """`as_published` cuts where NLTK's Punkt cuts, `corrected` only at white space."""

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        if not names:
            raise ConfigError("sources: a corpus needs at least one source")
        if len(set(names)) < len(names):
            raise ConfigError(f"sources: a name occurs twice among {', '.join(names)}")
        if self.documents_per_shard < 1:
            raise ConfigError(f"documents_per_shard: got {self.documents_per_shard}, expected 1 or more")


def convert_corpus(
    settings: ConvertSettings,
    manifests: Mapping[str, Path],
    run: StageRun,
    sentence_model: Path | None = None,
    workers: int = 1,
) -> None:
    """Write the shards and tables of a corpus into `run.folder`.

    `manifests` maps the name of each source to its source manifest, `sentence_model` is the source manifest of the
    sentence splitter's parameters. Raises ConfigError for a source without one or with wrong options, SourceError for
    damaged input, CorpusError for a source without documents.
    """
    names = [source.name for source in settings.sources]
    if set(names) != set(manifests):
        raise ConfigError(f"--source: got {', '.join(sorted(manifests))}, the settings name {', '.join(sorted(names))}")
    if (settings.sentence_model is None) != (sentence_model is None):
        raise ConfigError(f"--sentence-model: got {sentence_model}, the settings name {settings.sentence_model}")
    for index, source in enumerate(settings.sources):
        reader_and_options(source.reader, source.options, f"sources[{index}]")
    groups = [
        group
        for source in settings.sources
        for group in file_groups(
            source.name,
            source.reader,
            source.options,
            manifests[source.name],
            settings.split,
            sentence_model,
            settings.sentence_reading,
        )
    ]
    folder = run.folder / ".parts"
    parts = _read(groups, folder, workers)
    _merge(settings, groups, parts, run)
    remove_parts(folder)


def _read(groups: list[FileGroup], folder: Path, workers: int) -> list[Part]:
    sizes = [group.bytes // 1000 for group in groups]
    parts = []
    with Progress(sum(sizes), "read sources", "kB") as progress:
        made = make_parts(groups, write_documents, [group.key() for group in groups], folder, workers)
        for size, part in zip(sizes, _with_places(made, groups), strict=True):
            parts.append(part)
            progress.update(size)
    return parts


def _splitter(settings: SplitSettings, parts: list[Part]) -> Splitter:
    """Raises CorpusError where training or development would have no document."""
    if settings.development_documents is None and any(part.facts["development"] for part in parts):
        return Splitter(settings)
    points = [point for part in parts for point in part.facts["points"]]
    documents = sum(part.facts["documents"] for part in parts)
    return splitter_of(settings, points, documents, f"bring more text, cut it into documents ({CUTTING})")


def _with_places(parts: Iterator[Part], groups: list[FileGroup]) -> Iterator[Part]:
    """The parts as they come; where there is too little memory for one, the error names its source and files."""
    finished = 0
    try:
        for part in parts:
            finished += 1
            yield part
    except MemoryError as error:
        group = groups[finished]
        more = f" and {len(group.files) - 1} more files" if len(group.files) > 1 else ""
        raise CorpusError(
            f"source {group.name!r}: not enough memory to read {group.files[0]}{more}; start again with fewer "
            "processes (compute.corpus_threads in config/config.yaml) or more memory; what is finished stays"
        ) from error


def _merge(settings: ConvertSettings, groups: list[FileGroup], parts: list[Part], run: StageRun) -> None:
    splitter = _splitter(settings.split, parts)
    documents = sum(part.facts["documents"] for part in parts)
    with (
        CorpusWriter(run, [source.name for source in settings.sources], settings.documents_per_shard) as corpus,
        Progress(documents, "write corpus", "documents") as progress,
    ):
        found = Counter[str]()
        for group, part in zip(groups, parts, strict=True):
            found[group.name] += part.facts["documents"]
            corpus.rejections[group.name].merge(rejections_of(part.facts))
            for row in read_rows(part.path):
                corpus.write(row if row["split"] else {**row, "split": splitter(row["doc_id"])})
                progress.update(1)
        for name, rejections in corpus.rejections.items():
            if found[name] and rejections.counts:
                progress.note(f"source {name!r}: left out (rejected.csv): {_most_frequent(rejections)}")
            if not found[name]:
                reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(rejections.counts.items()))
                raise CorpusError(f"source {name!r}: no document was found ({reasons or 'the files are empty'})")


def _most_frequent(rejections: Rejections) -> str:
    ordered = sorted(rejections.counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count:,} x {reason}" for reason, count in ordered[:_REASONS_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(ordered) > len(shown) else [])])
