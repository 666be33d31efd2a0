"""Development scores, measured on held-out sequences that are the same at every evaluation.

Sequences and masks are drawn with a fixed seed. So the targets are the same at all steps and for all pretraining seeds.
Models with the same corpus, tokenizer, sequence length and objective also have the same targets, so their development
curves are comparable.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from hatchery.artifacts.manifests import read_manifest
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.sums import plain_sum
from hatchery.tokenization.documents import DEVELOPMENT_SPLIT, TOKEN_SHARDS, shards_by_split
from hatchery.training.data_order import EpochSlice, epoch_permutation, micro_batches, share_of_process
from hatchery.training.examples import Examples
from hatchery.training.objective import HeldOutTerms, Objective
from hatchery.training.objectives import objective_of
from hatchery.training.settings import PretrainSettings
from hatchery.training.topology import Topology, sum_over_processes

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer
    from hatchery.training.engine import Engine

HeldOut = Callable[[LanguageModelOutput, Mapping[str, Tensor]], HeldOutTerms]
"""A function from the model's output and its batch of held-out text to the objective's terms."""
EVALUATION_SEED = 20_231_106


def development_examples(tokens: Path, settings: PretrainSettings) -> Examples | None:
    """Return the development examples of a run; None if there are no examples. Their sequence length is the length at
    the start of the run, also if training sequences become longer.

    There are no examples if the corpus has no development split, if this split is empty, or if
    `settings.evaluation_sequences` is 0.
    """
    has_split = DEVELOPMENT_SPLIT in shards_by_split(read_manifest(tokens), TOKEN_SHARDS)
    if not has_split or settings.evaluation_sequences == 0:
        return None
    objective = objective_of(settings.objective)
    examples = objective.examples(objective.open(tokens, DEVELOPMENT_SPLIT), settings.sequence_length)
    return examples if len(examples) else None


def development_tokens_per_byte(tokens: Path, objective: Objective) -> float | None:
    """Return the number of development tokens that the objective can predict, divided by the number of bytes of the
    text that these tokens represent.

    Return None if there is no development split, and for an objective whose bits per byte are undefined.
    """
    has_split = DEVELOPMENT_SPLIT in shards_by_split(read_manifest(tokens), TOKEN_SHARDS)
    if not has_split or not objective.settings.predicts_text_alone:
        return None
    shards = objective.open(tokens, DEVELOPMENT_SPLIT)
    return shards.tokens_per_byte(objective.target_counts(shards))


@runtime_checkable
class JudgesItself(Protocol):
    """An objective that defines its own development scores."""

    def development(
        self, examples: Any, sequences: int, share: int, topology: Topology, tokenizer: "Callable[[], Tokenizer] | None"
    ) -> "DevelopmentSet":
        """Return the object that computes the development scores; `development_of` describes the arguments."""
        ...


def development_of(
    objective: Objective,
    examples: Examples,
    sequences: int,
    share: int,
    topology: Topology,
    tokenizer: "Callable[[], Tokenizer] | None" = None,
) -> "DevelopmentSet":
    """Return the object that scores `sequences` development examples, with at most `share` examples in a forward pass.

    `tokenizer` loads the run's tokenizer, for objectives that decode predictions.
    """
    if isinstance(objective, JudgesItself):
        return objective.development(examples, sequences, share, topology, tokenizer)
    return DevelopmentSet(examples, sequences, share, topology, objective.held_out_terms)


class DevelopmentSet:
    """A fixed set of development sequences, divided among the processes."""

    def __init__(
        self,
        examples: Examples,
        sequences: int,
        micro_batch_size: int,
        topology: Topology,
        terms: HeldOut = lambda output, batch: HeldOutTerms(output.loss_sum),
    ) -> None:
        """Choose `sequences` of the examples, or all examples if there are fewer; there must be at least one example.

        `terms(output, batch)` returns the sums of held-out losses of a batch; `output` is the model's output for this
        batch.
        """
        self._terms = terms
        chosen = np.sort(epoch_permutation(EVALUATION_SEED, 0, len(examples))[:sequences])
        # Repeat sequences if there are fewer sequences than processes, because every process needs a sequence.
        chosen = np.resize(chosen, max(len(chosen), topology.world_size))
        share = share_of_process([EpochSlice(0, chosen)], topology.rank, topology.world_size)
        pieces = micro_batches(share, micro_batch_size)
        self.batches: list[dict[str, Tensor]] = [
            examples.batch(EVALUATION_SEED, 0, part.indices) for piece in pieces for part in piece
        ]

    def score(self, engine: "Engine") -> dict[str, float]:
        """Return the scores of the current model, without dropout, by column of the metrics; every process must call
        this method.

        The scores are the mean negative log-likelihood (nats) per predicted token, and the perplexity. For masked
        diffusion, the first score is an upper bound of the negative log-likelihood, in nats per maskable token. For an
        objective with sentence pairs, the share of pairs whose label is predicted correctly is a third score.
        """
        parts = [self._values(engine, batch) for batch in self.batches]
        pairs = sum(len(batch["pair_labels"]) for batch in self.batches if "pair_labels" in batch)
        # Read all values in one transfer, because each transfer from the device waits for all computations.
        values = torch.stack(parts).tolist()
        loss_sum, labelled, rightly = (plain_sum(column) for column in zip(*values, strict=True))
        loss_sum, labelled, correct, judged = sum_over_processes(
            [loss_sum, labelled, rightly, float(pairs)], engine.device
        )
        loss = loss_sum / max(1.0, labelled)
        columns = {"development_loss": loss, "development_perplexity": math.exp(min(loss, 700.0))}
        return columns | ({"development_pair_accuracy": correct / judged} if judged else {})

    def _values(self, engine: "Engine", batch: dict[str, Tensor]) -> Tensor:
        """Return three sums of a batch, fp64 [3]: the summed loss, the number of tokens over which the loss is
        averaged, and the number of sentence pairs whose label is predicted correctly.
        """
        there = engine.on_device(batch)
        output = engine.evaluate(there)
        loss_sum, rightly, counted = self._terms(output, there)
        rightly = torch.zeros_like(output.n_labelled) if rightly is None else rightly
        counted = output.n_labelled if counted is None else counted
        return torch.stack([part.double() for part in (loss_sum, counted, rightly)])
