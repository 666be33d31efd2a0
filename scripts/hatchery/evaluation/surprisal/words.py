"""The surprisal of every word of some texts: -log2 of its probability, in bits.

A word is what stands between white space, with its punctuation, its apostrophes and all pieces of a compound, or what a
separator marks. Its surprisal is the sum over its tokens. Every scored token belongs to exactly one word, so the sum
over the words of a text is minus its score (`ways_of_scoring.WAYS`) in bits.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.scoring import scoring_name, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, HatcheryModel
from hatchery.evaluation.surprisal.splitting import Words, split_words
from hatchery.evaluation.ways_of_scoring import WAYS
from hatchery.progress import Progress

LONGEST_INPUT_TOKENS = 1024
"""Of a model without a limit of its own. What a model sees of a longer text, `windows` says."""

SCHEMA = {
    "sentence": pl.UInt32,
    "position": pl.UInt32,
    "word": pl.String,
    "surprisal": pl.Float64,
    "tokens": pl.UInt32,
    "unknown": pl.Boolean,
}
"""Number of the text and place of the word in it, both from 1; the word; its surprisal in bits, null where no token
begins in it; its tokens; and whether one of them is the token for what the tokenizer cannot write."""


def windows(sentence: EncodedSentence, longest: int) -> Iterator[EncodedSentence]:
    """A text as inputs of at most so many tokens, of which each token is scored once.

    From the second input on, the first half is given: so a token of a long text sees half as many tokens before it, at
    least.
    """
    length, step = len(sentence.ids), longest - longest // 2
    yield EncodedSentence(sentence.ids[:longest], sentence.words and sentence.words[:longest])
    for end in range(longest + step, length + step, step):
        first, last = end - longest, min(end, length)
        yield EncodedSentence(sentence.ids[first:last], sentence.words and sentence.words[first:last], longest - step)


def word_surprisals(
    model: HatcheryModel | BaselineModel,
    texts: Sequence[str],
    *,
    separator: str | None = None,
    scoring: str = "auto",
    leading_blank: bool = False,
    tokens_per_batch: int | None = None,
    place: Callable[[int], str] = lambda index: f"text {index + 1:,}",
) -> pl.DataFrame:
    """The words of the texts with their surprisal, a row each; SCHEMA says the columns.

    `scoring` is a way of scoring (WAYS). `auto` is the probability of a word after those before it for a causal
    model; for a masked or hybrid one it is that of each token with the rest of the text in sight, and a hybrid one
    that was loaded to be asked from left to right is causal. `leading_blank` puts a blank in front of every text,
    unless the model says itself whether there is one.

    A text that is longer than an input of a causal model is scored in `windows`. Raises EvaluationError, naming the
    text by `place` of its index, for a text without words, and for one that is longer than an input of a masked model;
    ConfigError for an encoder-decoder, and for a way of scoring that does not fit the model.
    """
    if model.architecture == "encoder_decoder":
        raise ConfigError("surprisals: an encoder-decoder has none here; expected a causal, masked or hybrid model")
    chosen = scoring_name(scoring, model.architecture)
    split = [split_words(text, separator) for text in texts]
    for index, words in enumerate(split):
        if not words.spans:
            raise EvaluationError(f"{place(index)}: there is no word in it")
    blank = " " * (leading_blank if model.leading_blank is None else model.leading_blank)
    written = [blank + words.text for words in split]
    encoded = model.encode(written, words=WAYS[chosen].needs_words)
    framing = len(model.frame.before) + len(model.frame.after)
    longest = (model.longest_input or LONGEST_INPUT_TOKENS) - framing
    inputs: list[EncodedSentence] = []
    of: list[int] = []
    for index, sentence in enumerate(encoded):
        if not sentence.ids:
            raise EvaluationError(f"{place(index)}: the tokenizer makes no token of it")
        if len(sentence.ids) > longest and model.architecture == "masked":
            raise EvaluationError(
                f"{place(index)}: becomes {len(sentence.ids):,} tokens, expected at most {longest:,} for a masked "
                "model: put every sentence on a line of its own"
            )
        parts = list(windows(sentence, longest))
        inputs += parts
        of += [index] * len(parts)
    total = sum(WAYS[chosen].rows(one.scored) * (len(one.ids) + framing) for one in set(inputs))
    with Progress(total, "surprisals", "tokens") as progress:
        scores = token_scores(model, inputs, chosen, tokens_per_batch, progress.update)
    nats: list[list[np.ndarray]] = [[] for _ in split]
    for index, values in zip(of, scores, strict=True):
        nats[index].append(values)
    encodings = model.tokenizer.backend.encode_batch(written, add_special_tokens=False)
    offsets = [[(max(0, a - len(blank)), max(0, b - len(blank))) for a, b in one.offsets] for one in encodings]
    rows = (
        _table(index, words, places, np.concatenate(parts), np.array(sentence.ids) == model.tokenizer.unknown_id)
        for index, (words, places, parts, sentence) in enumerate(zip(split, offsets, nats, encoded, strict=True))
    )
    return pl.concat([pl.DataFrame(schema=SCHEMA), *rows])


def _table(
    index: int, words: Words, offsets: Sequence[tuple[int, int]], nats: np.ndarray, unknown: np.ndarray
) -> pl.DataFrame:
    """The rows of one text: `nats` are the log-probabilities of its tokens."""
    word, count = np.array(words.of_tokens(offsets)), len(words.spans)
    tokens = np.bincount(word, minlength=count)
    bits = np.bincount(word, weights=-nats.astype(np.float64), minlength=count) / math.log(2)
    columns = {
        "sentence": np.full(count, index + 1),
        "position": np.arange(1, count + 1),
        "word": [words.text[start:end] for start, end in words.spans],
        "surprisal": [value if n else None for value, n in zip(bits.tolist(), tokens, strict=True)],
        "tokens": tokens,
        "unknown": np.bincount(word, weights=unknown, minlength=count) > 0,
    }
    return pl.DataFrame(columns, schema=SCHEMA)
