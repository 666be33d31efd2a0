"""Tensors from files that others wrote: torch checkpoints, safetensors and npz, without running anything they hold."""

import argparse
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from hatchery.errors import ModelError

STATE_PREFIX = "state."
"""Before every parameter in our golden npz files, which hold inputs and outputs besides."""
PARALLEL_PREFIX = "module."
"""Before every parameter where the weights were saved from inside DistributedDataParallel."""
TORCH_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")


def read_weights(path: Path) -> dict[str, Tensor]:
    """The state dict in `path`, told by its ending: .bin, .pt, .pth or .ckpt (torch), .safetensors, .npz.

    A torch file may hold it under the key "model", as the authors' checkpoints do. Raises ModelError naming the file
    when it is missing, damaged, holds code, or holds no state dict.
    """
    if not path.is_file():
        raise ModelError(f"{path}: the file with the weights is missing")
    if path.suffix in TORCH_ENDINGS:
        state = _from_torch(path)
    elif path.suffix == ".safetensors":
        state = _from_safetensors(path)
    elif path.suffix == ".npz":
        state = _from_npz(path)
    else:
        expected = ", ".join((*TORCH_ENDINGS, ".safetensors", ".npz"))
        raise ModelError(f"{path}: got a file that ends in {path.suffix!r}, expected one of {expected}")
    if state and all(name.startswith(PARALLEL_PREFIX) for name in state):
        state = {name.removeprefix(PARALLEL_PREFIX): tensor for name, tensor in state.items()}
    if not state:
        raise ModelError(f"{path}: holds no tensors")
    return state


def _from_torch(path: Path) -> dict[str, Tensor]:
    try:
        # The authors' checkpoints hold their command line, which is data, too.
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = " ".join(str(error).split())
        if "weights only" in reason.lower() or "GLOBAL" in reason:
            raise ModelError(f"{path}: holds more than tensors, and nothing else is loaded from it") from error
        raise ModelError(f"{path}: not a readable torch file: {reason[:200]}") from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ModelError(f"{path}: not a readable torch file: {reason}") from error
    if isinstance(content, Mapping) and isinstance(content.get("model"), Mapping):
        content = content["model"]
    return _checked(content, path)


def _from_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelError(f"{path}: not a readable safetensors file: {error}") from error


def _from_npz(path: Path) -> dict[str, Tensor]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            marked = [name for name in archive.files if name.startswith(STATE_PREFIX)]
            arrays = {name.removeprefix(STATE_PREFIX): archive[name] for name in marked or archive.files}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"{path}: not a readable npz file of numbers: {reason}") from error


def _checked(content: Any, path: Path) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        raise ModelError(
            f"{path}: holds a {type(content).__name__}, expected a state dict or one under the key 'model'"
        )
    for name, tensor in content.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ModelError(f"{path}: {name!r} is a {type(tensor).__name__}, expected a state dict of tensors")
    return dict(content)
