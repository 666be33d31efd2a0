"""Difficulties of sequences, for the data order of a curriculum. They are computed from a finished model, from a word
list, or from a column of the corpus.

Every attempt of a run computes the difficulties again. Losses are computed on the CPU in float32, so a resumed run has
the same data order on the same machine. Source of difficulty by a model's loss: Hacohen and Weinshall 2019,
arXiv:1904.03626.
"""

import csv
import io
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.parquet import read_table
from hatchery.corpora.corpus_writer import NUMBER, NUMERIC_COLUMNS
from hatchery.errors import ConfigError
from hatchery.modeling.store import load_language_model
from hatchery.raw.registration import open_source
from hatchery.settings.problems import alternatives
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.curriculum import Measure
from hatchery.training.start_settings import CurriculumSettings

if TYPE_CHECKING:
    from hatchery.objectives.padded_examples import PaddedExamples
    from hatchery.training.inputs import Inputs

SEQUENCES_PER_BATCH = 32
DECIMALS = 4
"""Number of decimals to which mean losses (nats) are rounded, so that rounding errors seldom change the order of
sequences."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def measure_of(settings: CurriculumSettings | None, inputs: "Inputs") -> Measure | None:
    """Return the measure that computes the difficulties of training sequences from an input (model, word list or
    corpus); None if the settings use no input.

    Raises ConfigError for an input that the settings do not use, or a missing input.
    """
    by = None if settings is None else settings.by
    expected = ("loss", inputs.order_model), ("words", inputs.order_words), ("column", inputs.order_corpus)
    for key, given in expected:
        if (given is not None) != (by == key):
            raise ConfigError(
                f"order.by: got {by!r} with the input {given}; `by: {key}` requires this input, and all other values "
                "of `by` exclude it"
            )
    if inputs.order_model is not None:
        return ModelLoss(inputs.order_model.parent)
    if inputs.order_words is not None and settings is not None:
        tokenizer = inputs.tokenizer.parent / "tokenizer.json"
        return WordValues(inputs.order_words, tokenizer, settings.word_column, settings.value_column)
    if inputs.order_corpus is not None and settings is not None and settings.column is not None:
        return DocumentValues(inputs.order_corpus, inputs.tokens, settings.column)
    return None


@dataclass(frozen=True)
class ModelLoss:
    """Difficulty by the mean loss (nats) of a finished model on a sequence's labels. In masked sequences, the masks are
    those of seed 0 and epoch 0.
    """

    folder: Path

    def __call__(self, examples: "PaddedExamples") -> np.ndarray:
        """Return the mean loss of every sequence, float64 [len(examples)]; 0 for a sequence without labels."""
        return _losses(examples, self.folder)


@lru_cache(maxsize=2)
@torch.no_grad()
def _losses(examples: "PaddedExamples", folder: Path) -> np.ndarray:
    network = load_language_model(folder).float().eval()
    found = []
    for start in range(0, len(examples), SEQUENCES_PER_BATCH):
        batch = examples.batch(0, 0, range(start, min(start + SEQUENCES_PER_BATCH, len(examples))))
        output = network(batch["input_ids"], batch["attention_mask"], batch["labels"], causal=batch.get("causal"))
        losses = torch.nn.functional.cross_entropy(output.logits.float(), output.targets, reduction="none")
        rows, length = batch["labels"].shape
        row = torch.div(output.positions, length, rounding_mode="floor")
        sums, numbers = (
            torch.zeros(rows, dtype=torch.float64).index_add_(0, row, of)
            for of in (losses.double(), torch.ones_like(losses, dtype=torch.float64))
        )
        found.append((sums / numbers.clamp(min=1)).numpy())
    return np.round(np.concatenate(found or [np.zeros(0)]), DECIMALS)


@dataclass(frozen=True)
class WordValues:
    """Difficulty by the mean value of a sequence's words in a user's word list, such as the age of acquisition of the
    words.

    Words that are not in the list do not count. A sequence without any word of the list gets the mean of the
    difficulties of all other sequences.
    """

    source: Path
    tokenizer: Path
    word_column: str
    value_column: str

    def __call__(self, examples: "PaddedExamples") -> np.ndarray:
        """Return the difficulty of every sequence, float64 [len(examples)]: the mean, over the sequence's words, of the
        values in the word list. Raises ConfigError like `read_values`, and if no word of any sequence is in the list.
        """
        return _word_means(examples, self)


@lru_cache(maxsize=2)
def _word_means(examples: "PaddedExamples", of: WordValues) -> np.ndarray:
    # Import inside the function, so that trainings that decode no tokens start sooner.
    from hatchery.tokenization.tokenizer_file import load_tokenizer

    values, tokenizer = read_values(of), load_tokenizer(of.tokenizer)
    means = np.full(len(examples), np.nan)
    for index in range(len(examples)):
        parts = examples.texts(0, 0, index)
        text = " ".join(tokenizer.decode(part.tokens.tolist(), skip_special_tokens=True) for part in parts)
        known = [values[word] for word in words_of(text) if word in values]
        if known:
            means[index] = sum(known) / len(known)
    missing = np.isnan(means)
    if missing.all():
        raise ConfigError(f"order.words: no word of the text is in the column {of.word_column!r} of {of.source}")
    return np.where(missing, means[~missing].mean(), means)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; a word consists of letters and of apostrophes between letters."""
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def read_values(of: WordValues) -> dict[str, float]:
    """Return the values of the word list that `of` names, by lower-case word.

    Rows whose value is not a finite number are left out; for a repeated word, the first row with a number counts.
    Raises ConfigError for a missing column, and for a list in which no row has a number.
    """
    source = open_source(of.source)
    name = source.one_name("*.csv", "*.tsv")
    with source.open(name) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        rows = csv.DictReader(lines, delimiter="\t" if name.endswith(".tsv") else ",")
        for key, column in (("word_column", of.word_column), ("value_column", of.value_column)):
            if column not in (rows.fieldnames or ()):
                there = ", ".join(rows.fieldnames or ())
                raise ConfigError(f"order.{key}: got {column!r}, the columns of {name} are: {there}")
        values: dict[str, float] = {}
        for row in rows:
            try:
                value = float(row[of.value_column] or "")
            except ValueError:
                continue
            if math.isfinite(value):
                values.setdefault((row[of.word_column] or "").lower(), value)
    if not values:
        raise ConfigError(f"order.value_column: the column {of.value_column!r} of {name} contains no number")
    return values


