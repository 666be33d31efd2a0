"""Pretrained models of any origin in memory, each with its tokenizer, as a language model and as an encoder.

The method `asked` returns a language model that scores sentences and held-out text, and `encoder` returns the network
without its head. Neither method needs a manifest. `evaluation.opening` opens models in folders, on the hub and in
memory.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineEncoder, BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.minimal_pairs.scoring import required_architecture
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, ModuleModel
from hatchery.evaluation.settings import BaselineSettings
from hatchery.evaluation.trained_objective import Use
from hatchery.evaluation.user_modules import LibraryTokensModel, LibraryView, UserEncoder
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.objective import ObjectiveKeys
from hatchery.training.own_model import OwnModel


@dataclass(frozen=True)
class OurModel:
    """A language model that Hatchery trained.

    If a text contains the spelling of a special token such as "[MASK]", the tokenizer encodes it as plain text.
    `objective` is None if the training settings of the model are unknown. `where` names the model in messages. It is
    the path of the training's manifest or, without a manifest, the path of the model's folder. For a module in memory,
    it is the class name.
    """

    network: LanguageModel
    tokenizer: Tokenizer
    use: Use
    where: str
    objective: ObjectiveKeys | None = None

    def __post_init__(self) -> None:
        """Raise EvaluationError if the tokenizer contains token ids for which the model has no embedding."""
        if self.tokenizer.vocabulary_size > self.network.config.vocab_size:
            raise EvaluationError(
                f"{self.where}: the tokenizer has {self.tokenizer.vocabulary_size} entries, but the model has only "
                f"{self.network.config.vocab_size} embeddings; expected the tokenizer of this model"
            )

    @property
    def translates(self) -> bool:
        """True if the model is a translation model, which assigns no probability to a single sentence."""
        return isinstance(self.network.config, EncoderDecoderConfig)

    def refuse_translation(self) -> None:
        """Raise EvaluationError if the model is a translation model."""
        if self.translates:
            raise EvaluationError(
                f"{self.where}: this model translates, expected a masked, causal or hybrid model; translation models "
                "are scored on the test sets of `translation` in an experiment"
            )

    def asked(self, device: torch.device, scoring: str = "auto", template: bool = False) -> HatcheryModel:
        """Return the language model on `device`, prepared for the scoring method `scoring`.

        Raises EvaluationError for a translation model. A scoring method that the model does not support raises an error
        only when texts are scored (`scoring_name`).
        """
        self.refuse_translation()
        return self.asked_as(_asked_as(self.use, scoring), device, self.use.predicted_before)

    def asked_as(self, kind: Architecture | None, device: torch.device, predicted_before: int) -> HatcheryModel:
        """Return the language model on `device`, used as a model of the kind `kind` (masked or causal). If `kind` is
        None, the model is used as it was trained.
        """
        return HatcheryModel(self.network, self.tokenizer, device, kind, predicted_before)

    def encoder(self, template: bool = False) -> tuple[Encoder, TextTokenizer]:
        """Return the network without its head, and the tokenizer. Raises EvaluationError if the model is a translation
        model.
        """
        self.refuse_translation()
        encoder = self.network.encoder
        # In a causal model, the first token, [CLS], sees no other token. A classification head must therefore not read
        # the state of [CLS].
        encoder.first_token_is_blind = self.network.causal
        return encoder, self.tokenizer


def _asked_as(use: Use, scoring: str) -> Architecture:
    # `auto` selects the first kind in this list: masked or causal, as the model was trained.
    return required_architecture(scoring, tuple(dict.fromkeys((*use.learned, *use.kinds))))


@dataclass(frozen=True)
class ModelOfUser:
    """A module with a tokenizer of Hatchery. The module is a user's module with the interface of `training.own_model`,
    or an ensemble (`evaluation.ensembles`).

    The fields have the same meaning as in `OurModel`. `objective` is None if only the architecture is known, or if the
    members of the ensemble have no common objective.
    """

    network: OwnModel
    tokenizer: Tokenizer
    use: Use
    where: str
    objective: ObjectiveKeys | None = None
    translates = False

    def asked(self, device: torch.device, scoring: str = "auto", template: bool = False) -> ModuleModel:
        """Return the language model on `device`, prepared for the scoring method `scoring`; see `OurModel.asked`."""
        return self.asked_as(_asked_as(self.use, scoring), device, self.use.predicted_before)

    def asked_as(self, kind: Architecture | None, device: torch.device, predicted_before: int) -> ModuleModel:
        """Return the language model on `device`, used as a model of the kind `kind` (masked or causal). If `kind` is
        None, the model is used as it was trained.
        """
        return ModuleModel(self.network, self.tokenizer, device, kind or _asked_as(self.use, "auto"), predicted_before)

    def encoder(self, template: bool = False) -> tuple[Encoder, TextTokenizer]:
        """Return the module as an encoder, and the tokenizer.

        Raises EvaluationError for a module without `hidden_states`, such as an ensemble.
        """
        return UserEncoder(self.network, self.use.kinds == ("causal",), self.tokenizer.cls_id), self.tokenizer


@dataclass(frozen=True)
class ModelOfOthers:
    """An external language model (of `transformers`, or with the interface of its models) and its fast tokenizer.

    The tokenizer neither truncates nor pads. If a text contains the spelling of a special token, the tokenizer encodes
    it as plain text.
    """

    network: Any
    library_tokenizer: Any
    settings: BaselineSettings
    where: str
    objective: None = None
    translates = False

    @property
    def use(self) -> Use:
        """The kind of the model: masked, causal or encoder-decoder, as the settings state."""
        return Use((self.settings.architecture,))  # type: ignore[arg-type]

    def tokenizer(self, template: bool = False) -> BaselineTokenizer:
        """Return the tokenizer. If `template` is true, only the tokenizer's own template adds special tokens to texts.
        Raises ModelError for a tokenizer without a special token that the architecture needs.
        """
        return BaselineTokenizer(self.library_tokenizer, self.settings.architecture, self.where, template)

    def asked(self, device: torch.device, scoring: str = "auto", template: bool = False) -> BaselineModel:
        """Return the language model on `device`. If `template` is true, the input of a causal model begins with the
        special tokens of its tokenizer's template.

        Raises ModelError for a tokenizer without a special token that the architecture needs.
        """
        return BaselineModel(self.network, self.tokenizer(template), self.settings, device, template)

    def encoder(self, template: bool = False) -> tuple[Encoder, TextTokenizer]:
        """Return the network without its head, and the tokenizer. Raises ModelError for a tokenizer without a special
        token that the architecture needs.
        """
        its = self.tokenizer(template)
        return BaselineEncoder(self.network, self.settings.architecture, its), its


@dataclass(frozen=True)
class LibraryTokensOfUser(ModelOfOthers):
    """A module that a user wrote with the interface of `training.own_model`, and a fast tokenizer of `transformers`.

    Special tokens are added to texts as for an external model with the architecture in the settings.
    """

    network: LibraryView

    def asked(self, device: torch.device, scoring: str = "auto", template: bool = False) -> LibraryTokensModel:
        """Return the language model on `device`. Raises ModelError for a tokenizer without a special token that the
        architecture needs.
        """
        return LibraryTokensModel(self.network, self.tokenizer(template), self.settings, device, template)

    def encoder(self, template: bool = False) -> tuple[Encoder, TextTokenizer]:
        """Return the module as an encoder, and the tokenizer.

        Raises EvaluationError for a module without `hidden_states`.
        """
        its = self.tokenizer(template)
        return UserEncoder(self.network.network, self.settings.architecture == "causal", its.sep_id), its


Pretrained: TypeAlias = OurModel | ModelOfUser | ModelOfOthers
