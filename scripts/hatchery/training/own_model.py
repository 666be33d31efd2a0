"""Train a user's own PyTorch module in the training loop of Hatchery's models.

The interface is one method: `forward(input_ids, attention_mask)` returns logits [B, T, V]; B is the batch size, T the
sequence length, and V at least the size of the vocabulary. `input_ids` is int64 [B, T]. `attention_mask` is bool [B, T,
T]; entry [b, i, j] is True if token i may attend to token j. The objective determines the mask; every position,
including padding, may attend to itself.

Two other attributes are optional. `longest_input` is the maximum number of tokens in an input, for a module with
learned positions. `hidden_states(input_ids, attention_mask)` returns states [B, T, D] of D dimensions, or a list of
such tensors from the embedding to the last layer; fine-tuning and probing need this method.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from hatchery.artifacts.atomic import atomic_path
from hatchery.errors import ConfigError, ModelError, first_line
from hatchery.modeling.language_model import LanguageModelOutput, labelled_positions
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.modeling.store import WEIGHTS_FILE
from hatchery.training.settings import PretrainSettings

MakeModule = Callable[[int], nn.Module]
"""A function that returns a module for a vocabulary size."""


@dataclass(frozen=True)
class OwnConfig:
    """The part of a model's configuration that exists for a user's module: the size of the vocabulary."""

    vocab_size: int


class OwnModel(nn.Module):
    """A user's module with the interface of `LanguageModel`."""

    def __init__(self, module: nn.Module, vocabulary_size: int) -> None:
        super().__init__()
        self.module, self.config = module, OwnConfig(vocabulary_size)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        labels: Tensor,
        labelled: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Return the predictions at the labelled positions; see `LanguageModel.forward`. `labels` is int64 [B, T].

        Raises ModelError for logits of another shape than [B, T, V].
        """
        logits = self.logits(input_ids, attention_mask, causal)
        labelled = labelled_positions(labels) if labelled is None else labelled
        return LanguageModelOutput(full_precision(logits.flatten(0, 1)[labelled]), labels.flatten()[labelled], labelled)

    def logits(self, input_ids: Tensor, attention_mask: Tensor | None, causal: Tensor | None) -> Tensor:
        """Return the logits [B, T, V] of all positions.

        Raises ModelError for logits of another shape, for an input longer than `longest_input`, and for an id or a
        position outside of the module's embeddings.
        """
        name, (n_batch, length) = type(self.module).__name__, tuple(input_ids.shape)
        if self.longest_input is not None and length > self.longest_input:
            raise ModelError(f"{name}: got an input of {length} tokens, expected at most {self.longest_input}")
        with missing_embeddings_reported(name, input_ids):
            logits: Tensor = self.module(input_ids, may_read(input_ids, attention_mask, causal))
        size = self.config.vocab_size
        if logits.dim() != 3 or tuple(logits.shape[:2]) != (n_batch, length) or logits.shape[2] < size:
            raise ModelError(
                f"{name}: its output has the shape {list(logits.shape)}, expected [{n_batch}, {length}, V] with V at "
                f"least {size}, the size of the vocabulary"
            )
        return logits

    @property
    def longest_input(self) -> int | None:
        """Maximum number of tokens of an input: the attribute `longest_input` of the module; None if the module does
        not have this attribute.

        Raises ConfigError if the attribute is not a positive integer.
        """
        value = getattr(self.module, "longest_input", None)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ConfigError(
                f"{type(self.module).__name__}: longest_input: got {value!r}, expected a number of tokens"
            )
        return value

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Return each tensor of the module once, because safetensors files cannot store a tensor under two names."""
        tensors, unique, seen = super().state_dict(*args, **kwargs), dict[str, Any](), set[Any]()
        for name, tensor in tensors.items():
            place = (tensor.data_ptr(), tensor.shape, tensor.stride()) if tensor.numel() else name
            if place not in seen:
                seen.add(place)
                unique[name] = tensor
        return unique

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Copy the tensors of `state_dict`, a result of the method `state_dict`, into the module."""
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                tensor.copy_(state_dict[name])


@contextmanager
def missing_embeddings_reported(name: str, input_ids: Tensor) -> Iterator[None]:
    """Convert an IndexError in the `with` block to ModelError. `name` is the module's name; its input is `input_ids`
    int64 [B, T]."""
    try:
        yield
    except IndexError as error:
        raise ModelError(
            f"{name}: {first_line(error)}; the input has {input_ids.shape[1]} tokens with ids up to "
            f"{int(input_ids.max())}; if positions are learned, the module needs the attribute longest_input, the "
            "maximum number of tokens"
        ) from error


def may_read(input_ids: Tensor, attention_mask: Tensor | None, causal: Tensor | None) -> Tensor:
    """Return the attention mask, bool [batch, sequence, sequence]: entry [b, i, j] is True if token i of sequence b may
    attend to token j.

    `attention_mask`, bool [batch, sequence] or [batch, sequence, sequence], is True at tokens that may be attended to;
    None allows all tokens. `causal`, bool [batch], is True for sequences in which a token may attend only to itself and
    earlier tokens.
    """
    n_batch, length = input_ids.shape
    square = torch.ones(length, length, dtype=torch.bool, device=input_ids.device)
    mask = square.expand(n_batch, -1, -1)
    if attention_mask is not None:
        mask = mask & (attention_mask[:, None] if attention_mask.dim() == 2 else attention_mask)
    if causal is not None:
        mask = mask & (square.tril() | ~causal[:, None, None])
    # Let each token attend to itself, because a softmax over no positions would be NaN.
    return mask | square.tril().triu()


def own_model(make: MakeModule | nn.Module, vocabulary_size: int, seed: int = 0) -> OwnModel:
    """Return the user's module, or the module that the function `make` returns for `vocabulary_size`, as a model.

    If `make` is a function, it is called with torch's random generator seeded by `seed`, so `seed` determines the
    initial weights. Raises ConfigError for a value that is not a module, and for a module without trainable parameters.
    """
    if isinstance(make, nn.Module):
        module = make
    else:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            module = make(vocabulary_size)
    if not isinstance(module, nn.Module):
        raise ConfigError(f"model: got a function that returns a {type(module).__name__}, expected a torch.nn.Module")
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ConfigError(f"model: {type(module).__name__} has no parameter that can be trained")
    return OwnModel(module.to("cpu", torch.float32), vocabulary_size)


def described(make: MakeModule | nn.Module) -> dict[str, object]:
    """Return a description of a user's module for the run's settings: its class, and a digest of its tensors' names and
    shapes. If `make` is a function, return only the function's name.

    The description excludes the values of the tensors. So an interrupted run is continued even if the module now has
    other initial weights.
    """
    if not isinstance(make, nn.Module):
        return {"module": getattr(make, "__qualname__", type(make).__qualname__)}
    shapes = {name: list(tensor.shape) for name, tensor in make.state_dict().items()}
    digest = hashlib.sha256(json.dumps(shapes, sort_keys=True).encode()).hexdigest()
    return {"module": type(make).__qualname__, "tensors": digest}


def check_own_model(settings: PretrainSettings) -> None:
    """Raise ConfigError for settings that a user's module does not support."""
    kinds, bias = settings.objective.kinds, settings.output_bias
    pairs = settings.objective.model_values["sentence_pair_head"]
    asked = {
        "objective": "translation" in kinds or pairs,
        "initialise_from": settings.initialise_from is not None,
        "output_bias": bias.kind != "zero" or bias.weight_scale != "own" or bias.report,
        "divergences": settings.divergences,
        "bias_drift": settings.bias_drift,
    }
    for key, is_asked in asked.items():
        if is_asked:
            raise ConfigError(
                f"{key}: got {getattr(settings, key)}, expected the default, because a module of your own code does "
                "not support this key"
            )


def save_own_model(folder: Path, model: OwnModel) -> list[Path]:
    """Write the module's weights, with the names of its `state_dict`, into `folder`; return the file."""
    tensors = {name.removeprefix("module."): tensor for name, tensor in sorted(model.state_dict().items())}
    with atomic_path(folder / WEIGHTS_FILE) as partial:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, partial)
    return [folder / WEIGHTS_FILE]
