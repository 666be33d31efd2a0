"""The interface of a language model that scores sentences: encoded sentences, and logits at requested positions.

Hatchery's models (`HatcheryModel`), modules of users (`ModuleModel`) and external models (`evaluation.baselines`)
implement this interface, so every scoring method is written once.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import torch
from torch import Tensor

from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.own_model import OwnModel

# Number of labelled positions whose logits are in memory together. Logits are the largest tensors of the model.
ROWS_AT_ONCE = 2048


Temperatures = tuple[float, ...]
AT_ONE: Temperatures = (1.0,)


@dataclass(frozen=True)
class Frame:
    """The special tokens before and after a sentence. The model reads these tokens, but they are never scored."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class EncodedSentence:
    """The ids of a sentence, and the word number of each id. The ids contain no special tokens, except EOS at the end
    in an encoder-decoder.

    Word numbers count the tokenizer's pre-tokens (in which punctuation is separate), because Kauf & Ivanova (2023) mask
    all subwords of a pre-token together. `words` is None unless requested. The first `given` tokens are context: the
    model reads them, but they are not scored.
    """

    ids: tuple[int, ...]
    words: tuple[int, ...] | None = None
    given: int = 0

    @property
    def scored(self) -> int:
        """Number of scored tokens in the sentence."""
        return len(self.ids) - self.given


