"""The candidate tokenizers of a sweep: each is trained, or truncated from a larger tokenizer if the result is the same.

A tokenizer type is nested if its smaller vocabularies are beginnings of its larger vocabularies (`byte_bpe`,
`wordpiece`). A nested type is trained once, with the largest vocabulary size of the sweep and its `frequency_search`.
Training merges the most frequent pair until the vocabulary is full, and the merges do not depend on the final size. A
test checks that a truncated tokenizer has the same file as a tokenizer of its size. A Unigram vocabulary is pruned
from a larger vocabulary, so each size is trained separately, as is each size of `bpe`. Every tokenizer file is loaded
as a check before the file is used.

The work is divided into parts: train a tokenizer, count the pre-tokens of a shard, measure a tokenizer. Each part
writes one file, whose name is the digest of the part's inputs. So a killed sweep continues with the missing parts, and
after adding sizes or tokenizer types, the other tokenizers are not trained again (artifacts/parallel_map.py).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.parallel_map import Facts, make_parts
from hatchery.errors import CorpusError, TokenizationError
from hatchery.progress import Progress
from hatchery.tokenization.documents import LineStream, shards_of
from hatchery.tokenization.selection.frequency_rule import (
    count_pre_tokens,
    frequency_of_rule,
    pre_token_table,
    read_pre_tokens,
)
from hatchery.tokenization.selection.measures import (
    Word,
    count_words,
    esms,
    read_definition,
    running_text,
    word_split_ratio,
)
from hatchery.tokenization.selection.settings import CandidateType, SweepSettings
from hatchery.tokenization.selection.table import Measures
from hatchery.tokenization.tokenizer_file import Definition, load_tokenizer, open_backend, use_threads
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings


@dataclass(frozen=True)
class TrainTask:
    """Training of one tokenizer on the documents of `shards` with `threads` library threads; `where` names the
    tokenizer in error messages."""

    settings: TokenizerSettings
    shards: tuple[Path, ...]
    where: str
    threads: int


@dataclass(frozen=True)
class CountTask:
    """Counting of the pre-tokens of one shard; the tokenizer file `tokenizer` determines the pre-tokens."""

    shard: Path
    tokenizer: Path
    sources: tuple[str, ...] | None


@dataclass(frozen=True)
class MeasureTask:
    """Measurement of the tokenizer file `tokenizer`. Its inputs are the sample (a JSON list of sequences), the words
    and morphemes of ESMS (exact sub-token matching score), and the counts of pre-tokens (None for a reference
    tokenizer).
    """

    tokenizer: Path
    sample: Path
    words: tuple[Word, ...]
    pre_tokens: Path | None


def train_part(task: TrainTask, path: Path) -> Facts:
    """Train a tokenizer and write its file. Raises CorpusError if the shards contain no text, and TokenizationError if
    special tokens and alphabet alone exceed the vocabulary size.
    """
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
    """Count the pre-tokens of one shard, and write their counts as a table."""
    use_threads(1)
    lines = (line for found in LineStream([task.shard], sources=task.sources) for line in found)
    table = pre_token_table(count_pre_tokens(lines, load_definition(task.tokenizer), str(task.tokenizer)))
    pq.write_table(table, path, compression="zstd")
    return {"pre_tokens": table.num_rows}


def merge_part(tables: tuple[Path, ...], path: Path) -> Facts:
    """Write the sum of several tables of pre-token counts."""
    table = pre_token_table(read_pre_tokens(tables))
    pq.write_table(table, path, compression="zstd")
    return {"pre_tokens": table.num_rows}


def measure_part(task: MeasureTask, path: Path) -> Facts:
    """Measure one tokenizer; write and return the measures."""
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
    """Return the tokenizer definition read from the JSON file at `path`."""
    return read_definition(path.read_text(encoding="utf-8"), str(path))


NESTED_KINDS = ("wordpiece", "byte_bpe")


def is_nested(settings: TokenizerSettings) -> bool:
    """Return whether smaller vocabularies of this tokenizer type are beginnings of larger vocabularies."""
    return settings.kind in NESTED_KINDS


def vocabulary_size(definition: Definition) -> int:
    """Return the number of entries of a tokenizer's vocabulary."""
    return len(definition["model"]["vocab"])


def smallest_size(definition: Definition) -> int:
    """Return the number of vocabulary entries before the first merge: special tokens and single characters (the
    alphabet). The tokenizer's type is `byte_bpe` or `wordpiece`.
    """
    prefix = definition["model"].get("continuing_subword_prefix") or ""
    special = {token["content"] for token in definition["added_tokens"]}
    return sum(
        token in special or len(token) == 1 or len(token.removeprefix(prefix)) == 1
        for token in definition["model"]["vocab"]
    )


