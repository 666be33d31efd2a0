"""Development text that is translated besides: its loss, and BLEU and chrF of what the search finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.training.collectives import gathered
from hatchery.training.data_order import EpochSlice, epoch_permutation, share_of_process
from hatchery.training.development import EVALUATION_SEED, DevelopmentScore, DevelopmentSet
from hatchery.training.topology import Topology
from hatchery.translation.settings import SearchSettings

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer
    from hatchery.training.engine import Engine


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
    def score(self, engine: "Engine") -> TranslationScore:  # type: ignore[override]
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
