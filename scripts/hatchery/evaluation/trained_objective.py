"""What a finished model was trained for, as its manifest says, what it can be used as, and what it is asked for."""

from typing import TYPE_CHECKING, Any, NamedTuple

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import ManifestError
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig
from hatchery.training.objective import ModelKind, Objective, ObjectiveKeys
from hatchery.training.objectives import objective_of, objective_settings
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.masked import MaskedObjective, MaskedSettings

if TYPE_CHECKING:
    from hatchery.modeling.language_model import LanguageModel


class Use(NamedTuple):
    """What a model can be used as, first as what it is used where nothing is said."""

    kinds: tuple[ModelKind, ...]
    predicted_before: int = 0
    """How many positions before a hidden token it is predicted."""
    ends_texts: bool = True
    """Whether something stood behind a text in training."""
    only: ModelKind | None = None
    """The only one of `kinds` for which the model was trained; None: it was trained for all of them."""

    @property
    def learned(self) -> tuple[ModelKind, ...]:
        """The uses that the model was trained for."""
        return self.kinds if self.only is None else (self.only,)


def objective_of_model(model: Manifest) -> ObjectiveKeys:
    """The objective that a pretraining run was trained with. Raises ManifestError when its manifest has none."""
    objective: Any = model.settings.get("objective")
    if objective is None:
        raise ManifestError(f"{model.path}: the settings have no objective, so masking 'own' is not known")
    return objective_settings(objective, f"{model.path}: objective")


def use_of(trained: Manifest, model: "LanguageModel") -> Use:
    """What a model can be used as; of an imported one, whose manifest has no objective, what its own files say."""
    if "objective" in trained.settings:
        return use_of_objective(objective_of_model(trained))
    if isinstance(model.config, EncoderDecoderConfig):
        return Use(("translation",))
    return Use(("causal",) if model.causal else ("masked",))


def use_of_objective(objective: ObjectiveKeys) -> Use:
    """Return the uses of a model that was trained with these settings."""
    only = objective.learned[0] if objective.learned != objective.kinds else None
    return Use(objective.kinds, objective.predicted_before, objective.ends_texts, only)


def measured_objective(settings: PerplexitySettings, model: Manifest) -> Objective:
    """What the model of a pretraining run is asked for; without an objective it was imported, and guesses masks."""
    trained = objective_of_model(model) if "objective" in model.settings else None
    return asked_objective(settings, trained, str(model.path))


def asked_objective(settings: PerplexitySettings, trained: ObjectiveKeys | None, where: str) -> Objective:
    """Return what a model of ours is asked for, if it was trained with the settings `trained`, None: not known.

    Raises ManifestError naming `where` for masking "own" of a model with an unknown objective.
    """
    common = common_masks(settings)
    if trained is None:
        if settings.masking == "own":
            raise ManifestError(f"{where}: the settings have no objective, so masking 'own' is not known")
        return common
    own = objective_of(trained)
    return own if settings.masking == "own" else own.for_comparison(common)


def default_objective(use: Use) -> ObjectiveKeys | None:
    """Return default settings of an objective for a model with these uses; None for a masked model, or a translator.

    A folder without the settings of its training says what the model can be used as, and nothing else.
    """
    if "causal" not in use.kinds:
        return None
    segments = {} if use.ends_texts else {"segments": "blocks"}
    task = "hybrid" if "masked" in use.kinds else "causal"
    return objective_settings({"task": task, **segments}, "objective")


def baseline_objective(settings: PerplexitySettings, architecture: Architecture) -> Objective:
    """What a model of others is asked for, never its own objective, which nobody knows."""
    return common_masks(settings) if architecture == "masked" else CausalObjective(CausalSettings())


def common_masks(settings: PerplexitySettings) -> MaskedObjective:
    """The masks that all models are asked behind."""
    return MaskedObjective(
        MaskedSettings(
            kind="subword",
            mask_probability=settings.mask_probability,
            random_probability=settings.random_probability,
            keep_probability=settings.keep_probability,
            short_probability=0.0,
            segments=settings.segments,
        )
    )