class SentenceModel(Protocol):
    """Interface of a language model in evaluation mode, in float32, on `device`."""

    architecture: Architecture
    device: torch.device
    frame: Frame
    """Special tokens around a sentence. For causal models, `before` is the context of the first token and `after` is
    empty.
    """
    mask_id: int | None
    """Id of the mask token; None for models that are not masked."""
    predicted_before: int
    """Distance from the position of a prediction to its masked token; 0 for models that are not masked."""
    unknown_id: int | None
    """Id of the token for text that the tokenizer cannot encode; None if it can encode all text."""
    vocabulary_size: int
    longest_input: int | None
    """Largest number of tokens of an input, special tokens included; None if unlimited."""
    leading_blank: bool | None
    """True if a space is inserted before sentences of minimal pairs; if None, the suite's setting determines whether a
    space is inserted.
    """

    @property
    def left_to_right(self) -> "SentenceModel | None":
        """Return a hybrid model as a causal model. Return None for any other model: only hybrid models were trained to
        predict both masked and next tokens."""
        ...

    def encode(
        self,
        sentences: Sequence[str],
        words: bool = False,
        given: Sequence[int] | None = None,
        official: bool = False,
    ) -> list[EncodedSentence]:
        """Return ids of sentences; special tokens spelled out in a text are encoded as plain text. If `words` is true,
        also return the index of the word to which each token belongs.

        `given` is the number of context characters of each sentence: tokens that end within these characters are not
        scored. If `official` is true, context tokens are counted as in BabyLM's code (`given_tokens`).
        """
        ...

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at the positions `rows`, int64 [M], of unpadded `input_ids` int64 [B, T]. A position is
        the flat index b * T + t.

        In a masked model, `rows` are the positions of masked tokens, whose logits are read `predicted_before` positions
        earlier.
        """
        ...

    @property
    def shares_prefixes(self) -> bool:
        """Return True if the model can continue texts from cached prefixes (`logits_behind`)."""
        ...

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at M positions in prefixes and in texts that follow the prefixes.

        `prefixes` int64 [G, P] are G prefixes. `rest` int64 [S, R] are S texts; text s follows prefix `of[s]`. `rows`
        int64 [M] are the positions, counted over all prefixes first and then over all texts: token p of prefix g has
        the position g * P + p, and token r of text s has the position G * P + s * R + r.
        """
        ...

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits [N, V] and labels int64 [N] of the labelled positions of `batch`, some positions at a time. The
        batch is on the CPU.

        The batch has the keys of training examples (`input_ids`, `attention_mask`, `labels`).
        """
        ...

    @property
    def output_bias(self) -> Tensor | None:
        """Return the bias [V] of the output layer; None if this bias does not exist or is unknown."""
        ...


class WithTokenizer:
    """A network with a Hatchery tokenizer, moved to `device` in evaluation mode."""

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
        """Move the network to `device`, and use it as a masked or causal model, as `architecture` states. A masked
        model predicts a masked token `predicted_before` positions before the token's own position.
        """
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.device = device
        self.architecture: Architecture = architecture
        is_causal = architecture == "causal"
        self.predicted_before = 0 if is_causal else predicted_before
        self.frame = Frame((tokenizer.cls_id,), () if is_causal else tuple(tokenizer.end_ids))
        self.mask_id: int | None = None if is_causal else tokenizer.mask_id
        # A tokenizer without an unknown token may have no attribute `unknown_id`.
        self.unknown_id: int | None = getattr(tokenizer, "unknown_id", None)
        self.vocabulary_size = network.config.vocab_size

    @property
    def left_to_right(self) -> Self | None:
        """Return a hybrid model as a causal model; None for other models."""
        return type(self)(self.network, self.tokenizer, self.device, "causal") if self.predicted_before else None

    def encode(
        self,
        sentences: Sequence[str],
        words: bool = False,
        given: Sequence[int] | None = None,
        official: bool = False,
    ) -> list[EncodedSentence]:
        """Return ids of sentences, with the tokenizer's own normalisation."""
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
    """A language model that Hatchery trained."""

    network: LanguageModel

    def __init__(
        self,
        network: LanguageModel,
        tokenizer: Tokenizer,
        device: torch.device,
        architecture: Architecture | None = None,
        predicted_before: int = 0,
    ) -> None:
        """Use the network as a masked or causal model, as `architecture` states; None means the use that the network
        was trained for.
        """
        own: Architecture = "causal" if network.causal else "masked"
        super().__init__(network, tokenizer, device, architecture or own, predicted_before)

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at the flat positions `rows` (`SentenceModel.logits_at`). The output layer, the model's
        largest matrix product, is computed only at these positions.
        """
        return self.network.logits_at(self._hidden_at(input_ids, rows))

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits [N, V] and labels int64 [N] of at most ROWS_AT_ONCE labelled positions at a time."""
        hidden, targets = self.network.labelled_hidden(batch, self.device)
        for part, wanted in zip(hidden.split(ROWS_AT_ONCE), targets.split(ROWS_AT_ONCE), strict=True):
            yield self.network.logits_at(part), wanted

    @property
    def output_bias(self) -> Tensor | None:
        """Return the bias [V] of the output layer; None for an output layer without bias."""
        return self.network.output_layer[1]

    def features_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Return, for each of the M positions `rows`, the vector of width D that the output layer multiplies by the
        vocabulary matrix: float32 [M, D]. A position is the flat index b * T + t of a token of `input_ids` [B, T].
        """
        return self.network.head.features(self._hidden_at(input_ids, rows))

    @property
    def shares_prefixes(self) -> bool:
        """Return True if the model reads from left to right: every Hatchery encoder can then cache keys and values."""
        return self.architecture == "causal"

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at the M positions `rows`, which are counted over all prefixes first and then over the
        texts `rest` that follow the prefixes. For the arguments, see `SentenceModel.logits_behind`.
        """
        return self.network.logits_at(self._hidden_behind(prefixes, of, rest, rows))

    def features_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Return, for each of the M positions `rows`, the vector of width D that the output layer multiplies by the
        vocabulary matrix: float32 [M, D]. The arguments are those of `SentenceModel.logits_behind`.
        """
        return self.network.head.features(self._hidden_behind(prefixes, of, rest, rows))

    def _hidden_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        encoder = self.network.encoder
        caches = [TokenCache() for _ in range(encoder.n_layers)]
        states = encoder.states_behind(prefixes, None, caches, 0)[-1].flatten(0, 1)
        if rest.shape[1]:
            whole = torch.cat([prefixes.index_select(0, of), rest], dim=1)
            kept = [cache.rows(of) for cache in caches]
            behind = encoder.states_behind(whole, None, kept, prefixes.shape[1])[-1]
            states = torch.cat([states, behind.flatten(0, 1)])
        return states.index_select(0, rows)

    def _hidden_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        # Only a masked model can skip positions in its last layer (`rows`). A causal model is scored at nearly all
        # positions.
        is_causal = self.architecture == "causal"
        rows = rows - self.predicted_before if self.predicted_before else rows
        return self.network.encoder.hidden_at(input_ids, None, rows, causal=is_causal, few=not is_causal)


class ModuleModel(WithTokenizer):
    """A module that a user wrote, which computes the logits of all positions at once."""

    network: OwnModel
    output_bias: Tensor | None = None
    shares_prefixes = False

    def __init__(self, network: OwnModel, *given: Any) -> None:
        """Initialise as `WithTokenizer` does, and read `longest_input` from the module."""
        super().__init__(network, *given)
        self.longest_input = network.longest_input

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at the flat positions `rows` (`SentenceModel.logits_at`). Raises ModelError if the
        module's output is not [B, T, V]."""
        causal = torch.full(input_ids.shape[:1], self.architecture == "causal", device=input_ids.device)
        return self.network(input_ids, None, input_ids, rows - self.predicted_before, causal).logits

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits [N, V] and labels int64 [N] at all labelled positions. Raises the ModelError of `logits_at`."""
        names = ("input_ids", "attention_mask", "labels", "causal")
        output = self.network(**{name: batch[name].to(self.device) for name in names if name in batch})
        yield output.logits, output.targets

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Raise AssertionError: a module caches no keys and values, so scoring shares no prefixes."""
        raise AssertionError("a module shares no prefixes")


