"""The encoder and the language-model head of plain modern transformers, and their initial weights.

Layers are pre-norm, without biases. There are two optional connections between layers: value residuals mix the values
of later layers with those of the first layer, and U-Net skips connect the two halves of the stack. The norm after the
last layer belongs to the head.
"""

import math
from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, TokenCache
from hatchery.modeling.block_sums import BlockSums
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.initialisation import truncated_normal_
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layers import EncoderLayer, FeedForward, VocabularyHead, word_vectors
from hatchery.modeling.modern.attention import RmsNorm, RotaryAttention, norm_of, rotations
from hatchery.modeling.modern.config import ModernConfig
from hatchery.modeling.modern.stochastic_depth import SkippedLayer
from hatchery.modeling.norm_and_dropout import Dropout

DEVIATION = 0.02
"""Standard deviation of initial weights (ModernBERT, Llama), except for projections into the residual stream."""


class ModernEmbedding(nn.Module):
    """Word embedding, with a norm if the configuration has `embedding_norm`, and dropout."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layer_norm = norm_of(config, config.hidden_size) if config.embedding_norm else None
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return vectors [B, T, D]; `input_ids` are ids or word vectors (`word_vectors`)."""
        vectors = word_vectors(self.word_embedding, input_ids)
        embedded: Tensor = self.dropout(vectors if self.layer_norm is None else self.layer_norm(vectors))
        return embedded


class ModernEncoder(LayeredEncoder):
    """A stack of pre-norm layers with rotary positions."""

    def __init__(self, config: ModernConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = ModernEmbedding(config)
        self.skip_residual_scales: nn.ParameterList | None = None
        if config.unet_skips:
            scales = [nn.Parameter(torch.ones(config.hidden_size)) for _ in range(config.num_hidden_layers // 2)]
            self.skip_residual_scales = nn.ParameterList(scales)
        self.add_layers(self._layer(config, number) for number in range(config.num_hidden_layers))

    def _layer(self, config: ModernConfig, number: int) -> EncoderLayer:
        size = config.hidden_size
        attention = RotaryAttention(config, mixes_values=config.value_residual and number > 0)
        gelu = config.feed_forward_activation == "geglu"
        feed_forward = FeedForward(
            size,
            config.intermediate_size,
            config.hidden_dropout_prob,
            gated=True,
            bias=False,
            exact_gelu=gelu,
            silu=not gelu,
            pre_layer_norm=norm_of(config, size),
        )
        parts = attention, feed_forward, self.weighting, size, config.layer_norm_eps
        if config.stochastic_depth == 0:
            return EncoderLayer(*parts)
        return SkippedLayer(config.stochastic_depth * (number + 1) / config.num_hidden_layers, *parts)

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout, as fine-tuning protocols do, and disable the skipping of layers."""
        super().set_dropout(probability)
        for layer in self.layers:
            if isinstance(layer, SkippedLayer):
                layer.probability = 0.0

    @property
    def word_embedding(self) -> nn.Embedding:
        """Return the word embedding [V, D]."""
        return self.embedding.word_embedding

    @property
    def layers_add_up(self) -> bool:
        """Return whether the state after a layer is the sum of the contributions of all layers so far. False with U-Net
        skips.
        """
        return super().layers_add_up and not self.config.unet_skips

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Return embedded tokens [B, T, D] of `input_ids` int64 [B, T], and the inputs of the layers' attention."""
        config = self.config
        tokens: Tensor = self.embedding(input_ids)
        rotary = rotations(input_ids.shape[1], config.head_size, config.rotary_base, tokens.device)
        inputs = AttentionInputs(mask=attention_mask, rotary=rotary)
        if config.value_residual:
            first = self.layers[0].attention
            assert isinstance(first, RotaryAttention)
            inputs = inputs._replace(first_values=first.own_values(tokens))
        return tokens, inputs

    def _run_layers(
        self,
        layers: Iterable[nn.Module],
        embedded: Tensor,
        inputs: AttentionInputs,
        caches: Sequence[TokenCache] | None = None,
    ) -> tuple[list[Tensor], BlockSums | None]:
        if self.skip_residual_scales is None:
            return super()._run_layers(layers, embedded, inputs, caches)
        outputs = [embedded]
        for index, layer in enumerate(layers):
            given = inputs if caches is None else inputs._replace(cache=caches[index])
            outputs.append(layer(self._with_skip(outputs, index), given))
        return outputs, None

    def _with_skip(self, outputs: Sequence[Tensor], index: int) -> Tensor:
        """Return the input of a layer: the previous output plus, in the second half of the stack, the scaled output of
        the mirrored layer in the first half.
        """
        assert self.skip_residual_scales is not None
        mirrored = self.n_layers - index
        if mirrored > len(self.skip_residual_scales):
            return outputs[-1]
        return outputs[-1] + self.skip_residual_scales[mirrored - 1] * outputs[mirrored]

    def _run_for(self, embedded: Tensor, inputs: AttentionInputs, rows: Tensor) -> Tensor:
        if self.skip_residual_scales is None and inputs.first_values is None:
            return super()._run_for(embedded, inputs, rows)
        # Compute all positions, because skip connections and value residuals need whole sequences in every layer.
        return self._run(embedded, inputs)[-1].flatten(0, 1).index_select(0, rows)


class ModernHead(VocabularyHead):
    """Language-model head: norm and product with the output matrix. If `output_transform` is true, a linear layer, an
    exact GELU and a second norm precede the product.
    """

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.pre_layer_norm = norm_of(config, size)
        self.linear = nn.Linear(size, size, bias=False) if config.output_transform else None
        self.post_layer_norm = norm_of(config, size) if config.output_transform else None
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """Return the features that the output matrix multiplies, [..., D] from `hidden` [..., D]."""
        normalised: Tensor = self.pre_layer_norm(hidden)
        if self.linear is not None and self.post_layer_norm is not None:
            normalised = self.post_layer_norm(F.gelu(self.linear(normalised)))
        return normalised


@torch.no_grad()
def initialise_modern_(model: nn.Module, seed: int) -> None:
    """Set every parameter of a language model in place, except for the parameters of `LayerMixture`.

    Matrices are drawn from a truncated normal. The standard deviation of projections into the residual stream is
    divided by sqrt(2 n), for n layers (GPT-2, ModernBERT).
    """
    config = model.config
    assert isinstance(config, ModernConfig)
    depth = math.sqrt(2 * config.num_hidden_layers)
    for module_name, module in model.named_modules():
        for name, parameter in module.named_parameters(prefix=module_name, recurse=False):
            if isinstance(module, RmsNorm):
                parameter.fill_(1.0)
            elif parameter.dim() >= 2:
                deviation = DEVIATION / depth if name.endswith("output_projection.weight") else DEVIATION
                truncated_normal_(parameter, deviation, seed, name)
            elif name.endswith("value_residual_scale"):
                parameter.fill_(RotaryAttention.first_mix)
            elif "skip_residual_scales" in name:
                parameter.fill_(1.0)
            elif not isinstance(module, nn.ParameterList):
                parameter.zero_()
