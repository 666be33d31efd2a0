"""The configurations of the families of models, told apart by their key `family`.

"ltg" is LTG-BERT with its ablations and ELC-BERT, "roberta" the models of the reduced-vocabulary study. Nothing here
needs torch, so that planning can count a model's operations without loading it.
"""

from collections.abc import Mapping
from typing import Any

from hatchery.errors import ModelError
from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.roberta_configuration import RobertaConfig
from hatchery.typed import build

ModelConfig = LtgBertConfig | RobertaConfig

CONFIGURATIONS: dict[str, type[LtgBertConfig] | type[RobertaConfig]] = {"ltg": LtgBertConfig, "roberta": RobertaConfig}


def model_config(values: Mapping[str, Any], where: str = "model") -> ModelConfig:
    """The configuration in `values`, of the family that their key `family` names ("ltg" where it is missing).

    Raises ConfigError for an unknown or missing key and an impossible value, and ModelError for an unknown family;
    `where` is the place that the message names.
    """
    family = values.get("family", "ltg")
    if family not in CONFIGURATIONS:
        raise ModelError(f"{where}.family: got {family!r}, allowed are: {', '.join(CONFIGURATIONS)}")
    return build(CONFIGURATIONS[family], values, where)
