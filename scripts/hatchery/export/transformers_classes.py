"""The interface of `transformers` for Hatchery's encoders and heads, shared by all families.

Weights and computation are those of the training code. Parameter names are also those of the training code; if a model
has a head, the prefix `model.` precedes the names of the encoder's parameters. Attention masks follow `transformers`: 1
at tokens, 0 at padding, no mask if there is no padding. A language model's class (masked or causal) determines if
tokens attend to later tokens. In encoders without a language-model head, and in classifiers, tokens attend as in
pretraining (`is_decoder`).

`inputs_embeds` are rows of the word embedding that replace `input_ids`. Attention probabilities are computed on
request, by slower code. `token_type_ids` have no effect in these models and are ignored, as are `position_ids` in
models with relative positions. The modelling file of each family contains the family's subclasses (see `model_folder`).
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PretrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutputWithPast, MaskedLMOutput

from hatchery.errors import ModelError
from hatchery.export.adapted_weights import norm_names, resize_output_layer, restore_tables
from hatchery.modeling.attention import TokenCache
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.layer_weighting import LayerMixture
from hatchery.modeling.layers import SentencePairHead
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.modeling.recomputation import recompute_

CACHE_FIELD = "cache" if "cache" in CausalLMOutputWithPast.__dataclass_fields__ else "past_key_values"
"""Name of the cache of earlier tokens in outputs and in the arguments of `generate`: `cache` since version 5.24 of
`transformers`, `past_key_values` before.
"""


class HatcheryConfig(PretrainedConfig):
    """Configuration of a model: the attributes of `transformers`, and the fields of Hatchery's configuration class for
    the model's family (`architecture_class`).

    `classifier_dropout` is the dropout of a classification head; None means `hidden_dropout_prob`.
    `classifier_transform` names the layers of the classification head before its output layer (see `TRANSFORMS`).

    Each family has a subclass. The subclass must define values for fields without default, because `transformers`
    creates configurations without arguments. It must also define `__init__`; otherwise, `transformers` adds a dataclass
    constructor.
    """

    architecture_class: ClassVar[Any] = None
    """Hatchery's configuration class of the family; each of its fields becomes an attribute of the same name."""

    def __init__(self, **values: Any) -> None:
        defaults = {f.name: f.default for f in dataclasses.fields(self.architecture_class)}
        head = {"classifier_dropout": None, "classifier_transform": "ltg_wrapper"}
        # The library refuses `output_attentions` for every other implementation of attention. These models do not use
        # the chosen implementation.
        attention = {"attn_implementation": "eager"}
        super().__init__(**{**attention, **head, **defaults, **values})

    def architecture(self) -> Any:
        """Return the configuration as an object of Hatchery's configuration class (`architecture_class`). Raises
        ModelError naming key and value of an invalid setting.
        """
        names = [f.name for f in dataclasses.fields(self.architecture_class)]
        return self.architecture_class(**{name: getattr(self, name) for name in names})


