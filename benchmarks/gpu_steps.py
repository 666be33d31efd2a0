"""Forward and backward of generated batches in bf16, in all ways that a model can be computed on a GPU.

They are timed one by one after a warm-up, with the device waited for before and after; the median counts. Operations
are those of the model (PaLM, Appendix B).
"""

import importlib.util
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from benchmarks import training_step
from benchmarks.flex_attention import FlexSelfAttention
from benchmarks.gpu_bench import Bench, LeftOutError, Row, Rows, attempted, median_seconds
from benchmarks.training_step import Setting
from hatchery.modeling import attention
from hatchery.modeling.families import training_flops
from hatchery.modeling.flops import PassShape
from hatchery.modeling.language_model import UNLABELLED

Step = Callable[[], None]


def _ours(bench: Bench, setting: Setting) -> Step:
    return training_step.make_step("ours", setting)


def _written_out(bench: Bench, setting: Setting) -> Step:
    step = training_step.make_step("ours", setting)

    def written_out() -> None:
        with patch.object(attention, "_fused_is_faster", return_value=False):
            step()

    return written_out


def _plain(bench: Bench, setting: Setting) -> Step:
    return training_step.make_step("plain", setting)


def _bert(bench: Bench, setting: Setting) -> Step:
    if importlib.util.find_spec("transformers") is None:
        raise LeftOutError("transformers is not installed here")
    return training_step.make_step("bert", setting)


def _undropped(bench: Bench, setting: Setting) -> Step:
    return training_step.make_step("ours", replace(setting, attention_dropout=0.0))


def _flex_in(layers: Iterable[nn.Module], bench: Bench) -> None:
    # A CPU refuses its gradients, compiled or not.
    compiled = torch.compile(flex_attention, backend=bench.sizes.compiler) if bench.on_gpu else flex_attention
    for layer in layers:
        layer.attention = FlexSelfAttention(layer.attention, compiled)


def _flex(bench: Bench, setting: Setting) -> Step:
    setting = replace(setting, attention_dropout=0.0)
    model = training_step.ours(setting)
    _flex_in(model.encoder.layers, bench)
    return training_step.make_step("ours", setting, model)


def _compiled_layers(bench: Bench, setting: Setting) -> Step:
    model = training_step.ours(setting)
    for layer in model.encoder.layers:
        layer.compile(backend=bench.sizes.compiler)
    return training_step.make_step("ours", setting, model)


def _compiled_flex(bench: Bench, setting: Setting) -> Step:
    setting = replace(setting, attention_dropout=0.0)
    model = training_step.ours(setting)
    _flex_in(model.encoder.layers, bench)
    for layer in model.encoder.layers:
        layer.compile(backend=bench.sizes.compiler)
    return training_step.make_step("ours", setting, model)


def _compiled(bench: Bench, setting: Setting) -> Step:
    model = training_step.ours(setting)
    model.compile(backend=bench.sizes.compiler)
    return training_step.make_step("ours", setting, model)


WAYS: dict[str, Callable[[Bench, Setting], Step]] = {
    "as it runs (fused attention)": _ours,
    "plain definition (the authors' form)": _plain,
    "attention written out": _written_out,
    "BERT of transformers": _bert,
    "no attention dropout": _undropped,
    "no attention dropout, FlexAttention": _flex,
    "layers compiled": _compiled_layers,
    "no attention dropout, FlexAttention, layers compiled": _compiled_flex,
    "all compiled (compute.compile)": _compiled,
}
"""In the order of what must be known first: the time of a part can run out, and compiling takes longest."""


def steps(bench: Bench, part: str, length: int, weighting: str) -> Rows:
    """Forward and backward in all ways."""
    setting = bench.setting(length, weighting)
    for what, way in WAYS.items():
        yield attempted(part, what, partial(_step_row, bench, part, what, setting, way))
        if bench.on_gpu:
            torch.cuda.empty_cache()


def _step_row(bench: Bench, part: str, what: str, setting: Setting, way: Callable[[Bench, Setting], Step]) -> Row:
    torch.compiler.reset()
    if bench.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    step = way(bench, setting)
    started = time.perf_counter()
    step()
    bench.wait()
    first = time.perf_counter() - started
    seconds = median_seconds(bench, step)
    peak = torch.cuda.max_memory_allocated() / 2**30 if bench.on_gpu else None
    labelled = int((training_step.make_batch(setting)[2] != UNLABELLED).sum())
    shape = PassShape(setting.sequences, setting.length, labelled)
    # That of `transformers` has other operations: it predicts everywhere.
    flops = None if way is _bert else training_flops(bench.config(setting.width.vocabulary), shape) / seconds
    remark = f"first step {first:.1f} s" if "ompile" in what or "Flex" in what else ""
    tokens = setting.sequences * setting.length
    return Row(part, what, tokens / seconds, 1000 * seconds, flops, peak, remark)
