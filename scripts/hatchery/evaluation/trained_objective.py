"""What a finished model was trained for, as its manifest says, and what it can be used as."""

from typing import TYPE_CHECKING, Any, NamedTuple

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import ManifestError
from hatchery.modeling.encoder_decoder.configuration import EncoderDecoderConfig
from hatchery.training.objective import ModelKind, ObjectiveKeys
from hatchery.training.objectives import objective_settings

if TYPE_CHECKING:
    from hatchery.modeling.language_model import LanguageModel


class Use(NamedTuple):
    """What a model can be used as, first as what it is used where nothing is said."""

    kinds: tuple[ModelKind, ...]
    predicted_before: int = 0
    """How many positions before a hidden token it is predicted."""


def objective_of_model(model: Manifest) -> ObjectiveKeys:
    """The objective that a pretraining run was trained with. Raises ManifestError when its manifest has none."""
    objective: Any = model.settings.get("objective")
    if objective is None:
        raise ManifestError(f"{model.path}: the settings have no objective, so masking 'own' is not known")
    return objective_settings(objective, f"{model.path}: objective")


def use_of(trained: Manifest, model: "LanguageModel") -> Use:
    """What a model can be used as; of an imported one, whose manifest has no objective, what its own files say."""
    if "objective" in trained.settings:
        objective = objective_of_model(trained)
        return Use(objective.kinds, objective.predicted_before)
    if isinstance(model.config, EncoderDecoderConfig):
        return Use(("translation",))
    return Use(("causal",) if model.causal else ("masked",))
