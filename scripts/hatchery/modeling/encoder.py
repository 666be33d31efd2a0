"""What heads, probes and the training of tasks know of a pretrained model: states of its layers, however they are made.

Ours are `layered_encoder.LayeredEncoder`; models of the library `transformers` come through
`evaluation.baselines.encoder`. Tensors are batch first, and attention masks are True at tokens.
"""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn


class Encoder(nn.Module, ABC):
    """A pretrained model without what it was pretrained with: the head that predicts words."""

    config: Any
    """At least `hidden_size`, the width of all states, and `layer_norm_eps`."""
    longest_input: int | None = None
    """Tokens that an input may have, special ones included; None: no limit, or one that planning knows."""
    first_token_is_blind: bool = False
    """Whether heads of whole texts that would read the first token read the last instead, which has seen the rest."""

    @property
    @abstractmethod
    def n_layers(self) -> int:
        """Number of layers, the embedding not counted."""

    @property
    @abstractmethod
    def has_residual_stream(self) -> bool:
        """Whether a layer adds to its input, so that the difference of two states is what a layer gives."""

    @property
    @abstractmethod
    def layers_add_up(self) -> bool:
        """Whether the state of a layer is the sum of what it and the layers below have given, with no norm between."""

    @abstractmethod
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """The states, each [B, T, D]: the embedding, one of each layer, and possibly one more; heads read the last.

        `input_ids` is int64 [B, T], `attention_mask` bool [B, T] (None: all are tokens).
        """

    @abstractmethod
    def hidden_at(self, input_ids: Tensor, attention_mask: Tensor | None, rows: Tensor, *, few: bool = False) -> Tensor:
        """The last states [M, D] at the flat positions `rows` int64 [M] (b * T + t); `few` says that they are."""

    @abstractmethod
    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout, as fine-tuning protocols do. Raises ModelError."""
