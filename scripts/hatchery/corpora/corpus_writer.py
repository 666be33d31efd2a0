"""The folder of a corpus: splits of documents, shards per split, and tables of kept and rejected documents.

Every stage that makes documents (conversion, sampling, grouping) writes with this module, so all corpora have the same
files: `{split}-{i}-of-{n}.parquet`, `statistics.csv`, `rejected.csv` and `samples.csv`; if there are rows, also
`assumed.csv` (assumptions that a reader made because no option was set), `licences.csv` and `duplicates.csv`.

In a conversion or a sample, a document without a given split has a random number, which is computed from the seed and
the document's text, and which determines the split. So documents with the same text are in the same split, and the
order of documents has no effect. (Groupings draw splits by the index of the sequence.) If the splits are given as
fractions, adding, removing or moving a document does not change the split of any other document. There is one
exception: if `development_fraction` is above zero, but no random number is below this fraction, the document with the
smallest random number becomes the development document. Without this exception, an empty development split would be
noticed only after the pretraining. The exception does not apply if a source gives the split of a document. If the
number of development documents is given (the 35 texts of LTG-BERT), the documents with the smallest random numbers are
the development documents.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parquet import ShardWriter
from hatchery.corpora.documents import (
    SAMPLE_CHARACTERS,
    SPLITS,
    Rejections,
    Split,
    chosen_samples,
    count_sentences,
    count_words,
)
from hatchery.corpora.duplicates import DUPLICATES, HEADER
from hatchery.corpora.settings import SplitSettings
from hatchery.errors import CorpusError
from hatchery.sanitize import csv_text

_POINTS = 2**64
_NO_POINTS = np.zeros(0, dtype=np.uint64)


def point(*names: object) -> int:
    """Return a pseudo-random number, uniform from 0 to 2^64 - 1: the first 64 bits of the SHA-256 of `names`, such as a
    seed and a text.
    """
    return int.from_bytes(hashlib.sha256("\n".join(map(str, names)).encode()).digest()[:8], "big")


class OneDocumentError(CorpusError):
    """Raised for a corpus with only one document, or only copies of one document. Holding this document out would leave
    no training text.
    """


class Splitter:
    """Assigns a split to each document by its random number, which is computed from the seed and the text (`point`).

    `points` are the random numbers of all documents to which this object assigns splits. If `points` are given and
    `development_fraction` is above 0, there is at least one development document. Without `points`, there may be no
    development document. Raises CorpusError if `development_documents` leaves no document for training. Raises
    OneDocumentError if a `development_fraction` above 0 applies and all documents have the same text; its message
    contains the advice `remedy`.
    """

    def __init__(self, settings: SplitSettings, points: npt.NDArray[np.uint64] = _NO_POINTS, remedy: str = "") -> None:
        wanted = settings.development_documents
        ordered = np.sort(points)
        if wanted is None:
            self._development = int(settings.development_fraction * _POINTS)
            if settings.development_fraction > 0 and len(ordered):
                self._development = max(self._development, int(ordered[0]) + 1)
                if ordered[0] == ordered[-1]:
                    copies = f" {len(ordered):,} times" if len(ordered) > 1 else ""
                    raise OneDocumentError(
                        f"the corpus has only one document{copies}, so no document can be held out for development: "
                        f"{remedy}, or set split.development_fraction to 0"
                    )
        else:
            # The text with the largest random number, and all its copies, stay for training.
            most = int(np.searchsorted(ordered, ordered[-1])) if len(ordered) else 0
            if wanted > most:
                raise CorpusError(
                    f"split.development_documents: got {wanted}, expected at most {most}, so that one of the "
                    f"{len(ordered):,} documents is left for training"
                )
            # Development documents have random numbers below `_development`. This bound is the random number of the
            # last development document plus 1, so copies of this document are development documents, too.
            self._development = int(ordered[wanted - 1]) + 1 if wanted else 0
        # Test documents have random numbers from `_development` on. So the test split keeps its fraction even if a
        # number of documents sets the size of the development split.
        self._test = self._development + int(settings.test_fraction * _POINTS)

    def __call__(self, place: int) -> Split:
        """Return the split of the document whose random number is `place`."""
        if place < self._development:
            return "dev"
        return "test" if place < self._test else "train"


SCHEMA = pa.schema(
    [
        ("doc_id", pa.string()),
        ("source", pa.string()),
        ("split", pa.string()),
        ("text", pa.string()),
        ("n_sentences", pa.int32()),
        ("n_words", pa.int32()),
    ]
)
LICENCE = pa.field("licence", pa.string())
"""Column with the licence of each document. Only a corpus with a source that lists licences has this column; documents
from other sources have null.
"""
LICENCES = "licences.csv"
MEASURES = ("documents", "sentences", "words", "characters")
ASSUMED = "assumed.csv"
_TABLES = ("statistics.csv", "rejected.csv", "samples.csv", ASSUMED, DUPLICATES, LICENCES)
# Number of texts that are collected before example texts are selected from these texts. Each selection hashes the
# earlier selected texts again, so a selection after every text would be slow.
_SAMPLED_AT_ONCE = 1000


OF_LICENCE = ("documents", "words", "characters")


NUMBER = "column_"
"""Prefix of the name of a numeric column in the shards; the user's name of the column follows."""
NUMERIC_COLUMNS = "numeric_columns"
"""Key under which the measures of a corpus list the user's names of the numeric columns; absent if the corpus has no
numeric columns.
"""


