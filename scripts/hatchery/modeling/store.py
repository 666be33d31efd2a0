"""A stored model: a folder with the weights (`model.safetensors`) and the configuration (`config.json`).

Both files are written atomically. The matrix that embedding and output layer share is stored once. A file with missing
or additional tensors is refused; errors name the file and the tensor.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from hatchery.artifacts.atomic import atomic_path, json_value, write_json
from hatchery.errors import ConfigError, ModelError
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, empty_language_model

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"


def save_model(folder: str | Path, model: LanguageModel) -> list[Path]:
    """Write the configuration and the weights of `model` into `folder`. Return the paths of the two files.

    Equal weights give equal bytes: tensors are sorted by name, and the file contains no date.
    """
    folder = Path(folder)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in sorted(model.state_dict().items())}
    write_json(folder / CONFIG_FILE, description(model.config, model.causal))
    with atomic_path(folder / WEIGHTS_FILE) as partial:
        save_file(tensors, partial, metadata={"format": "pt"})
    return [folder / CONFIG_FILE, folder / WEIGHTS_FILE]


def load_language_model(folder: str | Path) -> LanguageModel:
    """Return the model in `folder`, in fp32, on the CPU and in training mode, like a new module.

    Raises ModelError naming a missing or damaged file, or for weights that do not fit the configuration.
    """
    config, causal = load_config(folder)
    path = Path(folder) / WEIGHTS_FILE
    return filled_language_model(config, causal, read_tensors(path), path)


def filled_language_model(
    config: ModelConfig, causal: bool, tensors: Mapping[str, Tensor], path: str | Path
) -> LanguageModel:
    """Return a model in fp32 with this configuration and the weights `tensors`. Raises ModelError, as `check_tensors`
    does.
    """
    model = empty_language_model(config, causal)
    check_tensors(model, tensors, path)
    # Copy the tensors, because they may be a memory map of the file. All parameters are fp32.
    copies = {name: tensor.to(torch.float32, copy=True) for name, tensor in tensors.items()}
    model.load_state_dict(copies, assign=True)
    return model


def description(config: ModelConfig, causal: bool) -> dict[str, object]:
    """Return the content of `config.json`: the configuration, and the key `causal` if it is true."""
    return config.to_dict() | ({"causal": True} if causal else {})


def load_config(folder: str | Path) -> tuple[ModelConfig, bool]:
    """Return the configuration in `folder`, and whether the model is causal (`LanguageModel.causal`).

    Raises ModelError naming a missing or invalid file.
    """
    path = Path(folder) / CONFIG_FILE
    try:
        values = json_value(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ModelError(f"got {type(values).__name__}, expected a JSON object")
        causal = values.pop("causal", False)
        if not isinstance(causal, bool):
            raise ModelError(f"causal: got {causal!r}, expected true or false")
        return model_config(values), causal
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the model's configuration is missing") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelError(f"{path}: not a readable JSON file: {error}") from error
    except (ConfigError, ModelError) as error:
        raise ModelError(f"{path}: {error}") from error


def check_tensors(
    model: LanguageModel,
    tensors: Mapping[str, Tensor],
    path: str | Path,
    name_in_file: Callable[[str], str] = str,
) -> None:
    """Raise ModelError, naming `path`, unless `tensors` are floating-point tensors with the names and shapes of the
    model's parameters.

    `name_in_file` maps Hatchery's tensor names to the names in the file, for messages.
    """
    expected = model.state_dict()
    for name in sorted(expected.keys() | tensors.keys()):
        shown = name_in_file(name)
        if name not in tensors:
            raise ModelError(f"{path}: lacks the tensor {shown}")
        if name not in expected:
            raise ModelError(f"{path}: contains the tensor {shown}, which the configuration does not have")
        shape, wanted = tuple(tensors[name].shape), tuple(expected[name].shape)
        if shape != wanted:
            raise ModelError(f"{path}: the tensor {shown} has the shape {shape}; the configuration requires {wanted}")
        if not tensors[name].is_floating_point():
            raise ModelError(f"{path}: the tensor {shown} holds {tensors[name].dtype}, expected floating-point numbers")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file. Raises ModelError naming a missing or damaged file."""
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the model's weights are missing") from error
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: not a readable safetensors file: {error}") from error
