"""Parts of the GPU benchmark: the rows of its table, the sizes of its models and batches, and training steps with
several implementations of a model.

A step is a forward and backward pass of a generated batch in bf16. If the name of a row says so, the step includes
clipping and LAMB. After a warm-up, each step is timed between two synchronisations with the device; the result is the
median. Operations are counted from the model's definition (PaLM, Appendix B).
"""

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from benchmarks import training_step
from benchmarks.flex_attention import FlexSelfAttention
from benchmarks.position_scores import ScoresOf, by_prefix_sums, skewed
from benchmarks.training_step import Setting, Width
from hatchery.modeling.families import training_flops
from hatchery.modeling.flops import PassShape
from hatchery.modeling.kernels.position_attention import use_kernels_
from hatchery.modeling.language_model import UNLABELLED
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training.compilation import compile_layers_
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer


@dataclass(frozen=True)
class Row:
    """One row of the benchmark's table: one measurement. Values that were not measured are None."""

    part: str
    what: str
    tokens_per_second: float | None = None
    milliseconds: float | None = None
    flops_per_second: float | None = None
    """Operations of the model per second, for comparison with the speed of a large matrix product."""
    peak_gib: float | None = None
    pairs: int | None = None
    """Number of scored minimal pairs."""
    remark: str = ""


@dataclass(frozen=True)
class Sizes:
    """The sizes of models and batches, and the number of repetitions."""

    width: Width
    layers: int
    lengths: tuple[int, int]
    step_tokens: int
    repetitions: int
    product: int
    """Number of rows of the square matrices whose product the benchmark measures."""
    compiler: str
    """Backend of torch.compile."""
    loop_steps: int
    corpus_tokens: int
    workers: tuple[int, ...]
    pairs: int
    examples: int
    kill_steps: int


SIZES = {
    "base": Sizes(Width(), 12, (128, 512), 32768, 8, 8192, "inductor", 16, 4_000_000, (0, 8), 6_700, 1024, 300),
    "tiny": Sizes(Width(96, 32, 4, 48), 2, (16, 32), 64, 2, 64, "eager", 4, 20_000, (0, 1), 12, 16, 60),
}


