"""From a vector to scores: a named sequence of steps, then the output layer.

The published heads differ in the order of a few steps alone, so each is an entry of `TRANSFORMS`, not a class. Layer
norms have no parameters (docs/papers/ltg-bert.md, "Model").
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.norm_and_dropout import Dropout, full_precision

Step = Literal["layer_norm", "linear", "dropout", "gelu", "relu", "tanh"]
TransformName = Literal["ltg_wrapper", "ltg_code", "roberta", "none", "probe"]

ACTIVATIONS: dict[Step, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu, "tanh": torch.tanh}


class Transform(NamedTuple):
    """The steps between a pooled vector and the output layer; at most one of them is linear."""

    steps: tuple[Step, ...]
    source: str


TRANSFORMS: dict[TransformName, Transform] = {
    "ltg_wrapper": Transform(
        ("layer_norm", "linear", "gelu", "layer_norm", "dropout"),
        "The wrapper of LTG-BERT's released checkpoints; also used for ELC-BERT, which published no head.",
    ),
    "ltg_code": Transform(
        ("dropout", "linear", "relu", "layer_norm", "dropout"),
        'LTG-BERT\'s GLUE training code (docs/papers/ltg-bert.md, "Fine-tuning").',
    ),
    "roberta": Transform(
        ("dropout", "linear", "tanh", "dropout"),
        "RoBERTa's stock sequence classifier; the tied family of the reduced-vocabulary study.",
    ),
    "none": Transform(
        (),
        "Output layer alone, no dropout: the custom family of the reduced-vocabulary study, after position_linear.",
    ),
    "probe": Transform(
        ("linear", "gelu", "dropout"),
        "One hidden layer, as the edge probe of LTG-BERT, Appendix B.2 and Table 11; its activation is not published.",
    ),
}


class ScoreHead(nn.Module):
    """From vectors to one score per output, through the steps of a transform.

    `hidden_size` is the width of the linear step, that of the input unless told otherwise. Raises ModelError for fewer
    than one output and for an unknown transform.
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
        self.steps = TRANSFORMS[transform].steps
        self.layer_norm_eps = layer_norm_eps
        width = input_size
        if "linear" in self.steps:
            width = hidden_size or input_size
            self.linear = nn.Linear(input_size, width)
        self.dropout = Dropout(0.0)
        self.output = nn.Linear(width, n_outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores [..., outputs] in full precision of `vectors` [..., D]."""
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
    """A head of the width and the layer-norm epsilon of `encoder`. Raises ModelError, as `ScoreHead` does."""
    config = encoder.config
    return ScoreHead(config.hidden_size, n_outputs, config.layer_norm_eps, transform)
