"""Where an evaluation runs: device, threads and numeric precision, none of which belong to the result's identity."""

import os

import torch

from hatchery.errors import ConfigError
from hatchery.settings.base import DeviceName


def prepare_device(name: DeviceName, threads: int | None = None) -> torch.device:
    """Choose the device and pin the numerics that decide near-ties.

    `auto` takes a CUDA device when there is one. `threads` bounds the CPU threads of PyTorch; None leaves its choice.
    On CUDA, deterministic algorithms are asked for. Matrix products stay in full float32 (no TF32), because reduced
    ones flip near-ties between two sentences.
    Raises ConfigError when CUDA is demanded and absent, or `threads` is not positive.
    """
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"runtime.threads must be at least 1, got {threads}")
        torch.set_num_threads(threads)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError("runtime.device: the device 'cuda' is demanded, but PyTorch finds none on this machine")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    if not available or name == "cpu":
        return torch.device("cpu")
    # Sums over repeated ids (embeddings, position tables) otherwise vary from run to run; cuBLAS reads its variable
    # when the device is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch.device("cuda")
