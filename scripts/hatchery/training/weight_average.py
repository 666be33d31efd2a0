"""A moving average of the weights, which is evaluated and exported in their place.

Source: the published code of GPT-BERT (docs/papers/gpt-bert.md, "Training"): it starts as a copy of the
initial weights and is updated after every step, without a correction of its bias and of the parameters alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from hatchery.training.checkpoints import EXTRA, load_model
from hatchery.training.start_settings import WeightAverageSettings
from hatchery.training.watchers import Watcher

# Stands before the names of averaged weights among the other tensors of a checkpoint.
AVERAGE = "weight_average::"


class WeightAverage(Watcher):
    """The average of the weights of one model, on its device."""

    def __init__(self, settings: WeightAverageSettings) -> None:
        self.settings = settings
        self.raw: dict[str, Tensor] = {}
        """The whole state of the model at the last step, on the CPU; filled at the end where it is to be kept."""
        self._average: dict[str, Tensor] = {}

    @torch.no_grad()
    def begin(self, model: nn.Module) -> None:
        """Start with a copy of the weights, or with what a checkpoint held."""
        known = self._average
        self._average = {
            name: known[name].to(parameter.device) if name in known else parameter.detach().clone()
            for name, parameter in model.named_parameters()
        }

    @torch.no_grad()
    def after_step(self, model: nn.Module) -> None:
        """average = decay * average + (1 - decay) * weights."""
        averages = list(self._average.values())
        torch._foreach_mul_(averages, self.settings.decay)
        weights = [parameter.detach() for parameter in model.parameters()]
        torch._foreach_add_(averages, weights, alpha=1 - self.settings.decay)

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """For the block, the model has the averaged weights."""
        self._exchange(model)
        try:
            yield
        finally:
            self._exchange(model)

    def state(self) -> dict[str, Tensor]:
        """The averaged weights by their names."""
        return {f"{AVERAGE}{name}": tensor for name, tensor in self._average.items()}

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Read the average from the tensors of a checkpoint; without one, the average starts from the weights there."""
        self._average = averaged(tensors)

    def finish(self, model: nn.Module) -> None:
        """Leave the averaged weights in the model."""
        if self.settings.keep_raw_weights:
            self.raw = {name: tensor.detach().to("cpu", copy=True) for name, tensor in model.state_dict().items()}
        self._exchange(model)

    def _exchange(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            parameter.data, self._average[name] = self._average[name], parameter.data


def averaged(extra: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The averaged weights among the further tensors of a checkpoint; none where no average was kept."""
    return {name.removeprefix(AVERAGE): tensor for name, tensor in extra.items() if name.startswith(AVERAGE)}


@torch.no_grad()
def load_evaluated_model(folder: Path, model: nn.Module) -> None:
    """Fill `model` from a verified checkpoint with the weights that were evaluated: averaged ones where there are any.

    Raises CheckpointError when names or shapes differ from those of the model.
    """
    load_model(folder, model)
    parameters = dict(model.named_parameters())
    for name, tensor in averaged(load_file(folder / EXTRA)).items():
        parameters[name].copy_(tensor)