class HatcheryPreTrainedModel(PreTrainedModel):
    """Common base of the model classes: initialisation of weights, and resizing of the vocabulary."""

    config_class = HatcheryConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    # Every checkpoint contains the language-model heads. Encoders and classifiers have no such heads, so they ignore
    # these weights when loading.
    _keys_to_ignore_on_load_unexpected = [r"^head\.", r"^pair_head\."]  # noqa: RUF012
    _no_split_modules = ["EncoderLayer"]  # noqa: RUF012
    supports_gradient_checkpointing = True
    # The models support scaled dot-product attention: `attend` uses PyTorch's fused kernel whenever possible,
    # independent of the requested implementation.
    _supports_sdpa = True
    # In version 4 of `transformers`, `generate` uses a cache only if these attributes are True.
    _supports_cache_class = True
    _supports_static_cache = True

    encoder_class: ClassVar[Any] = None
    head_class: ClassVar[Any] = None
    """Class of the family's language-model head."""

    @property
    def word_encoder(self) -> LayeredEncoder:
        """The encoder inside the base model."""
        return cast("LayeredEncoder", self.base_model.encoder)

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the word embedding."""
        return self.word_encoder.word_embedding

    @property
    def layers_to_recompute(self) -> list[nn.Module]:
        """Modules that gradient checkpointing recomputes."""
        return list(self.word_encoder.layers)

    def _set_gradient_checkpointing(
        self,
        enable: bool = True,
        gradient_checkpointing_func: Callable[..., Any] = checkpoint,
        every_n_layers: int = 1,
    ) -> None:
        """Enable or disable gradient checkpointing; `transformers` calls this method."""
        layers = self.layers_to_recompute
        for layer in layers:
            vars(layer).pop("forward", None)
        if enable:
            recompute_(layers[::every_n_layers], gradient_checkpointing_func)
        # `transformers` reads this attribute to find out if gradient checkpointing is enabled.
        self.gradient_checkpointing = enable

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word embedding. If the output layer is tied, the word embedding is also the matrix of the output
        layer.
        """
        encoder = self.word_encoder
        for module in encoder.modules():
            for name, child in module.named_children():
                if child is encoder.word_embedding:
                    setattr(module, name, value)
                    return

    def get_output_embeddings(self) -> None:
        """Return None, because an output matrix is the word embedding or a plain parameter, not an `nn.Linear`
        module."""
        return

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        """Add or remove subwords at the end of the vocabulary. The output bias of a new subword is the lowest existing
        bias.
        """
        old_size = self.get_input_embeddings().num_embeddings
        embedding = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        new_size = embedding.num_embeddings
        if new_size != old_size:
            if hasattr(self.config, "extra_vocabulary_rows"):
                self.config.extra_vocabulary_rows = 0
            self.word_encoder.config = self.config.architecture()
            resize_output_layer(getattr(self, "head", nn.Module()), old_size, new_size)
        return embedding

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialise weights that are missing in a checkpoint, and recompute buffers, such as position tables, which
        checkpoints do not store.

        Matrices are drawn from a truncated normal distribution. Gains of norms, and scales, are 1. Layer weights have
        the initial values of `LayerMixture`. In attention that mixes values with the values of the first layer, the
        weight of the first layer is `first_mix`. Other vectors are 0. `transformers` calls this method for each module
        with parameters or buffers that were not loaded.
        """
        deviation = math.sqrt(2 / (5 * self.config.hidden_size))
        if any(True for _ in module.buffers(recurse=False)):
            restore_tables(module, self.word_encoder, type(self.word_encoder)(self.config.architecture()))
        elif isinstance(module, nn.ParameterList):
            mixtures = [one for one in self.word_encoder.modules() if isinstance(one, LayerMixture)]
            starts = next((one.initial_weights() for one in mixtures if one.layer_weights is module), None)
            for parameter, start in zip(module, starts or map(torch.ones_like, module), strict=True):
                # `transformers` sets this attribute on loaded parameters, which must not be initialised again.
                if not getattr(parameter, "_is_hf_initialized", False):
                    parameter.copy_(start)
        else:
            for name, parameter in module.named_parameters(recurse=False):
                if (name == "weight" and parameter.ndim == 1) or name in ("head_scale", "residual_scale"):
                    nn.init.ones_(parameter)
                elif name == "value_residual_scale":
                    nn.init.constant_(parameter, cast("float", module.first_mix))
                elif parameter.ndim > 1:
                    nn.init.trunc_normal_(parameter, std=deviation, a=-2 * deviation, b=2 * deviation)
                else:
                    nn.init.zeros_(parameter)


class Encoded(NamedTuple):
    """The output of an encoder."""

    last: Tensor
    """Input of the heads: the final hidden states [B, T, D]."""
    hidden_states: tuple[Tensor, ...] | None
    """Hidden states [B, T, D] of the embedding and each layer, if requested."""
    attentions: tuple[Tensor, ...] | None
    """Attention probabilities [B, H, T, S] of each layer, if requested."""


class HatcheryModel(HatcheryPreTrainedModel):
    """The encoder without a head."""

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.encoder = self.encoder_class(config.architecture())
        self.encoder.causal = bool(getattr(config, "is_decoder", False))
        self._keep_in_fp32_modules_strict = norm_names(self)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Return the hidden states of `input_ids` int64 [B, T].

        `last_hidden_state` [B, T, D] is the input of the heads. `hidden_states` are the outputs of the embedding and of
        each layer; the layer weighting "weighted_output" appends the weighted sum of these outputs. `attentions` are
        the attention probabilities [B, H, T, T] of each layer, before dropout.
        """
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.encoded(tokens, attention_mask, output_attentions, output_hidden_states)
        return answer(self, BaseModelOutput, encoded, return_dict, last_hidden_state=encoded.last)

    def encoded(
        self,
        tokens: Tensor,
        attention_mask: Tensor | None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        cache: Cache | None = None,
    ) -> Encoded:
        """Return the encoder's output for `tokens`: ids int64 [B, T], or word vectors [B, T, E].

        If a causal model gets a `cache`, `tokens` follow the cached tokens, and `attention_mask` [B, S] covers cached
        and new tokens. Raises ValueError if the length of the mask differs from the number of cached and new tokens.
        """
        mask = None if attention_mask is None else attention_mask.bool()
        probabilities: list[Tensor] | None = [] if chosen(self, "output_attentions", output_attentions) else None
        with working_precision(self):
            if cache is None:
                states = self.encoder(tokens, mask, probabilities=probabilities)
            else:
                before, n_new = int(cache.get_seq_length()), tokens.shape[1]
                if mask is not None and mask.shape[1] != before + n_new:
                    raise ValueError(
                        f"attention_mask: got {mask.shape[1]} positions, expected {before + n_new}: {before} tokens in "
                        f"past_key_values and {n_new} following tokens; input_ids contain only the latter"
                    )
                # The encoder counts positions over cached and new tokens, so it also needs ids for the cached tokens.
                # Only padding ids change the positions (RoBERTa), so any other id can represent a cached token.
                known = tokens.new_zeros((len(tokens), before, *tokens.shape[2:]))
                if tokens.ndim == 2:
                    known += self.config.cls_token_id
                    if mask is not None:
                        known = known.where(mask[:, :before], self.config.pad_token_id)
                whole = torch.cat([known, tokens], dim=1)
                caches = [HubTokenCache(cache, index) for index in range(len(self.encoder.layers))]
                states = self.encoder.states_behind(whole, mask, caches, before, probabilities)
        kept = tuple(states) if chosen(self, "output_hidden_states", output_hidden_states) else None
        return Encoded(states[-1], kept, None if probabilities is None else tuple(probabilities))