@dataclass(frozen=True)
class Bench:
    """A device, and the sizes of the measurements on this device."""

    device: torch.device
    sizes: Sizes

    @property
    def on_gpu(self) -> bool:
        """True if the device is not a CPU, so that operations run asynchronously."""
        return self.device.type != "cpu"

    def wait(self) -> None:
        """Wait until the device has finished all operations."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def setting(self, length: int, model: str = "ltg") -> Setting:
        """Return the setting of a training step of `model`, a key of `training_step.CONFIGS`, with sequences of
        `length` tokens.
        """
        sizes = self.sizes
        shape = (sizes.layers, length, sizes.step_tokens, 0.0, torch.get_num_threads())
        return Setting(self.device.type, "bf16", *shape, sizes.width, model)

    def config(self, vocabulary_size: int) -> LtgBertConfig:
        """Return the configuration of LTG-BERT with the sizes of this benchmark."""
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
    """A measurement is not possible on this machine."""


def attempted(part: str, what: str, measure: Callable[[], Row]) -> Row:
    """Return the row that `measure` returns; after an error, return a row with the error instead, so that the remaining
    rows are still measured.
    """
    try:
        return measure()
    except LeftOutError as error:
        return Row(part, what, remark=f"left out: {error}")
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0][:200]
        return Row(part, what, remark=f"failed: {type(error).__name__}: {first}")


def median_seconds(bench: Bench, step: Callable[[], object], warm_up: int = 3) -> float:
    """Return the median seconds of one step."""
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
    """Yield the row of a large bf16 matrix product; the speeds of all models are compared with the speed of this
    product.
    """
    size = bench.sizes.product
    # Random numbers, because products of zeros are faster.
    left, right = torch.randn(2, size, size, device=bench.device).to(torch.bfloat16).unbind(0)
    seconds = median_seconds(bench, lambda: torch.mm(left, right))
    rate = 2 * size**3 / seconds
    what = f"bf16, {size} x {size} x {size}"
    yield Row("product", what, None, 1000 * seconds, rate, remark=f"{rate / 1e12:.3g} TFLOP/s")


Step = Callable[[], None]
Change = Callable[[nn.Module, Bench], nn.Module]


def _kernels_in(model: nn.Module, bench: Bench) -> nn.Module:
    if bench.on_gpu and not use_kernels_(model, bench.device):
        raise LeftOutError("the attention kernels need a Hopper GPU or a newer GPU, and Triton")
    return model


def _compiled_in(model: nn.Module, bench: Bench) -> nn.Module:
    compile_layers_(model, bench.sizes.compiler)
    return model


def _made(bench: Bench, setting: Setting, changes: Sequence[Change] = ()) -> Step:
    model = training_step.ours(setting)
    for change in changes:
        model = change(model, bench)
    return training_step.make_step("ours", setting, model)


def _whole(bench: Bench, setting: Setting, changes: Sequence[Change] = ()) -> Step:
    """Return a forward and backward pass followed by clipping and an update by LAMB."""
    model = training_step.ours(setting)
    for change in changes:
        model = change(model, bench)
    step, optimizer = training_step.make_step("ours", setting, model), build_optimizer(model, OptimizerSettings())
    parameters = list(model.parameters())

    def whole() -> None:
        step()
        norm = nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None], foreach=True)
        nn.utils.clip_grads_with_norm_(parameters, 2.0, norm, foreach=True)
        optimizer.step()

    return whole


def _plain(bench: Bench, setting: Setting) -> Step:
    return training_step.make_step("plain", setting)


def _bert(bench: Bench, setting: Setting) -> Step:
    if importlib.util.find_spec("transformers") is None:
        raise LeftOutError("transformers is not installed here")
    return training_step.make_step("bert", setting)


def _scores_by(function: ScoresOf) -> Change:
    def change(model: nn.Module, bench: Bench) -> nn.Module:
        for module in model.modules():
            if isinstance(module, DisentangledSelfAttention):
                module._position_scores = partial(function, module)
        return model

    return change


# A kernel that exceeds the shared memory of a multiprocessor cannot start.
FLEX_BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_M1": 32, "BLOCK_N1": 64, "BLOCK_M2": 64, "BLOCK_N2": 32}


def _flex(bench: Bench, setting: Setting) -> Step:
    # FlexAttention has no gradients on a CPU, compiled or not.
    compiled = torch.compile(flex_attention, backend=bench.sizes.compiler) if bench.on_gpu else flex_attention
    blocks = {"kernel_options": {**FLEX_BLOCKS, "num_stages": 1}} if bench.on_gpu else {}

    def flex_in(model: nn.Module, _: Bench) -> nn.Module:
        for layer in model.encoder.layers:
            layer.attention = FlexSelfAttention(layer.attention, partial(compiled, **blocks))
        return model

    return _made(bench, replace(setting, attention_dropout=0.0), (flex_in, _compiled_in))


AS_SHIPPED, AS_SHIPPED_WHOLE = "as shipped", "as shipped, with clipping and LAMB"
PLAIN = "plain definition (the authors' form)"
WAYS: dict[str, Callable[[Bench, Setting], Step]] = {
    AS_SHIPPED: partial(_made, changes=(_kernels_in, _compiled_in)),
    AS_SHIPPED_WHOLE: partial(_whole, changes=(_kernels_in, _compiled_in)),
    "position scores by look-up, not compiled": _made,
    "position scores by look-up, not compiled, with clipping and LAMB": _whole,
    "our attention kernels, not compiled": partial(_made, changes=(_kernels_in,)),
    "position scores by look-up, layers compiled": partial(_made, changes=(_compiled_in,)),
    "BERT of transformers": _bert,
    PLAIN: _plain,
    "position scores by prefix sums, layers compiled": partial(
        _made, changes=(_scores_by(by_prefix_sums), _compiled_in)
    ),
    "position scores by skewing, layers compiled": partial(_made, changes=(_scores_by(skewed), _compiled_in)),
    "FlexAttention, layers compiled, no attention dropout": _flex,
}
"""Most important implementations first, because a part has a time limit and compilation is slow."""


def steps(bench: Bench, part: str, length: int, model: str, ways: slice) -> Rows:
    """Yield a table row with the speed of a step of `model` for each implementation; `ways` is the slice of the
    dictionary WAYS that contains these implementations.
    """
    setting = bench.setting(length, model)
    for what, way in list(WAYS.items())[ways]:
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
    # Count no operations for the BERT of `transformers`, because it predicts at all positions.
    flops = None if way is _bert else training_flops(training_step.config_of(setting), shape) / seconds
    remark = f"first step {first:.1f} s" if "compiled" in what or "shipped" in what else ""
    tokens = setting.sequences * setting.length
    return Row(part, what, tokens / seconds, 1000 * seconds, flops, peak, remark)
