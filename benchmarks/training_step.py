"""Tokens per second of a training step (forward and backward) of LTG-BERT, compared with other models.

`ours` is Hatchery's LTG-BERT; `plain` is the same model, whose blocks compute the formulas as LTG-BERT's paper prints
them (T x T x 2D position values; tests/modeling/plain_attention.py); `bert` is a BERT of `transformers` with the same
number of parameters per layer, which computes logits at all positions; `gpt` is Hatchery's GPT-BERT of the same sizes.
All models alternate in one process; on the CPU, processor time is measured, which other jobs do not affect. The program
fails if the speed-up over `plain` is below its minimum. `--table` compares only with `plain`, in fp32 and bf16, at the
sizes of LTG-BERT xs and small, and of four layers of LTG-BERT base, and also measures a large matrix product; the
operations are counted from the model's definition.

    python benchmarks/training_step.py [--precision bf16] [--tokens 512 4096] [--padding 0.3] [--device cuda]
    python benchmarks/training_step.py --table
"""

import argparse
import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "modeling"))

import torch
from plain_attention import PlainAttention, PlainFeedForward
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from hatchery.modeling import encoder
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import family_of
from hatchery.modeling.flops import BACKWARD_FACTOR, PassShape
from hatchery.modeling.gpt_bert.config import GptBertConfig
from hatchery.modeling.language_model import UNLABELLED, LanguageModel, initialise_, labelled_positions
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training.speed import keep_freed_memory, mfu, peak_flops_of

LIMITS = {128: 1.5, 512: 12.0}
"""Minimum of the speed-up of `ours` over `plain`, by sequence length."""
TABLE = ((192, 12, 16), (192, 12, 64), (384, 12, 16), (384, 12, 32), (768, 4, 16))
"""Hidden size, number of layers and number of sequences (of 128 tokens) for every row of the table of `--table`."""


@dataclass(frozen=True)
class Width:
    """The sizes that all layers of a model share; by default, the sizes of LTG-BERT base."""

    vocabulary: int = 16384
    hidden: int = 768
    heads: int = 12
    intermediate: int = 2048


