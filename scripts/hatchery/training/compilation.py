"""Compile a model's layers with torch.compile: all layers share one code, so compiling takes seconds and not minutes.

A model is compiled for its main work, training or evaluation. Other calls, such as the evaluation after an epoch, have
other shapes, would be compiled again, and therefore run uncompiled.
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
"""Number of pretraining steps in which the base model saves the 10 to 25 s that compiling takes on a GPU
(docs/gpu.md)."""
COMPILATION_TAKES = "layers are compiled by torch.compile, so the first step takes some ten seconds"
# A mixture is a separate function for each number of layers that it reads.
MOST_VARIANTS = 64


def chosen_compilation(choice: CompilationChoice, device: torch.device, pays: bool) -> Compilation:
    """Return what `compute.compile` means on `device`; `pays` is whether the work is long enough for compiling."""
    if choice != "auto":
        return choice
    return "layers" if pays and device.type == "cuda" and _can_compile_for_gpu() else "off"


def compilation_of_run(choice: CompilationChoice, device: torch.device, steps: int, zero_stage: int) -> Compilation:
    """Return which parts of a pretraining are compiled; at ZeRO stage 3 a layer's parameters are incomplete before
    its call."""
    return chosen_compilation(choice, device, pays=steps >= COMPILED_FROM_STEPS and zero_stage < 3)


def _can_compile_for_gpu() -> bool:
    """Return whether Triton and the C compiler that it needs are installed."""
    compilers = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, filter(None, compilers)))


def compile_layers_(
    model: nn.Module, backend: str = "inductor", *, evaluated: bool = False, any_length: bool = False
) -> list[Any]:
    """Compile the functions of all layers and mixtures of layers; returns the changed modules.

    Compiled code runs in training mode alone or, if the model is `evaluated`, in evaluation mode alone. Batches of
    `any_length` share one code, which is slower than that of a single shape. Modules that are compiled already stay
    unchanged.
    """
    torch._dynamo.config.recompile_limit = MOST_VARIANTS
    modules: list[Any] = []
    for module in model.modules():
        if isinstance(module, EncoderLayer) and module.weighting.between_blocks:
            # This layer writes where no other layer does; its two blocks are the same as in all others.
            modules += [module.attention, module.feed_forward]
        elif isinstance(module, EncoderLayer | DecoderLayer | LayerMixture):
            modules.append(module)
    modules = [module for module in modules if "forward" not in vars(module)]
    for module in modules:
        # The number of states of a mixture is no variable length: each number has a function of its own.
        dynamic = any_length or (False if isinstance(module, LayerMixture) else None)
        compiled = torch.compile(module.forward, dynamic=dynamic, backend=backend)
        module.forward = partial(_compiled_in_mode, not evaluated, module, compiled, module.forward)
    return modules


def compilation_of(model: nn.Module) -> Compilation:
    """Return the manifest's entry on compilation of an evaluated model: whether any part was compiled."""
    return "layers" if any("forward" in vars(module) for module in model.modules()) else "off"


def _compiled_in_mode(
    training: bool, module: nn.Module, compiled: Callable[..., Any], forward: Callable[..., Any], *inputs: Any
) -> Any:
    return (compiled if module.training == training else forward)(*inputs)
