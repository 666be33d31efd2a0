"""How a causal model goes on with the beginning of a sentence: by its most probable tokens, or by drawn ones.

Every token is computed once, and predicted from all before it. Draws are uniform numbers of a seeded generator, looked
up in the cumulative probabilities, so that the same weights give the same text.
"""

from collections.abc import Sequence

import numpy as np
import torch

from hatchery.evaluation.filled_sentences.results import Answer, Example
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.token_cache import TokenCache
from hatchery.tokenization.tokenizer_file import Tokenizer

MOST_TOKENS = 20
SEED = 20_231_106


def continued_sentence(model: LanguageModel, tokenizer: Tokenizer, sentence: str) -> Example:
    """The first half of the words of `sentence`, how it goes on, and two ways of `model`, in evaluation mode."""
    words = sentence.split()
    half = (len(words) + 1) // 2
    before, original = " ".join(words[:half]), " ".join(words[half:])
    (ids,) = tokenizer.encode_sentences([before])
    answers = (
        Answer(tokenizer.decode(continuation(model, tokenizer, [tokenizer.cls_id, *ids], generator)).strip())
        for generator in (None, np.random.Generator(np.random.Philox(SEED)))
    )
    return Example(before, original, tuple(answers))


@torch.no_grad()
def continuation(
    model: LanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    generator: np.random.Generator | None = None,
    most_tokens: int = MOST_TOKENS,
) -> list[int]:
    """The ids that follow `ids`, which begin with the start of a text, `most_tokens` of them at most.

    The most probable one each time (of equally probable ones the first), or drawn by `generator`. The end of the text
    or of the paragraph ends them: where every sentence is a paragraph of its own, a model learns that a paragraph ends
    behind each, and has nothing to say in its place. Other special tokens are never written.
    """
    limit = model.config.position_limit or len(ids) + most_tokens
    ends = {tokenizer.sep_id, tokenizer.par_id}
    forbidden = [index for index in range(tokenizer.n_special) if index not in ends]
    text, known = list(ids), 0
    caches = [TokenCache() for _ in model.encoder.layers]
    for _ in range(min(most_tokens, limit - len(ids))):
        hidden = model.encoder.states_behind(torch.tensor([text]), None, caches, known)[-1][0, -1]
        known = len(text)
        probabilities = model.logits_at(hidden).double().softmax(-1)[: tokenizer.vocabulary_size].numpy()
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
