"""The base of all models for labelled tasks: an encoder, a freshly initialised head, and a prediction target, which
computes the loss and the predicted labels.

The training loop is the same for all tasks: it calls the model with a batch, passes scores and labels to `loss`, and
evaluates `predictions`. The initial weights of the head depend only on a seed and on the names of the weights, except
with PyTorch's initialisation (`initialise_as_pytorch_`).

`ScoreHead` applies a sequence of steps to a vector, and then the output layer. The published heads differ only in the
order of a few steps, so `TRANSFORMS` defines each head as a tuple of steps. Layer norms have no parameters
(docs/papers/ltg-bert.md, "Model").
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.targets import SummedLoss, Target
from hatchery.modeling.initialisation import initial_standard_deviation, truncated_normal_
from hatchery.modeling.norm_and_dropout import Dropout, full_precision, set_dropout
from hatchery.settings.base import Settings

Step = Literal["layer_norm", "linear", "dropout", "gelu", "relu", "tanh"]
TransformName = Literal["ltg_wrapper", "ltg_code", "roberta", "none", "dropout", "probe"]

ACTIVATIONS: dict[Step, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu, "tanh": torch.tanh}


TRANSFORMS: dict[TransformName, tuple[Step, ...]] = {
    # The head in the wrapper of LTG-BERT's published checkpoints. This head is also used for ELC-BERT, whose authors
    # published no head.
    "ltg_wrapper": ("layer_norm", "linear", "gelu", "layer_norm", "dropout"),
    # The head in LTG-BERT's GLUE training code (docs/papers/ltg-bert.md, "Fine-tuning").
    "ltg_code": ("dropout", "linear", "relu", "layer_norm", "dropout"),
    # RoBERTa's stock sequence classifier. The models of the reduced-vocabulary study whose embeddings and hidden states
    # have equal widths have this head.
    "roberta": ("dropout", "linear", "tanh", "dropout"),
    # Only the output layer, without dropout. The models of the reduced-vocabulary study whose embeddings and hidden
    # states have different widths have this head, after the pooling `position_linear`.
    "none": (),
    # Dropout and the output layer, for tagging parts of speech in BabyLM's multilingual track.
    "dropout": ("dropout",),
    # One hidden layer, like the edge probe of LTG-BERT, Appendix B.2 and Table 11; its activation is not published.
    "probe": ("linear", "gelu", "dropout"),
}
"""Steps between the pooled vector and the output layer. A transform has at most one linear step."""


class ScoreHead(nn.Module):
    """Computes scores from vectors: the steps of a transform, then the output layer.

    `hidden_size` is the width of the linear step (None: the input width). Raises ModelError for an unknown transform or
    fewer than one output.
    """

    def __init__(
        self,
        input_size: int,
        n_outputs: int,
        layer_norm_eps: float,
        transform: TransformName = "ltg_wrapper",
        hidden_size: int | None = None,
    ) -> None:
        super().__init__()
        if n_outputs < 1:
            raise ModelError(f"n_labels: got {n_outputs!r}, expected 1 or more")
        if transform not in TRANSFORMS:
            raise ModelError(f"transform: got {transform!r}, allowed are: {', '.join(TRANSFORMS)}")
        self.steps = TRANSFORMS[transform]
        self.layer_norm_eps = layer_norm_eps
        width = input_size
        if "linear" in self.steps:
            width = hidden_size or input_size
            self.linear = nn.Linear(input_size, width)
        self.dropout = Dropout(0.0)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return scores [..., outputs] of `vectors` [..., D], in full precision."""
        for step in self.steps:
            vectors = self._apply_step(step, vectors)
        return full_precision(self.output(vectors))

    def _apply_step(self, step: Step, vectors: Tensor) -> Tensor:
        if step == "linear":
            return self.linear(vectors)
        if step == "dropout":
            return self.dropout(vectors)
        if step == "layer_norm":
            return F.layer_norm(full_precision(vectors), vectors.shape[-1:], eps=self.layer_norm_eps)
        return ACTIVATIONS[step](vectors)


def score_head(encoder: Encoder, n_outputs: int, transform: TransformName) -> ScoreHead:
    """Return a head with the width and the layer-norm epsilon of `encoder`. Raises ModelError, as `ScoreHead` does."""
    config = encoder.config
    return ScoreHead(config.hidden_size, n_outputs, config.layer_norm_eps, transform)


EncoderMode = Literal["trained", "frozen", "frozen_with_dropout"]