@dataclass(frozen=True)
class Setting:
    """The device, precision, sizes and batch of one comparison."""

    device: str
    precision: str
    layers: int
    length: int
    tokens: int
    padding: float
    threads: int
    width: Width = Width()
    model: str = "ltg"
    attention_dropout: float = 0.1

    @property
    def sequences(self) -> int:
        """Number of sequences in the batch; at least one."""
        return max(1, self.tokens // self.length)

    def autocast(self) -> torch.autocast:
        """Return bf16 autocast, or no autocast for fp32."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bf16")


def make_batch(setting: Setting) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, mask and labels. 15 % of the tokens are labelled. The lengths of the sequences decrease evenly, so
    that the mean share of padding in a sequence is `padding`, and the share in the shortest sequence about twice
    `padding`.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (setting.sequences, setting.length)
    ids = torch.randint(5, setting.width.vocabulary, shape, generator=generator)
    shares = 1 - 2 * setting.padding * (torch.arange(setting.sequences) + 0.5) / setting.sequences
    mask = torch.arange(setting.length) < (shares * setting.length).round().clamp(min=1)[:, None]
    labelled = (torch.rand(shape, generator=generator) < 0.15) & mask
    labels = ids.where(labelled, UNLABELLED)
    return ids.to(setting.device), mask.to(setting.device), labels.to(setting.device)


CONFIGS: dict[str, Callable[..., ModelConfig]] = {
    "ltg": LtgBertConfig,
    "elc": partial(LtgBertConfig, layer_weighting="biased"),
    "gpt": GptBertConfig,
}


def config_of(setting: Setting) -> ModelConfig:
    width = setting.width
    return CONFIGS[setting.model](
        vocab_size=width.vocabulary,
        hidden_size=width.hidden,
        intermediate_size=width.intermediate,
        num_hidden_layers=setting.layers,
        num_attention_heads=width.heads,
        attention_probs_dropout_prob=setting.attention_dropout,
    )


def ours(setting: Setting) -> nn.Module:
    model = LanguageModel(config_of(setting))
    initialise_(model, 1)
    return model.to(setting.device)


def plain(setting: Setting) -> nn.Module:
    model = ours(setting)
    rows = model.encoder.relative_positions.rows(setting.length)
    for layer in model.encoder.layers:
        layer.attention = PlainAttention(layer.attention, model.config, rows)
        layer.feed_forward = PlainFeedForward(layer.feed_forward, model.config)
    return model


def bert(setting: Setting) -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    # Without a gate, a width of 3/2 has the same number of parameters as our gated block.
    config = BertConfig(
        vocab_size=setting.width.vocabulary,
        hidden_size=setting.width.hidden,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.width.heads,
        intermediate_size=3 * setting.width.intermediate // 2,
    )
    return BertForMaskedLM(config).to(setting.device)


def gpt_bert(setting: Setting) -> nn.Module:
    """Return a GPT-BERT with the width and depth of `setting`, with attention gate and weighted sums of layers, trained
    on masked tokens like the other models.
    """
    return ours(replace(setting, model="gpt"))


MODELS = {"ours": ours, "plain": plain, "bert": bert, "gpt": gpt_bert}


def make_step(name: str, setting: Setting, model: nn.Module | None = None) -> Callable[[], None]:
    """Return a function that runs one forward and backward pass of `model`, or of a new model with this name."""
    model = (model or MODELS[name](setting)).train()
    ids, mask, labels = make_batch(setting)
    # Compute the labelled positions beforehand, as in the engine on a GPU.
    labelled = labelled_positions(labels)

    def step() -> None:
        model.zero_grad(set_to_none=True)
        with setting.autocast():
            if name == "bert":
                loss = model(input_ids=ids, attention_mask=mask.long(), labels=labels).loss
            else:
                loss = model(ids, mask, labels, labelled=labelled).loss_sum / len(labelled)
        loss.backward()

    return step


def seconds_of(function: Callable[[], object], device: str) -> float:
    """Return the time of one call in seconds: processor time per thread on the CPU, elapsed time on a GPU."""
    if device != "cpu":
        torch.cuda.synchronize()
        started = time.perf_counter()
        function()
        torch.cuda.synchronize()
        return time.perf_counter() - started
    started = time.process_time()
    function()
    return (time.process_time() - started) / torch.get_num_threads()


def best_in_turns(steps: dict[str, Callable[[], None]], repetitions: int, device: str) -> dict[str, float]:
    """Run the steps in turns, and return the minimal seconds of each step over the repetitions; the first repetition is
    not counted.
    """
    best = dict.fromkeys(steps, float("inf"))
    for repetition in range(repetitions + 1):
        for name, step in steps.items():
            seconds = seconds_of(step, device)
            if repetition > 0:
                best[name] = min(best[name], seconds)
    return best


def matmul_rate(device: str, precision: str) -> float:
    """Return the floating-point operations per second of one large matrix product."""
    size = 2048 if device == "cpu" else 8192
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = torch.randn(2, size, size, device=device).to(dtype).unbind(0)
    return 2 * size**3 / best_in_turns({"product": lambda: torch.mm(left, right)}, 5, device)["product"]


def print_table(shapes: Sequence[tuple[int, int, int]], threads: int, repetitions: int) -> None:
    """Print a Markdown table with a row for each model size. For fp32 and bf16, a row contains the speed of Hatchery's
    LTG-BERT divided by the speed of the plain implementation, and the operations per second of Hatchery's LTG-BERT in
    percent of the speed of a large matrix product.
    """
    print(
        "Each row is one size of LTG-BERT. `plain` computes the formulas that LTG-BERT prints; `product` is a "
        "large matrix product, whose speed is in operations per second.\n\n"
        "| model | our speed / plain speed, fp32 | our speed / product speed, fp32 "
        "| our speed / plain speed, bf16 | our speed / product speed, bf16 |"
    )
    print("|---|---|---|---|---|")
    for hidden, layers, sequences in shapes:
        cells = [f"{hidden} wide, {layers} layers, {sequences} x 128"]
        for precision in ("fp32", "bf16"):
            width = Width(hidden=hidden, heads=hidden // 64, intermediate=8 * hidden // 3)
            setting = Setting("cpu", precision, layers, 128, 128 * sequences, 0.0, threads, width)
            left, right = torch.randn(2, 2048, 2048).to(torch.bfloat16 if precision == "bf16" else torch.float32)
            steps = {name: make_step(name, setting) for name in ("ours", "plain")}
            best = best_in_turns({**steps, "product": partial(torch.mm, left, right)}, repetitions, "cpu")
            share = definition_flops(setting) / best["ours"] / (2 * 2048**3 / best["product"])
            cells += [f"{best['plain'] / best['ours']:.2f}", f"{share:.0%}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def definition_flops(setting: Setting) -> float:
    """Return the number of operations of a training step, counted from the model's definition and not from the
    implementation.
    """
    model, (_, _, labels) = ours(setting), make_batch(setting)
    shape = PassShape(setting.sequences, setting.length, len(labelled_positions(labels)))
    return (1 + BACKWARD_FACTOR) * sum(family_of(model.config).forward_flops(model.config, shape).values())


def peak_memory(name: str, setting: Setting) -> float:
    """Return the GiB that a step needs in addition to the model, measured in a separate process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_memory, (name, setting))


def _peak_memory(name: str, setting: Setting) -> float:
    torch.set_num_threads(setting.threads)
    step = make_step(name, setting)
    if setting.device != "cpu":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return (torch.cuda.max_memory_allocated() - before) / 2**30
    # Reset the peak to the current memory, because building the model has a higher peak.
    Path("/proc/self/clear_refs").write_text("5")
    before = _kibibytes("VmRSS")
    step()
    return (_kibibytes("VmHWM") - before) / 2**20


