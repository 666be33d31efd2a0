"""torch.compile of a model's layers: one code serves all of them, so compiling takes seconds and not minutes.

Only training is compiled. What else asks the model, once per evaluation, meets other shapes and would compile anew.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from hatchery.modeling.encoder_decoder.decoding import DecoderLayer
from hatchery.modeling.layer_weighting import LayerMixture
from hatchery.modeling.layers import EncoderLayer
from hatchery.training.settings import TrainingRuntime

COMPILED_FROM_STEPS = 500
"""In so many steps base earns the 10 to 25 s that compiling takes on a GPU (docs/gpu.md)."""
# A mixture is another function for each number of layers that it reads.
MOST_VARIANTS = 64

Compiled = Literal["layers", "off"]


def chosen_compilation(runtime: TrainingRuntime, steps: int, device: torch.device) -> Compiled:
    """What `compute.compile` means for a run of `steps` steps on `device`: the same for every attempt of the run."""
    if runtime.compile != "auto":
        return runtime.compile
    # At stage 3 a layer's parameters are not whole before it is called.
    pays = device.type == "cuda" and steps >= COMPILED_FROM_STEPS and runtime.zero_stage < 3
    return "layers" if pays and _can_compile_for_gpu() else "off"


def _can_compile_for_gpu() -> bool:
    """Whether Triton is here, and the C compiler that it asks for."""
    compilers = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, filter(None, compilers)))


def compile_layers_(model: nn.Module, backend: str = "inductor") -> list[Any]:
    """Let what all layers and mixtures of layers compute in training be compiled; returns the modules that changed."""
    torch._dynamo.config.recompile_limit = MOST_VARIANTS
    found: list[Any] = []
    for module in model.modules():
        if isinstance(module, EncoderLayer) and module.weighting.between_blocks:
            # Such a layer writes where no other does; its two blocks are those of all others.
            found += [module.attention, module.feed_forward]
        elif isinstance(module, EncoderLayer | DecoderLayer | LayerMixture):
            found.append(module)
    for module in found:
        # How many states a mixture reads is no variable length: each is another function.
        dynamic = False if isinstance(module, LayerMixture) else None
        compiled = torch.compile(module.forward, dynamic=dynamic, backend=backend)
        module.forward = partial(_in_training, module, compiled, module.forward)
    return found


def _in_training(module: nn.Module, compiled: Callable[..., Any], forward: Callable[..., Any], *inputs: Any) -> Any:
    return (compiled if module.training else forward)(*inputs)