@dataclass(frozen=True)
class HeadContext:
    """Inputs of a head that do not come from its options."""

    n_labels: int | None
    """Number of labels of the task; None for heads without a label set."""
    dropout: float
    seed: int
    pad_id: int
    """Id of the tokenizer's padding token, with which "position_linear" pads."""
    keeps_encoder_dropout: bool = False
    """True if the encoder keeps the dropout of its pretraining."""

    @property
    def n_outputs(self) -> int:
        """Return the number of labels, or 1 if there is no label set."""
        return 1 if self.n_labels is None else self.n_labels


@dataclass(frozen=True)
class EncoderOptions(Settings):
    """Options of every head."""

    encoder_mode: EncoderMode = "trained"


class TaskModel(nn.Module):
    """An encoder with a new head. Subclasses define `forward`, which computes scores. From these scores, `target`
    computes the loss and the predicted labels.

    The encoder is not copied. A frozen encoder gets no gradients. In the mode "frozen", the encoder has no dropout. In
    the mode "frozen_with_dropout", the encoder has dropout in training, as in LTG-BERT's published probing code
    (docs/papers/ltg-bert.md, "Edge probing"). `context.dropout` is the dropout probability of the head. Unless
    `context.keeps_encoder_dropout` is set, a trained encoder has the same dropout probability. `context.seed`
    determines the initial weights of the head. Raises ModelError for an invalid dropout.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        target: Target,
        context: HeadContext,
        encoder_mode: EncoderMode,
    ) -> None:
        super().__init__()
        self.encoder, self.head, self.target, self.encoder_mode = encoder, head, target, encoder_mode
        self.keeps_encoder_dropout = context.keeps_encoder_dropout
        self.add_fresh(head, context.seed)
        encoder.requires_grad_(encoder_mode == "trained")
        self.set_dropout(context.dropout)

    def add_fresh(self, module: nn.Module, seed: int, name: str = "") -> None:
        """Initialise a module that has no pretrained weights, and move it to the encoder's device and precision. `name`
        is a prefix for the names of the module's weights, which select random streams (see `initialise_fresh_`).
        """
        initialise_fresh_(module, seed, name)
        module.to(next(self.encoder.parameters()))

    @property
    def output_layer(self) -> nn.Linear:
        """Return the last linear layer of the head; `hatchery.modeling.output_bias` can set its bias to a prior."""
        return next(module.output for module in self.head.modules() if isinstance(module, ScoreHead))

    def fresh_parameters(self) -> list[nn.Parameter]:
        """Return the parameters outside of the encoder, for protocols that give these parameters their own learning
        rate (1e-3 in LTG-BERT's code).
        """
        return [parameter for name, parameter in self.named_parameters() if not name.startswith("encoder.")]

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the loss of `scores`, the result of `forward`. The class of `target` defines the form of `labels`."""
        return self.target.loss(scores, labels)

    def predictions(self, scores: Tensor) -> Tensor:
        """Return the labels that `scores` predict. The class of `target` defines their form."""
        return self.target.predictions(scores)

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout of the head. If the encoder is trained and does not keep the dropout of
        its pretraining, also use `probability` at every dropout of the encoder. Raises ModelError unless 0 <=
        probability < 1.
        """
        for name, child in self.named_children():
            if name != "encoder":
                set_dropout(child, probability)
        if self.encoder_mode == "trained" and not self.keeps_encoder_dropout:
            self.encoder.set_dropout(probability)

    def train(self, mode: bool = True) -> "TaskModel":
        """Set the training mode; an encoder in the mode "frozen" stays in evaluation mode."""
        super().train(mode)
        if self.encoder_mode == "frozen":
            self.encoder.eval()
        return self


Initialisation = Literal["ltg", "pytorch"]


def initialise_as_pytorch_(head: nn.Module, seed: int) -> None:
    """Initialise the weights and biases of all linear layers of a head with PyTorch's default initialisation."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for child in head.modules():
            if isinstance(child, nn.Linear):
                child.reset_parameters()


@torch.no_grad()
def initialise_fresh_(module: nn.Module, seed: int, prefix: str = "") -> None:
    """Draw the weights of all linear layers inside `module` from a truncated normal, and set their biases to 0.

    The standard deviation is sqrt(2 / (5 * n)) for a layer with n inputs; LTG-BERT uses the hidden size for n. The name
    of a weight, after `prefix` is prepended, selects its random stream.
    """
    for name, child in module.named_modules():
        if isinstance(child, nn.Linear):
            truncated_normal_(child.weight, initial_standard_deviation(child.in_features), seed, prefix + name)
            if child.bias is not None:
                child.bias.zero_()
