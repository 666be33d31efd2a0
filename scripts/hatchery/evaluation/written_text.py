"""Texts that models write: the continuation by a causal model, and subwords in readable form.

Each token of a continuation is the most probable token, or is drawn. It is predicted from all earlier tokens, whose
keys and values are cached. To draw a token, a seeded generator yields a uniform random number, which selects a token by
the cumulative probabilities. Equal model weights thus give equal texts.
"""

from collections.abc import Sequence

import numpy as np
import torch

from hatchery.evaluation.baselines.loading import BaselineTokenizer
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer

MOST_TOKENS = 20


@torch.no_grad()
def continuation(
    model: LanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    generator: np.random.Generator | None = None,
    most_tokens: int = MOST_TOKENS,
) -> list[int]:
    """Return at most `most_tokens` ids that continue `ids`, the beginning of a text.

    Without `generator`, each id is the most probable one (the first if several are equally probable); otherwise, it is
    drawn with `generator`. The continuation ends when the model predicts the end of the text or of the paragraph, or
    when the text has the model's maximum length. A model that was trained with one sentence per paragraph always
    predicts the end of the paragraph after a sentence. Other special tokens are never predicted.
    """
    limit = model.config.position_limit or len(ids) + most_tokens
    ends = {tokenizer.sep_id, tokenizer.par_id}
    forbidden = [index for index in range(tokenizer.n_special) if index not in ends]
    text, known, device = list(ids), 0, next(model.parameters()).device
    caches = [TokenCache() for _ in model.encoder.layers]
    for _ in range(min(most_tokens, limit - len(ids))):
        hidden = model.encoder.states_behind(torch.tensor([text], device=device), None, caches, known)[-1][0, -1]
        known = len(text)
        probabilities = model.logits_at(hidden).double().softmax(-1)[: tokenizer.vocabulary_size].cpu().numpy()
        probabilities[forbidden] = 0
        if generator is None:
            following = int(probabilities.argmax())
        else:
            bounds = np.cumsum(probabilities)
            following = int(np.searchsorted(bounds, generator.random() * bounds[-1], side="right"))
        if following in ends:
            break
        text.append(following)
    return text[len(ids) :]


def best_subwords(
    tokenizer: Tokenizer | BaselineTokenizer, logits: torch.Tensor, number: int
) -> list[tuple[str, float]]:
    """Return the `number` most probable subwords, in readable form, with their probabilities. `logits` is a vector with
    one value per id.

    Equally probable subwords are ordered by id. The special tokens of a Hatchery model have the probability 0. The
    special tokens of an external model are not excluded.
    """
    probabilities = logits.double().softmax(-1)
    if isinstance(tokenizer, Tokenizer):
        probabilities = probabilities[: tokenizer.vocabulary_size]
        # Special tokens mark the structure of documents and are not text, so exclude them.
        probabilities[: tokenizer.n_special] = 0
    probabilities, order = probabilities.sort(descending=True, stable=True)
    return [*zip(subword_texts(tokenizer, order[:number].tolist()), probabilities[:number].tolist(), strict=True)]


def subword_texts(tokenizer: Tokenizer | BaselineTokenizer, ids: Sequence[int]) -> list[str]:
    """Return subwords in readable form. With a tokenizer of Hatchery, an ellipsis precedes a subword that begins with a
    letter or digit and continues a word."""
    if not isinstance(tokenizer, Tokenizer):
        return [tokenizer.backend.decode([index], skip_special_tokens=False).strip() for index in ids]
    spelled = tokenizer.tokens
    return [_readable(tokenizer, index, spelled[index]) for index in ids]


def _readable(tokenizer: Tokenizer, index: int, spelled: str) -> str:
    mark = tokenizer.word_mark
    if mark.kind == "byte_level":
        text = tokenizer.decode([index])
        inside = not text[:1].isspace()
    elif mark.kind == "metaspace":
        text, inside = spelled.replace(mark.symbol, " "), not spelled.startswith(mark.symbol)
    else:
        text, inside = spelled.removeprefix(mark.symbol), spelled.startswith(mark.symbol)
    text = text.strip()
    if "\ufffd" in text:
        return "(part of a character)"
    return f"…{text}" if inside and text[:1].isalnum() else text or "(space)"
