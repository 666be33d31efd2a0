"""What an evaluation changes in a program that calls it, and puts back."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hatchery.evaluation.pretrained import Pretrained


@contextmanager
def kept_numerics(model: Pretrained) -> Iterator[None]:
    """Put PyTorch's settings, its random state, and device and training mode of all modules back at the end."""
    network: torch.nn.Module = model.network
    modes = [(module, module.training) for module in network.modules()]
    device = next(iter(network.parameters())).device
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
            network.to(device)
            for module, mode in modes:
                module.training = mode