def schema_of(with_licences: bool, numeric_columns: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of a corpus's shards, optionally with a column of licences and with numeric columns."""
    licences = [LICENCE] if with_licences else []
    return pa.schema([*SCHEMA, *licences, *(pa.field(NUMBER + name, pa.float64()) for name in numeric_columns)])


def document_row(
    doc_id: str,
    source: str,
    split: str | None,
    text: str,
    licence: str | None = None,
    numbers: Mapping[str, float] | None = None,
) -> dict[str, object]:
    """Return a row of a document shard, including the number of sentences and the number of words in `text`."""
    return {
        "doc_id": doc_id,
        "source": source,
        "split": split,
        "text": text,
        "n_sentences": count_sentences(text),
        "n_words": count_words(text),
        "licence": licence,
        **{NUMBER + name: number for name, number in (numbers or {}).items()},
    }


class CorpusWriter:
    """Writes the documents of a corpus in their order; after an exception, no shard and no table is left.

    `sources` are the names of the documents' sources, in the order of the rows of `statistics.csv`. On success, the
    outputs and the counts of each split are recorded in `run`.
    """

    def __init__(
        self,
        run: StageRun,
        sources: Sequence[str],
        documents_per_shard: int,
        with_licences: bool = False,
        numeric_columns: Sequence[str] = (),
    ) -> None:
        """Create a writer. If `with_licences` is True, the licence of each document is kept, and the documents are
        counted by licence. `numeric_columns` are the user's names of the numeric columns to keep.
        """
        self._run = run
        self._licences: dict[tuple[str, str], Counter[str]] | None = {} if with_licences else None
        self._schema = schema_of(with_licences, numeric_columns)
        self._numeric_columns = list(numeric_columns)
        self.counts: dict[tuple[str, str], Counter[str]] = {
            (source, split): Counter() for source in dict.fromkeys(sources) for split in SPLITS
        }
        self.rejections: dict[str, Rejections] = {source: Rejections() for source in dict.fromkeys(sources)}
        self.assumed: dict[str, Counter[str]] = {source: Counter() for source in self.rejections}
        self.duplicates: list[tuple[Any, ...]] = []
        """Rows of `duplicates.csv`; empty if duplicates were not counted."""
        self._samples: dict[str, list[str]] = {source: [] for source in self.rejections}
        self._shards = {split: ShardWriter(run.folder, split, self._schema, documents_per_shard) for split in SPLITS}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for shards in self._shards.values():
            self._stack.enter_context(shards)
        return self

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a document, given as a row with the columns of the shards, such as the result of `document_row`."""
        self._shards[row["split"]].write(row)
        counts = self.counts[row["source"], row["split"]]
        counts["documents"] += 1
        counts["sentences"] += row["n_sentences"]
        counts["words"] += row["n_words"]
        counts["characters"] += len(row["text"])
        if self._licences is not None:
            of_licence = self._licences.setdefault((row["source"], row["licence"] or ""), Counter())
            of_licence.update(documents=1, words=row["n_words"], characters=len(row["text"]))
        samples = self._samples[row["source"]]
        samples.append(row["text"])
        if len(samples) >= _SAMPLED_AT_ONCE:
            samples[:] = chosen_samples(samples)

    def write_rows(self, table: pa.Table) -> None:
        """Add the documents of a table, in the order of its rows. If the table lacks a column of the shards, this
        column is null for every document. Additional columns of the table are left out.
        """
        for field in self._schema:
            if field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        table = table.select(self._schema.names)
        for split in SPLITS:
            self._shards[split].write_rows(table.filter(pc.equal(table["split"], split)))
        characters = pc.cast(pc.utf8_length(table["text"]), pa.int64())
        counted = table.drop_columns(["text"]).append_column("characters", characters)
        sums = [("n_sentences", "sum"), ("n_words", "sum"), ("characters", "sum"), ([], "count_all")]
        for group in counted.group_by(["source", "split"], use_threads=False).aggregate(sums).to_pylist():
            self.counts[group["source"], group["split"]].update(
                documents=group["count_all"],
                sentences=group["n_sentences_sum"],
                words=group["n_words_sum"],
                characters=group["characters_sum"],
            )
        if self._licences is not None:
            for group in counted.group_by(["source", "licence"], use_threads=False).aggregate(sums[1:]).to_pylist():
                self._licences.setdefault((group["source"], group["licence"] or ""), Counter()).update(
                    documents=group["count_all"], words=group["n_words_sum"], characters=group["characters_sum"]
                )
        begins = pc.utf8_slice_codeunits(table["text"], 0, SAMPLE_CHARACTERS)
        for source in table["source"].unique().to_pylist():
            texts = begins.filter(pc.equal(table["source"], source)).to_pylist()
            self._samples[source] = chosen_samples([*self._samples[source], *texts])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._stack:
            if error is not None:
                # Raise the error inside the `with` block, so that every writer removes its shards.
                raise error
            # Before the renaming, finish all steps that can fail on a full disk. So either the shards of all splits
            # appear, or no shard appears.
            for shards in self._shards.values():
                shards.complete()
            try:
                self._write_tables()
            except OSError:
                for name in _TABLES:
                    (self._run.folder / name).unlink(missing_ok=True)
                raise
        for shards in self._shards.values():
            for path in shards.paths:
                self._run.add_output(path)
        if self._numeric_columns:
            self._run.measures[NUMERIC_COLUMNS] = self._numeric_columns
        for split in SPLITS:
            self._run.measures[split] = {
                key: sum(counts[key] for (_, of), counts in self.counts.items() if of == split) for key in MEASURES
            }

    def _write_tables(self) -> None:
        statistics = [(*key, *(counts[measure] for measure in MEASURES)) for key, counts in self.counts.items()]
        write_csv(self._run, "statistics.csv", ("source", "split", *MEASURES), statistics)
        reasons = [
            (source, reason, number)
            for source, rejections in self.rejections.items()
            for reason, number in sorted(rejections.counts.items())
        ]
        write_csv(self._run, "rejected.csv", ("source", "reason", "count"), reasons)
        assumed = [(source, *item) for source, counts in self.assumed.items() for item in sorted(counts.items())]
        if assumed:
            write_csv(self._run, ASSUMED, ("source", "assumption", "count"), assumed)
        if self._licences is not None:
            licences = [
                (*key, *(counts[name] for name in OF_LICENCE)) for key, counts in sorted(self._licences.items())
            ]
            write_csv(self._run, LICENCES, ("source", "licence", *OF_LICENCE), licences)
        if self.duplicates:
            write_csv(self._run, DUPLICATES, HEADER, self.duplicates)
        samples = [
            *(
                (source, "accepted", "", text)
                for source, texts in self._samples.items()
                for text in chosen_samples(texts)
            ),
            *(
                (source, "rejected", reason, text)
                for source, rejections in self.rejections.items()
                for reason, texts in sorted(rejections.samples.items())
                for text in texts
            ),
        ]
        write_csv(self._run, "samples.csv", ("source", "outcome", "reason", "text"), samples)


def write_csv(run: StageRun, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table into the run's folder atomically, and record the file as an output."""
    path = run.folder / name
    # Do not escape formulas in the cells, because the card of the corpus reads the samples again.
    write_text(path, csv_text(header, rows, as_they_are=True))
    run.add_output(path)
