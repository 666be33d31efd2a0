"""Scores of held-out sequences whose choice and masks never change, and when they end a run early.

Sequences and masks are drawn with a seed of their own, so every step, run and model of a corpus is judged by the same
guesses, and the curves of two seeds or two models can be laid over each other. Stopping is a pure function of the
scores that the metrics hold: a run that goes on from a checkpoint, and every process of a run, comes to the same
decision at the same step. The best weights travel with the checkpoints, so that they survive a kill too.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.artifacts.manifests import read_manifest
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.tokenization.documents import DEVELOPMENT_SPLIT, TOKEN_SHARDS, shards_by_split
from hatchery.training.batches import Examples
from hatchery.training.data_order import EpochSlice, epoch_permutation, micro_batches, share_of_process
from hatchery.training.objective import LOWEST_LOSS, Criterion
from hatchery.training.objectives import objective_of
from hatchery.training.settings import PretrainSettings
from hatchery.training.start_settings import EarlyStoppingSettings
from hatchery.training.topology import Topology, gathered, sum_over_processes
from hatchery.translation.settings import SearchSettings

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer
    from hatchery.training.engine import Engine

EVALUATION_SEED = 20_231_106


def development_examples(tokens: Path, settings: PretrainSettings) -> Examples | None:
    """The development examples in the short phase's length, so that a curve is comparable over the whole run.

    None when the corpus has no development split, when it is empty, or when the settings ask for no sequence.
    """
    has_split = DEVELOPMENT_SPLIT in shards_by_split(read_manifest(tokens), TOKEN_SHARDS)
    if not has_split or settings.evaluation_sequences == 0:
        return None
    objective = objective_of(settings.objective)
    examples = objective.examples(objective.open(tokens, DEVELOPMENT_SPLIT), settings.sequence_length)
    return examples if len(examples) else None


class DevelopmentSet:
    """A fixed set of masked sequences, of which each process scores its share."""

    def __init__(self, examples: Examples, sequences: int, micro_batch_size: int, topology: Topology) -> None:
        """Take `sequences` sequences, or all when there are fewer; at least one must exist."""
        chosen = np.sort(epoch_permutation(EVALUATION_SEED, 0, len(examples))[:sequences])
        # Every process needs a sequence; where there are fewer sequences than processes, some are scored twice.
        chosen = np.resize(chosen, max(len(chosen), topology.world_size))
        share = share_of_process([EpochSlice(0, chosen)], topology.rank, topology.world_size)
        pieces = micro_batches(share, micro_batch_size)
        self.batches: list[dict[str, Tensor]] = [
            examples.batch(EVALUATION_SEED, 0, part.indices) for piece in pieces for part in piece
        ]

    def score(self, engine: "Engine") -> dict[str, float]:
        """Score the model as it is now, without dropout, as columns of the metrics file; every process has to call it.

        They are the mean negative log-likelihood (natural logarithm) per predicted token, its exponential and, where
        the objective has sentence pairs, the share that was judged rightly.
        """
        outputs = [engine.evaluate(batch) for batch in self.batches]
        pairs = sum(len(batch["pair_labels"]) for batch in self.batches if "pair_labels" in batch)
        # Each output is a wait for the device if it is read; all of them together are one.
        values = torch.stack([_values(output) for output in outputs]).tolist()
        loss_sum, labelled, rightly = (sum(column) for column in zip(*values, strict=True))
        loss_sum, labelled, correct, judged = sum_over_processes(
            [loss_sum, labelled, rightly, float(pairs)], engine.device
        )
        loss = loss_sum / max(1.0, labelled)
        columns = {"development_loss": loss, "development_perplexity": math.exp(min(loss, 700.0))}
        return columns | ({"development_pair_accuracy": correct / judged} if judged else {})


def _values(output: LanguageModelOutput) -> Tensor:
    """Loss sum, labelled positions and pairs judged rightly: fp64 [3]."""
    rightly = output.n_pairs_correct if output.n_pairs_correct is not None else torch.zeros_like(output.n_labelled)
    return torch.stack([part.double() for part in (output.loss_sum, output.n_labelled, rightly)])


class TranslatedSet(DevelopmentSet):
    """Development pairs, some of which are translated as well, each process its share.

    Sources are cut as in training. References are the decoded ids of the whole targets, since a run knows its text in
    tokens alone: characters that the tokenizer does not know are missing from them. Test sets are compared with their
    text.
    """

    def __init__(
        self,
        examples: TranslationPairs,
        sequences: int,
        share: int,
        topology: Topology,
        search: SearchSettings,
        translations: int | None,
        tokenizer: "Tokenizer",
    ) -> None:
        """`translations` are the most pairs that are translated; None translates all."""
        super().__init__(examples, sequences, share, topology)
        self._search, self._tokenizer = search, tokenizer
        chosen = np.sort(epoch_permutation(EVALUATION_SEED, 0, len(examples))[:translations])
        pairs = [examples.sides(int(index)) for index in chosen]
        targets = [examples.whole_sides(int(index))[1] for index in chosen]
        self._references = [tokenizer.decode(target.tolist(), skip_special_tokens=True).strip() for target in targets]
        own: list[EpochSlice] = []
        if len(chosen) >= topology.world_size:
            own = share_of_process([EpochSlice(0, np.arange(len(chosen)))], topology.rank, topology.world_size)
        elif topology.is_first:
            own = [EpochSlice(0, np.arange(len(chosen)))]
        self._sources = [pairs[int(index)][0].tolist() for part in own for index in part.indices]

    @torch.no_grad()
    def score(self, engine: "Engine") -> dict[str, float]:
        """Loss and perplexity, and BLEU and chrF in points."""
        from hatchery.translation.metrics import scores
        from hatchery.translation.translate import translate_ids

        columns = super().score(engine)
        model = engine.model
        assert isinstance(model, TranslationModel)
        model.eval()
        with engine.precision.autocast(engine.device.type):
            mine = translate_ids(model, self._tokenizer, self._sources, self._search, engine.device)
        model.train()
        translations = [text for texts in gathered(mine) for text in texts]
        found = scores(translations, self._references)
        return columns | {f"development_{name}": score.value for name, score in found.items()}


# Stands before the names of the best weights among the other tensors of a checkpoint.
BEST = "best_weights::"


class EarlyStopping:
    """What the evaluations of a run have come to so far."""

    def __init__(
        self,
        settings: EarlyStoppingSettings,
        rows: Iterable[Mapping[str, float]] = (),
        criterion: Criterion = LOWEST_LOSS,
    ):
        """`rows` are the metrics of the steps that are done."""
        self.settings, self.criterion = settings, criterion
        self.best_step, self.best, self._waited = 0, -math.inf if criterion.higher_is_better else math.inf, 0
        for row in rows:
            if criterion.column in row:
                self.note(int(row["step"]), row)

    def note(self, step: int, scores: Mapping[str, float]) -> bool:
        """Take the scores after `step` steps into account; whether they are the best so far."""
        value = scores[self.criterion.column]
        improvement = value - self.best if self.criterion.higher_is_better else self.best - value
        self._waited = 0 if improvement > self.settings.minimum_improvement else self._waited + 1
        if improvement > 0:
            self.best_step, self.best = step, value
        return improvement > 0

    @property
    def is_over(self) -> bool:
        """Whether the run has to end after the last evaluation."""
        return self._waited >= self.settings.patience_evaluations

    @property
    def reason(self) -> str:
        """Why the run ends, in words."""
        end = "highest" if self.criterion.higher_is_better else "lowest"
        return (
            f"in {self._waited} evaluations the {self.criterion.words} got no better by more than "
            f"{self.settings.minimum_improvement:g}; it was {end}, {self.best:.4f}, after step {self.best_step:,}"
        )

    def measures(self, last_step: int, steps: int) -> dict[str, object]:
        """What the manifest records of a run that ended after `last_step` of `steps` steps."""
        exported = self.best_step if self.settings.export == "best" and self.best_step else last_step
        return {
            "stopped_early": last_step < steps,
            "exported_step": exported,
            "best_step": self.best_step,
            f"best_{self.criterion.column}": self.best if self.best_step else None,
        }


class BestWeights:
    """A copy of the best weights in main memory, empty until there is one."""

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    @torch.no_grad()
    def keep(self, model: nn.Module) -> None:
        """Copy the weights of `model` as they are now."""
        self._tensors = {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint has to hold of it."""
        return {f"{BEST}{name}": tensor for name, tensor in self._tensors.items()}

    def load(self, extra: Mapping[str, Tensor]) -> None:
        """Take the best weights out of the further tensors of a checkpoint, which may hold none."""
        self._tensors = {name.removeprefix(BEST): tensor for name, tensor in extra.items() if name.startswith(BEST)}

    def restore_(self, model: nn.Module) -> None:
        """Put the best weights into `model`; without any it stays as it is."""
        if self._tensors:
            model.load_state_dict(self._tensors)
