"""Use a pretrained model interactively: fill a gap, continue a text, and score sentences and words.

The package `hatchery`, `make try` and the predictions on the results page use this module. Its scores equal those of
the evaluations, because the same code computes them: `minimal_pairs.scoring` for sentences, and `surprisal.words` for
words. Only left-to-right scores may differ by rounding.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np
import polars as pl
import torch

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.minimal_pairs.scoring import required_architecture, sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, ModuleModel
from hatchery.evaluation.pretrained import Pretrained
from hatchery.evaluation.runtime import prepare_device
from hatchery.evaluation.sentences_file import GAP
from hatchery.evaluation.surprisal.texts import plain_texts
from hatchery.evaluation.surprisal.words import Alphabet, word_surprisals
from hatchery.evaluation.ways_of_scoring import unlearned
from hatchery.evaluation.written_text import MOST_TOKENS, best_subwords, continuation, subword_texts
from hatchery.settings.base import DeviceName
from hatchery.settings.problems import ALLOWED

GAPS = re.compile(r"_{2,}")
# Pattern of a gap inside a word, that is, next to a letter or digit. The pattern excludes scripts that write no spaces
# between words: U+0E00 to U+109F (Thai, Lao, Tibetan, Myanmar), U+1780 to U+17FF (Khmer), and all characters from
# U+2E80 on (such as Chinese and Japanese).
_IN_A_WORD = re.compile(
    r"[^\W_\u0e00-\u109f\u1780-\u17ff\u2e80-\U0010ffff]_{2,}|_{2,}[^\W_\u0e00-\u109f\u1780-\u17ff\u2e80-\U0010ffff]"
)
# This word replaces each gap while the sentence is tokenized. Nearly every vocabulary contains this word.
_IN_A_GAP = "a"


@dataclass(frozen=True)
class HiddenStates:
    """Hidden states of all layers for one sentence.

    `states` is float32 [states, T, width] for a sentence of T tokens: the embedding's output, then each layer's output.
    With the layer weighting `weighted_output`, the last entry is the input of task heads: the weighted sum of all
    layers. For a user's module, `states` are the tensors that its method `hidden_states` returns. `tokens` are the
    texts of the T tokens, special tokens included. `attentions` float32 [layers, H, T, T] are the attention weights of
    the H heads, summing to 1 over the last axis; None for models of `transformers` and for a user's module.
    """

    tokens: tuple[str, ...]
    states: np.ndarray
    attentions: np.ndarray | None


class AskedModel:
    """A pretrained model, trained by Hatchery or external, with its tokenizer."""

    def __init__(self, opened: Pretrained, device: DeviceName = "cpu") -> None:
        """Move the model to `device`.

        Raises EvaluationError for a translation model, and ConfigError for an unavailable GPU or an unknown device.
        """
        if device not in get_args(DeviceName):
            raise ConfigError(f"device: got {device!r}{ALLOWED}: {', '.join(get_args(DeviceName))}")
        self._opened, self._model = opened, opened.asked(prepare_device(device))
        self._is_ours = isinstance(self._model, HatcheryModel)
        self.kinds: tuple[str, ...] = opened.use.learned
        """Kinds of prediction that the model was trained for: `masked`, `causal`, or `masked` and `causal`. An external
        model has one kind: `masked`, `causal` or `encoder_decoder`.
        """
        self._also: tuple[str, ...] = opened.use.kinds

    @property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer: a tokenizer of Hatchery or of `transformers`."""
        return self._model.tokenizer

    @property
    def longest_input(self) -> int | None:
        """Largest number of tokens in an input, special tokens included; None if unlimited."""
        model = self._model
        return model.network.config.position_limit if isinstance(model, HatcheryModel) else model.longest_input

    @property
    def fills_gaps(self) -> bool:
        """Return True if the model has a mask token, so that `fill` can fill gaps."""
        return self._model.mask_id is not None

    @property
    def continues(self) -> bool:
        """Return True if `continuation` can continue a text. This is true for a causal or hybrid model that Hatchery
        trained, but not for an ensemble, an external model or a user's module.
        """
        return self._is_ours and "causal" in self.kinds

    def scores(self, sentences: Sequence[str], scoring: str = "auto") -> pl.DataFrame:
        """Return for each sentence a row with `sentence`, `score` (natural log-probability) and `tokens` (number of
        tokens). A single text counts as one sentence.

        With "auto", the score is the pseudo-log-likelihood for masked and hybrid models, and the left-to-right
        log-likelihood for all other models; docs/evaluation.md lists the other scoring methods. Raises EvaluationError
        for a sentence without tokens. Raises EvaluationError naming the position, counted from 1, of an element of
        `sentences` that is not a text. Raises ConfigError for a scoring method that does not fit the model.
        """
        sentences, model = plain_texts(sentences), self._asked_as(scoring)
        values = token_scores(model, model.encode(sentences, words=True), scoring, padded=True)
        columns = {"sentence": sentences, "score": sentence_scores(values), "tokens": [len(v) for v in values]}
        return pl.DataFrame(columns, schema={"sentence": pl.String, "score": pl.Float64, "tokens": pl.Int64})

    def surprisals(self, sentences: Sequence[str], scoring: str = "auto") -> pl.DataFrame:
        """Return the surprisal of every word in bits, one row per word; see
        `evaluation.surprisal.words.word_surprisals`."""
        return word_surprisals(
            self._asked_as(scoring),
            plain_texts(sentences),
            scoring=scoring,
            place=lambda index: f"sentence {index + 1:,}",
            alphabet=self._alphabet,
        )

    @torch.no_grad()
    def fill(self, sentence: str, number: int = 5) -> pl.DataFrame:
        """Return the `number` most probable subwords for each gap (`____`) of a sentence.

        Each row has `gap` and `rank` (both counted from 1), `text` (the subword, see `subword_texts`) and `probability`
        (0 to 1). Raises ConfigError for a model without a mask token and for a `number` below 1. Raises EvaluationError
        for a sentence without a gap, for a gap inside a word, and for a `sentence` that is not a text.
        """
        model = self._model
        if number < 1:
            raise ConfigError(f"number: got {number}, expected at least 1")
        if model.mask_id is None:
            other = (
                "`continuation` for the rest of a text" if self.continues else "`surprisals` for the words of a text"
            )
            raise ConfigError(f"fill: this model predicts from left to right; use {other}")
        ids, gaps = self._with_gaps(sentence, model.mask_id)
        logits = model.logits_at(torch.tensor([ids], device=model.device), torch.tensor(gaps, device=model.device))
        rows = [
            {"gap": gap, "rank": rank, "text": text, "probability": probability}
            for gap, own in enumerate(logits.cpu(), start=1)
            for rank, (text, probability) in enumerate(best_subwords(model.tokenizer, own, number), start=1)
        ]
        return pl.DataFrame(rows)

    def continuation(self, beginning: str, seed: int | None = None, most_tokens: int = MOST_TOKENS) -> str:
        """Return a causal model's continuation: the most probable token at each step, or tokens sampled with `seed`.

        Generation stops when the model predicts the end of the text or of the paragraph, after `most_tokens` tokens, or
        when the model's maximum input length is reached. Raises ConfigError unless `continues` is true, and
        EvaluationError if `beginning` is not a text.
        """
        model = self._model
        if isinstance(model, ModuleModel):
            raise _logits_alone(model, "continuation")
        if not (isinstance(model, HatcheryModel) and self.continues):
            raise ConfigError(
                "continuation: expected a single model that Hatchery trained to predict the next token "
                "(causal or hybrid)"
            )
        (ids,) = model.tokenizer.encode_sentences(_one_text(beginning))
        generator = None if seed is None else np.random.Generator(np.random.Philox(seed))
        start = [model.tokenizer.cls_id, *ids]
        return model.tokenizer.decode(
            continuation(model.network, model.tokenizer, start, generator, most_tokens)
        ).strip()

    @torch.no_grad()
    def hidden_states(self, sentence: str) -> HiddenStates:
        """Return the hidden states of all layers for one sentence, and the attention weights of all heads.

        Raises EvaluationError for a user's module without a method `hidden_states`, for an ensemble, and for a
        `sentence` that is not a text.
        """
        model = self._model
        (encoded,) = model.encode(_one_text(sentence))
        ids = [*model.frame.before, *encoded.ids, *model.frame.after]
        inputs = torch.tensor([ids], device=model.device)
        attentions = None
        if isinstance(model, HatcheryModel):
            causal, layers = model.architecture == "causal", list[torch.Tensor]()
            states = model.network.encoder(inputs, causal=causal, probabilities=layers)
            attentions = torch.cat(layers).float().cpu().numpy()
        else:
            states = self._opened.encoder()[0](inputs)
        tokens = tuple(subword_texts(model.tokenizer, ids))
        return HiddenStates(tokens, torch.cat(states).float().cpu().numpy(), attentions)

    @cached_property
    def _alphabet(self) -> Alphabet:
        """Return the characters that occur in the model's vocabulary. They are cached, because decoding a vocabulary
        takes longer than scoring a sentence.
        """
        return Alphabet(self._model)

    def _asked_as(self, scoring: str) -> HatcheryModel | ModuleModel | BaselineModel:
        """Return the model for the scoring method `scoring`. If the method is causal, a hybrid model predicts from left
        to right.

        Raises ConfigError for a scoring method that the model was not trained for.
        """
        if reason := unlearned(scoring, self._also, self.kinds):
            raise ConfigError(f"scoring: {reason}; use auto")
        causal = self._model.left_to_right
        return causal if causal and required_architecture(scoring, self.kinds) == "causal" else self._model

    def _with_gaps(self, sentence: str, mask_id: int) -> tuple[list[int], list[int]]:
        """Return the model input for a sentence with gaps, as token ids with special tokens, and the positions of the
        mask tokens in this input. Each gap becomes one mask token. Raises EvaluationError for a sentence without a gap,
        and for a gap within a word.
        """
        (sentence,) = _one_text(sentence)
        gaps = [match.span() for match in GAPS.finditer(sentence)]
        if not gaps:
            raise EvaluationError(f"{sentence!r}: got no gap, expected {GAP} in place of a word")
        if _IN_A_WORD.search(sentence):
            raise EvaluationError(f"{sentence!r}: {GAP} represents a whole word; write spaces around {GAP}")
        text, spans, done = "", [], 0
        for start, end in gaps:
            text += sentence[done:start]
            spans.append((len(text), len(text) + len(_IN_A_GAP)))
            text, done = text + _IN_A_GAP, end
        text += sentence[done:]
        encoding = self._model.tokenizer.backend.encode(text, add_special_tokens=False)
        ids, places = list(self._model.frame.before), list[int]()
        waiting = list(spans)
        for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            gap = waiting[0] if waiting else (len(text) + 1, 0)
            if start < gap[1] and end > gap[0]:
                if text[start:end].strip() != _IN_A_GAP:
                    raise EvaluationError(f"{sentence!r}: {GAP} represents a whole word; write spaces around {GAP}")
                places.append(len(ids))
                ids.append(mask_id)
                waiting.pop(0)
            # A token that consists only of the space before a gap is dropped, because the mask token already includes
            # this space.
            elif end != gap[0] or not text[start:end].isspace():
                ids.append(index)
        if waiting:
            raise EvaluationError(f"{sentence!r}: the tokenizer returns no token for {GAP}")
        return [*ids, *self._model.frame.after], places


def _logits_alone(model: ModuleModel, question: str) -> ConfigError:
    name = type(model.network.module).__name__
    return ConfigError(
        f"{question}: got {name}, a module of your own code, expected a model of Hatchery or of transformers"
    )


def _one_text(sentence: str) -> list[str]:
    """Return a list that contains only `sentence`. Raises EvaluationError if `sentence` is not a text but, for example,
    a list of sentences."""
    return plain_texts([sentence])
