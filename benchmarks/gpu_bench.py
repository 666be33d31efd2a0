"""What is measured on a GPU, and how: rows of the table, sizes, the timing of a step, and the large product."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from benchmarks.training_step import Setting, Width
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
