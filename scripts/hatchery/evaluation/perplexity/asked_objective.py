"""What a model is asked for when its perplexity is measured: its own objective, or one that all models share."""

from typing import Any

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import ManifestError
from hatchery.evaluation.perplexity.settings import PerplexitySettings
from hatchery.objectives.settings import (
    AnyObjective,
    CausalSettings,
    MaskingSettings,
    TranslationSettings,
    objective_settings,
)


def objective_of(model: Manifest) -> AnyObjective:
    """The objective that a pretraining run was trained with. Raises ManifestError when its manifest has none."""
    objective: Any = model.settings.get("objective")
    if objective is None:
        raise ManifestError(f"{model.path}: the settings have no objective, so masking 'own' is not known")
    return objective_settings(objective, f"{model.path}: objective")


def asked_objective(settings: PerplexitySettings, model: Manifest, causal: bool = False) -> AnyObjective:
    """What the model of a pretraining run, a `causal` one or not, is asked for."""
    own = objective_of(model) if settings.masking == "own" or "objective" in model.settings else None
    if own is not None and (settings.masking == "own" or isinstance(own, TranslationSettings)):
        return own
    if causal:
        return CausalSettings()
    return MaskingSettings(
        kind="subword",
        mask_probability=settings.mask_probability,
        random_probability=settings.random_probability,
        keep_probability=settings.keep_probability,
        short_probability=0.0,
        segments=settings.segments,
    )
