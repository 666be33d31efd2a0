"""What a model is asked for when its perplexity is measured: its own objective, or one that all models share."""

from hatchery.artifacts.manifests import Manifest
from hatchery.evaluation.baselines.settings import Architecture
from hatchery.evaluation.perplexity.settings import PerplexitySettings
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.training.objective import Objective
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.masked import MaskedObjective, MaskedSettings


def asked_objective(settings: PerplexitySettings, model: Manifest) -> Objective:
    """What the model of a pretraining run is asked for; without an objective it was imported, and guesses masks."""
    common = common_masks(settings)
    if settings.masking == "common" and "objective" not in model.settings:
        return common
    own = objective_of(objective_of_model(model))
    return own if settings.masking == "own" else own.asked(common)


def asked_of_others(settings: PerplexitySettings, architecture: Architecture) -> Objective:
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
