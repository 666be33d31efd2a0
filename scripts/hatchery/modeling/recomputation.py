"""Layers that forget what they compute in training, and compute it again when the backward pass asks.

It saves memory and costs a second forward pass. Dropout is drawn again from the same state of the generator, so the
numbers stay the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from hatchery.modeling.attention import LayerCache


def recompute_(layers: Iterable[nn.Module], run: Callable[..., Any] = checkpoint) -> None:
    """Let `layers` forget; `del layer.forward` ends it. `run` is torch's `checkpoint` with arguments of its own."""
    for layer in layers:
        layer.forward = partial(_recomputed, layer, layer.forward, run)


def _recomputed(layer: nn.Module, forward: Any, run: Callable[..., Any], *inputs: Any) -> Any:
    if not layer.training:
        return forward(*inputs)

    def once(*given: Any) -> Any:
        # A decoder's layer adds its keys and values to a cache, and it runs twice here.
        return forward(*(replace(one, own=replace(one.own)) if isinstance(one, LayerCache) else one for one in given))

    # Reentrant, it gives no gradients to tensors inside of tuples.
    return run(once, *inputs, use_reentrant=False)
