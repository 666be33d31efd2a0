"""How tensors come to the device that computes: without making the host wait for what a GPU has still to do."""

from torch import Tensor, device


def moved(tensor: Tensor, to: device) -> Tensor:
    """`tensor` on the device `to`. A GPU fetches it from page-locked memory by itself, and the host goes on."""
    if to.type == "cpu" or tensor.device.type != "cpu":
        return tensor.to(to)
    return (tensor if tensor.is_pinned() else tensor.pin_memory()).to(to, non_blocking=True)