def _kibibytes(field: str) -> int:
    """Return the value, in KiB, of the field `field` of /proc/self/status, Linux's memory counters of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def compare(setting: Setting, names: list[str], repetitions: int) -> bool:
    """Print the speeds of the models `names`; return False if the speed-up of our model over the plain implementation
    is below its minimum.
    """
    steps = {name: make_step(name, setting) for name in names}
    seconds = best_in_turns(steps, repetitions, setting.device)
    tokens = int(make_batch(setting)[1].sum())
    print(f"\nlength {setting.length}, {setting.sequences} sequences, {tokens} tokens, {setting.precision}")
    limit, speed_up = LIMITS.get(setting.length), seconds["plain"] / seconds["ours"]
    for name in names:
        ratio = seconds[name] / seconds["ours"]
        print(f"  {name:6} {tokens / seconds[name]:10.0f} tokens/s   our speed / this speed {ratio:6.2f}", end="")
        print(f" (minimum {limit})" if name == "plain" and limit else "")
    print(f"  ours reaches {utilisation(steps['ours'], seconds['ours'], setting)}")
    return limit is None or speed_up >= limit


def utilisation(step: Callable[[], None], seconds: float, setting: Setting) -> str:
    """Return the operations per second, also in percent of the speed of a large matrix product and, if known, of the
    peak in the device's data sheet (MFU).
    """
    with FlopCounterMode(display=False) as counter:
        step()
    rate = counter.get_total_flops() / seconds
    shares = [
        f"{100 * rate / matmul_rate(setting.device, p):.0f} % of the speed of a large {p} matrix product"
        for p in ("bf16", "fp32")
    ]
    shares = shares if setting.precision == "fp32" else shares[:1]
    peak = peak_flops_of(torch.device(setting.device), setting.precision)
    share = mfu(counter.get_total_flops(), seconds, 1, peak)
    shares += [] if share is None else [f"MFU {100 * share:.0f} % of the data sheet's dense peak"]
    return f"{rate / 1e9:.0f} GFLOP/s: {', '.join(shares)}"


def packing_gain(setting: Setting, repetitions: int) -> str:
    """Return, as text, the speed of a step that leaves out padding, divided by the speed of a step that computes
    padding.
    """
    step = make_step("ours", setting)
    threshold = encoder.PACKING_PAYS_FROM

    def padded() -> None:
        encoder.PACKING_PAYS_FROM = 1.0
        step()
        encoder.PACKING_PAYS_FROM = threshold

    seconds = best_in_turns({"packed": step, "padded": padded}, repetitions, setting.device)
    return f"{seconds['padded'] / seconds['packed']:.2f} times the speed with padding"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--lengths", type=int, nargs="+", default=sorted(LIMITS))
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[1024], help="number of positions per batch, including padding"
    )
    parser.add_argument(
        "--layers",
        type=int,
        default=2,
        help="number of layers; at length 512, each layer of the plain model needs 3 GiB",
    )
    parser.add_argument("--padding", type=float, default=0.0, help="share of padding in a batch, up to 0.5")
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads of torch")
    parser.add_argument(
        "--repetitions", type=int, default=3, help="number of steps per measurement; the minimum of their times counts"
    )
    parser.add_argument("--table", action="store_true", help="print only the table that compares with `plain`")
    parser.add_argument("--no-memory", action="store_true", help="do not measure the peak memory")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.table:
        # Keep freed memory, as in training. Both models become faster, the plain definition more than Hatchery's.
        keep_freed_memory()
        print_table(TABLE, arguments.threads, arguments.repetitions)
        return
    names = list(MODELS)
    if importlib.util.find_spec("transformers") is None:
        names.remove("bert")
        print("bert is left out: transformers is not installed")
    base = Width()
    print(
        "ours: Hatchery's LTG-BERT; plain: LTG-BERT by the formulas of its paper; bert: BERT of transformers; "
        "gpt: Hatchery's GPT-BERT\n"
        f"base width ({base.hidden}, {base.heads} heads, feed-forward {base.intermediate}), "
        f"vocabulary of {base.vocabulary} subwords, {arguments.layers} layers, {arguments.device}, "
        f"{arguments.threads} thread(s); with few layers, the speed-up over plain is "
        f"nearer to 1, because embedding and head need equal times in both models"
    )
    within = True
    for length in arguments.lengths:
        for tokens in arguments.tokens:
            setting = Setting(
                arguments.device,
                arguments.precision,
                arguments.layers,
                length,
                tokens,
                arguments.padding,
                arguments.threads,
            )
            within &= compare(setting, names, arguments.repetitions)
            if arguments.padding:
                print(f"  ours with packed tokens: {packing_gain(setting, arguments.repetitions)}")
        if not arguments.no_memory:
            memory = {name: peak_memory(name, setting) for name in names}
            print(f"  peak memory of a step of {setting.tokens} positions: ", end="")
            print(", ".join(f"{name} {gib:.2f} GiB" for name, gib in memory.items()))
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
