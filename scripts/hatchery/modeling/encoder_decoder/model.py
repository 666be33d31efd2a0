"""The translation model, which predicts every token of the target from the source and the previous tokens of the
target.

Initial weights: matrices are drawn by Xavier's normal initialisation, except that the embedding and the output matrix
are drawn from N(0, 1/D). Biases are 0, and the gains of norms are 1. Source: "A Natural Bias for Language Generation
Models", Section 4.1 (the output matrix); N(0, 1/D) is usual for embeddings that are scaled by sqrt(D).
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.encoder_decoder.decoding import DecoderLayer, Decoding, OutputLayer, SourceEncoder, norm
from hatchery.modeling.initialisation import normal_, xavier_deviation
from hatchery.modeling.language_model import LanguageModel, LanguageModelOutput, labelled_positions
from hatchery.modeling.layer_weighting import LayerWeighting
from hatchery.modeling.norm_and_dropout import LayerNorm, full_precision


class TranslationModel(Decoding, LanguageModel):
    """Encoder, decoder and output layer. `hatchery.modeling.language_model.initialise_` sets the initial weights."""

    config: EncoderDecoderConfig
    encoder: SourceEncoder
    head: OutputLayer

    def __init__(
        self, config: EncoderDecoderConfig, weighting: LayerWeighting | None = None, causal: bool = False
    ) -> None:
        super().__init__(config, weighting, causal)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.decoder_norm = norm(config) if config.normalisation == "pre_norm" else None

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        target_ids: Tensor,
        labels: Tensor,
        labelled: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Return the predictions at the labelled positions of `labels` int64 [B, T] (-100: not labelled).

        The source is `input_ids` int64 [B, S] with `attention_mask` bool [B, S]. The decoder reads `target_ids` int64
        [B, T]: the start token, and all labels except the last label. `labelled` is the result of
        `labelled_positions(labels)`, if known.
        """
        labelled = labelled_positions(labels) if labelled is None else labelled
        targets = labels.flatten()[labelled]
        hidden = self.decode(target_ids, self.begin(input_ids, attention_mask))
        logits = full_precision(self.logits_at(hidden.flatten(0, 1).index_select(0, labelled)))
        return LanguageModelOutput(logits, targets, labelled)

    def labelled_hidden(self, batch: Mapping[str, Tensor], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Return the hidden states [N, D] at the labelled positions of a CPU `batch`, and the labels int64 [N], on
        `device`.
        """
        rows = labelled_positions(batch["labels"])
        moved_batch = {name: tensor.to(device) for name, tensor in batch.items()}
        hidden = self.decode(
            moved_batch["target_ids"], self.begin(moved_batch["input_ids"], moved_batch.get("attention_mask"))
        )
        labelled = rows.to(device)
        return hidden.flatten(0, 1).index_select(0, labelled), moved_batch["labels"].flatten()[labelled]


@torch.no_grad()
def initialise_encoder_decoder_(model: nn.Module, seed: int) -> None:
    """Set every parameter of `model`, whose `config` is an EncoderDecoderConfig, in place."""
    config = model.config
    assert isinstance(config, EncoderDecoderConfig)
    for module_name, module in model.named_modules():
        for name, parameter in module.named_parameters(prefix=module_name, recurse=False):
            if isinstance(module, LayerNorm):
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
            elif parameter.dim() < 2:
                parameter.zero_()
            elif name == "head.vocabulary_weight":
                # `scale_output_weight_` uses the same random stream, so scaled and unscaled matrices differ only by a
                # factor.
                normal_(parameter, 1 / math.sqrt(config.hidden_size), seed, "output_weight")
            elif isinstance(module, nn.Linear):
                normal_(parameter, xavier_deviation(parameter), seed, name)
            else:
                normal_(parameter, 1 / math.sqrt(config.hidden_size), seed, name)
