"""Compile a model's layers with torch.compile.

All layers share one compiled function, so compilation takes seconds instead of minutes. A model is compiled for either
training or evaluation. The evaluations during training run uncompiled, because their batches have other shapes and
would cause another compilation.
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
"""Minimum number of pretraining steps for compilation. After this number, the time saved equals the time to compile the
base model on a GPU, 10 to 25 s (docs/gpu.md)."""
COMPILATION_TAKES = "layers are compiled by torch.compile, so the first step takes ten seconds or more"
# Maximum number of compiled variants of a function. A layer mixture needs one variant for each number of input layers,
# so this maximum must exceed the number of layers of a model.
MOST_VARIANTS = 64


def chosen_compilation(choice: CompilationChoice, device: torch.device, pays: bool) -> Compilation:
    """Return "layers" if a model's layers are compiled on `device`, otherwise "off"; `choice` is the setting. `pays` is
    True if training or evaluation takes so long that compilation saves time.
    """
    if choice != "auto":
        return choice
    return "layers" if pays and device.type == "cuda" and _can_compile_for_gpu() else "off"


def compilation_of_run(choice: CompilationChoice, device: torch.device, steps: int, zero_stage: int) -> Compilation:
    """Return "layers" if the model's layers are compiled in a pretraining run, otherwise "off".

    At ZeRO stage 3, the setting "auto" does not compile, because DeepSpeed gathers a layer's parameters only while the
    layer is called.
    """
    return chosen_compilation(choice, device, pays=steps >= COMPILED_FROM_STEPS and zero_stage < 3)


def _can_compile_for_gpu() -> bool:
    compilers = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, filter(None, compilers)))


def compile_layers_(
    model: nn.Module, backend: str = "inductor", *, evaluated: bool = False, any_length: bool = False
) -> list[Any]:
    """Compile the forward functions of all layers and layer mixtures; return the compiled modules. In layers with
    learned weights between their two blocks (`weighting.between_blocks`), compile the attention block and the
    feed-forward block instead of the layer. Modules that are already compiled are skipped.

    If `evaluated` is true, the compiled code runs only in evaluation mode; otherwise, it runs only in training mode. If
    `any_length` is true, batches of all lengths share one compiled function, which is slower than a function for one
    shape.
    """
    torch._dynamo.config.recompile_limit = MOST_VARIANTS
    modules: list[Any] = []
    for module in model.modules():
        if isinstance(module, EncoderLayer) and module.weighting.between_blocks:
            # Compile the attention and the feed-forward block separately. A layer with weights between blocks cannot
            # share a compiled function with other layers, because each layer writes the sums of its blocks to a
            # different index of one tensor.
            modules += [module.attention, module.feed_forward]
        elif isinstance(module, EncoderLayer | DecoderLayer | LayerMixture):
            modules.append(module)
    modules = [module for module in modules if "forward" not in vars(module)]
    for module in modules:
        # Compile one function for each number of input layers of a mixture, instead of one function for a variable
        # number of input layers.
        dynamic = any_length or (False if isinstance(module, LayerMixture) else None)
        compiled = torch.compile(module.forward, dynamic=dynamic, backend=backend)
        module.forward = partial(_compiled_in_mode, not evaluated, module, compiled, module.forward)
    return modules


def compilation_of(model: nn.Module) -> Compilation:
    """Return the manifest's entry for the compilation of an evaluated model: "layers" if any module is compiled,
    otherwise "off".
    """
    return "layers" if any("forward" in vars(module) for module in model.modules()) else "off"


def _compiled_in_mode(
    training: bool, module: nn.Module, compiled: Callable[..., Any], forward: Callable[..., Any], *inputs: Any
) -> Any:
    return (compiled if module.training == training else forward)(*inputs)
