"""Where a pretraining starts and when it may end: from another model, and early on the development loss."""

from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError
from hatchery.settings.fields import Settings

# What may differ between a model and the one that it starts from: it shapes no tensor and reads none differently.
FREE_KEYS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@dataclass(frozen=True)
class InitialModelSettings(Settings):
    """The model that training starts from; which one that is, its manifest among the inputs says.

    `weights` starts anew from its weights: step 0, a new optimiser, the whole schedule. `training` goes on where it
    stopped: with its optimiser, its place in the data and its number of steps.
    """

    take: Literal["weights", "training"] = "weights"


@dataclass(frozen=True)
class EarlyStoppingSettings(Settings):
    """End after so many evaluations in a row whose development loss is no new lowest by more than the minimum."""

    patience_evaluations: int
    # In nats per labelled token.
    minimum_improvement: float = 0.0
    # Weights of the evaluation with the lowest development loss (of equal ones the first), or those of the last step.
    export: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        if self.patience_evaluations < 1:
            raise ConfigError(
                f"pretrain.early_stopping.patience_evaluations: got {self.patience_evaluations}, expected 1 or more"
            )
        if not self.minimum_improvement >= 0:
            raise ConfigError(
                f"pretrain.early_stopping.minimum_improvement: got {self.minimum_improvement}, expected 0 or more"
            )
