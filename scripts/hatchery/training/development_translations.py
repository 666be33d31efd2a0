"""Scores of a translation run on its development pairs: the loss, and BLEU and chrF of translations of the source
sentences.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch

from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.training.data_order import EpochSlice, epoch_permutation, share_of_process
from hatchery.training.development import EVALUATION_SEED, DevelopmentSet, HeldOut
from hatchery.training.topology import Topology, gathered
from hatchery.translation.settings import SearchSettings

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer
    from hatchery.training.engine import Engine


class TranslatedSet(DevelopmentSet):
    """Development sentence pairs that a translation run scores. Up to a given number of source sentences are also
    translated. The sentence pairs are divided among the processes.

    Sources with more tokens than the sequence length are truncated. A reference translation is decoded from the tokens
    of the target, because the run has no access to the original text. So the reference lacks characters outside the
    tokenizer's vocabulary. In contrast, the references of test sets are original text.
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
        terms: HeldOut,
    ) -> None:
        """`translations` is the maximum number of source sentences that are translated; None translates all source
        sentences."""
        super().__init__(examples, sequences, share, topology, terms)
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
        """Return loss, perplexity, BLEU and chrF (0 to 100); the keys are column names of `metrics.jsonl`."""
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
        scored = scores(translations, self._references)
        return columns | {f"development_{name}": score.value for name, score in scored.items()}
