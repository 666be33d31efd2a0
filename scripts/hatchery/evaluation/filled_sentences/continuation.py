"""How a causal model goes on with the beginning of a sentence, and how one that translates translates a few.

Every token of a continuation, the most probable or a drawn one, is computed once, and predicted from all before it.
Draws are uniform numbers of a seeded generator, looked up in the cumulative probabilities, so that the same weights
give the same text.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.filled_sentences.choice import candidates, is_readable
from hatchery.evaluation.filled_sentences.results import Answer, Example
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.translate import translate

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


def translated_sentences(
    model: TranslationModel, tokenizer: Tokenizer, pretraining: Manifest, corpus: Manifest, number: int
) -> tuple[str, list[Example]]:
    """The split that is taken, and at most `number` of its pairs with the model's own translation.

    `model` is in evaluation mode and searches as in its training, whose manifest is `pretraining`. Raises
    EvaluationError for the manifest of another objective, and CorpusError for damaged shards.
    """
    settings = pretrain_settings(pretraining.settings)
    objective = settings.objective
    if not isinstance(objective, TranslationSettings):
        raise EvaluationError(f"{pretraining.path}: this model was not trained with task translation")
    source, target = (0, 1) if objective.direction == "forward" else (1, 0)

    def readable_pair(text: str) -> Iterator[str]:
        sides = text.split("\n")
        if len(sides) == 2 and is_readable(sides[source]):
            yield text

    split, texts = candidates(corpus, number, readable_pair)
    pairs = [text.split("\n") for text in texts]
    sources = [pair[source] for pair in pairs]
    device = torch.device("cpu")
    found = translate(model, tokenizer, sources, objective.search, settings.sequence_length, device)
    return split, [
        Example(pair[source], pair[target], (Answer(text),)) for pair, text in zip(pairs, found, strict=True)
    ]
