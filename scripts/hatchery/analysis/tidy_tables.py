"""The tidy tables of an experiment: their columns, and functions that write and read them.

`collect_measurements` joins the outputs of single runs into four Parquet files with fixed schemas. Summaries, and most
tables, figures and pages, are computed from these files. Each row names its experiment, so tables of several
experiments can be concatenated. `docs/tables.md` lists the columns, and a test compares this list with the columns in
this module.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.artifacts.atomic import atomic_path
from hatchery.artifacts.checksums import verified_view, write_checksums
from hatchery.artifacts.parquet import TableWriter, write_table
from hatchery.errors import ManifestError, first_line

_ARROW = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}


@dataclass(frozen=True)
class Column:
    """One column of a table. `unit` is empty if `meaning` or another column states the unit. Missing values are null.

    `measured_anew` is true for times and speeds, which differ between repetitions. All other columns are reproducible.
    """

    name: str
    kind: Literal["text", "integer", "number", "truth"]
    meaning: str
    unit: str = ""
    measured_anew: bool = False


@dataclass(frozen=True)
class TidyTable:
    """One of the tidy tables. `rows` describes the meaning of a row. The values in the columns `key` identify a row."""

    name: str
    rows: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def in_folder_of(self, other: str | Path) -> Path:
        """Return the path of this table, given the path of another table of the same experiment."""
        return Path(other).with_name(f"{self.name}.parquet")

    @property
    def names(self) -> list[str]:
        """Names of the columns in their order."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table."""
        return pa.schema([(column.name, _ARROW[column.kind]) for column in self.columns])


_RUN = (
    Column("experiment", "text", "name of the experiment"),
    Column("model", "text", "name of the model: a run of the experiment, or a baseline"),
    Column("run", "text", "folder in `pretraining/`: model and pretraining seed; for a baseline, its name"),
    Column("seed", "integer", "pretraining seed; null for a baseline"),
)
_MANIFEST = Column("manifest", "text", "SHA-256 of the row's `manifest.json`")

MEASUREMENTS = TidyTable(
    "measurements",
    "one score of one run",
    ("experiment", "run", "kind", "suite", "task", "level", "metric", "finetuning_seed", "learning_rate"),
    (
        *_RUN,
        Column("finetuning_seed", "integer", "seed of fine-tuning; null without fine-tuning"),
        Column("learning_rate", "number", "peak learning rate of fine-tuning; null without fine-tuning"),
        Column(
            "kind",
            "text",
            "kind of evaluation: `pretraining`, `perplexity`, `translation`, `minimal_pairs`, `surprisal`, `reading`, "
            "`acquisition`, `reading_times` or `finetuning`",
        ),
        Column("suite", "text", "suite, as in `summary.csv`"),
        Column("task", "text", "paradigm, phenomenon, task, split or average, as in `summary.csv`"),
        Column(
            "level",
            "text",
            "kind of unit that the column `task` names: `split`, `bin` (part of a split), `paradigm`, `phenomenon`, "
            "`suite`, `average`, `task` or `word`",
        ),
        Column("metric", "text", "metric, with its unit in the name"),
        Column("value", "number", "the score; null if the run has no score", "of the metric"),
        Column(
            "items",
            "integer",
            "number of scored pairs, labelled tokens or rows; null if not recorded",
        ),
        Column(
            "sampling_deviation",
            "number",
            "standard deviation of the run's score due to the choice of the items",
            "of the metric",
        ),
        Column(
            "failed",
            "text",
            "for a collapsed run, the kind of collapse; for a missing score, the reason; otherwise empty",
        ),
        Column("primary", "truth", "true for the main metric of a task, false for its further metrics"),
        Column(
            "main",
            "truth",
            "false for scores on a further set of the task (MNLI mismatched) or on a task on which the model was not "
            "fine-tuned (HANS), otherwise true",
        ),
        Column("origin", "text", "task on which the model was fine-tuned; empty without fine-tuning"),
        Column("blind_guess", "number", "score of a guess that does not read the item", "of the metric"),
        Column("settings", "text", "protocol and rules of the evaluation that influence the score"),
        Column(
            "basis",
            "text",
            "conditions of the score (`aspect: value; ...`); only scores with equal conditions are comparable",
        ),
        _MANIFEST,
    ),
)

