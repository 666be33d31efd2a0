"""A few sentences of a parallel corpus, and what a model that translates makes of them."""

from collections.abc import Iterator

import torch

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.filled_sentences.choice import candidates, is_readable
from hatchery.evaluation.filled_sentences.results import Answer, Example
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.settings import pretrain_settings
from hatchery.translation.translate import translate


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
