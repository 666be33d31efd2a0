"""What is measured of a model at log-spaced steps while it learns."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hatchery.training.engine import Engine


class Probe(Protocol):
    """Every process calls it, and gets the same columns."""

    def score(self, engine: "Engine") -> dict[str, float]:
        """Columns of the metrics file for the model as it is now."""
        ...


def is_logged(step: int, interval: int) -> bool:
    """Whether the curves have a point after `step` updates: 0, 1, 2, 4, 8, ... and every `interval` steps."""
    return step & (step - 1) == 0 or step % interval == 0
