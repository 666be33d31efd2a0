"""Compile a model's layers with torch.compile. All layers share one compiled function, so compiling takes seconds
instead of minutes.

A model is compiled for either training or evaluation. In training, the evaluations between steps run uncompiled,
because their batches have other shapes and would be compiled again.
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
"""Number of pretraining steps from which compiling pays: the time saved by then equals the 10 to 25 s of compiling the
base model on a GPU (docs/gpu.md)."""
COMPILATION_TAKES = "layers are compiled by torch.compile, so the first step takes some ten seconds"
# torch.compile compiles a layer mixture once for each number of input layers.
MOST_VARIANTS = 64


def chosen_compilation(choice: CompilationChoice, device: torch.device, pays: bool) -> Compilation:
    """Return the compilation that `compute.compile` selects on `device`; `pays` is whether the work is long enough for
    compiling."""
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

    Compiled code runs only in training mode or, if the model is `evaluated`, only in evaluation mode. Batches of
    `any_length` share one code, which is slower than that of a single shape. Modules that are compiled already stay
    unchanged.
    """
    torch._dynamo.config.recompile_limit = MOST_VARIANTS
    modules: list[Any] = []
    for module in model.modules():
        if isinstance(module, EncoderLayer) and module.weighting.between_blocks:
            # Layers that mix between blocks write to different indices of the running sums, so they cannot share one
            # compiled function. Their attention and feed-forward blocks can.
            modules += [module.attention, module.feed_forward]
        elif isinstance(module, EncoderLayer | DecoderLayer | LayerMixture):
            modules.append(module)
    modules = [module for module in modules if "forward" not in vars(module)]
    for module in modules:
        # The number of layer outputs that a mixture reads is not compiled as a variable length: each number has its own
        # compiled function.
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