RUNS = TidyTable(
    "runs",
    "one pretraining, one milestone of a pretraining, or one baseline",
    ("experiment", "run"),
    (
        *_RUN,
        Column("label", "text", "name of the model in figures and on pages"),
        Column("parameters", "integer", "number of parameters; shared parameters count once"),
        Column("layers", "integer", "number of layers"),
        Column("embedding_size", "integer", "width of the embeddings"),
        Column("hidden_size", "integer", "width of the hidden states"),
        Column("intermediate_size", "integer", "width inside the feed-forward block"),
        Column("attention_heads", "integer", "number of attention heads of a layer"),
        Column("vocabulary_rows", "integer", "number of rows of the word embedding and of the output layer"),
        Column("tied", "truth", "true if the output matrix is the word embedding"),
        Column("sequence_length", "integer", "length of the training sequences; null if the length changes", "tokens"),
        Column("sequences", "integer", "number of training sequences read; a sequence counts each time it is read"),
        Column("steps", "integer", "optimiser steps done", "steps"),
        Column(
            "planned_steps", "integer", "requested optimiser steps; more than `steps` if the run stopped early", "steps"
        ),
        Column("tokens", "integer", "tokens seen, without padding", "tokens"),
        Column("words", "integer", "words seen, including repeated text, by the corpus's `word_count`", "words"),
        Column(
            "training_flops", "number", "FLOPs of the matrix products in the steps done, including padding", "FLOPs"
        ),
        Column("loss", "number", "last training loss", "nats per labelled token"),
        Column("development_loss", "number", "last development loss", "nats per labelled token"),
        Column("development_perplexity", "number", "last development perplexity"),
        Column("development_bits_per_byte", "number", "last development loss per byte of text", "bits per byte"),
        Column(
            "development_basis",
            "text",
            "conditions of the development loss, as in the column `basis` of `measurements.parquet`",
        ),
        Column(
            "unigram_loss",
            "number",
            "development loss of the unigram distribution (a blind guess)",
            "nats per labelled token",
        ),
        Column(
            "initial",
            "text",
            "state that the run read from an initial model: `weights`, `training` (weights and optimiser state), or "
            "empty (none; the weights were random)",
        ),
        Column(
            "earlier_steps",
            "integer",
            "steps of the initial model; null if unknown or without an initial model",
            "steps",
        ),
        Column(
            "earlier_tokens",
            "integer",
            "tokens seen by the initial model; null if unknown or without an initial model",
            "tokens",
        ),
        Column("seconds", "number", "training time of all attempts; changes if the training is repeated", "s", True),
        Column(
            "day",
            "text",
            "day (UTC) on which the last attempt of the training began; changes if the training is repeated",
            "",
            True,
        ),
        _MANIFEST,
    ),
)

DIVERGENCES = {
    "kl_unigram": "KL(unigram, model)",
    "kl_uniform": "KL(uniform, model)",
    "kl_empirical": "KL(label, model)",
    "reverse_kl_unigram": "KL(model, unigram)",
    "reverse_kl_uniform": "KL(model, uniform)",
}
"""Divergences of the model's output: columns of `metrics.jsonl`, with their displayed names."""

BIAS_DRIFT = {
    "bias_kl_unigram": "KL(unigram, softmax of the output bias)",
    "reverse_bias_kl_unigram": "KL(softmax of the output bias, unigram)",
    "bias_norm": "L2 norm of the output bias",
    "centred_bias_norm": "L2 norm of the output bias minus its mean",
    "bias_change": "L2 distance of the output bias from its initial value",
    "largest_bias_change": "largest change of an entry of the output bias",
}
"""Changes of the output layer's bias during training: columns of `metrics.jsonl`, with their displayed names."""

CURVES = TidyTable(
    "curves",
    "one optimiser step of one pretraining",
    ("experiment", "run", "step"),
    (
        *_RUN,
        Column("step", "integer", "optimiser steps done", "steps"),
        Column("tokens", "integer", "tokens seen, without padding", "tokens"),
        Column("words", "integer", "words seen, including repeated text, by the corpus's `word_count`", "words"),
        Column("flops", "number", "FLOPs so far, counted like `training_flops`", "FLOPs"),
        Column("loss", "number", "training loss of the step", "nats per labelled token"),
        Column("masked_accuracy", "number", "share of the labelled tokens that were predicted correctly", "fraction"),
        Column(
            "development_loss",
            "number",
            "development loss; null at steps without a measurement",
            "nats per labelled token",
        ),
        Column("development_perplexity", "number", "development perplexity"),
        Column("development_bits_per_byte", "number", "development loss per byte of text", "bits per byte"),
        Column("learning_rate", "number", "learning rate of the step"),
        Column("gradient_norm", "number", "L2 norm of the gradient before clipping"),
        Column("pair_loss", "number", "loss of sentence pairs", "nats per pair"),
        Column("pair_accuracy", "number", "share of the sentence pairs that were classified correctly", "fraction"),
        Column(
            "development_pair_accuracy",
            "number",
            "share of the development sentence pairs that were classified correctly",
            "fraction",
        ),
        Column("loss_scale", "number", "factor by which the loss is multiplied in fp16"),
        Column(
            "skipped_steps",
            "integer",
            "steps skipped so far because of infinite gradients",
            "steps",
        ),
        *(
            Column(name, "number", f"{meaning} on the development split", "nats")
            for name, meaning in DIVERGENCES.items()
        ),
        Column(
            "next_token_accuracy",
            "number",
            "for models that predict next tokens: share of these tokens that were predicted correctly",
            "fraction",
        ),
        *(Column(name, "number", meaning, "nats") for name, meaning in BIAS_DRIFT.items()),
        Column(
            "nll",
            "number",
            "for translation models: training loss of the step without label smoothing",
            "nats per token",
        ),
        Column("development_bleu", "number", "BLEU of translated development text", "points"),
        Column("development_chrf", "number", "chrF of translated development text", "points"),
    ),
)

