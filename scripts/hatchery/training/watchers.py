"""Watchers: objects that act between training steps, to measure the model, average its weights or end the run.

The loop calls the watchers in the same order in every process, so that their collective operations match. The watchers'
tensors are saved in checkpoints. A watcher that depends only on weights and metrics is bitwise equal in a resumed run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from hatchery.training.batches import StepBatch
    from hatchery.training.engine import Engine


class Watcher:
    """A watcher that does nothing; subclasses override methods."""

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Load this watcher's state from a checkpoint, before `begin`; not called at the start of a new run.

        `tensors` are the checkpoint's `extra` tensors, which may lack the tensors of this watcher. `rows` are the
        metrics of this run's earlier steps, without the steps of a run that this run continues.
        """

    def begin(self, model: nn.Module) -> None:
        """Start the watcher; `model` is on its device, with its initial weights or the weights of a checkpoint."""

    def prepared(self, batch: "StepBatch") -> "StepBatch":
        """Return the batch of the next step; a watcher may change it, for example by drawing new masks."""
        return batch

    def after_step(self, step: int, model: nn.Module) -> None:
        """Update this watcher after `step` steps, which include the steps of a run that this run continues.

        The training loop calls this method after each step, even if fp16 skipped the update of the weights.
        """

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """Replace the weights of `model` during the `with` block, for example by averaged weights, if this watcher
        evaluates other weights than those of the last step.
        """
        yield

    def due(self, step: int) -> bool:
        """Return whether this watcher measures the model after `step` steps; `step` 0 means before training."""
        return False

    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return the metrics of the current model by column name; called in every process if `due` returned True."""
        return {}

    @property
    def reason_to_stop(self) -> str | None:
        """Return the reason why training ends after the most recent measurement, or None while training continues. All
        processes return the same value.
        """
        return None

    def state(self) -> dict[str, Tensor]:
        """Return this watcher's tensors for a checkpoint; no other watcher may use their names."""
        return {}

    def finish(self, model: nn.Module) -> None:
        """Load the weights to export into `model` after the last step, if other weights than those of the last step are
        exported.
        """


class Probe(Watcher):
    """A watcher made of two functions: one measures the model, and one selects the steps."""

    def __init__(self, score: "Callable[[Engine], dict[str, float]]", due: Callable[[int], bool]) -> None:
        """`score` returns metrics by column name; `due` returns whether to measure after a number of steps."""
        self._score, self._due = score, due

    def due(self, step: int) -> bool:
        """Return whether the model is measured after `step` steps."""
        return self._due(step)

    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return the metrics of the current model by column name."""
        return self._score(engine)


def is_logged(step: int, interval: int) -> bool:
    """Return whether a learning curve has a point after `step` steps: this is the case after 0, 1, 2, 4, 8, ... steps,
    and after every multiple of `interval`.
    """
    return step & (step - 1) == 0 or step % interval == 0


@contextmanager
def evaluated_weights(watchers: Sequence[Watcher], model: nn.Module) -> Iterator[None]:
    """During the `with` block, replace the weights of `model` by the weights that the watchers evaluate, such as
    averaged weights.
    """
    with ExitStack() as stack:
        for watcher in watchers:
            stack.enter_context(watcher.in_place(model))
        yield
