"""External models (of the library `transformers`) as encoders for task heads and probes, and as language models.

Probes read the layer states that the library returns: all layers of a masked or causal model, and the encoder's layers
of an encoder-decoder.

In an encoder-decoder, task heads read the states of the decoder's last layer. The decoder's input is the encoder's
input, shifted by one token, as in the library's `...ForSequenceClassification` classes.

To classify a whole text, a head reads the first token's state in masked models, and the last token's state in all
others. In a causal model, the first token does not see the later tokens. In an encoder-decoder, the library's classes
also read the last token's state.

As a language model, a masked or causal model scores sentences and held-out text. An encoder-decoder is used as in
BabyLM 2023: the encoder reads only EOS, and the decoder writes the sentence and EOS (docs/papers/babylm-evaluation.md,
"Pseudo-log-likelihood").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.evaluation.baselines.loading import BaselineTokenizer, longest_input
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, given_tokens, word_numbers
from hatchery.evaluation.settings import BaselineSettings
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.exported_folder import exported_family
from hatchery.modeling.language_model import labelled_positions

# Configuration keys of `transformers` for the epsilon of a layer norm, and the epsilon of models without any of these
# keys.
NORM_EPSILONS = ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps")
USUAL_EPSILON = 1e-5


@dataclass(frozen=True)
class BaselineSizes:
    """Sizes of an external encoder, under the names that task heads expect in a configuration."""

    hidden_size: int
    num_hidden_layers: int
    layer_norm_eps: float


class BaselineEncoder(Encoder):
    """The encoder of `network`, a model of `transformers`, without the language-model head.

    The encoder receives token types if the model has token types (BERT), and if the tokenizer's template distinguishes
    the first text from the second text by token types. Raises ModelError if the layers' states differ in width. Also
    raises the ModelError of `start_of_decoder`.
    """

    def __init__(self, network: Any, architecture: Architecture, tokenizer: BaselineTokenizer) -> None:
        super().__init__()
        self.sep_id, where = tokenizer.sep_id, tokenizer.where
        self.first_token_is_blind = architecture != "masked"
        self.start_id: int | None = None
        if architecture == "encoder_decoder":
            self.body, self.decoder = network.get_encoder(), network.get_decoder()
            self.start_id = start_of_decoder(network, where)
        else:
            self.body, self.decoder = network.base_model, None
        settings = network.config
        n_types = getattr(settings, "type_vocab_size", 0)
        self.n_types: int = n_types if n_types > 1 and tokenizer.numbers_texts else 0
        self.longest_input = longest_input(settings, tokenizer)
        with torch.inference_mode():
            states = self(torch.tensor([[self.sep_id, self.sep_id]], device=next(self.body.parameters()).device))
        widths = {state.shape[-1] for state in states}
        if len(widths) > 1:
            raise ModelError(
                f"{where}: got hidden states of {len(widths)} widths ({sorted(widths)}), expected one width in all "
                "layers"
            )
        epsilon = next((getattr(settings, name) for name in NORM_EPSILONS if hasattr(settings, name)), USUAL_EPSILON)
        n_layers = len(states) - 1 - (self.decoder is not None)
        self.config = BaselineSizes(widths.pop(), n_layers, float(epsilon))

    @property
    def n_layers(self) -> int:
        """Number of encoder layers; a probe reads the states of each of these layers."""
        return self.config.num_hidden_layers

    @property
    def has_residual_stream(self) -> bool:
        """False: it is unknown if each layer of an external model adds its output to its input. Probes thus do not read
        differences between layers.
        """
        return False

    @property
    def layers_add_up(self) -> bool:
        """False: an external model may have norms between its layers, so probes do not read differences between
        layers."""
        return False

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """Return the states of the embedding and of each layer, all [B, T, D]. For an encoder-decoder, these are the
        encoder's states, followed by the states of the decoder's last layer."""
        output = self._read(input_ids, attention_mask, all_states=True)
        states = list(output.hidden_states)
        if self.decoder is not None:
            states.append(self._written(input_ids, attention_mask, output.last_hidden_state))
        return states

    def hidden_at(self, input_ids: Tensor, attention_mask: Tensor | None, rows: Tensor, *, few: bool = False) -> Tensor:
        """Return the last layer's states [M, D] at M positions. `rows` int64 [M] are the positions as flat indices:
        token t of text b in `input_ids` [B, T] has the position b * T + t. `few` has no effect here.
        """
        last = self._read(input_ids, attention_mask, all_states=False).last_hidden_state
        if self.decoder is not None:
            last = self._written(input_ids, attention_mask, last)
        return last.flatten(0, 1).index_select(0, rows)

    def set_dropout(self, probability: float) -> None:
        """Set the probability of every dropout, including probabilities that `transformers` stores as numbers. Raises
        ModelError for a probability outside [0, 1).
        """
        set_dropout_(self, probability)

    def _read(self, input_ids: Tensor, attention_mask: Tensor | None, all_states: bool) -> Any:
        types: dict[str, Tensor] = {}
        if self.n_types:
            # In [CLS] a [SEP] b [SEP], `[CLS] a [SEP]` has token type 0 and `b [SEP]` type 1. If there are more texts
            # than types, the remaining texts have the last type.
            ends = (input_ids == self.sep_id).long()
            types["token_type_ids"] = (ends.cumsum(dim=1) - ends).clamp(max=self.n_types - 1)
        return self.body(
            input_ids=input_ids, attention_mask=_numbers(attention_mask), output_hidden_states=all_states, **types
        )

    def _written(self, input_ids: Tensor, attention_mask: Tensor | None, encoded: Tensor) -> Tensor:
        """Return the states [B, T, D] of the decoder's last layer.

        The decoder reads the input shifted by one token, so position t sees the tokens before t. Through the encoder's
        states `encoded`, every position also sees the whole input.
        """
        assert self.decoder is not None and self.start_id is not None
        starts = torch.full_like(input_ids[:, :1], self.start_id)
        shifted = torch.cat([starts, input_ids[:, :-1]], dim=1)
        output = self.decoder(
            input_ids=shifted, encoder_hidden_states=encoded, encoder_attention_mask=_numbers(attention_mask)
        )
        return output.last_hidden_state


def set_dropout_(network: nn.Module, probability: float) -> None:
    """Set the probability of every dropout of an external network, including probabilities that a module stores as a
    number, in an attribute with `dropout` in its name.

    Raises ModelError for a probability outside [0, 1).
    """
    if not 0 <= probability < 1:
        raise ModelError(f"dropout: got {probability!r}, expected 0 <= probability < 1")
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, probability)


def start_of_decoder(network: Any, where: str) -> int:
    """Return the id of the token with which a decoder begins. Raises ModelError if the configuration does not contain
    this id.
    """
    for settings in (network.config, network.generation_config):
        value = getattr(settings, "decoder_start_token_id", None)
        if value is not None:
            return int(value)
    raise ModelError(
        f"{where}: config.json has no decoder_start_token_id, expected the id with which the decoder begins a text"
    )


def _numbers(attention_mask: Tensor | None) -> Tensor | None:
    """Return a mask as `transformers` expects it: 1 at tokens, 0 at padding; None if `attention_mask` is None."""
    return None if attention_mask is None else attention_mask.long()


# Names of the language-model head in the model classes of `transformers`. If the head has one of these names, a hook
# passes only the requested positions to the head. Otherwise the head computes the logits of all positions, and the
# requested logits are selected afterwards.
HEADS = ("cls", "lm_head", "vocab_transform", "predictions", "generator_predictions", "head", "lm_predictions")


class BaselineModel:
    """A language model of `transformers` in evaluation mode on `device`, with its tokenizer: a `SentenceModel`."""

    output_bias: Tensor | None = None
    """Always None: the classes of `transformers` share no name for an output bias."""
    left_to_right: None = None
    """Always None, because only a hybrid model of Hatchery has a second, left-to-right model."""
    gives_types = False
    """True if the network receives token types; every token then has type 0."""

    def __init__(
        self,
        network: Any,
        tokenizer: BaselineTokenizer,
        settings: BaselineSettings,
        device: torch.device,
        template: bool = False,
    ) -> None:
        """Move the network to `device`, and choose the special tokens before and after each text.

        If `template` is true, these tokens come from the tokenizer's template, except in an encoder-decoder. Of the
        template, a causal model reads only the tokens before the text. If no token precedes the text, a model that
        predicts each token from the position before it has no probability for the first token.
        """
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.architecture: Architecture = settings.architecture
        self.leading_blank = settings.leading_blank
        self.device = device
        self.where = tokenizer.where
        self.mask_id: int | None = None
        # Tokens that are appended to each encoded sentence and scored with it.
        self._end: tuple[int, ...] = ()
        match self.architecture:
            case "masked":
                self.mask_id = tokenizer.found("mask_token_id")
                self.frame = Frame(() if tokenizer.cls_id is None else (tokenizer.cls_id,), tuple(tokenizer.end_ids))
            case "causal":
                # BabyLM 2023 puts EOS before a text, or BOS if the tokenizer has no EOS. Exported Hatchery models get
                # BOS, because they were trained with BOS.
                is_ours = exported_family({"model_type": network.config.model_type}) is not None
                names = ("bos_token_id",) if is_ours else ("eos_token_id", "bos_token_id")
                before = tokenizer.before if template else (tokenizer.found(*names),)
                self.frame = Frame(before, ())
            case "encoder_decoder":
                self.frame = Frame((start_of_decoder(network, self.where),), ())
                self._end = (tokenizer.found("eos_token_id"),)
        self.predicted_before = int(settings.predicts_next)
        self.unknown_id: int | None = tokenizer.unknown_id
        # Exported Hatchery models have no output-embedding module, so their vocabulary size is read from the
        # configuration.
        output = network.get_output_embeddings()
        self.vocabulary_size = int(network.config.vocab_size if output is None else output.weight.shape[0])
        self.longest_input: int | None = longest_input(network.config, tokenizer)
        # An encoder-decoder always computes all positions, so the requested logits are selected after its head.
        heads = [getattr(network, name) for name in HEADS if isinstance(getattr(network, name, None), nn.Module)]
        self._head: nn.Module | None = heads[0] if heads and self.architecture != "encoder_decoder" else None

    def encode(
        self,
        sentences: Sequence[str],
        words: bool = False,
        given: Sequence[int] | None = None,
        official: bool = False,
    ) -> list[EncodedSentence]:
        """Encode sentences with the tokenizer's normalisation; see `SentenceModel.encode`. Raises ModelError for ids
        without an embedding."""
        encoded = []
        masked = self.architecture == "masked"
        seen = bool(self.frame.before) or (masked and not self.predicted_before)
        encodings = self.tokenizer.backend.encode_batch(list(sentences), add_special_tokens=False)
        for encoding, characters in zip(encodings, given or [0] * len(encodings), strict=True):
            if encoding.ids and max(encoding.ids) >= self.network.get_input_embeddings().num_embeddings:
                raise ModelError(
                    f"{self.where}: the tokenizer has ids without an embedding in the model, expected the tokenizer "
                    "of this model"
                )
            ids = (*encoding.ids, *self._end) if encoding.ids else ()
            numbers = word_numbers(encoding.word_ids) if words else None
            n_given = given_tokens(encoding.offsets, characters, official, masked or bool(self.frame.before))
            encoded.append(EncodedSentence(ids, numbers, n_given if seen else max(1, n_given)))
        return encoded

    def logits_at(self, input_ids: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at M positions in the texts `input_ids` int64 [B, T], which have no padding. `rows`
        int64 [M] are the positions as flat indices: token t of text b has the position b * T + t.
        """
        return self._logits_at(input_ids, torch.ones_like(input_ids), rows - self.predicted_before)

    @cached_property
    def shares_prefixes(self) -> bool:
        """Return True if texts with a common prefix can share the keys and values of this prefix. The model must be
        causal, and its cache must hold the keys and values of all tokens and nothing else.
        """
        if self.architecture != "causal":
            return False
        import transformers

        tokens = torch.zeros((1, 2), dtype=torch.long, device=self.device)
        with torch.inference_mode():
            output = self.network(input_ids=tokens, use_cache=True)
        cache = getattr(output, _cache_field(output), None)
        layers = getattr(cache, "layers", ())
        return bool(layers) and all(type(layer) is transformers.cache_utils.DynamicLayer for layer in layers)

    def logits_behind(self, prefixes: Tensor, of: Tensor, rest: Tensor, rows: Tensor) -> Tensor:
        """Return logits [M, V] at the M positions `rows` in the prefixes and in the texts `rest`. Text s follows prefix
        `of[s]`. The positions are counted over the tokens of all `prefixes` first, and then over the tokens of `rest`.
        """
        n_before = prefixes.numel()
        first = rows[rows < n_before]
        output, logits = self._selected(prefixes, torch.ones_like(prefixes), first, use_cache=True)
        if not rest.shape[1]:
            return logits
        field = _cache_field(output)
        cache = getattr(output, field)
        cache.batch_select_indices(of)
        mask = torch.ones((len(rest), prefixes.shape[1] + rest.shape[1]), dtype=torch.long, device=rest.device)
        _, behind = self._selected(rest, mask, rows[rows >= n_before] - n_before, **{field: cache})
        together = logits.new_empty((len(rows), logits.shape[1]))
        together[rows < n_before], together[rows >= n_before] = logits, behind
        return together

    def labelled_logits(self, batch: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield one pair: logits [N, V] and labels int64 [N] at all N labelled positions of `batch`. The batch is on
        the CPU.
        """
        labels = batch["labels"].flatten()
        rows = labelled_positions(labels)
        ids, mask = (batch[name].to(self.device) for name in ("input_ids", "attention_mask"))
        asked = rows.to(self.device) - self.predicted_before
        yield self._logits_at(ids, mask.long(), asked), labels[rows].to(self.device)

    def _logits_at(self, input_ids: Tensor, attention_mask: Tensor, rows: Tensor) -> Tensor:
        return self._selected(input_ids, attention_mask, rows)[1]

    def _selected(self, input_ids: Tensor, attention_mask: Tensor, rows: Tensor, **more: Any) -> tuple[Any, Tensor]:
        """Return the network's output for the inputs, and its logits [M, V] at M positions, the flat indices `rows`
        int64 [M]. Raises ModelError for a network that returns no logits for each token.
        """
        selected = False

        def select(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            nonlocal selected
            if selected or not inputs or inputs[0].shape[:2] != input_ids.shape:
                return None
            selected = True
            return (inputs[0].flatten(0, 1).index_select(0, rows).unsqueeze(0), *inputs[1:])

        handle = None if self._head is None else self._head.register_forward_pre_hook(select)
        try:
            output = self._outputs_of(input_ids, attention_mask, **more)
        finally:
            if handle is not None:
                handle.remove()
        logits: Tensor = output.logits.flatten(0, -2)
        if len(logits) != (len(rows) if selected else input_ids.numel()):
            raise ModelError(f"{self.where}: {type(self.network).__name__} returns no logits for each token")
        return output, logits if selected else logits.index_select(0, rows)

    def _outputs_of(self, input_ids: Tensor, attention_mask: Tensor, **more: Any) -> Any:
        if self.architecture != "encoder_decoder":
            if self.gives_types:
                more["token_type_ids"] = torch.zeros_like(input_ids)
            return self.network(input_ids=input_ids, attention_mask=attention_mask, **more)
        nothing = torch.full_like(input_ids[:, :1], self._end[0])
        return self.network(
            input_ids=nothing, attention_mask=torch.ones_like(nothing), decoder_input_ids=input_ids, use_cache=False
        )


def _cache_field(output: Any) -> str:
    """Return the name under which the network returns and accepts its key-value cache: `cache` from version 5.24 of
    `transformers` on, `past_key_values` in earlier versions.
    """
    return "cache" if getattr(output, "cache", None) is not None else "past_key_values"
