"""Divergences of a run's predictions from the unigram, uniform and empirical distributions during training.

Source: "A Natural Bias for Language Generation Models", Section 4, Figures 11 and 12; docs/papers/natural-bias.md,
"Divergences". Three measures are KL(r || p) from a reference distribution r (unigram, uniform or empirical) to the
predictions p. For the unigram and the uniform distribution, the reverse divergence KL(p || r) is also measured.
Logarithms are natural, and all labelled positions of a fixed held-out set have equal weights. Sums are computed in
double precision without a double-precision copy of the logits.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hatchery.errors import TrainingError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.training.topology import sum_over_processes

if TYPE_CHECKING:
    from hatchery.training.engine import Engine

MEASURES = ("kl_unigram", "kl_uniform", "kl_empirical", "reverse_kl_unigram", "reverse_kl_uniform")
"""KL(omega || p), KL(u || p), KL(delta_y || p) = -log p(y), KL(p || omega) and KL(p || u) = log V - H(p), in nats.
omega is the unigram distribution, u is the uniform distribution, and delta_y is the empirical distribution. KL(p ||
delta_y) is infinite and not measured.
"""

PROBED_SEQUENCES = 1000
"""Maximum number of development sequences for the divergences, enough for a curve (inferred)."""

# Number of logits that are converted to double precision at a time (8 MiB).
_LOGITS_AT_A_TIME = 2**20


@torch.no_grad()
def divergences(logits: Tensor, targets: Tensor, unigram: Tensor) -> Tensor:
    """Return five sums over N positions, followed by N: fp64 [6]. The five sums are those of the divergences named in
    `MEASURES`.

    `logits` are [N, padded vocabulary size], `targets` are int64 [N], and `unigram` (omega) is fp64 [V] with values
    above 0 that sum to 1. Logits from index V on belong to padding entries of the vocabulary. omega and the uniform
    distribution u are 0 for padding entries, so KL(p || omega) and KL(p || u) would be infinite for the predictions p.
    Therefore p is restricted to the V token ids in these two divergences.
    """
    n_types, positions = len(unigram), len(logits)
    log_unigram = unigram.log()
    # The maximum is subtracted from all logits to avoid overflow; no measure changes.
    highest = logits.amax(dim=1, keepdim=True).double()
    mass, spare_mass, own_mean, log_unigram_mean, unigram_mean, uniform_mean = highest.new_zeros(6, positions)
    width = max(1, _LOGITS_AT_A_TIME // max(1, positions))
    for first in range(0, n_types, width):
        last = min(first + width, n_types)
        shifted = logits[:, first:last].double() - highest
        weights = shifted.exp()
        mass += weights.sum(dim=1)
        own_mean += (weights * shifted).sum(dim=1)
        log_unigram_mean += weights @ log_unigram[first:last]
        unigram_mean += shifted @ unigram[first:last]
        uniform_mean += shifted.sum(dim=1) / n_types
    for first in range(n_types, logits.shape[1], width):
        spare_mass += (logits[:, first : first + width].double() - highest).exp().sum(dim=1)
    log_mass, log_mass_of_types = (mass + spare_mass).log(), mass.log()
    own_mean, log_unigram_mean = own_mean / mass, log_unigram_mean / mass
    of_target = (logits.gather(1, targets[:, None]).double() - highest).squeeze(1)
    measures = (
        log_mass - unigram_mean + unigram @ log_unigram,
        log_mass - uniform_mean - math.log(n_types),
        log_mass - of_target,
        own_mean - log_mass_of_types - log_unigram_mean,
        own_mean - log_mass_of_types + math.log(n_types),
    )
    return torch.cat([torch.stack(measures).sum(dim=1), highest.new_tensor([positions])])


class DivergenceProbe:
    """Measures the divergences of a model's predictions at fixed positions, which are divided among the processes."""

    def __init__(self, batches: Sequence[Mapping[str, Tensor]], unigram: np.ndarray) -> None:
        """`batches` are this process's development batches; `unigram` is the distribution of the run's labels, fp64
        [vocabulary size].

        Raises TrainingError if `unigram` is not a distribution with all probabilities above 0.
        """
        if not np.all(unigram > 0) or not math.isclose(unigram.sum(), 1, abs_tol=1e-9):
            raise TrainingError(
                "divergences: expected a unigram distribution with values above 0 that sum to 1; use smoothing"
            )
        self._batches, self._unigram = list(batches), torch.from_numpy(unigram).double()

    @torch.no_grad()
    def score(self, engine: "Engine") -> dict[str, float]:
        """Return the mean divergences over the labelled positions of all processes, without dropout, by the names in
        `MEASURES`.

        Every process must call this method. Raises TrainingError if no position is labelled, and for a mean that is not
        finite.
        """
        was_training = engine.model.training
        engine.model.eval()
        try:
            sums = torch.zeros(len(MEASURES) + 1, dtype=torch.float64, device=engine.device)
            unigram = self._unigram.to(engine.device)
            for batch in self._batches:
                sums += divergences(*_predictions(engine, batch), unigram)
        finally:
            engine.model.train(was_training)
        *totals, positions = sum_over_processes(sums.tolist(), engine.device)
        if not positions:
            raise TrainingError(
                "divergences: the development sequences have no labelled tokens (tokens to predict), expected at least "
                "one; raise `evaluation_sequences`"
            )
        means = {name: total / positions for name, total in zip(MEASURES, totals, strict=True)}
        for name, mean in means.items():
            if not math.isfinite(mean):
                raise TrainingError(f"divergences: {name} is {mean}, so the model's output is no longer finite")
        return means


def _predictions(engine: "Engine", batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the logits [N, padded vocabulary size] and the targets int64 [N] of the N labelled positions of `batch`.
    The logits are computed in the run's precision.
    """
    model = engine.model
    assert isinstance(model, LanguageModel)
    with engine.precision.autocast(engine.device.type):
        hidden, targets = model.labelled_hidden(batch, engine.device)
        return full_precision(model.logits_at(hidden)), targets