def cut_down(definition: Definition, size: int, where: str) -> Definition:
    """Return a tokenizer whose vocabulary is the first `size` entries of the vocabulary of `definition`. The
    tokenizer's type is `byte_bpe` or `wordpiece`.

    Raises TokenizationError, naming `where`, if `size` exceeds the vocabulary, or is too small for special tokens and
    alphabet.
    """
    model = definition["model"]
    entries = vocabulary_size(definition)
    if size > entries:
        raise TokenizationError(
            f"{where}: the vocabulary size {size} is too large, the corpus supports only {entries} entries"
        )
    smallest = smallest_size(definition)
    if size < smallest:
        raise TokenizationError(
            f"{where}: the vocabulary size {size} is too small, "
            f"special tokens and alphabet alone make {smallest} entries"
        )
    vocabulary = {token: index for token, index in model["vocab"].items() if index < size}
    cut = {**model, "vocab": vocabulary}
    if "merges" in model:
        cut["merges"] = _merges(model, smallest, size)
    return {**definition, "model": cut}


def _merges(model: Definition, smallest: int, size: int) -> list[Any]:
    """Return the merges up to the merge that creates the entry with the id `size - 1`. `smallest` is the number of
    entries before the first merge.

    Some merges create an entry that already exists, so there may be more merges than merged entries.
    """
    prefix = model.get("continuing_subword_prefix") or ""
    last = smallest - 1
    kept: list[Any] = []
    for merge in model["merges"]:
        if last >= size - 1:
            break
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        last = max(last, model["vocab"][left + right.removeprefix(prefix)])
        kept.append(merge)
    return kept


class Candidates:
    """Trains the tokenizers of a sweep and stores them in `parts_folder`."""

    def __init__(self, settings: SweepSettings, corpus: Manifest, parts_folder: Path, threads: int) -> None:
        self.settings = settings
        self.corpus = corpus
        self.parts_folder = parts_folder
        self.threads = threads
        self._trained: dict[tuple[str, int], Definition] = {}
        wanted = [
            (candidate, size)
            for candidate in settings.types
            for size in (
                [self._largest(candidate)] if is_nested(candidate.settings(candidate.sizes[0])) else candidate.sizes
            )
        ]
        self._train(wanted)

    def _largest(self, candidate: CandidateType) -> int:
        search = self.settings.frequency_search
        sizes = [*candidate.sizes, search.highest] if search and search.type == candidate.name else candidate.sizes
        return max(sizes)

    def definition(self, candidate: CandidateType, size: int) -> Definition:
        """Return the tokenizer with this tokenizer type and vocabulary size. The tokenizer was trained with this size,
        or is the beginning of a larger trained tokenizer.

        Raises TokenizationError if the corpus gives a smaller vocabulary than `size`, or if special tokens and alphabet
        alone exceed `size`.
        """
        where = f"types.{candidate.name}"
        if is_nested(candidate.settings(size)):
            return cut_down(self._trained[candidate.name, self._largest(candidate)], size, where)
        if (candidate.name, size) not in self._trained:
            self._train([(candidate, size)])
        definition = self._trained[candidate.name, size]
        if vocabulary_size(definition) < size:
            raise TokenizationError(
                f"{where}: the vocabulary size {size} is too large, "
                f"the corpus supports only {vocabulary_size(definition)} entries"
            )
        return definition

    def write(self, candidate: CandidateType, size: int, folder: Path) -> Path:
        """Write the tokenizer file of a tokenizer type and vocabulary size to `folder`, and load the file as a check;
        return its path.
        """
        path = folder / f"{candidate.name}_{size}.json"
        backend = open_backend(self.definition(candidate, size), f"types.{candidate.name}")
        write_text(path, backend.to_str(pretty=True))
        load_tokenizer(path)
        return path

    def _train(self, wanted: Sequence[tuple[CandidateType, int]]) -> None:
        threads = max(1, self.threads // max(1, min(self.threads, len(wanted))))
        tasks, keys = [], []
        for candidate, size in wanted:
            settings = candidate.settings(size)
            shards = shards_of(self.corpus, settings.splits)
            where = f"{self.corpus.path}: types.{candidate.name}"
            tasks.append(TrainTask(settings, tuple(shard.path for shard in shards), where, threads))
            keys.append(["train", candidate.name, asdict(settings), [shard.sha256 for shard in shards]])
        with Progress(len(tasks), "training tokenizers", "tokenizers") as progress:
            parts = make_parts(tasks, train_part, keys, self.parts_folder, self.threads)
            for (candidate, size), part in zip(wanted, parts, strict=True):
                self._trained[candidate.name, size] = load_definition(part.path)
                progress.update()
