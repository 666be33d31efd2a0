"""The objective of translation: pairs in batches by tokens, a smoothed loss, and development text that is translated.

Source: "A Natural Bias for Language Generation Models", Section 4.1 and Appendix B.3; docs/papers/natural-bias.md,
"Training" and "Away from the unigram distribution". The loss is that of (1 - alpha) times the label plus alpha times
the uniform distribution, minus lambda times KL(omega || p) where predictions are kept away from the unigram
distribution omega; what is reported beside it, and on development text, is the negative log-likelihood of the labels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from hatchery.errors import ConfigError, TrainingError
from hatchery.modeling.count_distributions import entropy, smoothed_distribution
from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.flops import PassShape
from hatchery.modeling.language_model import LanguageModelOutput
from hatchery.objectives.settings import TranslationSettings
from hatchery.objectives.translation_pairs import TranslationPairs, pairs_of
from hatchery.tokenization.shards import TRAINING_SPLIT
from hatchery.tokenization.token_reader import TokenShards
from hatchery.training.batches import Examples
from hatchery.training.data_order import EpochSlice, epoch_permutation, share_of_process
from hatchery.training.development import EVALUATION_SEED, DevelopmentScore, DevelopmentSet
from hatchery.training.early_stopping import Criterion
from hatchery.training.engine import Engine
from hatchery.training.measures import Term
from hatchery.training.objective import Development, Objective
from hatchery.training.processes import gathered
from hatchery.training.topology import Topology

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer

HIGHEST_BLEU = Criterion("development_bleu", "development BLEU", higher_is_better=True)


class TranslationObjective(Objective):
    """The next token of the target, from the source and the tokens before it."""

    columns = (("loss", "next_token_accuracy", "nll"),)
    settings: TranslationSettings

    def __init__(self, settings: TranslationSettings) -> None:
        super().__init__(settings)
        if settings.development_translations != 0:
            self.criterion = HIGHEST_BLEU
        self._unigram: Tensor | None = None
        self._entropy = 0.0

    def open(self, tokens: Path, split: str) -> TokenShards:
        """The encoded text of a split. Of the training split it is counted what the loss keeps predictions away from.

        Raises ConfigError for a tokenizer whose translations would all end with a paragraph.
        """
        shards = super().open(tokens, split)
        if shards.special.paragraph is not None:
            raise ConfigError(
                f"{shards.manifest.path}: the tokenizer ends paragraphs with {shards.special.paragraph}, which would "
                "end every translation; expected a tokenizer with `special_tokens: roberta`"
            )
        if split == TRAINING_SPLIT and self.settings.unigram_penalty:
            unigram = smoothed_distribution(self.target_counts(shards))
            self._unigram, self._entropy = torch.from_numpy(unigram).float(), entropy(unigram)
        return shards

    def examples(self, shards: TokenShards, sequence_length: int) -> TranslationPairs:
        """The pairs of a split; of the training split, those within the limits of length and ratio."""
        return pairs_of(shards, sequence_length, self.settings, filtered=shards.split == TRAINING_SPLIT)

    def order(self, examples: TranslationPairs, seed: int, step: int, batch_size: int) -> list[EpochSlice]:  # type: ignore[override]
        """The pairs of a step: at most `batch_size` target tokens."""
        return [EpochSlice(*examples.batch_at(seed, step, batch_size))]

    def epochs(self, examples: TranslationPairs, steps: int, batch_size: int) -> float:  # type: ignore[override]
        """How often so many batches of target tokens read each of the pairs."""
        return steps / examples.batches_per_epoch(batch_size)

    def terms(self, output: LanguageModelOutput) -> tuple[Term, ...]:
        """The loss that is learned from, the right answers, and the negative log-likelihood."""
        sums, smoothing = output.log_probability_sums, self.settings.label_smoothing
        assert sums is not None, "the model is none that translates"
        loss = output.loss_sum
        if smoothing:
            loss = (1 - smoothing) * loss - smoothing / len(sums) * sums.sum()
        if self.settings.unigram_penalty:
            if self._unigram is None:
                raise TrainingError("unigram_penalty: the targets of the training split have not been counted")
            self._unigram = self._unigram.to(sums.device)
            divergence = -(self._unigram @ sums[: len(self._unigram)]) - self._entropy * output.n_labelled
            loss = loss - self.settings.unigram_penalty * divergence
        return (Term(loss, (output.n_correct, output.loss_sum)),)

    def development(
        self,
        examples: TranslationPairs,  # type: ignore[override]
        sequences: int,
        share: int,
        topology: Topology,
        tokenizer: Path | None = None,
    ) -> Development:
        """Pairs whose loss is measured and, with a tokenizer, pairs that are translated."""
        if tokenizer is None or self.settings.development_translations == 0:
            return DevelopmentSet(examples, sequences, share, topology)
        # Here and below: runs for other objectives start sooner without the library of tokenizers.
        from hatchery.tokenization.tokenizer_file import load_tokenizer

        return TranslatedSet(examples, sequences, share, topology, self.settings, load_tokenizer(tokenizer))

    def smallest_batch(self, make_examples: Callable[[], Examples], batch_size: int) -> int:
        """Pairs of the smallest batch of so many target tokens."""
        pairs = make_examples()
        assert isinstance(pairs, TranslationPairs)
        return pairs.smallest_batch(batch_size)

    def measures(self, make_examples: Callable[[], Examples]) -> dict[str, Any]:
        """Pairs that are trained on, and those that are empty, too long or of too different lengths."""
        pairs = make_examples()
        assert isinstance(pairs, TranslationPairs)
        return {"pairs": len(pairs), "left_out": pairs.left_out}

    def pass_shape(self, part: dict[str, Tensor], labelled_per_sequence: float) -> PassShape:
        """The forward pass of a micro-batch: sources and targets have lengths of their own."""
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, labelled_per_sequence * rows, target_length=part["labels"].shape[1])


@dataclass(frozen=True)
class TranslationScore:
    """Loss and perplexity, and BLEU and chrF in points."""

    loss: DevelopmentScore
    points: Mapping[str, float]

    def row(self) -> dict[str, float]:
        """The columns of the metrics file."""
        return self.loss.row() | {f"development_{name}": value for name, value in self.points.items()}


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
        settings: TranslationSettings,
        tokenizer: "Tokenizer",
    ) -> None:
        super().__init__(examples, sequences, share, topology)
        self._search, self._tokenizer = settings.search, tokenizer
        chosen = np.sort(epoch_permutation(EVALUATION_SEED, 0, len(examples))[: settings.development_translations])
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
    def score(self, engine: Engine) -> TranslationScore:  # type: ignore[override]
        """Score the model as it is now, without dropout; every process gets the same."""
        from hatchery.translation.metrics import scores
        from hatchery.translation.translate import translate_ids

        loss = super().score(engine)
        model = engine.model
        assert isinstance(model, TranslationModel)
        model.eval()
        with engine.precision.autocast(engine.device.type):
            mine = translate_ids(model, self._tokenizer, self._sources, self._search, engine.device)
        model.train()
        translations = [text for texts in gathered(mine) for text in texts]
        found = scores(translations, self._references)
        return TranslationScore(loss, {name: score.value for name, score in found.items()})
