"""Translation models for `transformers`: configuration, and an encoder-decoder model with `generate`.

Load a model with `trust_remote_code=True` through AutoModelForSeq2SeqLM. The tokenizer appends the end-of-sentence
token to sources and targets.
"""

from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from hatchery.export.adapted_weights import norm_names
from hatchery.export.transformers_classes import (
    CACHE_FIELD,
    HatcheryConfig,
    HatcheryPreTrainedModel,
    HubTokenCache,
    chosen,
    given_tokens,
    working_precision,
)
from hatchery.modeling.attention import LayerCache, none_if_all_tokens
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.encoder_decoder.decoding import (
    DecoderLayer,
    DecoderProbabilities,
    DecoderState,
    Decoding,
    OutputLayer,
    SourceEncoder,
    norm,
)
from hatchery.modeling.norm_and_dropout import full_precision


class HatcheryEncoderDecoderConfig(HatcheryConfig):
    """Configuration; the default sizes are those of the model for IWSLT'14 in "A Natural Bias for Language Generation
    Models".
    """

    model_type = "hatchery_encoder_decoder"
    architecture_class = EncoderDecoderConfig

    def __init__(self, **values: Any) -> None:
        sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4}
        roles = {"is_encoder_decoder": True, "decoder_start_token_id": 0, "bos_token_id": 0, "eos_token_id": 2}
        super().__init__(**{"vocab_size": 20480, **sizes, **roles, **values})
        # `generate` reads this attribute: the number of layers whose keys and values are cached.
        self.decoder_layers = self.architecture().decoder_layers


