"""torch.compile of a model's layers: one code serves all of them, so compiling takes seconds and not minutes.

A model is compiled for what it is about to do, for training or for evaluation. What else asks it meanwhile, such as the
evaluation after an epoch, meets other shapes, would compile anew and is computed as it is written.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from hatchery.modeling.encoder_decoder.decoding import DecoderLayer
from hatchery.modeling.layer_weighting import LayerMixture
from hatchery.modeling.layers import EncoderLayer
from hatchery.settings.base import Compilation, CompilationChoice

COMPILED_FROM_STEPS = 500
"""In so many steps of pretraining base earns the 10 to 25 s that compiling takes on a GPU (docs/gpu.md)."""
COMPILATION_TAKES = "layers are compiled by torch.compile, so the first step takes some ten seconds"
# A mixture is another function for each number of layers that it reads.
MOST_VARIANTS = 64


def chosen_compilation(choice: CompilationChoice, device: torch.device, pays: bool) -> Compilation:
    """What `compute.compile` means on `device` for work that is or is not long enough that compiling `pays` there."""
    if choice != "auto":
        return choice
    return "layers" if pays and device.type == "cuda" and _can_compile_for_gpu() else "off"


def compilation_of_run(choice: CompilationChoice, device: torch.device, steps: int, zero_stage: int) -> Compilation:
    """What of a pretraining is compiled; at ZeRO stage 3 a layer's parameters are not whole before its call."""
    return chosen_compilation(choice, device, pays=steps >= COMPILED_FROM_STEPS and zero_stage < 3)


def _can_compile_for_gpu() -> bool:
    """Whether Triton is here, and the C compiler that it asks for."""
    compilers = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, filter(None, compilers)))


def compile_layers_(
    model: nn.Module, backend: str = "inductor", *, evaluated: bool = False, any_length: bool = False
) -> list[Any]:
    """Let what all layers and mixtures of layers compute be compiled; returns the modules that changed.

    In training mode alone, or, of a model that is `evaluated`, in evaluation mode alone. Batches of `any_length` share
    one code, which is slower than that of a single shape. Modules that are compiled already stay as they are.
    """
    torch._dynamo.config.recompile_limit = MOST_VARIANTS
    found: list[Any] = []
    for module in model.modules():
        if isinstance(module, EncoderLayer) and module.weighting.between_blocks:
            # Such a layer writes where no other does; its two blocks are those of all others.
            found += [module.attention, module.feed_forward]
        elif isinstance(module, EncoderLayer | DecoderLayer | LayerMixture):
            found.append(module)
    found = [module for module in found if "forward" not in vars(module)]
    for module in found:
        # How many states a mixture reads is no variable length: each is another function.
        dynamic = any_length or (False if isinstance(module, LayerMixture) else None)
        compiled = torch.compile(module.forward, dynamic=dynamic, backend=backend)
        module.forward = partial(_compiled_in_mode, not evaluated, module, compiled, module.forward)
    return found


def compilation_of(model: nn.Module) -> Compilation:
    """What a manifest says of a model that is evaluated: whether anything of it was compiled."""
    return "layers" if any("forward" in vars(module) for module in model.modules()) else "off"


def _compiled_in_mode(
    training: bool, module: nn.Module, compiled: Callable[..., Any], forward: Callable[..., Any], *inputs: Any
) -> Any:
    return (compiled if module.training == training else forward)(*inputs)
