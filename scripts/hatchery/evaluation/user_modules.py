"""Adapters of a user's PyTorch module for evaluations that need more than logits and a Hatchery tokenizer.

`UserEncoder` returns the hidden states for fine-tuning and probing; the module's own method `hidden_states` computes
them. `LibraryView` is for a module with a tokenizer of the library `transformers`: it has the interface of a model of
this library.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.evaluation.baselines.encoder import USUAL_EPSILON, BaselineModel, BaselineSizes, set_dropout_
from hatchery.modeling.encoder import Encoder
from hatchery.training.own_model import OwnModel, may_read, missing_embeddings_reported

STATES = "hidden_states"
"""Name of the module's method that returns hidden states: see `training.own_model`."""


class UserEncoder(Encoder):
    """An encoder whose hidden states are computed by the method `hidden_states` of a user's module.

    Raises EvaluationError for a module without this method, and ModelError for states whose shape is not [sequences,
    tokens, width].
    """

    def __init__(self, network: OwnModel, causal: bool, some_id: int) -> None:
        super().__init__()
        self.module, self.first_token_is_blind = network.module, causal
        self.name = type(network.module).__name__
        self.longest_input = network.longest_input
        if not callable(getattr(network.module, STATES, None)):
            raise EvaluationError(
                f"{self.name}: has no method {STATES}(input_ids, attention_mask), whose states "
                "[sentences, tokens, width] fine-tuning and probing read (docs/python.md); expected a module "
                "with this method, a model of Hatchery, or a model of the library transformers"
            )
        first = next(network.module.parameters(), None)
        with torch.no_grad():
            states = self(torch.full((1, 2), some_id, device=None if first is None else first.device))
        self.config = BaselineSizes(states[-1].shape[-1], len(states) - 1, USUAL_EPSILON)

    @property
    def n_layers(self) -> int:
        """Number of layers that probes can read: 0 if the module returns only its last hidden states."""
        return self.config.num_hidden_layers

    @property
    def has_residual_stream(self) -> bool:
        """False, because it is unknown whether the module's layers add their outputs to their inputs."""
        return False

    @property
    def layers_add_up(self) -> bool:
        """False, because it is unknown whether the state after a layer is the sum of the contributions of all layers so
        far.
        """
        return False

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """Return the hidden states of all layers, each [sequences, tokens, width]. Raises ModelError for states of
        other shapes.
        """
        causal = torch.full(input_ids.shape[:1], self.first_token_is_blind, device=input_ids.device)
        with missing_embeddings_reported(self.name, input_ids):
            found = getattr(self.module, STATES)(input_ids, may_read(input_ids, attention_mask, causal))
        states = [found] if isinstance(found, Tensor) else list(found)
        shapes = [list(state.shape) for state in states]
        if not states or any(len(shape) != 3 or shape != shapes[0] for shape in shapes):
            raise ModelError(
                f"{self.name}: {STATES} returned the shapes {shapes}, expected equal shapes [sentences, tokens, width]"
            )
        if tuple(shapes[0][:2]) != tuple(input_ids.shape):
            raise ModelError(
                f"{self.name}: {STATES} returned the shape {shapes[0]}, expected "
                f"[{input_ids.shape[0]}, {input_ids.shape[1]}, width]"
            )
        return states

    def hidden_at(self, input_ids: Tensor, attention_mask: Tensor | None, rows: Tensor, *, few: bool = False) -> Tensor:
        """Return the last hidden states [positions, width] at the positions `rows` int64, numbered through the whole
        batch: position t of sequence b has the number b times the sequence length plus t. `few` has no effect, because
        the module computes all positions.
        """
        return self(input_ids, attention_mask)[-1].flatten(0, 1).index_select(0, rows)

    def set_dropout(self, probability: float) -> None:
        """Set the probability of every dropout, including probabilities that the module stores as plain numbers. Raises
        ModelError for a probability outside [0, 1).
        """
        set_dropout_(self, probability)


class LibraryView(nn.Module):
    """A user's module with the interface of a model of the library `transformers`.

    Raises ModelError for logits whose shape is not [sequences, tokens, output ids].
    """

    def __init__(self, network: OwnModel, causal: bool) -> None:
        super().__init__()
        self.network, self.causal = network, causal
        self.config = SimpleNamespace(max_position_embeddings=network.longest_input, pad_token_id=None, model_type="")

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> SimpleNamespace:
        """Return an object with the logits [sequences, tokens, output ids]. The module caches no keys and values, and
        reads no token types.
        """
        causal = torch.full(input_ids.shape[:1], self.causal, device=input_ids.device)
        mask = None if attention_mask is None else attention_mask.bool()
        return SimpleNamespace(logits=self.network.logits(input_ids, mask, causal))

    def get_output_embeddings(self) -> SimpleNamespace:
        """Return an object whose `weight` has one row per output id."""
        return SimpleNamespace(weight=torch.empty(self.network.config.vocab_size, 0))

    def get_input_embeddings(self) -> SimpleNamespace:
        """Return an object whose `num_embeddings` is the number of input ids, which equals the number of output ids."""
        return SimpleNamespace(num_embeddings=self.network.config.vocab_size)


class LibraryTokensModel(BaselineModel):
    """A user's module with a tokenizer of `transformers`, as a language model that scores sentences and held-out
    text."""

    network: LibraryView
