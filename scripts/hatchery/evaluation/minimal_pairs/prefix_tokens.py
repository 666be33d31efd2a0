"""Rules of lm-evaluation-harness for the scored tokens of a text after a prompt, and for the special tokens around
texts.

White space at the end of the prompt is moved to the beginning of the text after the prompt. The prompt is then encoded
alone, and its number of tokens is the number of tokens that are not scored. Source: docs/papers/babylm-2026.md, "The
multilingual track", and the causal models of lm-evaluation-harness 0.4.13.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, SentenceModel


def behind_prefixes(
    model: SentenceModel, candidates: Sequence[Candidate], sentences: Sequence[EncodedSentence]
) -> list[EncodedSentence]:
    """Return the encoded sentences of the candidates. The field `given` of a sentence is the number of tokens of the
    candidate's prefix if the prefix is encoded without the rest of the sentence.
    """
    prefixes = [candidate.prefix.rstrip() for candidate in candidates]
    counts = token_counts(model, prefixes)
    return [
        replace(sentence, given=min(counts[prefix], len(sentence.ids)))
        for prefix, sentence in zip(prefixes, sentences, strict=True)
    ]


def token_counts(model: SentenceModel, texts: Sequence[str]) -> dict[str, int]:
    """Return the number of tokens of each text, without special tokens; an empty text has 0 tokens."""
    distinct = sorted({text for text in texts if text})
    encoded = model.encode(distinct) if distinct else []
    return {"": 0, **{text: len(one.ids) for text, one in zip(distinct, encoded, strict=True)}}


def choice_lengths(model: SentenceModel, items: Sequence[Item], blank: str = "") -> np.ndarray:
    """Return the divisors of per-token scores, int64 [I, K], for I items with up to K candidates. A divisor is the
    number of tokens of a candidate's text, minus the number of tokens of its prompt if the prompt is encoded alone.

    A divisor is at least 1, even for the missing candidates of an item with fewer than K candidates. `blank` is
    inserted before each text.
    """
    texts = [[blank + one.text for one in item.candidates] for item in items]
    prompts = [[blank + one.prefix if one.prefix else "" for one in item.candidates] for item in items]
    counts = token_counts(model, [text for row in (*texts, *prompts) for text in row])
    lengths = np.ones((len(items), max((len(row) for row in texts), default=2)), dtype=np.int64)
    for row, (wholes, given) in enumerate(zip(texts, prompts, strict=True)):
        lengths[row, : len(wholes)] = [
            max(1, counts[text] - counts[prompt]) for text, prompt in zip(wholes, given, strict=True)
        ]
    return lengths


def unknown_items(model: SentenceModel, items: Sequence[Item]) -> list[bool]:
    """Return for each item True if one of its texts contains an unknown token."""
    texts = sorted({one.text for item in items for one in item.candidates})
    if model.unknown_id is None:
        return [False] * len(items)
    has = {text: model.unknown_id in one.ids for text, one in zip(texts, model.encode(texts), strict=True)}
    return [any(has[one.text] for one in item.candidates) for item in items]


def frame_by_bos_(model: SentenceModel) -> None:
    """Set the context of an external causal model to BOS, or to EOS if the tokenizer has no BOS. Other special tokens
    of the tokenizer's template are removed.
    """
    if isinstance(model, BaselineModel) and model.architecture == "causal":
        model.frame = Frame((model.tokenizer.found("bos_token_id", "eos_token_id"),), ())
