"""Read published weights and configurations without executing code that the files may contain."""

import argparse
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from hatchery.artifacts.atomic import json_value
from hatchery.errors import ModelError

STATE_PREFIX = "state."
"""Prefix of parameter names in Hatchery's golden npz files (test data), which also contain inputs and outputs of the
model.
"""
PARALLEL_PREFIX = "module."
"""Prefix of parameter names in weights that were saved from a DistributedDataParallel module."""
TORCH_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")
UNREADABLE = (
    *(OSError, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, SafetensorError),
)
"""Exceptions that the readers of weights raise for damaged files."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the state dict in a file. The suffix of the file is .bin, .pt, .pth or .ckpt (torch), .safetensors, or
    .npz.

    In a torch file, the state dict may have the key "model", as in checkpoints of LTG-BERT's training code. Raises
    ModelError naming the file if the file is missing, is damaged, contains code, or contains no state dict.
    """
    if not path.is_file():
        raise ModelError(f"{path}: the file with the weights is missing")
    readers: dict[str, Callable[[Path], dict[str, Tensor]]] = {
        **dict.fromkeys(TORCH_ENDINGS, _from_torch),
        ".safetensors": load_file,
        ".npz": _from_npz,
    }
    if path.suffix not in readers:
        raise ModelError(f"{path}: got a file that ends in {path.suffix!r}, expected one of {', '.join(readers)}")
    try:
        state = readers[path.suffix](path)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, pickle.UnpicklingError) and ("weights only" in reason.lower() or "GLOBAL" in reason):
            raise ModelError(f"{path}: contains objects that may run code, expected only tensors") from error
        kind = {".safetensors": "safetensors file", ".npz": "npz file of numbers"}.get(path.suffix, "torch file")
        raise ModelError(f"{path}: not a readable {kind}: {reason}") from error
    if state and all(name.startswith(PARALLEL_PREFIX) for name in state):
        state = {name.removeprefix(PARALLEL_PREFIX): tensor for name, tensor in state.items()}
    if not state:
        raise ModelError(f"{path}: contains no tensors, expected a state dict")
    return state


def _from_torch(path: Path) -> dict[str, Tensor]:
    # The authors' checkpoints store their command line as an argparse.Namespace. Allow this class, which is safe to
    # load.
    with torch.serialization.safe_globals([argparse.Namespace]):
        content = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(content, Mapping) and isinstance(content.get("model"), Mapping):
        content = content["model"]
    if not isinstance(content, Mapping):
        raise ModelError(
            f"{path}: contains a {type(content).__name__}, expected a state dict, or a state dict under the key 'model'"
        )
    for name, tensor in content.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ModelError(f"{path}: {name!r} is a {type(tensor).__name__}, expected a state dict of tensors")
    return dict(content)


def _from_npz(path: Path) -> dict[str, Tensor]:
    with np.load(path, allow_pickle=False) as archive:
        marked = [name for name in archive.files if name.startswith(STATE_PREFIX)]
        arrays = {name.removeprefix(STATE_PREFIX): archive[name] for name in marked or archive.files}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
"""Keys that the configuration file of a published model must contain."""


def read_config(path: Path) -> dict[str, object]:
    """Return the content of a published model's configuration file. Raises ModelError if the file is missing or
    damaged, or if a key of SIZES is missing.
    """
    try:
        values = json_value(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the configuration is missing") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a readable JSON file: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: contains a {type(values).__name__}, expected an object with the sizes of the model")
    if missing := [key for key in SIZES if key not in values]:
        raise ModelError(f"{path}: lacks {', '.join(missing)}")
    return values
