"""From text to text: sentences are encoded, translated in batches of about equal lengths, and decoded."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.translation.beam_search import beam_search
from hatchery.translation.settings import SearchSettings

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer

TOKENS_PER_BATCH = 2048


def translate(
    model: TranslationModel,
    tokenizer: "Tokenizer",
    sentences: Sequence[str],
    limits: SearchSettings,
    longest_source: int,
    device: torch.device,
    tokens_per_batch: int | None = None,
    done: Callable[[int], None] = lambda sentences: None,
) -> list[str]:
    """The best translation of each sentence, in their order; see `translate_ids`.

    Sources are cut to `longest_source` tokens, the end counted.
    """
    ids = [ids[: longest_source - 1] for ids in tokenizer.encode_sentences(sentences)]
    return translate_ids(model, tokenizer, ids, limits, device, tokens_per_batch, done)


def translate_ids(
    model: TranslationModel,
    tokenizer: "Tokenizer",
    ids_of_sentences: Sequence[Sequence[int]],
    limits: SearchSettings,
    device: torch.device,
    tokens_per_batch: int | None = None,
    done: Callable[[int], None] = lambda sentences: None,
) -> list[str]:
    """The text of the best translation of each encoded sentence, without its end, in their order.

    The model lies on `device`, in evaluation mode. `tokens_per_batch` changes speed, never a result beyond rounding;
    `done` is told of every batch.
    """
    sources = [[*ids, tokenizer.sep_id] for ids in ids_of_sentences]
    special = never_written(tokenizer)
    found: list[str] = [""] * len(sources)
    for rows in batches_by_length([len(source) for source in sources], tokens_per_batch or TOKENS_PER_BATCH):
        width = max(len(sources[row]) for row in rows)
        ids = torch.full((len(rows), width), tokenizer.pad_id, dtype=torch.int64)
        for position, row in enumerate(rows):
            ids[position, : len(sources[row])] = torch.tensor(sources[row])
        mask = torch.arange(width)[None] < torch.tensor([len(sources[row]) for row in rows])[:, None]
        hypotheses = beam_search(model, ids.to(device), mask.to(device), limits, special)
        for row, best in zip(rows, hypotheses, strict=True):
            found[row] = tokenizer.decode(best[0].ids, skip_special_tokens=True).strip()
        done(len(rows))
    return found


def never_written(tokenizer: "Tokenizer") -> tuple[int, ...]:
    """The ids of the special tokens that stand in no translation: all but the end and unknown characters."""
    written = (tokenizer.sep_id, tokenizer.unknown_id)
    return tuple(index for index in tokenizer.special.ids.values() if index not in written)


def batches_by_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Rows of about equal length together, each batch of at most `budget` tokens with padding, or of one row."""
    batches: list[list[int]] = []
    for row in np.argsort(np.asarray(lengths), kind="stable").tolist():
        if batches and lengths[row] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches
