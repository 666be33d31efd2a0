"""What is measured on a GPU, and how: rows of the table, sizes, and a step in all ways that a model can be computed.

Steps are forward and backward of generated batches in bf16. They are timed one by one after a warm-up, with the device
waited for before and after; the median counts. Operations are those of the model (PaLM, Appendix B).
"""

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from benchmarks import training_step
from benchmarks.flex_attention import FlexSelfAttention
from benchmarks.training_step import Setting, Width
from hatchery.modeling import attention
from hatchery.modeling.families import training_flops
from hatchery.modeling.flops import PassShape
from hatchery.modeling.language_model import UNLABELLED
from hatchery.modeling.ltg.family import LtgBertConfig


@dataclass(frozen=True)
class Row:
    """One line of the table; what a part does not measure is None."""

    part: str
    what: str
    tokens_per_second: float | None = None
    milliseconds: float | None = None
    flops_per_second: float | None = None
    """Operations of the model; the share of a large product is made of it."""
    peak_gib: float | None = None
    remark: str = ""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    width: Width
    layers: int
    lengths: tuple[int, int]
    step_tokens: int
    repetitions: int
    product: int
    """Rows of the square matrices of the large product."""
    compiler: str
    """Backend of torch.compile."""
    loop_steps: int
    corpus_tokens: int
    workers: tuple[int, ...]
    pairs: int
    examples: int
    kill_steps: int


SIZES = {
    "base": Sizes(Width(), 12, (128, 512), 16384, 20, 8192, "inductor", 24, 4_000_000, (0, 8), 67_000, 1024, 300),
    "tiny": Sizes(Width(96, 32, 4, 48), 2, (16, 32), 64, 2, 64, "eager", 4, 20_000, (0, 1), 12, 16, 60),
}


@dataclass(frozen=True)
class Bench:
    """A device and the sizes for it."""

    device: torch.device
    sizes: Sizes

    @property
    def on_gpu(self) -> bool:
        """Whether the device has a queue to be waited for."""
        return self.device.type != "cpu"

    def wait(self) -> None:
        """Until the device has done what it was given."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def setting(self, length: int, weighting: str = "none") -> Setting:
        """A step of the model with that layer weighting."""
        sizes = self.sizes
        shape = (sizes.layers, length, sizes.step_tokens, 0.0, torch.get_num_threads())
        return Setting(self.device.type, "bf16", *shape, sizes.width, weighting)

    def config(self, vocabulary_size: int) -> LtgBertConfig:
        """LTG-BERT of these sizes."""
        width = self.sizes.width
        return LtgBertConfig(
            vocab_size=vocabulary_size,
            hidden_size=width.hidden,
            intermediate_size=width.intermediate,
            num_hidden_layers=self.sizes.layers,
            num_attention_heads=width.heads,
        )


Rows = Iterator[Row]


class LeftOutError(Exception):
    """There is nothing to measure here."""


def attempted(part: str, what: str, measure: Callable[[], Row]) -> Row:
    """The row that `measure` gives, or one that says why there is none: the others shall go on."""
    try:
        return measure()
    except LeftOutError as error:
        return Row(part, what, remark=f"left out: {error}")
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0][:200]
        return Row(part, what, remark=f"failed: {type(error).__name__}: {first}")


def median_seconds(bench: Bench, step: Callable[[], object], warm_up: int = 3) -> float:
    """Of one step."""
    seconds = []
    for repetition in range(warm_up + bench.sizes.repetitions):
        bench.wait()
        started = time.perf_counter()
        step()
        bench.wait()
        if repetition >= warm_up:
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def product(bench: Bench) -> Rows:
    """The large product in bf16, against which all operations are compared."""
    size = bench.sizes.product
    # Random numbers: zeros are faster.
    left, right = torch.randn(2, size, size, device=bench.device).to(torch.bfloat16).unbind(0)
    seconds = median_seconds(bench, lambda: torch.mm(left, right))
    rate = 2 * size**3 / seconds
    what = f"bf16, {size} x {size} x {size}"
    yield Row("product", what, None, 1000 * seconds, rate, remark=f"{rate / 1e12:.3g} TFLOP/s")


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