@dataclass(frozen=True)
class DocumentValues:
    """Difficulty by a numeric column of the corpus: the mean over a sequence's texts, where a text has the value of its
    document.
    """

    corpus: Path
    tokens: Path
    column: str

    def __call__(self, examples: "PaddedExamples") -> np.ndarray:
        """Return the difficulty of every training sequence, float64 [len(examples)]: the mean, over the texts of the
        sequence, of the numeric column's value for the text's document. Raises ConfigError like `values_of_documents`.
        """
        return _document_means(examples, self)


@lru_cache(maxsize=2)
def _document_means(examples: "PaddedExamples", documents: DocumentValues) -> np.ndarray:
    values = values_of_documents(documents)
    texts = (examples.texts(0, 0, index) for index in range(len(examples)))
    means = [float(values[[part.number for part in parts]].mean()) for parts in texts]
    return np.array(means, dtype=np.float64)


def values_of_documents(documents: DocumentValues) -> np.ndarray:
    """Return the value of each training document in `documents.column`, a numeric column of the corpus: float64 [number
    of documents], in the order of the token shards.

    Raises ConfigError for an unknown column and for a document without a value.
    """
    corpus = read_manifest(documents.corpus)
    columns = list(corpus.measures.get(NUMERIC_COLUMNS, ()))
    if documents.column not in columns:
        known = f"{alternatives(documents.column, columns)} among the `numeric_columns` of {documents.corpus}"
        raise ConfigError(f"order.column: got {documents.column!r}{known}")
    values: dict[str, float | None] = {}
    for path in corpus.files(".parquet", "train-"):
        table = read_table(path, ["doc_id", NUMBER + documents.column])
        values.update(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    shards = TokenShards.open(documents.tokens, "train")
    found = []
    for index in range(len(shards)):
        value = values.get(shards.doc_id(index))
        if value is None:
            raise ConfigError(
                f"order.column: the document {shards.doc_id(index)!r} of {documents.corpus} has no value in the column "
                f"{documents.column!r}; expected the column among `numeric_columns` of the document's source"
            )
        found.append(value)
    return np.array(found, dtype=np.float64)