class HatcheryForMaskedLM(HatcheryPreTrainedModel):
    """A masked language model: the encoder, the head that predicts masked subwords, and the sentence-pair head if the
    model has one.
    """

    base_class: ClassVar[Any] = None

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.model = self.base_class(config)
        self.model.encoder.causal = False
        architecture = config.architecture()
        self.head = self.head_class(architecture)
        if architecture.sentence_pair_head:
            self.pair_head = SentencePairHead(
                architecture.hidden_size, architecture.layer_norm_eps, architecture.hidden_dropout_prob
            )
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> MaskedLMOutput | tuple[Any, ...]:
        """Return logits [B, T, V] of the subword at each position. If `labels` int64 [B, T] are given (-100: ignored),
        also return the mean cross-entropy of the labels.
        """
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states)
        with working_precision(self):
            logits = full_precision(self.head(encoded.last, self.get_input_embeddings().weight))
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return answer(self, MaskedLMOutput, encoded, return_dict, loss=loss, logits=logits)

    def sentence_pair_logits(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return, for each input, the log-odds [B] that its two texts belong together.

        Raises ModelError if the model has no sentence-pair head.
        """
        if not self.config.sentence_pair_head:
            raise ModelError(
                "sentence_pair_logits: the model has no sentence-pair head, expected a model that was trained on "
                "sentence pairs"
            )
        encoded = self.model.encoded(input_ids, attention_mask)
        with working_precision(self):
            return full_precision(self.pair_head(encoded.last[:, 0]))


class HubTokenCache(TokenCache):
    """Keys and values of one layer. They are stored in a cache object of `transformers`, so that its beam search can
    reorder them.
    """

    def __init__(self, cache: Cache, index: int) -> None:
        super().__init__()
        self.cache, self.index = cache, index

    def extended(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens to the cache; return the keys and values of all cached tokens.

        A static cache also returns unused positions, which are removed here. In version 4 of `transformers`, a static
        cache requires the positions of the new tokens.
        """
        before = int(self.cache.get_seq_length(self.index))
        after = before + keys.shape[2]
        places = torch.arange(before, after, device=keys.device)
        kept = self.cache.update(keys, values, self.index, {"cache_position": places})
        return kept[0][:, :, :after], kept[1][:, :, :after]


def working_precision(model: PreTrainedModel) -> contextlib.AbstractContextManager[Any]:
    """Return a context that enables autocast if the model's parameters have a half-precision type.

    Layer norms and softmax output fp32, so their products with half-precision weights need autocast.
    """
    device, dtype = model.device.type, next(model.get_input_embeddings().parameters()).dtype
    if dtype in (torch.bfloat16, torch.float16) and not torch.is_autocast_enabled(device):
        return torch.autocast(device, dtype)
    return contextlib.nullcontext()


def given_tokens(
    model: HatcheryPreTrainedModel,
    input_ids: Tensor | None,
    inputs_embeds: Tensor | None,
    attention_mask: Tensor | None = None,
    position_ids: Tensor | None = None,
) -> Tensor:
    """Return the argument that is given: `input_ids` int64 [B, T], or `inputs_embeds` [B, T, E]. Encoders read both
    kinds of input.

    Raises ValueError unless exactly one of the two is given. In a model with absolute positions, also raises ValueError
    if the `position_ids` of the unmasked tokens are not consecutive numbers.
    """
    if (input_ids is None) == (inputs_embeds is None):
        raise ValueError("input_ids, inputs_embeds: expected exactly one of these two arguments")
    tokens = input_ids if inputs_embeds is None else inputs_embeds
    assert tokens is not None
    if position_ids is not None and model.word_encoder.config.position_limit is not None:
        batch, length = tokens.shape[:2]
        mask = tokens.new_ones((batch, length), dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        # Positions begin at 0 in BERT and at 2 in RoBERTa, so compare only differences between positions.
        steps = (position_ids.expand(batch, length) - mask.cumsum(dim=1))[mask]
        if bool((steps != steps[:1]).any()):
            raise ValueError(
                "position_ids: expected None or consecutive numbers, because the model counts the positions itself"
            )
    return tokens


def chosen(model: PreTrainedModel, name: str, value: bool | None) -> bool:
    """Return `value`, an option of a call of `model`; if `value` is None, the configuration's attribute `name`."""
    return bool(getattr(model.config, name)) if value is None else value


def answer(model: PreTrainedModel, kind: Any, encoded: Encoded, return_dict: bool | None, **made: Any) -> Any:
    """Return an object of the output class `kind`, or a tuple, that contains the results of the head (`made`), the
    hidden states and the attention probabilities.
    """
    output = kind(**made, hidden_states=encoded.hidden_states, attentions=encoded.attentions)
    return output if chosen(model, "return_dict", return_dict) else output.to_tuple()
