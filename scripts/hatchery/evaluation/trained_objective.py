"""The objective with which a model was trained, its uses (masked, causal, translation), and the objective that defines
the predicted tokens in held-out text.
"""

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
    """The ways in which a model can predict, called uses: masked, causal, translation; for an external model also
    encoder_decoder. The first use is the default."""

    kinds: tuple[ModelKind, ...]
    predicted_before: int = 0
    """Distance from the position of a prediction to the predicted masked token: 0, or 1 for hybrid models."""
    appends_end_token: bool = True
    """True if the training texts ended with a separator token."""
    only: ModelKind | None = None
    """The single use for which the model was trained; None if the model was trained for all `kinds`."""

    @property
    def learned(self) -> tuple[ModelKind, ...]:
        """The uses for which the model was trained."""
        return self.kinds if self.only is None else (self.only,)


def objective_of_model(model: Manifest) -> ObjectiveKeys:
    """Return the objective of a pretraining run. Raises ManifestError if the run's manifest has no objective."""
    objective: Any = model.settings.get("objective")
    if objective is None:
        raise ManifestError(f"{model.path}: the settings have no objective, which masking 'own' needs")
    return objective_settings(objective, f"{model.path}: objective")


def use_of(trained: Manifest, model: "LanguageModel") -> Use:
    """Return the ways in which a Hatchery model can predict (masked, causal or translation). If the manifest contains
    no objective, these uses are derived from the model's configuration.
    """
    if "objective" in trained.settings:
        return use_of_objective(objective_of_model(trained))
    if isinstance(model.config, EncoderDecoderConfig):
        return Use(("translation",))
    return Use(("causal",) if model.causal else ("masked",))


def use_of_objective(objective: ObjectiveKeys) -> Use:
    """Return the ways in which a model trained with `objective` can predict (masked, causal or translation)."""
    only = objective.learned[0] if objective.learned != objective.kinds else None
    return Use(objective.kinds, objective.predicted_before, objective.appends_end_token, only)


def measured_objective(settings: PerplexitySettings, model: Manifest) -> Objective:
    """Return the objective that selects, in held-out text, the tokens which the model must predict.

    If the model's manifest contains no objective, tokens are masked as in `common_masks`. Raises the ManifestError of
    `asked_objective`.
    """
    trained = objective_of_model(model) if "objective" in model.settings else None
    return asked_objective(settings, trained, str(model.path))


def asked_objective(settings: PerplexitySettings, trained: ObjectiveKeys | None, where: str) -> Objective:
    """Return the objective that defines a Hatchery model's prediction targets on held-out text. `trained` are the
    settings of the objective in training, None if unknown.

    Raises ManifestError naming `where` if `trained` is None and the settings ask for the masks of the training
    (`masking: own`).
    """
    common = common_masks(settings)
    if trained is None:
        if settings.masking == "own":
            raise ManifestError(f"{where}: the settings have no objective, which masking 'own' needs")
        return common
    own = objective_of(trained)
    return own if settings.masking == "own" else own.for_comparison(common)


def default_objective(use: Use) -> ObjectiveKeys | None:
    """Return default objective settings for a model with the uses `use`; None for a masked or a translation model.

    The settings are used for a model whose training settings are unknown.
    """
    if "causal" not in use.kinds:
        return None
    segments = {} if use.appends_end_token else {"segments": "blocks"}
    task = "hybrid" if "masked" in use.kinds else "causal"
    return objective_settings({"task": task, **segments}, "objective")


def baseline_objective(settings: PerplexitySettings, architecture: Architecture) -> Objective:
    """Return the objective that defines an external model's prediction targets on held-out text. It depends only on the
    architecture, because the training objective of an external model is unknown.
    """
    return common_masks(settings) if architecture == "masked" else CausalObjective(CausalSettings())


def common_masks(settings: PerplexitySettings) -> MaskedObjective:
    """Return the objective that masks the same tokens for all models with the same tokenizer."""
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