LAYERS = TidyTable(
    "layers",
    "the weight of one layer in a weighted sum of layers",
    ("experiment", "run", "quantity", "task", "finetuning_seed", "learning_rate", "span", "consumer", "layer"),
    (
        *_RUN,
        Column(
            "quantity",
            "text",
            "kind of weight: `layer_weight` (ELC-BERT's alpha x number of summed layers), `unit_weight` (always 1, in "
            "a model without layer weighting) or `probe_share` (weight of a layer in a probe)",
        ),
        Column("depth", "integer", "number of layers of the model"),
        Column("task", "text", "probed task; empty if the weight belongs to the pretrained model"),
        Column("finetuning_seed", "integer", "seed of the probe; null if the weight belongs to the pretrained model"),
        Column(
            "learning_rate", "number", "learning rate of the probe; null if the weight belongs to the pretrained model"
        ),
        Column(
            "span", "text", "span of words that the probe reads; empty if the weight belongs to the pretrained model"
        ),
        Column(
            "consumer",
            "integer",
            "index (from 1) of the layer that reads the weighted sum; `depth` + 1 is the output; null in a probe",
        ),
        Column("layer", "integer", "index (from 1) of the layer whose output has this weight; 0 is the embedding"),
        Column("value", "number", "the weight; the shares of a probe sum to 1", "fraction"),
    ),
)

TABLES = (MEASUREMENTS, RUNS, CURVES, LAYERS)


def write_rows(path: str | Path, table: TidyTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as a table, and a file with the table's checksum. A column that a row lacks is null.

    Raises KeyError for a row with an unknown column, which is a programming error.
    """
    write_table(path, _arrow(table, rows))
    write_checksums([path])


@contextmanager
def growing(path: str | Path, table: TidyTable) -> Iterator["RowGroups"]:
    """Yield a `RowGroups`, which writes a table row group by row group. Only one row group is in memory.

    At the end of the `with` block, the file gets its final name and a checksum.
    """
    with atomic_path(path) as partial, TableWriter(partial, table.schema) as writer:
        yield RowGroups(table, writer)
    write_checksums([path])


class RowGroups:
    """A table that is written row group by row group: each call of `add` writes one row group. `read_parts` yields the
    same row groups."""

    def __init__(self, table: TidyTable, writer: TableWriter) -> None:
        """Initialise the writer of row groups with an open `writer` of the file."""
        self._table, self._writer = table, writer

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows as one row group."""
        if rows:
            self.add_table(_arrow(self._table, rows))

    def add_table(self, rows: pa.Table) -> None:
        """Write `rows`, an Arrow table with the columns of the written table, as one row group."""
        self._writer.write_table(rows)


def _arrow(table: TidyTable, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = set(table.names)
    if unknown := {key for row in rows for key in row.keys() - names}:
        raise KeyError(f"{table.name} has no columns {', '.join(sorted(unknown))}")
    columns = {name: [row.get(name) for row in rows] for name in table.names}
    return pa.table(columns, schema=table.schema)


def read_parts(path: str | Path, table: TidyTable) -> Iterator[pa.Table]:
    """Yield the row groups of a table's Parquet file. Raises ManifestError if the file is missing, was altered, lacks a
    checksum, or has other columns than the table.
    """
    try:
        with pq.ParquetFile(verified_view(path)) as file:
            if file.schema_arrow.names != table.names:
                raise _other_columns(path, table)
            for index in range(file.num_row_groups):
                yield file.read_row_group(index)
    except (OSError, pa.ArrowException) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {first_line(error)}") from error


def _other_columns(path: str | Path, table: TidyTable) -> ManifestError:
    return ManifestError(
        f"{path}: the columns of this file are not the columns of {table.name}; remove the file and run the same "
        "command again"
    )


def read_frame(
    path: str | Path, table: TidyTable, columns: Sequence[str] | None = None, **among: Collection[str] | None
) -> pl.DataFrame:
    """Read rows of a table, in the order of the table. `columns` restricts the columns; None reads all.

    `among` restricts the rows: it maps a string column to the values to read; None allows all values. Raises
    ManifestError if the file is missing, was altered, lacks a checksum, or has other columns than the table.
    """
    try:
        rows = pl.scan_parquet(verified_view(path))
        if rows.collect_schema().names() != table.names:
            raise _other_columns(path, table)
        for column, values in among.items():
            if values is not None:
                rows = rows.filter(pl.col(column).is_in(list(values)))
        return (rows if columns is None else rows.select(columns)).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {first_line(error)}") from error
