"""The loss on held-out sequences whose choice and masks never change, and the scores of those that are translated.

Sequences and masks are drawn with a seed of their own, so every step, run and model of a corpus is judged by the same
guesses, and the curves of two seeds or two models can be laid over each other.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hatchery.artifacts.manifests import read_manifest
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.tokenization.shards import DEVELOPMENT_SPLIT, TOKEN_SHARDS, shards_by_split
from hatchery.training.batches import Examples
from hatchery.training.collectives import gathered, sum_over_processes
from hatchery.training.data_order import EpochSlice, epoch_permutation, micro_batches, share_of_process
from hatchery.training.objectives import objective_of
from hatchery.training.settings import PretrainSettings
from hatchery.training.topology import Topology
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
