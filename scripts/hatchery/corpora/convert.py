"""Raw sources to document shards: files are read in parallel, merged in order, given splits, counted.

The shards hold the documents in the order of the configuration and of the file names, whatever the number of
processes, so the same sources give the same bytes. Memory stays flat: a process holds one row group of documents. A
killed conversion goes on with the files that are missing; a damaged source leaves no shard and no table behind.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parallel_map import Part, make_parts
from hatchery.artifacts.parquet import read_rows
from hatchery.corpora.corpus_writer import CorpusWriter
from hatchery.corpora.document_parts import FileGroup, file_groups, opened, reader_of, write_documents
from hatchery.corpora.documents import Rejections
from hatchery.corpora.readers import reader_and_options
from hatchery.corpora.settings import ConvertSettings, SplitSettings
from hatchery.corpora.splits import Splitter, splitter_of
from hatchery.errors import ConfigError, CorpusError
from hatchery.progress import Progress

_REASONS_SHOWN = 3
CUTTING = "options of the source: lines_per_document, or cut_files: always"


def convert(
    settings: ConvertSettings,
    source: Mapping[str, Path],
    run: StageRun,
    sentence_model: Path | None = None,
    workers: int = 1,
) -> None:
    """Convert the sources of a corpus; see the stage `convert_corpus`."""
    names = [each.name for each in settings.sources]
    if set(names) != set(source):
        raise ConfigError(f"--source: got {', '.join(sorted(source))}, the settings name {', '.join(sorted(names))}")
    if (settings.sentence_model is None) != (sentence_model is None):
        raise ConfigError(f"--sentence-model: got {sentence_model}, the settings name {settings.sentence_model}")
    for index, each in enumerate(settings.sources):
        reader_and_options(each.reader, each.options, f"sources[{index}]")
    groups = [
        group for each in settings.sources for group in file_groups(each, settings, source[each.name], sentence_model)
    ]
    folder = run.folder / ".parts"
    parts = _read(groups, folder, workers)
    _merge(settings, groups, parts, _skipped(settings, source), run)
    shutil.rmtree(folder, ignore_errors=True)


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
            f"source {group.source.name!r}: not enough memory to read {group.files[0]}{more}; start again with fewer "
            "processes (compute.corpus_threads in config/config.yaml) or more memory; what is finished stays"
        ) from error


def _skipped(settings: ConvertSettings, manifests: Mapping[str, Path]) -> dict[str, Counter[str]]:
    """How many files of each source nobody chose and nobody reads, by their ending."""
    found = {}
    for source in settings.sources:
        reader, options = reader_of(source)
        if reader.skipped is not None:
            found[source.name] = reader.skipped(opened(manifests[source.name]), options)
    return found


def _merge(
    settings: ConvertSettings,
    groups: list[FileGroup],
    parts: list[Part],
    skipped: Mapping[str, Counter[str]],
    run: StageRun,
) -> None:
    splitter = _splitter(settings.split, parts)
    documents = sum(part.facts["documents"] for part in parts)
    with (
        CorpusWriter(run, [source.name for source in settings.sources], settings.documents_per_shard) as corpus,
        Progress(documents, "write corpus", "documents") as progress,
    ):
        found = Counter[str]()
        for group, part in zip(groups, parts, strict=True):
            found[group.source.name] += part.facts["documents"]
            rejected = Rejections(Counter(part.facts["rejected"]), part.facts["samples"])
            corpus.rejections[group.source.name].merge(rejected)
            corpus.assumed[group.source.name].update(part.facts["assumed"])
            for row in read_rows(part.path):
                corpus.write(row if row["split"] else {**row, "split": splitter(row["doc_id"])})
                progress.update(1)
        for name, endings in skipped.items():
            for ending, number in endings.items():
                corpus.rejections[name].count(f"file not read: {ending}", number)
        for name, rejections in corpus.rejections.items():
            if corpus.assumed[name]:
                progress.note(f"source {name!r}: read as (assumed.csv): {_most_frequent(corpus.assumed[name])}")
            if found[name] and rejections.counts:
                progress.note(f"source {name!r}: left out (rejected.csv): {_most_frequent(rejections.counts)}")
            if not found[name]:
                reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(rejections.counts.items()))
                raise CorpusError(f"source {name!r}: no document was found ({reasons or 'the files are empty'})")


def _most_frequent(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count:,} x {reason}" for reason, count in ordered[:_REASONS_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(ordered) > len(shown) else [])])
