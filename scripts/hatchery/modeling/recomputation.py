"""Layers that discard their activations in training and recompute them in the backward pass.

Recomputation saves memory and costs a second forward pass. Dropout is drawn again from the same state of the generator,
so the results do not change.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from hatchery.modeling.attention import LayerCache


def recompute_(layers: Iterable[nn.Module], run: Callable[..., Any] = checkpoint) -> None:
    """Recompute the activations of `layers`; `del layer.forward` undoes it. `run` is torch's `checkpoint` with other
    arguments.
    """
    for layer in layers:
        layer.forward = partial(_recomputed, layer, layer.forward, run)


def _recomputed(layer: nn.Module, forward: Any, run: Callable[..., Any], *inputs: Any) -> Any:
    if not layer.training:
        return forward(*inputs)

    def once(*given: Any) -> Any:
        # Copy the cache for each of the two runs, because a decoder's layer adds its keys and values to it.
        return forward(*(replace(one, own=replace(one.own)) if isinstance(one, LayerCache) else one for one in given))

    # The reentrant version returns no gradients to tensors inside tuples.
    return run(once, *inputs, use_reentrant=False)
