"""The registry of model families. The key `family` of a configuration selects the family.

Each family is a folder with a file `family.py`. Torch is only loaded when `Family.modules` is called.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchery.errors import ModelError
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.family import Family
from hatchery.modeling.flops import BACKWARD_FACTOR, PassShape
from hatchery.settings.base import require
from hatchery.sums import plain_sum
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.typed import build

FAMILIES: dict[str, Family] = {
    path.parent.name: import_module(f"hatchery.modeling.{path.parent.name}.family").FAMILY
    for path in sorted(Path(__file__).parent.glob("*/family.py"))
}
DEFAULT_FAMILY = "ltg"
"""The family of a configuration without the key `family`."""


def family_of(config: ModelConfig) -> Family:
    """Return the family of a configuration."""
    return FAMILIES[config.family]


def model_config(values: Mapping[str, Any], where: str = "model") -> ModelConfig:
    """Return the configuration with the given `values`. The key `family` (by default DEFAULT_FAMILY) selects the
    family, whose configuration class is used.

    Raises ConfigError for an unknown or missing key or an invalid value, and ModelError for an unknown family. `where`
    is the prefix of keys in messages.
    """
    family = values.get("family", DEFAULT_FAMILY)
    if family not in FAMILIES:
        raise ModelError(f"{where}.family: got {family!r}, allowed are: {', '.join(FAMILIES)}")
    return build(FAMILIES[family].configuration, values, where)


def with_token_ids(values: Mapping[str, Any], special: SpecialTokens) -> dict[str, Any]:
    """Return `values` with additional keys: the ids of those special tokens for which the configuration of the model's
    family has keys.
    """
    family = FAMILIES.get(values.get("family", DEFAULT_FAMILY))
    roles = () if family is None else family.token_ids
    return {**values, **{f"{role}_token_id": special.ids[getattr(special, role)] for role in roles}}


def forward_flops(config: ModelConfig, shape: PassShape) -> dict[str, float]:
    """Return the FLOPs of one forward pass, by part of the model (see `flops.encoder_flops`)."""
    return family_of(config).forward_flops(config, shape)


def training_flops(config: ModelConfig, shape: PassShape) -> float:
    """Return the FLOPs of one forward and backward pass: three times the FLOPs of the forward matrix products."""
    return (1 + BACKWARD_FACTOR) * plain_sum(forward_flops(config, shape).values())


def training_flops_per_sequence(
    model: Mapping[str, Any],
    vocabulary_size: int,
    sequence_length: int,
    labelled_share: float,
    batch_size: int | None = None,
) -> float:
    """Return the FLOPs of training on one sequence of `sequence_length` tokens, forward and backward.

    `model` contains the model settings, without the vocabulary size. `labelled_share` is the fraction of positions that
    have a label; the output layer computes only these positions. All sequences of a forward pass share the projection
    of the relative positions. Therefore the FLOPs of this projection are divided by `batch_size`; if `batch_size` is
    None, these FLOPs are not counted. A model with `sentence_pair_head` classifies one pair per sequence. Raises
    ConfigError or ModelError for invalid arguments.
    """
    require(0 <= labelled_share <= 1, "labelled_share", labelled_share, "a number from 0 to 1")
    require(sequence_length >= 1, "sequence_length", sequence_length, "1 or more")
    require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "1 or more, or None")
    config = model_config({**model, "vocab_size": vocabulary_size})
    parts = forward_flops(config, PassShape(1, sequence_length, labelled_share * sequence_length, pairs=True))
    shared = parts.pop("position_table")
    forward = plain_sum(parts.values()) + (shared / batch_size if batch_size is not None else 0.0)
    return (1 + BACKWARD_FACTOR) * forward


def teaching_flops_per_sequence(
    models: Sequence[Mapping[str, Any]], vocabulary_size: int, sequence_length: int, labelled_share: float
) -> float:
    """Return the FLOPs of one forward pass of all teachers on one sequence.

    `models` contains the model settings of each teacher. For the other arguments, see `training_flops_per_sequence`.
    The FLOPs of the projection of relative positions are not counted, because no `batch_size` is given.
    """
    both = (training_flops_per_sequence(one, vocabulary_size, sequence_length, labelled_share) for one in models)
    return plain_sum(both) / (1 + BACKWARD_FACTOR)
