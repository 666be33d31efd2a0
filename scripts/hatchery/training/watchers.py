"""Objects that act between the steps of a training: they measure the model, keep or average its weights, or end the
run.

The loop calls the watchers in a fixed order, and every process has the same watchers, so the collective operations of a
watcher match in all processes. A watcher's tensors are saved with each checkpoint. A watcher that is a function of the
weights and of the metrics is therefore bitwise equal after a resumption.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from hatchery.training.batches import StepBatch
    from hatchery.training.engine import Engine


class Watcher:
    """A watcher without effect; a subclass overrides the methods that it needs."""

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Load this watcher's state from a checkpoint, before `begin`; not called at the start of a new run.

        `tensors` are all further tensors of the checkpoint, possibly without this watcher's; `rows` are the metrics of
        the run's own earlier steps.
        """

    def begin(self, model: nn.Module) -> None:
        """Start the watcher; `model` is on its device, with its initial weights or the weights of a checkpoint."""

    def prepared(self, batch: "StepBatch") -> "StepBatch":
        """Return the batch of the coming step, adapted to this watcher's state."""
        return batch

    def after_step(self, model: nn.Module) -> None:
        """Called after each update, including one that fp16 skipped."""

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """Replace the weights of `model` by the weights for evaluation during the `with` block."""
        yield

    def due(self, step: int) -> bool:
        """Return whether this watcher measures the model after `step` updates; 0 is before the first update."""
        return False

    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return columns of the metrics file for the current model; called in every process after a due step."""
        return {}

    @property
    def reason_to_stop(self) -> str | None:
        """Return why training ends after the last measurement, the same in every process; None while training
        continues."""
        return None

    def state(self) -> dict[str, Tensor]:
        """Return the tensors for checkpoints, by names that no other watcher uses."""
        return {}

    def finish(self, model: nn.Module) -> None:
        """After the last step, load the weights for export into `model`."""


class Probe(Watcher):
    """A watcher that measures columns of the metrics by a function, after the steps that another function selects."""

    def __init__(self, score: "Callable[[Engine], dict[str, float]]", due: Callable[[int], bool]) -> None:
        """`score` returns columns, and `due` returns whether to measure after a number of updates."""
        self._score, self._due = score, due

    def due(self, step: int) -> bool:
        """Return whether the model is measured after `step` updates."""
        return self._due(step)

    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return the columns of the current model."""
        return self._score(engine)


def is_logged(step: int, interval: int) -> bool:
    """Return whether the curves have a point after `step` updates: 0, 1, 2, 4, 8, ... and every `interval` steps."""
    return step & (step - 1) == 0 or step % interval == 0


@contextmanager
def evaluated_weights(watchers: Sequence[Watcher], model: nn.Module) -> Iterator[None]:
    """During the `with` block, replace the weights of `model` by the weights that its watchers use for evaluation."""
    with ExitStack() as stack:
        for watcher in watchers:
            stack.enter_context(watcher.in_place(model))
        yield
