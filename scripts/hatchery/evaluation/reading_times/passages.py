"""The words of running texts under one model: surprisal in nats, contextual entropy, and corrected word boundaries.

For a causal model, a text begins with the model's start token, and each token is predicted from all earlier tokens of
the text. If the text is longer than the model's maximum input, each token is predicted from a window of the latest
tokens before it. The window moves word by word, so that each word has the longest context that the model can read. If a
causal model has no start token, the first token of a text has no probability and adds 0 to the surprisal of the first
word.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import polars as pl
import torch

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.scoring import scoring_name, token_scores, tokens_per_batch_for
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, TokenizedModel
from hatchery.evaluation.reading_times.settings import ReadingTableSettings
from hatchery.evaluation.reading_times.table import Passage
from hatchery.evaluation.surprisal.splitting import joined_words
from hatchery.evaluation.surprisal.words import LONGEST_INPUT_TOKENS
from hatchery.evaluation.ways_of_scoring import WAYS

Model = TokenizedModel | BaselineModel
BLANKS = ("Ġ", "▁", "Ċ", "ĉ", " ", "\n", "\t")
"""First characters of tokens that begin with white space: in byte-level vocabularies, in SentencePiece vocabularies,
and plain white space.
"""
PASSAGES_AT_ONCE = 1000
"""Number of passages that are scored together; this number limits the memory for tables with many passages."""
LOGITS_AT_ONCE = 1 << 24
"""Largest number of logits whose probabilities are computed at once, in float64; this number limits the memory."""
SCHEMA = {
    "item": pl.String,
    "position": pl.Float64,
    "word": pl.String,
    "sentence": pl.String,
    "surprisal": pl.Float64,
    "entropy": pl.Float64,
    "tokens": pl.UInt32,
}


@dataclass(frozen=True)
class _Window:
    """A part of a passage that the model reads at once; `first` is the index, in the passage, of the window's first
    scored token.
    """

    passage: int
    first: int
    sentence: EncodedSentence


@dataclass(frozen=True)
class _Scored:
    """Four arrays for the N tokens of a passage, each float64 [N].

    `nats` are log-probabilities, and `entropy` are the entropies of the predicted distributions (NaN if not computed).
    `begins_before` and `begins_after` are the log-probabilities that a word begins before or after each token (0 if not
    computed).
    """

    nats: np.ndarray
    entropy: np.ndarray
    begins_before: np.ndarray
    begins_after: np.ndarray


def passage_words(
    model: Model, passages: Sequence[Passage], settings: ReadingTableSettings, tokens_per_batch: int | None = None
) -> pl.DataFrame:
    """Return a table with the columns SCHEMA and a row for each word of the passages; surprisal and entropy are in
    nats.

    Surprisal and entropy are null for a word in which no token begins. `entropy` is also null if the word's first token
    has no prediction. It is computed only if `settings.of_model` contains `entropy` or if word boundaries are
    corrected. Raises ConfigError for a model that assigns no surprisals or does not fit the settings, and
    EvaluationError naming an item that is too long for a masked model.
    """
    parts = (passages[start : start + PASSAGES_AT_ONCE] for start in range(0, len(passages), PASSAGES_AT_ONCE))
    return pl.concat(
        [pl.DataFrame(schema=SCHEMA), *(_words_of(model, part, settings, tokens_per_batch) for part in parts)]
    )


def _words_of(
    model: Model, passages: Sequence[Passage], settings: ReadingTableSettings, tokens_per_batch: int | None
) -> pl.DataFrame:
    if model.architecture == "encoder_decoder":
        raise ConfigError(
            "reading times: an encoder-decoder has no surprisals; expected a causal, masked or hybrid model"
        )
    way = scoring_name(settings.scoring, model.architecture, model.predicted_before)
    corrected, entropy = settings.word_boundaries == "corrected", "entropy" in settings.of_model
    if (corrected or entropy) and way != "left_to_right":
        key = "word_boundaries: corrected" if corrected else "of_model: entropy"
        raise ConfigError(f"{key} needs scoring from left to right, but this model is scored by {way}")
    model = with_bos(model)
    begins = begins_words(model) if corrected else None
    blank = " " * bool(model.leading_blank)
    joined = [joined_words([blank + one.words[0], *one.words[1:]], settings.joined_by) for one in passages]
    texts = [words.text for words in joined]
    encoded = model.encode(texts, words=WAYS[way].needs_words)
    encodings = model.tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    of_tokens = [np.array(words.of_tokens(one.offsets)) for words, one in zip(joined, encodings, strict=True)]
    framing = max(settings.window_margin, len(model.frame.before) + len(model.frame.after))
    most = model.longest_input or LONGEST_INPUT_TOKENS
    longest = most - framing
    if longest < 2:
        raise ConfigError(
            f"window_margin: got {settings.window_margin}, expected at most {most - 2}: the model reads at most {most} "
            "tokens"
        )
    windows = []
    for number, (sentence, owners) in enumerate(zip(encoded, of_tokens, strict=True)):
        if way != "left_to_right" and len(sentence.ids) > longest:
            raise EvaluationError(
                f"item {passages[number].item}: becomes {len(sentence.ids):,} tokens, expected at most {longest:,} for "
                "a masked model"
            )
        windows += _windows(number, sentence, owners, longest, bool(model.frame.before) or way != "left_to_right")
    scored = _scored(model, windows, [len(one.ids) for one in encoded], way, begins, entropy, tokens_per_batch)
    rows = (
        _rows(passage, owners, values, sentence, begins)
        for passage, owners, values, sentence in zip(passages, of_tokens, scored, encoded, strict=True)
    )
    return pl.concat(rows, rechunk=True)


def with_bos(model: Model) -> Model:
    """Return an external causal model for which BOS is the only special token before a text. Without BOS in the
    tokenizer, no special token precedes a text. Other models are returned unchanged.
    """
    if not isinstance(model, BaselineModel) or model.architecture != "causal":
        return model
    beginning = model.tokenizer.bos_id
    framed = copy.copy(model)
    framed.frame = Frame(() if beginning is None else (beginning,), ())
    return framed


def begins_words(model: Model) -> np.ndarray:
    """Return a mask, bool [V], that is True for tokens that begin with white space, and for special tokens, because a
    special token ends the text and thus the last word. Raises ConfigError if no token begins with white space.
    """
    backend = model.tokenizer.backend
    begins = np.zeros(model.vocabulary_size, dtype=bool)
    for token, number in backend.get_vocab().items():
        if number < len(begins):
            begins[number] = token.startswith(BLANKS)
    if not begins.any():
        raise ConfigError(
            "word_boundaries: corrected needs a tokenizer whose tokens begin with the space before a word; "
            "this tokenizer has no such token"
        )
    special = [number for number, token in backend.get_added_tokens_decoder().items() if token.special]
    begins[[number for number in special if number < len(begins)]] = True
    return begins


def _windows(
    number: int, sentence: EncodedSentence, owners: np.ndarray, longest: int, has_beginning: bool
) -> list[_Window]:
    """Return the windows of a passage. Each token is scored in exactly one window, except that the first token is
    scored in no window if the model has no start token.
    """
    ids, length = sentence.ids, len(sentence.ids)
    if length <= longest:
        pieces = [(0, length)]
    else:
        ends = [*(np.flatnonzero(np.diff(owners)) + 1).tolist(), length]
        fitting = [end for end in ends if end <= longest]
        first = fitting[-1] if fitting else 0
        pieces = [(0, first)] if first else []
        starts = [first, *(end for end in ends if end > first)]
        for start, end in pairwise(starts):
            # A word longer than half of a window is divided into parts of this length.
            most = max(1, longest // 2)
            pieces += [(at, min(at + most, end)) for at in range(start, end, most)]
    windows = []
    for start, end in pieces:
        begin = max(0, end - longest)
        given = start - begin
        if not has_beginning and start == 0:
            given, start = 1, 1
        if end > start:
            windows.append(
                _Window(
                    number, start, EncodedSentence(ids[begin:end], sentence.words and sentence.words[begin:end], given)
                )
            )
    return windows


def _scored(
    model: Model,
    windows: Sequence[_Window],
    lengths: Sequence[int],
    way: str,
    begins: np.ndarray | None,
    entropy: bool,
    tokens_per_batch: int | None,
) -> list[_Scored]:
    """Return log-probabilities, entropies and word boundaries for all tokens of all passages. A token that no window
    scores has the log-probability 0.
    """
    scored = [_Scored(np.zeros(n), np.full(n, np.nan), np.zeros(n), np.zeros(n)) for n in lengths]
    sentences = [one.sentence for one in windows]
    for window, nats in zip(windows, token_scores(model, sentences, way, tokens_per_batch), strict=True):
        scored[window.passage].nats[window.first : window.first + len(nats)] = nats
    if begins is not None or entropy:
        budget = tokens_per_batch_for(model, tokens_per_batch)
        for window, (entropies, masses) in zip(windows, _distributions(model, sentences, begins, budget), strict=True):
            values, own = scored[window.passage], slice(window.first, window.first + window.sentence.scored)
            values.entropy[own] = entropies[:-1]
            values.begins_before[own], values.begins_after[own] = masses[:-1], masses[1:]
    return scored


def _distributions(
    model: Model, sentences: Sequence[EncodedSentence], begins: np.ndarray | None, tokens_per_batch: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each sentence, the entropy of the next token (nats) and the log-probability that the next token is
    one of the tokens marked in `begins`.

    Each of the two arrays is float64 [n + 1] for a sentence with n scored tokens: the values before every scored token,
    and the value after the last token.
    """
    before = model.frame.before
    mask = None if begins is None else torch.from_numpy(begins).to(model.device)
    summaries: dict[EncodedSentence, tuple[np.ndarray, np.ndarray]] = {}
    distinct = sorted(set(sentences), key=lambda one: (len(one.ids), one.ids, one.given))
    for length, bucket in groupby(distinct, key=lambda one: len(one.ids)):
        listed = list(bucket)
        at_once = max(1, tokens_per_batch // (len(before) + length))
        for start in range(0, len(listed), at_once):
            rows = listed[start : start + at_once]
            ids = torch.tensor([[*before, *one.ids] for one in rows], device=model.device)
            # The logits that predict a token are at the position before this token. The first scored token therefore
            # needs the position before `given`.
            places = [
                [row * ids.shape[1] + at for at in range(len(before) + one.given - 1, ids.shape[1])]
                for row, one in enumerate(rows)
            ]
            flat = torch.tensor([place for own in places for place in own], device=model.device)
            most = max(1, LOGITS_AT_ONCE // model.vocabulary_size)
            values = torch.cat([_summaries(model, ids, part, mask) for part in flat.split(most)], dim=1)
            ends = np.cumsum([len(own) for own in places])[:-1]
            entropies, masses = values.cpu().numpy()
            summaries |= dict(
                zip(rows, zip(np.split(entropies, ends), np.split(masses, ends), strict=True), strict=True)
            )
    return [summaries[one] for one in sentences]


@torch.inference_mode()
def _summaries(model: Model, ids: torch.Tensor, rows: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Return two values for each of the M positions `rows`, float64 [2, M]: the entropy of the next token, and the
    log-probability that the next token is marked in `mask` (0 if `mask` is None).
    """
    log_probabilities = torch.log_softmax(model.logits_at(ids, rows).double(), dim=-1)
    entropy = -(log_probabilities.exp() * log_probabilities.clamp(min=torch.finfo(torch.float64).min)).sum(dim=-1)
    if mask is None:
        return torch.stack([entropy, torch.zeros_like(entropy)])
    return torch.stack([entropy, torch.logsumexp(log_probabilities[:, mask], dim=-1)])


def _rows(
    passage: Passage, owners: np.ndarray, values: _Scored, sentence: EncodedSentence, begins: np.ndarray | None
) -> pl.DataFrame:
    count = len(passage.words)
    tokens = np.bincount(owners, minlength=count)
    nats = np.bincount(owners, weights=-values.nats, minlength=count)
    firsts = np.searchsorted(owners, np.arange(count), side="left")
    lasts = np.searchsorted(owners, np.arange(count), side="right") - 1
    entropy: list[float | None] = []
    surprisal: list[float | None] = []
    for word in range(count):
        if not tokens[word]:
            entropy.append(None)
            surprisal.append(None)
            continue
        first, last = firsts[word], lasts[word]
        nats_of_word = float(nats[word])
        if begins is not None:
            # If the word's first token can begin a word, condition on a word boundary before it. A text's first word
            # may have no leading space, so its first token may not begin a word.
            nats_of_word += float(values.begins_before[first]) if begins[sentence.ids[first]] else 0.0
            nats_of_word -= float(values.begins_after[last])
        surprisal.append(nats_of_word)
        entropy.append(None if np.isnan(values.entropy[first]) else float(values.entropy[first]))
    return pl.DataFrame(
        {
            "item": [passage.item] * count,
            "position": passage.positions,
            "word": passage.words,
            "sentence": passage.sentences,
            "surprisal": surprisal,
            "entropy": entropy,
            "tokens": tokens.tolist(),
        },
        schema=SCHEMA,
    )
