"""Reading times and surprisals of words, as in BabyLM's pipeline of 2026 (docs/papers/babylm-2026.md, "Reading times").

The probability of a word after its context is the product over its tokens. As in BabyLM's code, the word has no
leading space. Every token of the word after the first is decoded, tokenised again by itself, and predicted after the
text so far. A token inside a word may thus be replaced by a token that begins a word. Scores from these surprisals are
comparable with published scores, but the surprisals differ from those of `surprisal.words`.

A score is the gain in explained variance: (R2 with surprisal - R2 without surprisal) / (1 - R2 without surprisal).
Besides the surprisal, the predictors are word length, frequency, context length and their products. For self-paced
reading, the predictors also include length and surprisal of the previous word, and all products of two predictors.
Tables show scores in percent.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, groupby
from typing import Any

import numpy as np
import torch

from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.scoring import tokens_per_batch_for
from hatchery.evaluation.minimal_pairs.sentence_model import TokenizedModel, target_log_probabilities
from hatchery.evaluation.surprisal.human_data import (
    EYE_TRACKING,
    NUMBERS,
    OF_THE_ONE_BEFORE,
    OF_THE_WORD,
    SELF_PACED,
    ReadWord,
)

MASKS = 3
"""Number of masks after the context in the input of a masked model; the first mask is predicted."""
Model = TokenizedModel | BaselineModel


Context = tuple[str | int, ...]
"""Type of a context: texts and, between the texts, the ids of unknown tokens, which cannot be decoded to text."""


@dataclass(frozen=True)
class Asked:
    """One prediction: the token id `target` after the text `context`."""

    context: Context
    target: int


def pieces_as_published(model: Model, context: str, word: str) -> list[Asked]:
    """Return the predictions for the tokens of a word, as in the code of BabyLM's pipeline: each token after the first
    is decoded and tokenised again by itself.
    """
    backend, unknown = model.tokenizer.backend, model.tokenizer.unknown_id
    asked: list[Asked] = []
    parts: list[str | int] = [context]
    for piece in backend.encode(word, add_special_tokens=False).ids:
        spelled = backend.decode([piece], skip_special_tokens=False)
        again = [piece] if not asked or piece == unknown else backend.encode(spelled, add_special_tokens=False).ids
        asked.append(Asked(tuple(parts), again[0] if again else piece))
        if piece == unknown:
            parts += [piece, ""]
        else:
            parts[-1] = f"{parts[-1]}{spelled}"
    return asked


def inputs_behind(model: Model, context: Context) -> tuple[tuple[int, ...], int]:
    """Return the ids of a context with the model's special tokens, and the index of the position at which the token
    after the context is predicted.

    An imported model gets the special tokens of its tokenizer's template, even if other evaluations add different
    special tokens.
    """
    backend = model.tokenizer.backend
    before, after = model.frame.before, model.frame.after
    if isinstance(model, BaselineModel):
        framed = backend.encode("a")
        text = [index for index, special in enumerate(framed.special_tokens_mask) if not special]
        before, after = tuple(framed.ids[: text[0]]), tuple(framed.ids[text[-1] + 1 :])
    parts = ([one] if isinstance(one, int) else backend.encode(one, add_special_tokens=False).ids for one in context)
    ids = (*before, *chain.from_iterable(parts))
    if model.mask_id is None:
        return (*ids, *after), len(ids) + len(after) - 1
    return (*ids, *[model.mask_id] * MASKS, *after), len(ids)


def surprisals_of(model: Model, words: Iterable[tuple[str, str]], tokens_per_batch: int | None = None) -> list[float]:
    """Return -ln p (nats) of each word after its context, as in the code of BabyLM's pipeline. `words` are pairs
    (context, word); equal predictions are computed only once.

    Raises EvaluationError for a causal model if the input contains no token before the word, and for a context that is
    longer than the model's maximum input.
    """
    wanted = list(words)
    pieces = {pair: pieces_as_published(model, *pair) for pair in dict.fromkeys(wanted)}
    distinct = sorted(
        {one for asked in pieces.values() for one in asked}, key=lambda one: (str(one.context), one.target)
    )
    contexts = {context: inputs_behind(model, context) for context in dict.fromkeys(one.context for one in distinct)}
    for context, (ids, position) in contexts.items():
        if position < 0:
            raise EvaluationError(
                f"reading: the context {_text(context)!r} contains no token, and the model adds no token before a text"
            )
        if model.longest_input is not None and len(ids) > model.longest_input:
            raise EvaluationError(
                f"reading: the context {_text(context)[:60]!r}... becomes {len(ids):,} tokens, expected at most "
                f"{model.longest_input:,}"
            )
    budget = tokens_per_batch_for(model, tokens_per_batch)
    # Contexts of equal length share a batch, so nothing is padded. Sort the contexts, so that scores do not depend on
    # the order of the rows.
    ordered = sorted(contexts.items(), key=lambda item: (len(item[1][0]), item[1], str(item[0])))
    targets = {context: [one.target for one in group] for context, group in groupby(distinct, lambda one: one.context)}
    found: dict[Asked, float] = {}
    for length, bucket in groupby(ordered, key=lambda item: len(item[1][0])):
        rows = list(bucket)
        at_once = max(1, budget // length)
        for start in range(0, len(rows), at_once):
            found |= _scored(model, rows[start : start + at_once], targets)
    return [-math.fsum(found[one] for one in pieces[pair]) for pair in wanted]


def _scored(
    model: Model, rows: Sequence[tuple[Context, tuple[tuple[int, ...], int]]], targets: Mapping[Context, Sequence[int]]
) -> dict[Asked, float]:
    ids = torch.tensor([ids for _, (ids, _) in rows], device=model.device)
    flat = torch.tensor([row * ids.shape[1] + position for row, (_, (_, position)) in enumerate(rows)])
    asked = [(row, Asked(context, target)) for row, (context, _) in enumerate(rows) for target in targets[context]]
    of = torch.tensor([row for row, _ in asked])
    wanted = torch.tensor([one.target for _, one in asked])
    values = target_log_probabilities(model, ids, *(part.to(model.device) for part in (flat, of, wanted)))
    return dict(zip((one for _, one in asked), values.cpu().double().tolist(), strict=True))


def _text(context: Context) -> str:
    return "".join(one for one in context if isinstance(one, str))


def reading_surprisals(
    words: Sequence[ReadWord], surprisals: Callable[[Iterable[tuple[str, str]]], list[float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays, float64 [words]: the surprisal of every word, and the surprisal of the previous word (NaN
    without a previous word).
    """
    pairs = [(one.context, one.word) for one in words]
    before = [one.before for one in words if one.before is not None]
    values = surprisals([*pairs, *before])
    of_before = iter(values[len(pairs) :])
    return np.array(values[: len(pairs)]), np.array(
        [math.nan if one.before is None else next(of_before) for one in words]
    )


