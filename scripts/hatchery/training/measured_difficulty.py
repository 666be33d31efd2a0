"""Difficulties of sequences from a finished model or a word list, for the data order of a curriculum.

They are computed on the CPU in float32 at the start of every attempt of a run, so a resumed run has the same data order
on the same machine. Source of difficulty by a model's loss: Hacohen and Weinshall 2019, arXiv:1904.03626.
"""

import csv
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from hatchery.errors import ConfigError
from hatchery.modeling.store import load_language_model
from hatchery.raw.registration import open_source
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
    """Return the measure that computes difficulties from an input (model or word list), or None if the settings use no
    input.

    Raises ConfigError for an input that the settings do not use, or a missing input.
    """
    by = None if settings is None else settings.by
    for key, given in (("loss", inputs.order_model), ("words", inputs.order_words)):
        if (given is not None) != (by == key):
            raise ConfigError(
                f"order.by: got {by!r} with the input {given}; by: {key} requires this input, other values read none"
            )
    if inputs.order_model is not None:
        return ModelLoss(inputs.order_model.parent)
    if inputs.order_words is not None and settings is not None:
        tokenizer = inputs.tokenizer.parent / "tokenizer.json"
        return WordValues(inputs.order_words, tokenizer, settings.word_column, settings.value_column)
    return None


@dataclass(frozen=True)
class ModelLoss:
    """Difficulty by the mean loss (nats) of a finished model on a sequence's labels, with the masks of seed 0 and epoch
    0."""

    folder: Path

    def __call__(self, examples: "PaddedExamples") -> np.ndarray:
        """Return the mean loss of every sequence: float64 [len(examples)], 0 without labels."""
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
    """Difficulty by the mean value of a sequence's words in a user's table, such as their age of acquisition.

    Words without a value do not count; a sequence without any word of the table gets the mean over the other sequences.
    """

    source: Path
    tokenizer: Path
    word_column: str
    value_column: str

    def __call__(self, examples: "PaddedExamples") -> np.ndarray:
        """Return the mean value of every sequence: float64 [len(examples)]. Raises ConfigError like `read_values`."""
        return _word_means(examples, self)


@lru_cache(maxsize=2)
def _word_means(examples: "PaddedExamples", of: WordValues) -> np.ndarray:
    # Imported here, because only an order by words decodes tokens, and other trainings then start sooner.
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
    """Return the table's values by lower-case word.

    Rows without a number are left out; for a repeated word, the first row counts. Raises ConfigError for a missing
    column and for a table without any number.
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
                values.setdefault((row[of.word_column] or "").lower(), float(row[of.value_column] or ""))
            except ValueError:
                continue
    if not values:
        raise ConfigError(f"order.value_column: the column {of.value_column!r} of {name} has no number")
    return values
