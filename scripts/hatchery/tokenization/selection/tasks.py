"""The parts that a sweep is worked on in: train a tokenizer, count the pre-tokens of a shard, measure a tokenizer.

Each writes one file under a name that is the digest of all that determines it, so that a killed sweep goes on where it
stopped and sizes or types can be added without training the others again (artifacts/parallel_map.py).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hatchery.errors import CorpusError, TokenizationError
from hatchery.tokenization.documents import read_batches, training_lines
from hatchery.tokenization.selection.backends import read_definition
from hatchery.tokenization.selection.frequency_rule import (
    count_pre_tokens,
    frequency_of_rule,
    pre_token_table,
    read_pre_tokens,
)
from hatchery.tokenization.selection.morphemes import Word, esms
from hatchery.tokenization.selection.table import Measures
from hatchery.tokenization.selection.word_split_ratio import (
    DOCUMENTS_PER_BATCH,
    count_words,
    running_text,
    word_split_ratio,
)
from hatchery.tokenization.tokenizer_file import use_threads
from hatchery.tokenization.trainer import TokenizerSettings, train


@dataclass(frozen=True)
class TrainTask:
    """Train one tokenizer on the documents of `shards`; `where` names it in errors, `threads` are the library's."""

    settings: TokenizerSettings
    shards: tuple[Path, ...]
    where: str
    threads: int


@dataclass(frozen=True)
class CountTask:
    """Count the pre-tokens of one shard as the tokenizer in the file `tokenizer` cuts them."""

    shard: Path
    tokenizer: Path
    settings: TokenizerSettings
    threads: int


@dataclass(frozen=True)
class MeasureTask:
    """Measure the tokenizer in a file: on the sample (JSON list of sequences), the words, and counted pre-tokens."""

    tokenizer: Path
    sample: Path
    words: tuple[Word, ...]
    pre_tokens: Path | None
    threads: int


def lines_of(shard: Path, settings: TokenizerSettings) -> Iterator[list[str]]:
    """The lines of a shard that a tokenizer of these settings learns from, one list per document."""
    for batch in read_batches(shard, DOCUMENTS_PER_BATCH):
        for source, text in zip(batch.sources, batch.texts, strict=True):
            if settings.sources is None or source in settings.sources:
                yield list(training_lines(text))


class TrainingText:
    """The training lines of shards, one list per document; may be gone through more than once.

    `lines` is their number after the last time.
    """

    def __init__(self, shards: Sequence[Path], settings: TokenizerSettings) -> None:
        self.shards = shards
        self.settings = settings
        self.lines = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.lines = 0
        for shard in self.shards:
            for found in lines_of(shard, self.settings):
                self.lines += len(found)
                yield found


def train_part(task: TrainTask, path: Path) -> dict[str, Any]:
    """Train and write the tokenizer file. Raises CorpusError when the shards hold no text."""
    use_threads(task.threads)
    text = TrainingText(task.shards, task.settings)
    try:
        backend = train(text, task.settings)
    except TokenizationError as error:
        raise TokenizationError(f"{task.where}: {error}") from error
    if not text.lines:
        raise CorpusError(f"{task.where}: the corpus has no text to train a tokenizer on")
    path.write_text(backend.to_str(pretty=True), encoding="utf-8")
    return {"training_lines": text.lines}


def count_part(task: CountTask, path: Path) -> dict[str, Any]:
    """Write the table of pre-tokens of one shard."""
    use_threads(task.threads)
    lines = (line for found in lines_of(task.shard, task.settings) for line in found)
    table = pre_token_table(count_pre_tokens(lines, load_definition(task.tokenizer), str(task.tokenizer)))
    pq.write_table(table, path, compression="zstd")
    return {"pre_tokens": table.num_rows}


def merge_part(tables: tuple[Path, ...], path: Path) -> dict[str, Any]:
    """Write the sum of tables of pre-tokens."""
    table = pre_token_table(read_pre_tokens(tables))
    pq.write_table(table, path, compression="zstd")
    return {"pre_tokens": table.num_rows}


def measure_part(task: MeasureTask, path: Path) -> dict[str, Any]:
    """Write and return the measures of one tokenizer."""
    use_threads(task.threads)
    where = task.tokenizer.name
    definition = load_definition(task.tokenizer)
    sequences = json.loads(task.sample.read_text(encoding="utf-8"))
    scores = esms(definition, task.words, where)
    text = running_text(definition, sequences, where)
    frequency = None
    if task.pre_tokens is not None:
        frequency = frequency_of_rule(definition, read_pre_tokens([task.pre_tokens]), where)
    measures = asdict(
        Measures(
            word_split_ratio=word_split_ratio(definition, count_words(sequences), where),
            esms_definition=scores.definition,
            esms_published_code=scores.published_code,
            esms_published_code_corrected=scores.published_code_corrected,
            frequency_at_95_percent=frequency,
            fertility=text.fertility,
            unknown_rate=text.unknown_rate,
        )
    )
    path.write_text(json.dumps(measures), encoding="utf-8")
    return measures


def load_definition(path: Path) -> dict[str, Any]:
    """The definition in a tokenizer file."""
    return read_definition(path.read_text(encoding="utf-8"), str(path))
