"""Select sentences, spans or windows from texts (docs/papers/reduced-vocabulary.md, "Selection of text").

Files are processed in parallel, and their results are joined in the order of the files. Finished parts are kept if the
job is killed. The memory is constant, with two exceptions. If only the first of equal texts in the whole corpus is
kept, 16 bytes per accepted text are in memory. If the windows are drawn from the whole corpus as one text, the drawn
windows are in memory.

The code of the reduced-vocabulary study stores the texts of a unit (a group of documents) in a set, which shuffles
them. In Hatchery, the stage that later groups texts into sequences shuffles the texts of a unit if its option `reading`
is `as_published`. For this purpose, the index of each text's unit is stored here.
"""

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parallel_map import Part, make_parts
from hatchery.artifacts.parquet import ShardWriter, read_groups
from hatchery.corpora.corpus_writer import write_csv
from hatchery.corpora.documents import Rejections, chosen_samples
from hatchery.corpora.file_groups import GROUP_BYTES, opened
from hatchery.errors import ConfigError
from hatchery.progress import Progress
from hatchery.vocabulary.comparison import REASONS
from hatchery.vocabulary.items import SCHEMA, first_of_equal, marks_of, smallest
from hatchery.vocabulary.selection_parts import DUPLICATE, Task, opened_texts, select_part, source_of
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.vocabulary.word_lists import read_vocabulary

_NOT_DRAWN = "not_drawn"
_SEEN = ("documents", "characters", "units", "candidates")
_ACCEPTED = ("accepted", "accepted_words", "accepted_counted_words", "accepted_characters")
MEASURES = (
    (*_SEEN, *REASONS, DUPLICATE, *_ACCEPTED),
    (*_SEEN, _NOT_DRAWN, *_ACCEPTED, "accepted_within_vocabulary"),
)
"""Measures in counts.csv, first for filters (sentences and spans), then for drawn windows. `candidates` is the number
of all examined texts: accepted and rejected texts, and windows that are not drawn.
"""


def select(
    settings: SelectionSettings,
    source: Path,
    vocabulary: Path,
    run: StageRun,
    sentence_model: Path | None = None,
    workers: int = 1,
) -> None:
    """Select texts, and write them into the folder of `run`. The stage `select_text` describes the arguments."""
    if (settings.sentence_model is None) != (sentence_model is None):
        raise ConfigError(
            f"sentence_model: got {sentence_model}, expected {settings.sentence_model}, the value in the settings"
        )
    read_vocabulary(vocabulary)
    tasks = list(_tasks(settings, source, vocabulary, sentence_model))
    texts = opened_texts(source, settings.options)
    identity = [asdict(settings), texts.name, sha256_file(vocabulary)]
    model = None if sentence_model is None else sorted(opened(sentence_model).files.items())
    files = texts.files
    keys = [[*identity, model, task.first_file, [[file, *files[file]] for file in task.files]] for task in tasks]
    folder = run.folder / ".parts"
    parts = []
    sizes = [sum(files[file][0] for file in task.files) // 1000 for task in tasks]
    with Progress(sum(sizes), f"select {settings.name}", "kB") as progress:
        for size, part in zip(sizes, make_parts(tasks, select_part, keys, folder, workers), strict=True):
            parts.append(part)
            progress.update(size)
    _join(settings, texts.name, parts, run)
    shutil.rmtree(folder, ignore_errors=True)


def _tasks(settings: SelectionSettings, source: Path, vocabulary: Path, model: Path | None) -> Iterator[Task]:
    files = opened_texts(source, settings.options).files
    group: list[str] = []
    size = first = 0
    for number, file in enumerate(files):
        if group and size + files[file][0] > GROUP_BYTES:
            yield Task(settings, source, vocabulary, model, tuple(group), first)
            group, size, first = [], 0, number
        group.append(file)
        size += files[file][0]
    yield Task(settings, source, vocabulary, model, tuple(group), first)


def _join(settings: SelectionSettings, source: str, parts: list[Part], run: StageRun) -> None:
    counts: Counter[str] = Counter()
    rejections = Rejections()
    accepted: list[str] = []
    for part in parts:
        counts.update(part.facts["counts"])
        accepted = chosen_samples([*accepted, *part.facts["accepted"]])
        rejections.merge(Rejections(samples=part.facts["rejected"]))
    keep = _texts_to_keep(settings, parts)
    seen = unit = 0
    with ShardWriter(run.folder, "items", SCHEMA, settings.rows_per_shard) as shards:
        for part in parts:
            for table in read_groups(part.path):
                if keep is not None:
                    seen += table.num_rows
                    table = table.filter(pa.array(keep[seen - table.num_rows : seen]))
                shards.write_table(_items(table, None if settings.options is None else source, unit))
                counts.update(_totals(table))
            unit += part.facts["units"]
    for path in shards.paths:
        run.add_output(path)
    if settings.level != "windows" and keep is not None:
        counts[DUPLICATE] = len(keep) - int(keep.sum())
    counts[_NOT_DRAWN] = counts["candidates"] - counts["accepted"]
    counts["units"] = 1 if keep is not None else unit
    measures = {name: counts[name] for name in MEASURES[settings.level == "windows"]}
    write_csv(run, "counts.csv", ("measure", "value"), measures.items())
    samples = [("accepted", "", text) for text in accepted]
    samples += [("rejected", why, text) for why, texts in sorted(rejections.samples.items()) for text in texts]
    write_csv(run, "samples.csv", ("outcome", "reason", "text"), samples)
    run.measures.update(measures)


def _texts_to_keep(settings: SelectionSettings, parts: list[Part]) -> npt.NDArray[np.bool_] | None:
    """Return True for each text to keep, over the texts of all parts, bool [texts]; None if all texts are kept."""
    paths = [part.path for part in parts]
    if settings.level == "windows":
        return smallest(marks_of(paths), settings.windows_per_text) if settings.documents_per_text is None else None
    return first_of_equal(marks_of(paths)) if settings.documents_per_unit is None else None


def _items(table: pa.Table, source: str | None, first_unit: int) -> pa.Table:
    """Return the texts of a part (the output of one process) with the columns of `SCHEMA`. In a part, the first unit
    (group of documents) has the index 0; `first_unit`, the number of units in earlier parts, is added to all indices.

    If `source` is None, the source of a text is the beginning of the name of its document.
    """
    unit = pc.add(table.column("unit"), pa.scalar(first_unit, pa.int32()))
    sources = (
        [source_of(document) for document in table.column("document").to_pylist()]
        if source is None
        else [source] * table.num_rows
    )
    names = pa.array(sources, pa.string())
    columns = [names, table.column("document"), unit, *(table.column(name) for name in SCHEMA.names[3:])]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _totals(table: pa.Table) -> dict[str, int]:
    def total(column: Any) -> int:
        return pc.sum(column).as_py() or 0

    return {
        "accepted": table.num_rows,
        "accepted_words": total(table.column("n_words")),
        "accepted_counted_words": total(table.column("n_counted")),
        "accepted_characters": total(pc.utf8_length(table.column("text"))),
        "accepted_within_vocabulary": total(table.column("within")),
    }
