"""Conversion of raw sources to document shards: read files in parallel, merge their documents in order, assign splits,
and count.

A task reads a group of files (`file_groups.py`). With several processes, a large file is divided into several tasks if
its reader supports this. Each task writes its documents to one temporary file. Shards contain the documents in the
order of the configured sources and of each reader's files, so equal sources produce equal bytes for any number of
processes. A reading process holds one row group of documents in memory. The merging process also holds keys of all
documents and of all lines of at least LONG_LINE characters (`duplicates`). If near duplicates are removed, the merging
process also holds the signatures of all documents (`near_duplicates`). A killed conversion continues with the missing
tasks; a damaged source leaves no shard and no table.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parallel_map import Facts, Part, make_parts
from hatchery.artifacts.parquet import TableWriter, read_groups
from hatchery.corpora.corpus_writer import SCHEMA, CorpusWriter, Splitter, document_row, point, schema_of
from hatchery.corpora.decontamination import SHARED, Contamination
from hatchery.corpora.documents import ReaderContext, Rejections
from hatchery.corpora.duplicates import (
    DUPLICATES,
    KEYS,
    Duplicates,
    TextKeys,
    duplicates_note,
    line_keys,
    without_lines,
)
from hatchery.corpora.file_groups import FileGroup, columns_of, file_groups, opened, reader_of
from hatchery.corpora.near_duplicates import NEAR, NEAR_ELSEWHERE, NOT_NEAR, SIGNATURES, near_duplicates, signature_row
from hatchery.corpora.readers import reader_and_options
from hatchery.corpora.sentences import open_splitter
from hatchery.corpora.settings import ENGLISH, ConvertSettings, SplitSettings
from hatchery.errors import ConfigError, CorpusError
from hatchery.progress import Progress


def write_documents(group: FileGroup, path: Path) -> Facts:
    """Read the group's files and write their documents to `path`.

    Returns the number of documents, the rejected texts, and counts of the assumptions that the reader made because no
    option was set. Raises CorpusError if two documents of one file have the same name.
    """
    source, seed = group.source, group.settings.split.seed
    raw = opened(group.manifest)
    reader, options = reader_of(source)
    model = None if group.sentence_model is None else opened(group.sentence_model)
    language = getattr(options, "punkt_language", None) or ENGLISH
    splitter = open_splitter(model, group.settings.sentence_reading, language)
    rejections = Rejections()
    english = group.settings.languages == ("en",)
    context = ReaderContext(source.name, options, rejections, splitter.split, group.count, group.piece, english)
    near = group.settings.near_duplicates
    schema = pa.schema([*schema_of(*columns_of(options)), *KEYS, *(() if near is None else SIGNATURES)])
    with TableWriter(path, schema, is_temporary=True) as table:
        for file in group.files:
            seen: set[str] = set()
            for document in reader.read(raw, file, context):
                if document.doc_id in seen:
                    raise CorpusError(
                        f"source {source.name!r}: {file}: the document name {document.doc_id!r} occurs twice"
                    )
                seen.add(document.doc_id)
                row = document_row(**vars(document))
                keys: dict[str, object] = {
                    "point": point(seed, document.text),
                    "long_lines": line_keys(document.text),
                }
                table.write(row | keys | ({} if near is None else signature_row(document.text, near)))
        written = table.rows
    return {
        "documents": written,
        "rejected": dict(sorted(rejections.counts.items())),
        "samples": dict(sorted(rejections.samples.items())),
        "assumed": dict(sorted(context.assumed.items())),
    }


_REASONS_SHOWN = 3
CUTTING = "options of the source: lines_per_document, or cut_files: always"


def convert(
    settings: ConvertSettings,
    source: Mapping[str, Path],
    run: StageRun,
    sentence_model: Path | None = None,
    workers: int = 1,
    evaluation: Mapping[str, Path] = MappingProxyType({}),
) -> None:
    """Convert the sources of a corpus into shards and tables; the stage `convert_corpus` calls this function."""
    names = [each.name for each in settings.sources]
    if set(names) != set(source):
        raise ConfigError(
            f"source: got {', '.join(sorted(source))}, expected the sources of the settings: {', '.join(sorted(names))}"
        )
    if (settings.sentence_model is None) != (sentence_model is None):
        raise ConfigError(
            f"sentence_model: got {sentence_model}, expected {settings.sentence_model}, the value in the settings"
        )
    asked = () if settings.decontamination is None else settings.decontamination.data
    if set(asked) != set(evaluation):
        raise ConfigError(
            f"evaluation: got {', '.join(sorted(evaluation))}, expected the entries of decontamination.data in the "
            f"settings: {', '.join(asked)}"
        )
    for index, each in enumerate(settings.sources):
        reader_and_options(each.reader, each.options, f"sources[{index}]")
    groups = [
        group
        for each in settings.sources
        for group in file_groups(each, settings, source[each.name], sentence_model, may_divide=workers > 1)
    ]
    folder = run.folder / ".parts"
    parts = _read(groups, folder, workers)
    chosen = settings.decontamination
    contamination = None if chosen is None else Contamination.read(evaluation, chosen.words)
    _merge(settings, groups, parts, run, contamination)
    _report_skipped(settings, source)
    shutil.rmtree(folder, ignore_errors=True)


def _read(groups: list[FileGroup], folder: Path, workers: int) -> list[Part]:
    """Read all groups, write the documents of each group to a file in `folder`, and return one `Part` for each group:
    the file, and facts about its documents.

    A MemoryError becomes a CorpusError that names source and files.
    """
    sizes = [group.bytes // 1000 for group in groups]
    parts = []
    with Progress(sum(sizes), "read sources", "kB") as progress:
        parts_made = make_parts(groups, write_documents, [group.key() for group in groups], folder, workers)
        try:
            for size, part in zip(sizes, parts_made, strict=True):
                parts.append(part)
                progress.update(size)
        except MemoryError as error:
            group = groups[len(parts)]
            more = f" and {len(group.files) - 1} more files" if len(group.files) > 1 else ""
            raise CorpusError(
                f"source {group.source.name!r}: not enough memory to read {group.files[0]}{more}; run the same "
                "command again with fewer processes (compute.corpus_threads in config/config.yaml) or more memory; "
                "finished parts are kept"
            ) from error
    return parts


def _splits(settings: SplitSettings, keys: TextKeys, remaining: npt.NDArray[np.bool_]) -> list[str]:
    """Return the split of each document: the split that the source gives or, if there is none, the split by the
    document's random number (`Splitter`). Documents for which `remaining` is False are left out of the corpus, so they
    do not count as development documents.

    Raises CorpusError if no document is left for training, or for development. There is no error if
    `development_documents` is not set and a source gives the split of at least one document.
    """
    if settings.development_documents is None and any(keys.given):
        splitter = Splitter(settings)
    else:
        undecided = np.array([split is None for split in keys.given], dtype=np.bool_) & remaining
        remedy = f"add more text, divide the text into documents ({CUTTING})"
        splitter = Splitter(settings, keys.points[undecided], remedy)
    places = keys.points.tolist()
    return [split or splitter(place) for split, place in zip(keys.given, places, strict=True)]


def _report_skipped(settings: ConvertSettings, manifests: Mapping[str, Path]) -> None:
    """Report the number of unread files of each source by file suffix, unless the source's options select the files.

    These numbers are only logged, because a corpus must not depend on unread files.
    """
    for source in settings.sources:
        reader, options = reader_of(source)
        skipped = None if reader.skipped is None else reader.skipped(opened(manifests[source.name]), options)
        if skipped:
            print(f"source {source.name!r}: files not read: {_most_frequent(skipped)}", file=sys.stderr)


def _merge(
    settings: ConvertSettings,
    groups: list[FileGroup],
    parts: list[Part],
    run: StageRun,
    contamination: Contamination | None = None,
) -> None:
    keys = TextKeys.read(part.path for part in parts)
    near = np.full(len(keys.points), NOT_NEAR, dtype=np.int64)
    if settings.near_duplicates is not None:
        near = near_duplicates((part.path for part in parts), len(near), settings.near_duplicates, run.folder)
    duplicates = Duplicates(keys, _splits(settings.split, keys, near == NOT_NEAR))
    columns = {source.name: columns_of(reader_of(source)[1]) for source in settings.sources}
    numeric_columns = list(dict.fromkeys(name for _, numbers in columns.values() for name in numbers))
    with_licences = any(licences for licences, _ in columns.values())
    with (
        CorpusWriter(run, list(columns), settings.documents_per_shard, with_licences, numeric_columns) as corpus,
        Progress(len(duplicates.splits), "write corpus", "documents") as progress,
    ):
        corpus.duplicates = duplicates.rows()
        documents_by_source = Counter[str]()
        index = 0
        for group, part in zip(groups, parts, strict=True):
            documents_by_source[group.source.name] += part.facts["documents"]
            rejected = Rejections(Counter(part.facts["rejected"]), part.facts["samples"])
            corpus.rejections[group.source.name].merge(rejected)
            corpus.assumed[group.source.name].update(part.facts["assumed"])
            for table in read_groups(part.path, schema_of(*columns[group.source.name]).names):
                splits = pa.array(duplicates.splits[index : index + table.num_rows], pa.string())
                rows = table.set_column(table.schema.get_field_index("split"), SCHEMA.field("split"), splits)
                kept = _kept_rows(rows, duplicates, near, index, settings, contamination, corpus.rejections)
                corpus.write_rows(kept)
                index += table.num_rows
                progress.update(table.num_rows)
        for name, rejections in corpus.rejections.items():
            if corpus.assumed[name]:
                progress.note(
                    f"source {name!r}: assumptions about the text (assumed.csv): {_most_frequent(corpus.assumed[name])}"
                )
            if documents_by_source[name] and rejections.counts:
                progress.note(f"source {name!r}: text left out (rejected.csv): {_most_frequent(rejections.counts)}")
            if note := duplicates_note(corpus.duplicates, name):
                progress.note(
                    f"source {name!r}: {note} (numbers in {DUPLICATES}); to exclude repeated text, set the key "
                    "`duplicates` of the corpus"
                )
            if not documents_by_source[name]:
                reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(rejections.counts.items()))
                raise CorpusError(f"source {name!r}: no document was found ({reasons or 'the files are empty'})")


def _kept_rows(
    table: pa.Table,
    duplicates: Duplicates,
    near: npt.NDArray[np.int64],
    first: int,
    settings: ConvertSettings,
    contamination: Contamination | None,
    rejections: Mapping[str, Rejections],
) -> pa.Table:
    """Return the rows of the kept documents, with their kept text; count removed documents and lines as rejections.

    `near` is the result of `near_duplicates`. `first` is the index of the table's first document in the corpus.
    """
    has_repeated = settings.duplicates != "keep" and duplicates.any_of(first, first + table.num_rows)
    has_near = bool((near[first : first + table.num_rows] != NOT_NEAR).any())
    if not has_repeated and not has_near and contamination is None:
        return table
    pairs = {source.name for source in settings.sources if reader_of(source)[0].holds != "texts"}
    rows = []
    for index, row in enumerate(table.to_pylist(), first):
        rejected = rejections[row["source"]]
        kept = _remaining_text(row["text"], duplicates, index, settings, rejected)
        if kept is not None and near[index] != NOT_NEAR:
            is_elsewhere = duplicates.splits[near[index]] != row["split"]
            rejected.count(NEAR_ELSEWHERE if is_elsewhere else NEAR, sample=row["text"])
            kept = None
        if kept is not None and contamination is not None and row["split"] == "train":
            cleaned, shared = contamination.cleaned(kept)
            if shared:
                rejected.count(SHARED, shared, sample=kept)
                # Remove the whole pair, because a pair needs all its texts.
                kept = None if row["source"] in pairs else cleaned or None
        # An unchanged document keeps its row, so that its words are not counted again.
        if kept == row["text"]:
            rows.append(row)
        elif kept is not None:
            rows.append(row | document_row(row["doc_id"], row["source"], row["split"], kept, row.get("licence")))
    return pa.Table.from_pylist(rows, schema=table.schema)


def _remaining_text(
    text: str, duplicates: Duplicates, document: int, settings: ConvertSettings, rejections: Rejections
) -> str | None:
    """Return the kept text of a document, or None if the whole document is removed. Removed documents and lines are
    counted as rejections.
    """
    if settings.duplicates == "keep":
        return text
    if duplicates.documents[document]:
        rejections.count("duplicate of an earlier document", sample=text)
        return None
    if settings.duplicates == "drop_lines" and (lines := sum(duplicates.lines_of(document))):
        rejections.count("long line that repeats an earlier line", lines)
        return without_lines(text, duplicates.lines_of(document)) or None
    return text


def _most_frequent(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count:,} x {reason}" for reason, count in ordered[:_REASONS_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(ordered) > len(shown) else [])])
