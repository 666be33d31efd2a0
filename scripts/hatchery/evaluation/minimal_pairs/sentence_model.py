"""What a language model must offer to have sentences scored: ids with their frame, and logits where they are wanted.

Our own models, modules that a user wrote and models of others (`evaluation.baselines`) come behind this one interface,
so every way of scoring is written once. `HatcheryModel` is ours, `ModuleModel` the user's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import torch
from torch import Tensor

from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.encoder import LtgEncoder
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.own_model import OwnModel

# Labelled positions whose logits are in memory together: the widest product of the model.
ROWS_AT_ONCE = 2048


Temperatures = tuple[float, ...]
AT_ONE: Temperatures = (1.0,)


@dataclass(frozen=True)
class Frame:
    """The special tokens around a sentence, which are seen by the model and never scored."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence's ids without special tokens, and for each the number of the word that it belongs to.

    A word is a pre-token of the tokenizer (the library's word ids): what Kauf & Ivanova (2023) mask together, with
    punctuation apart. `words` is None where nobody asked. The first `given` tokens are seen and not scored.
    """

    ids: tuple[int, ...]
    words: tuple[int, ...] | None = None
    given: int = 0

    @property
    def scored(self) -> int:
        """The number of its tokens that are scored."""
        return len(self.ids) - self.given


class SentenceModel(Protocol):
    """A language model in evaluation mode, in float32, on `device`."""

    architecture: Architecture
    device: torch.device
    frame: Frame
    """Masked models: around the sentence. Others: `before` is the context of the first token, `after` is empty."""
    mask_id: int | None
    """The mask token of a masked model."""
    predicted_before: int
    """How many positions before a hidden token it is predicted; 0 of others than masked models."""
    unknown_id: int | None
    """The token for text that the tokenizer cannot write; None if it can write all text."""
    vocabulary_size: int
    longest_input: int | None
    """Tokens with special ones that an input may have; None: no limit of its own."""
    leading_blank: bool | None
    """Whether sentences of minimal pairs get a blank in front; None: as their suite says."""

    @property
    def left_to_right(self) -> "SentenceModel | None":
        """The same model asked from left to right, where a masked one was trained for that, too."""
        ...

    def encode(
        self,
        sentences: Sequence[str],
        words: bool = False,
        given: Sequence[int] | None = None,
        official: bool = False,
    ) -> list[EncodedSentence]:
        """Sentences as ids; special tokens spelled out in a text are text.

        Of each, so many characters are given: tokens that end within them are not scored. `official` counts these
        tokens as BabyLM's code does (`given_tokens`).
        """
        ...

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at the flat positions `rows` int64 [M] (b * T + t) of unpadded `input_ids` int64 [B, T]."""
        ...

    @property
    def shares_prefixes(self) -> bool:
        """Whether texts from left to right can go on from what they share (`logits_behind`)."""
        ...

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at `rows` int64 [M] of prefixes int64 [G, P] and of what follows them, int64 [S, R].

        `of` int64 [S] has the prefix of each text. Rows count through the positions of all prefixes, then through those
        of the texts behind them.
        """
        ...

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits [N, V] and labels int64 [N], part by part, where `batch`, on the CPU, has labels.

        The batch is one of the training examples' (`input_ids`, `attention_mask`, `labels`).
        """
        ...

    @property
    def output_bias(self) -> Tensor | None:
        """The bias [V] of the output layer; None: without, or not told apart from the rest."""
        ...


class WithTokenizer:
    """A network with a tokenizer of ours, moved to `device` in evaluation mode."""

    network: Any
    longest_input: int | None = None
    leading_blank: bool | None = None

    def __init__(
        self,
        network: Any,
        tokenizer: Tokenizer,
        device: torch.device,
        architecture: Architecture,
        predicted_before: int = 0,
    ) -> None:
        """`architecture` is what the model is asked as. A hidden token is predicted so many positions before it."""
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.device = device
        self.architecture: Architecture = architecture
        is_causal = architecture == "causal"
        self.predicted_before = 0 if is_causal else predicted_before
        self.frame = Frame((tokenizer.cls_id,), () if is_causal else tuple(tokenizer.end_ids))
        self.mask_id: int | None = None if is_causal else tokenizer.mask_id
        self.unknown_id: int | None = tokenizer.unknown_id
        self.vocabulary_size = network.config.vocab_size

    @property
    def left_to_right(self) -> Self | None:
        """A hybrid model as a causal one; None of others."""
        return type(self)(self.network, self.tokenizer, self.device, "causal") if self.predicted_before else None

    def encode(
        self,
        sentences: Sequence[str],
        words: bool = False,
        given: Sequence[int] | None = None,
        official: bool = False,
    ) -> list[EncodedSentence]:
        """Sentences as ids, without normalisation beyond the tokenizer's."""
        if not words and not official and not any(given or ()):
            return [EncodedSentence(tuple(ids)) for ids in self.tokenizer.encode_sentences(sentences)]
        encodings = self.tokenizer.backend.encode_batch(list(sentences), add_special_tokens=False)
        return [
            EncodedSentence(
                tuple(encoding.ids),
                word_numbers(encoding.word_ids) if words else None,
                given_tokens(encoding.offsets, characters, official),
            )
            for encoding, characters in zip(encodings, given or [0] * len(encodings), strict=True)
        ]


class HatcheryModel(WithTokenizer):
    """A language model of ours."""

    network: LanguageModel

    def __init__(
        self,
        network: LanguageModel,
        tokenizer: Tokenizer,
        device: torch.device,
        architecture: Architecture | None = None,
        predicted_before: int = 0,
    ) -> None:
        """`architecture` is by default what the model was trained as."""
        own: Architecture = "causal" if network.causal else "masked"
        super().__init__(network, tokenizer, device, architecture or own, predicted_before)

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at `rows`; the head, the widest product of the model, runs on these alone."""
        return self.network.logits_at(self._hidden_at(input_ids, rows))

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits [N, V] and labels int64 [N] of at most ROWS_AT_ONCE labelled positions at a time."""
        hidden, targets = self.network.labelled_hidden(batch, self.device)
        for part, wanted in zip(hidden.split(ROWS_AT_ONCE), targets.split(ROWS_AT_ONCE), strict=True):
            yield self.network.logits_at(part), wanted

    @property
    def output_bias(self) -> Tensor | None:
        """The bias [V] of the output layer; None: without."""
        return self.network.output_layer[1]

    def features_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """What the output matrix is multiplied with at `rows`: float32 [M, D]."""
        return self.network.head.features(self._hidden_at(input_ids, rows))

    @property
    def shares_prefixes(self) -> bool:
        """True of models that keep the keys and values of a text."""
        return self.architecture == "causal" and isinstance(self.network.encoder, LtgEncoder)

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at `rows` of prefixes and of what follows them."""
        return self.network.logits_at(self._hidden_behind(prefixes, of, rest, rows))

    def features_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """What the output matrix is multiplied with at `rows` of prefixes and of what follows them: float32 [M, D]."""
        return self.network.head.features(self._hidden_behind(prefixes, of, rest, rows))

    def _hidden_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        encoder = self.network.encoder
        assert isinstance(encoder, LtgEncoder), "others keep nothing"
        caches = [TokenCache() for _ in range(encoder.n_layers)]
        states = encoder.states_behind(prefixes, None, caches, 0)[-1].flatten(0, 1)
        if rest.shape[1]:
            whole = torch.cat([prefixes.index_select(0, of), rest], dim=1)
            kept = [cache.rows(of) for cache in caches]
            behind = encoder.states_behind(whole, None, kept, prefixes.shape[1])[-1]
            states = torch.cat([states, behind.flatten(0, 1)])
        return states.index_select(0, rows)

    def _hidden_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        # A causal model is asked at every position.
        is_causal = self.architecture == "causal"
        rows = rows - self.predicted_before if self.predicted_before else rows
        return self.network.encoder.hidden_at(input_ids, None, rows, causal=is_causal, few=not is_causal)


class ModuleModel(WithTokenizer):
    """A module that a user wrote, which computes the logits of all positions at once."""

    network: OwnModel
    output_bias: Tensor | None = None
    shares_prefixes = False

    def __init__(self, network: OwnModel, *given: Any) -> None:
        """See `WithTokenizer`; the module states its longest input."""
        super().__init__(network, *given)
        self.longest_input = network.longest_input

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Logits [M, V] at `rows`. Raises ModelError for an output that is not [B, T, V]."""
        causal = torch.full(input_ids.shape[:1], self.architecture == "causal", device=input_ids.device)
        return self.network(input_ids, None, input_ids, rows - self.predicted_before, causal).logits

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits [N, V] and labels int64 [N] at all labelled positions. Raises ModelError as `logits_at` does."""
        names = ("input_ids", "attention_mask", "labels", "causal")
        output = self.network(**{name: batch[name].to(self.device) for name in names if name in batch})
        yield output.logits, output.targets

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Not asked, because the module keeps no keys and values (`shares_prefixes`)."""
        raise NotImplementedError


TokenizedModel: TypeAlias = HatcheryModel | ModuleModel
"""A model with a tokenizer of ours."""


def word_numbers(word_ids: Sequence[int | None]) -> tuple[int, ...]:
    """The library's word ids as numbers that ascend by one; a token without a word is a word of its own."""
    numbers: list[int] = []
    for index, word in enumerate(word_ids):
        continues = index > 0 and word is not None and word == word_ids[index - 1]
        numbers.append((numbers[-1] if numbers else -1) + (not continues))
    return tuple(numbers)


def given_tokens(
    offsets: Sequence[tuple[int, int]], characters: int, official: bool = False, framed: bool = True
) -> int:
    """How many tokens end within the first so many characters of a text; one across their end does not.

    `offsets` are where the tokens begin and end. Source: BabyLM's pipeline of 2026, which scores every token that ends
    behind the prefix. `official` repeats two slips of it (docs/papers/babylm-2026.md, "Scored tokens"): a space of its
    own in front, whose place is empty, is not scored, and where nothing is `framed` by a special token, the end of the
    prefix is taken to be as much further on as the first token begins.
    """
    if not official:
        return sum(end <= characters for _, end in offsets) if characters else 0
    border = characters if framed or not offsets else characters + offsets[0][0]
    return sum(end <= border for _, end in offsets)


def target_log_probabilities(
    model: SentenceModel, ids: Tensor, rows: Tensor, of: Tensor, targets: Tensor, *, temperatures: Temperatures = AT_ONE
) -> Tensor:
    """Float32 [K]: log p(targets[k]) at the position `rows[of[k]]` of `ids` int64 [B, T]; softmax in float32.

    Of several temperatures, by which logits are divided, it is [K, temperatures].

    `of` and `targets` are int64 [K]: several tokens may be asked of one position. All are on the model's device, and
    so is what is returned: who reads it makes the host wait for a GPU.
    """
    with torch.inference_mode():
        logits = model.logits_at(ids, rows).float()
        if temperatures == AT_ONE:
            return torch.log_softmax(logits, dim=-1)[of, targets]
        found = [torch.log_softmax(logits / one, dim=-1)[of, targets] for one in temperatures]
        return torch.stack(found, dim=-1)
