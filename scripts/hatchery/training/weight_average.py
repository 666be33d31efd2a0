"""An average of the weights, which is evaluated and exported instead of the last weights.

Source of the exponential average: the published code of GPT-BERT (docs/papers/gpt-bert.md, "Training"). This average
starts as a copy of the initial weights and is updated after every step, without bias correction; buffers are not
averaged. The alternative, the unweighted mean of the weights after each step from a given step on, is stochastic weight
averaging (Izmailov et al. 2018, arXiv:1803.05407), but without the cyclic learning rates of that paper. If the settings
contain an interval of steps, only the weights at this interval are averaged. An average that begins late starts as a
copy of the weights at its first step.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from hatchery.training.checkpoints import EXTRA, load_model
from hatchery.training.start_settings import WeightAverageSettings
from hatchery.training.watchers import Watcher

# Prefix of the averaged weights' names among the checkpoint's `extra` tensors.
AVERAGE = "weight_average::"
COUNT = "count_of_weight_average"
"""Name of a checkpoint's tensor with the number of averaged weights, shape (). The checkpoint lacks this tensor for an
exponential average over all steps.
"""


class WeightAverage(Watcher):
    """The average of the weights of one model, on its device."""

    def __init__(self, settings: WeightAverageSettings, steps: int = 0) -> None:
        """`steps` is the number of steps of the run, including the steps of a run that it continues."""
        self.settings, self._steps = settings, steps
        self._first = math.floor(settings.from_fraction * steps) + 1
        # Number of weights averaged so far.
        self._averaged = 0
        self.raw: dict[str, Tensor] = {}
        """Weights of the last step, on the CPU; set at the end of the run if `keep_raw_weights` is set."""
        self._average: dict[str, Tensor] = {}

    @torch.no_grad()
    def begin(self, model: nn.Module) -> None:
        """Move the average that was loaded from a checkpoint to the model's device. If no average was loaded, an
        exponential average over all steps starts here with a copy of the weights. All other averages start in
        `after_step`.
        """
        known = self._average
        if not self.settings.averages_every_step and not known:
            return
        self._average = {
            name: known[name].to(parameter.device) if name in known else parameter.detach().clone()
            for name, parameter in model.named_parameters()
        }

    @torch.no_grad()
    def after_step(self, step: int, model: nn.Module) -> None:
        """If this step is averaged, set the average to kept * average + (1 - kept) * weights.

        kept is `decay` for an exponential average. For the unweighted mean, kept is (n - 1) / n at the n-th update.
        """
        kept = self.settings.decay
        if not self.settings.averages_every_step:
            if step < self._first or (self._steps - step) % self.settings.every_steps:
                return
            self._averaged += 1
            if self._averaged == 1:
                self._average = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}
                return
            if self.settings.weights == "equal":
                kept = 1 - 1 / self._averaged
        averages = list(self._average.values())
        torch._foreach_mul_(averages, kept)
        weights = [parameter.detach() for parameter in model.parameters()]
        torch._foreach_add_(averages, weights, alpha=1 - kept)

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """Replace the weights of the model by the averaged weights during the `with` block."""
        self._exchange(model)
        try:
            yield
        finally:
            self._exchange(model)

    def state(self) -> dict[str, Tensor]:
        """Return the averaged weights by name, and the number of steps whose weights were averaged, as the tensor
        `COUNT`. An exponential average over all steps has no `COUNT`.
        """
        averages = {f"{AVERAGE}{name}": tensor for name, tensor in self._average.items()}
        if self.settings.averages_every_step:
            return averages
        return averages | {COUNT: torch.tensor(self._averaged)}

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Load the average from a checkpoint's `tensors`. Without an average in `tensors`, an exponential average over
        all steps starts with the checkpoint's weights (see `begin`).

        If the run that this run continues had an exponential average over all steps, and this run has another kind of
        average, the earlier average is not loaded. The current weights are evaluated until the new average begins.
        """
        if self.settings.averages_every_step or COUNT in tensors:
            self._average = averaged(tensors)
        if COUNT in tensors:
            self._averaged = int(tensors[COUNT])

    def finish(self, model: nn.Module) -> None:
        """Load the averaged weights into the model."""
        if self.settings.keep_raw_weights:
            self.raw = {name: tensor.detach().to("cpu", copy=True) for name, tensor in model.state_dict().items()}
        self._exchange(model)

    def _exchange(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters() if self._average else ():
            parameter.data, self._average[name] = self._average[name], parameter.data


def averaged(extra: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the averaged weights in `extra`, a checkpoint's tensors except those of model and optimiser; empty if
    there is no average.
    """
    return {name.removeprefix(AVERAGE): tensor for name, tensor in extra.items() if name.startswith(AVERAGE)}


@torch.no_grad()
def load_evaluated_model(folder: Path, model: nn.Module) -> None:
    """Load into `model` the weights for evaluation from a verified checkpoint. These are the averaged weights, or the
    weights of the checkpoint's step if the checkpoint contains no average.

    Raises CheckpointError if the names or shapes of the checkpoint's weights differ from those of the model's weights.
    """
    load_model(folder, model)
    parameters = dict(model.named_parameters())
    for name, tensor in averaged(load_file(folder / EXTRA)).items():
        parameters[name].copy_(tensor)