class HatcheryEncoderDecoderForSeq2SeqLM(Decoding, HatcheryPreTrainedModel, GenerationMixin):
    """The translation model; its submodules have the same names as in the training code."""

    config_class = HatcheryEncoderDecoderConfig
    encoder_class: ClassVar[Any] = SourceEncoder
    head_class: ClassVar[Any] = OutputLayer
    _keys_to_ignore_on_load_unexpected = []  # noqa: RUF012
    _no_split_modules = ["EncoderLayer", "DecoderLayer"]  # noqa: RUF012

    def __init__(self, config: HatcheryEncoderDecoderConfig) -> None:
        super().__init__(config)
        architecture = config.architecture()
        self.encoder = SourceEncoder(architecture)
        # `generate` reads this attribute: the name of the encoder's input.
        self.encoder.main_input_name = self.main_input_name  # type: ignore[assignment]
        self.decoder = nn.ModuleList(DecoderLayer(architecture) for _ in range(architecture.decoder_layers))
        self.decoder_norm = norm(architecture) if architecture.normalisation == "pre_norm" else None
        self.head = OutputLayer(architecture)
        self._keep_in_fp32_modules_strict = norm_names(self)
        self.post_init()

    @property
    def layers_to_recompute(self) -> list[nn.Module]:
        """Modules that gradient checkpointing recomputes."""
        return [*self.encoder.layers, *self.decoder]

    def get_encoder(self, modality: str | None = None) -> "SourceReader":
        """Return the encoder, which `generate` calls once before the first token."""
        return SourceReader(self)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Tensor, ...] | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        cache_position: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
    ) -> Seq2SeqLMOutput | tuple[Any, ...]:
        """Return the logits [sentences, target tokens, vocabulary] of the tokens that follow `decoder_input_ids` int64
        [sentences, target tokens] in the translation.

        The source is `input_ids` int64 [sentences, source tokens], or `encoder_outputs` if the encoder has already been
        run. `inputs_embeds` are rows of the word embedding that replace `input_ids`. If `labels` int64 [sentences,
        target tokens] are given (-100: ignored), the mean cross-entropy is also returned. If `labels` are given without
        `decoder_input_ids`, the decoder reads the start token and all labels except for the last.

        If `past_key_values` is given, the decoder reads the tokens that follow the cached tokens. Version 5.24 of
        `transformers` renamed this argument to `cache`; version 4 also passes the positions of the tokens in
        `cache_position`. `decoder_attention_mask` is ignored: tokens do not attend to later tokens, so padding on the
        right has no effect. Raises ValueError if source or target are missing.
        """
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("decoder_input_ids: got none, expected the decoder's inputs, or labels")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if encoder_outputs is None:
            tokens = given_tokens(self, input_ids, inputs_embeds)
            encoder_outputs = self.get_encoder()(tokens, attention_mask, output_attentions, output_hidden_states)
        cache = past_key_values if cache is None else cache
        if cache is None and use_cache:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        kept = DecoderProbabilities([], []) if chosen(self, "output_attentions", output_attentions) else None
        with working_precision(self):
            mask = none_if_all_tokens(None if attention_mask is None else attention_mask.bool())
            state = self._state(encoder_outputs[0], mask, cache)
            hidden = self.decode(decoder_input_ids, state, kept)
            logits = full_precision(self.head(hidden, self.get_input_embeddings().weight))
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        made: dict[str, Any] = {CACHE_FIELD: cache}
        output = Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            **made,
            encoder_last_hidden_state=encoder_outputs[0],
            encoder_hidden_states=getattr(encoder_outputs, "hidden_states", None),
            encoder_attentions=getattr(encoder_outputs, "attentions", None),
            decoder_attentions=None if kept is None else tuple(kept.own),
            cross_attentions=None if kept is None else tuple(kept.source),
        )
        return output if chosen(self, "return_dict", return_dict) else output.to_tuple()

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return the decoder's inputs for predicting `labels`: the start token, and all labels except for the last.
        Both are int64 [sentences, target tokens].
        """
        read = labels.roll(1, dims=1)
        read[:, 0] = self.config.decoder_start_token_id
        return read.masked_fill(read == -100, self.config.pad_token_id)

    def _state(self, memory: Tensor, mask: Tensor | None, cache: EncoderDecoderCache | None) -> DecoderState:
        """Return the decoder's state before the first token, or after the tokens in `cache`. Decoding appends keys and
        values to `cache`.
        """
        layers: list[LayerCache] = []
        for index, layer in enumerate(self.decoder_layers):
            if cache is None:
                layers.append(layer.begun(memory))
                continue
            # Keys and values of the source are cached only once. If they are already in the cache, append nothing.
            added = memory[:, :0] if cache.is_updated.get(index) else memory
            of_source = HubTokenCache(cache.cross_attention_cache, index)
            kept = of_source.extended(*layer.source_attention.keys_and_values(added))
            cache.is_updated[index] = True
            layers.append(LayerCache(kept, HubTokenCache(cache.self_attention_cache, index)))
        return DecoderState(layers, mask, 0 if cache is None else int(cache.get_seq_length()))


class SourceReader:
    """The encoder object that `generate` calls; not an `nn.Module`, because its parameters belong to the model."""

    main_input_name = "input_ids"

    def __init__(self, model: HatcheryEncoderDecoderForSeq2SeqLM) -> None:
        self.model = model

    def __call__(self, *values: Any, **named: Any) -> BaseModelOutput:
        """Return the result of `forward`."""
        return self.forward(*values, **named)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput:
        """Return the encoder's output [sentences, source tokens, width] for the source.

        `hidden_states` are the output of the embedding and the output of each layer, before the last norm. `attentions`
        are the attention probabilities [sentences, heads, source tokens, source tokens] of each layer, before dropout.
        """
        model = self.model
        probabilities: list[Tensor] | None = [] if chosen(model, "output_attentions", output_attentions) else None
        with working_precision(model):
            mask = None if attention_mask is None else attention_mask.bool()
            states = model.encoder(input_ids, mask, probabilities=probabilities)
            memory = model.remembered(states[-1])
        kept = tuple(states) if chosen(model, "output_hidden_states", output_hidden_states) else None
        attentions = None if probabilities is None else tuple(probabilities)
        return BaseModelOutput(last_hidden_state=memory, hidden_states=kept, attentions=attentions)
