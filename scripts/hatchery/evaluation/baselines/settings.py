"""What is said about a model that others pretrained."""

from dataclasses import dataclass
from typing import Literal

from hatchery.artifacts.manifests import Manifest
from hatchery.settings.base import Settings

IMPORT = "import_model"
"""Name of the stage by whose manifests models of others are known."""

Architecture = Literal["masked", "causal", "encoder_decoder"]


@dataclass(frozen=True)
class BaselineSettings(Settings):
    """A model in the layout of the library `transformers`, registered as a raw input of kind folder."""

    architecture: Architecture
    """Whether it guesses masked words or the next one, or writes with a decoder what an encoder has read (T5, BART)."""
    leading_blank: bool | None = None
    """In minimal pairs, put a blank before every sentence; null does what the suite says."""


def is_imported(model: Manifest) -> bool:
    """Whether a manifest is that of a model of others, and not of a pretraining."""
    return model.stage == IMPORT
