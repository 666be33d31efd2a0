"""Layers that discard their activations in training and recompute them in the backward pass.

Recomputation saves memory and costs a second forward pass. The second pass uses the same random numbers for dropout, so
results do not change.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from hatchery.modeling.attention import LayerCache


def recompute_(layers: Iterable[nn.Module], run: Callable[..., Any] = checkpoint) -> None:
    """Make `layers` recompute their activations, by replacing `layer.forward`; `del layer.forward` restores the method.

    `run` is torch's `checkpoint`, or the same function with other arguments.
    """
    for layer in layers:
        layer.forward = partial(_recomputed, layer, layer.forward, run)


def _recomputed(layer: nn.Module, forward: Any, run: Callable[..., Any], *inputs: Any) -> Any:
    if not layer.training:
        return forward(*inputs)

    def once(*given: Any) -> Any:
        # A decoder layer appends keys and values to its cache, and recomputation calls the layer twice. Therefore each
        # call gets a copy of the cache.
        return forward(*(replace(one, own=replace(one.own)) if isinstance(one, LayerCache) else one for one in given))

    # Use checkpointing that is not reentrant, because reentrant checkpointing would return no gradients for tensors
    # inside tuples.
    return run(once, *inputs, use_reentrant=False)
