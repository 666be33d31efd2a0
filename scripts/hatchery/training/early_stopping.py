"""Early stopping by development scores, and the weights at a run's best score.

The decision to stop depends only on scores in the run's metrics file. So a resumed run and all processes of a run stop
at the same step. The best weights are saved in the checkpoints, so they survive a kill.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hatchery.training.objective import LOWEST_LOSS, Criterion
from hatchery.training.start_settings import EarlyStoppingSettings
from hatchery.training.watchers import Watcher

if TYPE_CHECKING:
    from hatchery.training.engine import Engine

# Prefix of the best weights' names among the checkpoint's `extra` tensors.
BEST = "best_weights::"


class EarlyStopping(Watcher):
    """The best evaluation of a run so far. With `export: best`, one process also keeps a copy of the weights at this
    evaluation in main memory.
    """

    def __init__(
        self,
        settings: EarlyStoppingSettings,
        development: Watcher,
        criterion: Criterion = LOWEST_LOSS,
        keeps_weights: bool = True,
    ) -> None:
        """`development` measures the development scores. `keeps_weights` is True in only one process of a run."""
        self.settings, self.criterion, self.development = settings, criterion, development
        self.best_step, self.best, self._waited = 0, -math.inf if criterion.higher_is_better else math.inf, 0
        self._keeps = keeps_weights and settings.export == "best"
        self._weights: dict[str, Tensor] = {}

    def due(self, step: int) -> bool:
        """Return whether development text is scored after `step` updates."""
        return self.development.due(step)

    @torch.no_grad()
    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return the development scores. With `export: best`, also copy the weights if the score for early stopping is
        the best so far.
        """
        scores = self.development.scores(step, engine)
        # Step 0 does not count, because the initial weights are not exported.
        if step and self.note(step, scores) and self.settings.export == "best":
            # All processes gather the weights; one process copies them.
            with engine.whole_parameters():
                if self._keeps:
                    weights = engine.model.state_dict()
                    self._weights = {name: value.detach().to("cpu", copy=True) for name, value in weights.items()}
        return scores

    def note(self, step: int, scores: Mapping[str, float]) -> bool:
        """Record the scores after `step` updates; return True if the score for early stopping is the best so far."""
        value = scores[self.criterion.column]
        improvement = value - self.best if self.criterion.higher_is_better else self.best - value
        self._waited = 0 if improvement > self.settings.minimum_improvement else self._waited + 1
        if improvement > 0:
            self.best_step, self.best = step, value
        return improvement > 0

    @property
    def reason_to_stop(self) -> str | None:
        """Return the reason why the run ends after the most recent evaluation; None if training continues."""
        if self._waited < self.settings.patience_evaluations:
            return None
        end = "highest" if self.criterion.higher_is_better else "lowest"
        return (
            f"the {self.criterion.name} has not improved by more than {self.settings.minimum_improvement:g} for "
            f"{self._waited} evaluations; the {end} value was {self.best:.4f}, after step {self.best_step:,}"
        )

    def measures(self, last_step: int, steps: int) -> dict[str, object]:
        """Return the entries about early stopping for the run's manifest. The run ended after step `last_step`; `steps`
        is the number of steps in the run's settings.
        """
        exported = self.best_step if self.settings.export == "best" and self.best_step else last_step
        return {
            "stopped_early": last_step < steps,
            "exported_step": exported,
            "best_step": self.best_step,
            f"best_{self.criterion.column}": self.best if self.best_step else None,
        }

    def state(self) -> dict[str, Tensor]:
        """Return the best weights by name; empty in processes without a copy of the weights."""
        return {f"{BEST}{name}": tensor for name, tensor in self._weights.items()}

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Restore the state of an interrupted run: the scores from `rows` (the metrics of earlier steps), and the best
        weights from the checkpoint's `tensors`.
        """
        for row in rows:
            if row["step"] and self.criterion.column in row:
                self.note(int(row["step"]), row)
        # Do not load the best weights in `tensors` before this run's first evaluation: these weights belong to the run
        # that this run continues.
        if self._keeps and self.best_step:
            own = {name: tensor for name, tensor in tensors.items() if name.startswith(BEST)}
            self._weights = {name.removeprefix(BEST): tensor for name, tensor in own.items()}

    def finish(self, model: nn.Module) -> None:
        """Load the best weights into `model`; if this process has no copy of these weights, `model` stays unchanged."""
        if self._weights:
            model.load_state_dict(self._weights)
