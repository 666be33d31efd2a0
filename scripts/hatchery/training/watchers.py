"""Objects that see a training between its steps: they measure the model, keep or average its weights, or end the run.

The loop calls the watchers of a run in their order, and every process has the same watchers, so collective operations
of a watcher meet in all processes. A watcher's tensors are saved with each checkpoint. A watcher that is a function of
the weights and of the metrics therefore goes on to the same bytes after a kill.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from hatchery.training.batches import StepBatch
    from hatchery.training.engine import Engine


class Watcher:
    """Does nothing; a subclass overrides the methods that it needs."""

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Read this watcher's state from a checkpoint, before `begin`; not called where a run starts anew.

        `tensors` are all further tensors of the checkpoint, perhaps without this watcher's; `rows` are the metrics of
        the run's own steps until then.
        """

    def begin(self, model: nn.Module) -> None:
        """Start with the weights of `model` on its device, initial ones or those of a checkpoint."""

    def prepared(self, batch: "StepBatch") -> "StepBatch":
        """Return the batch of the coming step, changed by what this watcher has learned so far."""
        return batch

    def after_step(self, model: nn.Module) -> None:
        """See the weights after an update, or after one that fp16 left out."""

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """For the block, give `model` the weights that are to be evaluated."""
        yield

    def due(self, step: int) -> bool:
        """Return whether this watcher measures the model after `step` updates; 0 is before the first."""
        return False

    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return columns of the metrics file for the model as it is now; called in every process after a due step."""
        return {}

    @property
    def reason_to_stop(self) -> str | None:
        """Why training ends after the last measurement, the same in every process; None while training goes on."""
        return None

    def state(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint has to hold, by names that no other watcher uses."""
        return {}

    def finish(self, model: nn.Module) -> None:
        """After the last step, give `model` the weights that are to be exported."""


class Probe(Watcher):
    """Columns that one function measures after the steps that another function chooses."""

    def __init__(self, score: "Callable[[Engine], dict[str, float]]", due: Callable[[int], bool]) -> None:
        """`score` returns columns, and `due` whether to measure after a number of updates."""
        self._score, self._due = score, due

    def due(self, step: int) -> bool:
        """Return whether the model is measured after `step` updates."""
        return self._due(step)

    def scores(self, step: int, engine: "Engine") -> dict[str, float]:
        """Return the columns of the model as it is now."""
        return self._score(engine)


def is_logged(step: int, interval: int) -> bool:
    """Whether the curves have a point after `step` updates: 0, 1, 2, 4, 8, ... and every `interval` steps."""
    return step & (step - 1) == 0 or step % interval == 0


@contextmanager
def evaluated_weights(watchers: Sequence[Watcher], model: nn.Module) -> Iterator[None]:
    """For the block, `model` has the weights that its watchers want to be evaluated."""
    with ExitStack() as stack:
        for watcher in watchers:
            stack.enter_context(watcher.in_place(model))
        yield