def gain(outcome: np.ndarray, base: np.ndarray, added: np.ndarray) -> float:
    """Return (R2 with `base` and `added` - R2 with `base`) / (1 - R2 with `base`). R2 is that of a least-squares
    regression of `outcome` with an intercept.

    `outcome` and `added` are [rows], `base` is [rows, columns]; rows with a NaN are omitted. Return NaN if no row
    remains, if all outcomes are equal, or if `base` explains all variance.
    """
    whole = np.column_stack([outcome, base, added])
    whole = whole[~np.isnan(whole).any(axis=1)]
    without, with_it = (_unexplained(whole[:, 0], whole[:, 1:end]) for end in (-1, whole.shape[1]))
    return (without - with_it) / without if without > 0 else math.nan


def _unexplained(outcome: np.ndarray, columns: np.ndarray) -> float:
    """Return 1 - R2 of a least-squares regression: the fraction of the variance of `outcome` that `columns` do not
    explain. Return NaN without rows or if all outcomes are equal.
    """
    if not len(outcome) or np.ptp(outcome) == 0:
        return math.nan
    # Some columns are products of frequencies and lengths, so columns differ by orders of magnitude. Standardise each
    # column, for numerical accuracy. R2 does not depend on the scale of a column.
    spread = columns.std(axis=0)
    scaled = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1)
    design = np.column_stack([np.ones(len(outcome)), scaled])
    left = outcome - design @ np.linalg.lstsq(design, outcome, rcond=None)[0]
    return float(left @ left / np.square(outcome - outcome.mean()).sum())


def reading_scores(words: Sequence[ReadWord], surprisal: np.ndarray, before: np.ndarray) -> dict[str, float]:
    """Return the gains in explained variance by name, as fractions: one gain for each eye-tracking measure, `rt` (the
    mean over these measures), `spr` (self-paced reading), and `reading` (the mean of `rt` and `spr`). `surprisal` and
    `before` are the surprisals of each word and of the word before it.
    """
    columns: dict[str, Any] = {name: np.array([one.numbers[name] for one in words]) for name in NUMBERS}
    columns["prev_surprisal"] = before
    of_the_word = _with_products([columns[name] for name in OF_THE_WORD])
    of_both = _with_products([columns[name] for name in (*OF_THE_WORD, *OF_THE_ONE_BEFORE)])
    gains = {name: gain(columns[name], of_the_word, surprisal) for name in EYE_TRACKING}
    eye, self_paced = math.fsum(gains.values()) / len(gains), gain(columns[SELF_PACED], of_both, surprisal)
    return {**gains, "rt": eye, "spr": self_paced, "reading": (eye + self_paced) / 2}


def _with_products(columns: Sequence[np.ndarray]) -> np.ndarray:
    return np.column_stack([*columns, *(one * other for one, other in combinations(columns, 2))])
