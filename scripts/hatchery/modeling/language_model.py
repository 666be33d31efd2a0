"""The language model: an encoder and a head that predicts a subword at every labelled position.

The objective creates the labels (masked subwords or next subwords), and decides for each sequence of a batch whether
its attention is causal. With a sentence-pair head, the model also predicts whether the two texts of an input belong
together. Losses are sums, so that the training engine can divide by the number of labels in the global batch.

Source: LTG-BERT, Sections 4 and 5, ELC-BERT, Section 3, after the published code of these two papers.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.families import family_of
from hatchery.modeling.layer_weighting import LayerMixture, LayerWeighting
from hatchery.modeling.layers import SentencePairHead, VocabularyHead
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.tokenization.special_tokens import UNLABELLED


def labelled_positions(labels: Tensor) -> Tensor:
    """Return the positions of the labels in `labels` int64 [B, T], as int64 [M]; a position is the flat index b * T +
    t.
    """
    return (labels.flatten() != UNLABELLED).nonzero().squeeze(1)


class LanguageModelOutput(NamedTuple):
    """Predictions at the M labelled positions of a batch, from which objectives compute their losses."""

    logits: Tensor
    """[M, V], at least fp32; softmax over the vocabulary gives the prediction."""
    targets: Tensor
    """int64 [M], the labels."""
    positions: Tensor
    """Positions of the labels in the batch, int64 [M]: b * T + t."""
    pair_logits: Tensor | None = None
    """fp32 [B], above 0 if the two texts of an input are predicted to belong together; None without sentence pairs."""

    @property
    def loss_sum(self) -> Tensor:
        """Return the sum of the cross-entropies (nats), fp32. If there are no labels, the sum is 0 and its gradient is
        0.
        """
        return F.cross_entropy(self.logits, self.targets, reduction="sum")

    @property
    def n_labelled(self) -> Tensor:
        """Return the number of labelled positions, int64."""
        return self.targets.new_full((), len(self.targets))

    @property
    def n_correct(self) -> Tensor:
        """Return the number of labelled positions at which the most probable subword is correct, int64."""
        return (self.logits.detach().argmax(dim=-1) == self.targets).sum()


class LanguageModel(nn.Module):
    """Encoder and heads; call `initialise_` before training the model."""

    def __init__(self, config: ModelConfig, weighting: LayerWeighting | None = None, causal: bool = False) -> None:
        """Create a model; `causal` is the default attention of the encoder (`LayeredEncoder.causal`)."""
        super().__init__()
        self.config = config
        modules = family_of(config).modules()
        self.encoder: LayeredEncoder = modules.encoder(config, weighting)
        self.encoder.causal = causal
        self.head: VocabularyHead = modules.head(config)
        self.pair_head: SentencePairHead | None = None
        if config.sentence_pair_head:
            self.pair_head = SentencePairHead(config.hidden_size, config.layer_norm_eps, config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        labels: Tensor,
        pair_labels: Tensor | None = None,
        labelled: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Return the predictions at the labelled positions of `labels` int64 [B, T] (-100: not labelled).

        For `input_ids` int64 [B, T] and `attention_mask`, see `LayeredEncoder.forward`. `causal` is bool [B]; None: no
        sequence is causal. If `pair_labels` int64 [B] are given, the sentence-pair head classifies the two texts of
        each sequence. `labelled` is the result of `labelled_positions(labels)`, if the caller has already computed it.
        """
        # Compute logits only at labelled positions. The product with the large output matrix is expensive, and in
        # masked training only about 15 % of all positions are labelled.
        labelled = labelled_positions(labels) if labelled is None else labelled
        targets = labels.flatten()[labelled]
        rows = labelled
        if pair_labels is not None:
            firsts = torch.arange(len(input_ids), device=input_ids.device) * input_ids.shape[1]
            rows = torch.cat([labelled, firsts])
        hidden = self.encoder.hidden_at(input_ids, attention_mask, rows, causal=False if causal is None else causal)
        logits = full_precision(self.logits_at(hidden[: len(labelled)]))
        if pair_labels is None:
            return LanguageModelOutput(logits, targets, labelled)
        assert self.pair_head is not None, "the configuration has no sentence_pair_head"
        return LanguageModelOutput(logits, targets, labelled, full_precision(self.pair_head(hidden[len(labelled) :])))

    def labelled_hidden(self, batch: Mapping[str, Tensor], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Return the inputs [N, D] of the head at the labelled positions of a CPU `batch`, and the labels int64 [N], on
        `device`.

        The batch has the keys of training examples (`input_ids`, `attention_mask`, `labels`, `causal`).
        """
        labels, mask, causal = batch["labels"].flatten(), batch.get("attention_mask"), batch.get("causal")
        rows = labelled_positions(labels)
        mask = None if mask is None else mask.to(device)
        kind = False if causal is None else causal.to(device)
        hidden = self.encoder.hidden_at(batch["input_ids"].to(device), mask, rows.to(device), causal=kind)
        return hidden, labels[rows].to(device)

    @property
    def causal(self) -> bool:
        """Return whether the model was trained with causal attention, which is the default attention of its encoder."""
        return self.encoder.causal

    @property
    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        """Return the output matrix [V, D], which is the word embedding in tied models, and the output bias [V] (None in
        a head without bias).
        """
        own = self.head.vocabulary_weight
        return self.encoder.word_embedding.weight if own is None else own, self.head.vocabulary_bias

    def logits_at(self, hidden: Tensor) -> Tensor:
        """Return logits [..., V] of last hidden states [..., D]; softmax over the vocabulary gives the prediction."""
        return self.head(hidden, self.encoder.word_embedding.weight)


@torch.no_grad()
def initialise_(model: LanguageModel, seed: int) -> None:
    """Set every parameter of `model` in place, by the initialisation of its family.

    Models that differ only in layer weighting have equal initial weights outside of the layer weighting, because each
    tensor has its own stream of random numbers.
    """
    family_of(model.config).modules().initialise_(model, seed)
    for module in model.modules():
        if isinstance(module, LayerMixture):
            module.reset_parameters()


def build_language_model(config: ModelConfig, causal: bool = False) -> LanguageModel:
    """Return the model that `config` describes; its weights are set later by `initialise_` or by loading."""
    return family_of(config).modules().model(config, causal=causal)


def empty_language_model(config: ModelConfig, causal: bool = False) -> LanguageModel:
    """Return the result of `build_language_model` on the meta device: names and shapes of tensors without values."""
    with torch.device("meta"), _WithoutInitialisation():
        return build_language_model(config, causal)


class _WithoutInitialisation(TorchFunctionMode):
    """Context in which functions of `torch.nn.init` are skipped.

    On the meta device these functions have no effect, but their call would import torch's compiler, which takes 1 s.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def moved(tensor: Tensor, to: torch.device) -> Tensor:
    """Return `tensor` on the device `to`. A GPU copies it asynchronously from page-locked memory."""
    if to.type == "cpu" or tensor.device.type != "cpu":
        return tensor.to(to)
    return (tensor if tensor.is_pinned() else tensor.pin_memory()).to(to, non_blocking=True)
