"""When the scores of held-out text end a run early, and the best weights until then.

Stopping is a pure function of the scores that the metrics hold: a run that goes on from a checkpoint, and every process
of a run, comes to the same decision at the same step. The best weights travel with the checkpoints, so that they
survive a kill too.
"""

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from hatchery.training.followers import Follower
from hatchery.training.objective import LOWEST_LOSS, Criterion
from hatchery.training.start_settings import EarlyStoppingSettings


class EarlyStopping:
    """What the evaluations of a run have come to so far."""

    def __init__(
        self,
        settings: EarlyStoppingSettings,
        rows: Iterable[Mapping[str, float]] = (),
        criterion: Criterion = LOWEST_LOSS,
    ):
        """`rows` are the metrics of the steps that are done."""
        self.settings, self.criterion = settings, criterion
        self.best_step, self.best, self._waited = 0, -math.inf if criterion.higher_is_better else math.inf, 0
        for row in rows:
            if criterion.column in row:
                self.note(int(row["step"]), row)

    def note(self, step: int, scores: Mapping[str, float]) -> bool:
        """Take the scores after `step` steps into account; whether they are the best so far."""
        value = scores[self.criterion.column]
        improvement = value - self.best if self.criterion.higher_is_better else self.best - value
        self._waited = 0 if improvement > self.settings.minimum_improvement else self._waited + 1
        if improvement > 0:
            self.best_step, self.best = step, value
        return improvement > 0

    @property
    def is_over(self) -> bool:
        """Whether the run has to end after the last evaluation."""
        return self._waited >= self.settings.patience_evaluations

    @property
    def reason(self) -> str:
        """Why the run ends, in words."""
        end = "highest" if self.criterion.higher_is_better else "lowest"
        return (
            f"in {self._waited} evaluations the {self.criterion.name} got no better by more than "
            f"{self.settings.minimum_improvement:g}; it was {end}, {self.best:.4f}, after step {self.best_step:,}"
        )

    def measures(self, last_step: int, steps: int) -> dict[str, object]:
        """What the manifest records of a run that ended after `last_step` of `steps` steps."""
        exported = self.best_step if self.settings.export == "best" and self.best_step else last_step
        return {
            "stopped_early": last_step < steps,
            "exported_step": exported,
            "best_step": self.best_step,
            f"best_{self.criterion.column}": self.best if self.best_step else None,
        }


# Stands before the names of the best weights among the other tensors of a checkpoint.
BEST = "best_weights::"


class BestWeights(Follower):
    """A copy of the best weights in main memory, empty until there is one."""

    def __init__(self, keeps: bool = True) -> None:
        """Only one process of a run keeps anything."""
        self._keeps = keeps
        self._tensors: dict[str, Tensor] = {}

    @torch.no_grad()
    def keep(self, model: nn.Module) -> None:
        """Copy the weights of `model` as they are now."""
        if not self._keeps:
            return
        self._tensors = {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint has to hold of it."""
        return {f"{BEST}{name}": tensor for name, tensor in self._tensors.items()}

    def load(self, extra: Mapping[str, Tensor]) -> None:
        """Take the best weights out of the further tensors of a checkpoint, which may hold none."""
        if not self._keeps:
            return
        self._tensors = {name.removeprefix(BEST): tensor for name, tensor in extra.items() if name.startswith(BEST)}

    def finish(self, model: nn.Module) -> None:
        """Put the best weights into `model`; without any it stays as it is."""
        if self._tensors:
            model.load_state_dict(self._tensors)
