"""Restores PyTorch's global settings after direct training or evaluation in a Python program has changed them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def kept_settings() -> Iterator[None]:
    """Restore PyTorch's global settings after the `with` block: random number generators, precision of matrix products,
    determinism and number of threads.
    """
    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    tf32, debug = torch.backends.cudnn.allow_tf32, torch.get_deterministic_debug_mode()
    memory = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()), enabled=True):
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(precision)
            torch.backends.cudnn.allow_tf32 = tf32
            torch.set_deterministic_debug_mode(debug)
            torch.utils.deterministic.fill_uninitialized_memory = memory  # type: ignore[attr-defined]
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
