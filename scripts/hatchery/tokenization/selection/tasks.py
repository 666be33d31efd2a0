"""The parts that a sweep is worked on in: train a tokenizer, count the pre-tokens of a shard, measure a tokenizer.

Each writes one file under a name that is the digest of all that determines it, so that a killed sweep goes on where it
stopped and sizes or types can be added without training the others again (artifacts/parallel_map.py).
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.parquet as pq

from hatchery.artifacts.parallel_map import Facts
from hatchery.errors import CorpusError, TokenizationError
from hatchery.tokenization.documents import LineStream
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
    count_words,
    running_text,
    word_split_ratio,
)
from hatchery.tokenization.tokenizer_file import Definition, use_threads
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings


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
    sources: tuple[str, ...] | None


@dataclass(frozen=True)
class MeasureTask:
    """Measure the tokenizer in a file: on the sample (JSON list of sequences), the words, and counted pre-tokens."""

    tokenizer: Path
    sample: Path
    words: tuple[Word, ...]
    pre_tokens: Path | None


def train_part(task: TrainTask, path: Path) -> Facts:
    """Train and write the tokenizer file. Raises CorpusError when the shards hold no text."""
    use_threads(task.threads)
    text = LineStream(task.shards, sources=task.settings.sources)
    try:
        backend = train(text, task.settings)
    except TokenizationError as error:
        raise TokenizationError(f"{task.where}: {error}") from error
    if not text.lines:
        raise CorpusError(f"{task.where}: the corpus has no text to train a tokenizer on")
    path.write_text(backend.to_str(pretty=True), encoding="utf-8")
    return {"training_lines": text.lines}


def count_part(task: CountTask, path: Path) -> Facts:
    """Write the table of pre-tokens of one shard."""
    use_threads(1)
    lines = (line for found in LineStream([task.shard], sources=task.sources) for line in found)
    table = pre_token_table(count_pre_tokens(lines, load_definition(task.tokenizer), str(task.tokenizer)))
    pq.write_table(table, path, compression="zstd")
    return {"pre_tokens": table.num_rows}


def merge_part(tables: tuple[Path, ...], path: Path) -> Facts:
    """Write the sum of tables of pre-tokens."""
    table = pre_token_table(read_pre_tokens(tables))
    pq.write_table(table, path, compression="zstd")
    return {"pre_tokens": table.num_rows}


def measure_part(task: MeasureTask, path: Path) -> Facts:
    """Write and return the measures of one tokenizer."""
    use_threads(1)
    where = task.tokenizer.name
    definition = load_definition(task.tokenizer)
    sequences = json.loads(task.sample.read_text(encoding="utf-8"))
    scores = esms(definition, task.words, where)
    fertility, unknown_rate = running_text(definition, sequences, where)
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
            fertility=fertility,
            unknown_rate=unknown_rate,
        )
    )
    path.write_text(json.dumps(measures), encoding="utf-8")
    return measures


def load_definition(path: Path) -> Definition:
    """The definition in a tokenizer file."""
    return read_definition(path.read_text(encoding="utf-8"), str(path))