TokenizedModel: TypeAlias = HatcheryModel | ModuleModel
"""A language model with a Hatchery tokenizer."""


def word_numbers(word_ids: Sequence[int | None]) -> tuple[int, ...]:
    """Return the tokenizer's word ids as consecutive numbers; a token without a word id counts as a word of its own."""
    numbers: list[int] = []
    for index, word in enumerate(word_ids):
        continues = index > 0 and word is not None and word == word_ids[index - 1]
        numbers.append((numbers[-1] if numbers else -1) + (not continues))
    return tuple(numbers)


def given_tokens(
    offsets: Sequence[tuple[int, int]], characters: int, official: bool = False, framed: bool = True
) -> int:
    """Return the number of tokens that end within the first `characters` characters of a text.

    A token across this boundary does not count, as in BabyLM's pipeline of 2026, which scores every token that ends
    after the prefix. `offsets` are the [start, end) characters of the tokens.

    If `official` is true, two errors of the pipeline are reproduced (docs/papers/babylm-2026.md, "Scored tokens").
    First, a leading space is not scored if it is a separate token, because the offsets of this token are empty. Second,
    if the text does not start with a special token (`framed` is False), the end of the prefix is shifted by the offset
    of the first token.
    """
    if not official:
        return sum(end <= characters for _, end in offsets) if characters else 0
    border = characters if framed or not offsets else characters + offsets[0][0]
    return sum(end <= border for _, end in offsets)


def no_gradients(device: torch.device) -> AbstractContextManager[None]:
    """Return PyTorch's inference mode or, under autocast, `no_grad`. In inference mode, autocast would copy all weights
    in every batch.
    """
    return torch.no_grad() if torch.is_autocast_enabled(device.type) else torch.inference_mode()


def target_log_probabilities(
    model: SentenceModel, ids: Tensor, rows: Tensor, of: Tensor, targets: Tensor, *, temperatures: Temperatures = AT_ONE
) -> Tensor:
    """Return float32 [K]: log p(targets[k]) at the flat position `rows[of[k]]`, which is b * T + t for token t of row b
    of `ids` int64 [B, T]. The softmax is computed in float32.

    The logits are divided by each of the `temperatures`. With several temperatures, the result is [K, temperatures].
    `of` and `targets` are int64 [K]: one position may have several targets. All tensors and the result are on the
    model's device, so reading the result waits for a GPU.
    """
    with no_gradients(model.device):
        logits = model.logits_at(ids, rows).float()
        if temperatures == AT_ONE:
            return torch.log_softmax(logits, dim=-1)[of, targets]
        log_probabilities = [torch.log_softmax(logits / one, dim=-1)[of, targets] for one in temperatures]
        return torch.stack(log_probabilities, dim=-1)
