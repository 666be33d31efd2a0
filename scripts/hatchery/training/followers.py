"""What goes along with the weights of a training: watches them, keeps some, or averages them.

A follower is told of the weights before the first step and after every update, may put others in their place while
they are evaluated, and is saved and resumed with the checkpoint, by the tensors that it gives. Everything in it is a
function of the weights, so a run that was killed goes on to the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn


class Follower:
    """Does nothing; a subclass says which of its methods it needs. Every process of a run has the same ones."""

    def begin(self, model: nn.Module) -> None:
        """The weights lie on their device, initial ones or those of a checkpoint; no step of this attempt is done."""

    def after_step(self, model: nn.Module) -> None:
        """An update has been made, or left out by fp16."""

    @contextmanager
    def in_place(self, model: nn.Module) -> Iterator[None]:
        """For the block, the model has the weights that are to be evaluated."""
        yield

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint has to hold of it, by names that no other follower uses."""
        return {}

    def load(self, extra: Mapping[str, Tensor]) -> None:
        """Take its state out of the further tensors of a checkpoint, which may hold none."""

    def finish(self, model: nn.Module) -> None:
        """All steps are done: give the model the weights that are to be exported."""


@contextmanager
def evaluated_weights(followers: Sequence[Follower], model: nn.Module) -> Iterator[None]:
    """For the block, the model has the weights that its followers want to be evaluated."""
    with ExitStack() as stack:
        for follower in followers:
            stack.enter_context(follower.in_place(model))
        yield
