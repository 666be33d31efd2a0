"""Settings of a run's optimiser. The defaults are those of LTG-BERT, Table 9, and ELC-BERT, Table 4."""

from dataclasses import dataclass
from typing import Literal

from hatchery.settings.base import (
    NonNegative,
    Positive,
    Settings,
    ShareBelowOne,
    conflict,
    omitted_at_default,
    omitted_defaults,
)


@dataclass(frozen=True)
class OptimizerSettings(Settings):
    """Optimiser with its hyperparameters and weight decay."""

    name: Literal["lamb", "adamw", "muon", "normuon"] = "lamb"
    """Optimiser; LTG-BERT and ELC-BERT are pretrained with LAMB. `muon` and `normuon` orthogonalise the updates of
    hidden weight matrices; the optimiser `others` updates embeddings, vectors and heads.
    """
    learning_rate: Positive = 0.01
    """Peak learning rate."""
    weight_decay: NonNegative = 0.1
    """Coefficient of decoupled weight decay."""
    beta1: ShareBelowOne = 0.9
    """Decay rate of the running mean of the gradients."""
    beta2: ShareBelowOne = 0.98
    """Decay rate of the running mean of the squared gradients."""
    epsilon: Positive = 1e-6
    """Number added to the square root of the running mean of squared gradients."""
    max_gradient_norm: Positive | None = 2.0
    """Global L2 norm to which gradients are clipped; `null` disables clipping."""
    decay: Literal["matrices", "weights", "all"] = "matrices"
    """Parameters with weight decay. `matrices`: weight matrices. `weights`: all parameters except biases and norms, so
    that layer-mixing weights and embeddings are also decayed (GPT-BERT). `all`: all parameters (reduced-vocabulary
    study).
    """
    tied_embedding: Literal["embedding", "output"] = "embedding"
    """Weight decay of a word embedding that is tied to the output layer. `embedding`: as for all embeddings. `output`:
    as for the output matrix, which is decayed (LTG-BERT's BNC code).
    """
    head_weight_decay: NonNegative | None = None
    """Weight decay of the language-model head; `null` uses `weight_decay`."""
    cautious_decay: bool = omitted_at_default(False)
    """Apply weight decay only to those elements of a parameter that the update moves towards zero."""
    decay_follows_rate: bool = omitted_at_default(False)
    """Multiply weight decay by the current learning rate divided by the peak learning rate."""
    others: Literal["adamw", "lamb"] = omitted_at_default("adamw")
    """With the optimisers `muon` and `normuon`: optimiser of embeddings, vectors and heads."""
    matrix_learning_rate: Positive | None = omitted_at_default(None)
    """With the optimisers `muon` and `normuon`: peak learning rate of hidden weight matrices. Before this rate is
    applied, updates have a root mean square of 0.2, as in Adam. `null` uses `learning_rate`.
    """
    momentum: ShareBelowOne = omitted_at_default(0.95)
    """With the optimisers `muon` and `normuon`: decay rate of the running mean of the gradients of hidden weight
    matrices.
    """
    row_decay: ShareBelowOne = omitted_at_default(0.95)
    """With the optimiser `normuon`: decay rate of the running mean of squared updates, for each row of a matrix."""

    def __post_init__(self) -> None:
        needs = {"others": "muon or normuon", "matrix_learning_rate": "muon or normuon", "momentum": "muon or normuon"}
        defaults = omitted_defaults(OptimizerSettings)
        for key, names in {**needs, "row_decay": "normuon"}.items():
            value = getattr(self, key)
            if value != defaults[key] and self.name not in names.split(" or "):
                raise conflict(key, value, f"`name: {self.name}`", f"only {names} uses this key")

    @property
    def orthogonalises(self) -> bool:
        """True if the updates of hidden weight matrices are orthogonalised."""
        return self.name in ("muon", "normuon")

    @property
    def is_plain_adamw(self) -> bool:
        """True if PyTorch's AdamW does the complete update; ZeRO can shard only this optimiser."""
        return self.name == "adamw" and not (self.cautious_decay or self.decay_follows_rate)
