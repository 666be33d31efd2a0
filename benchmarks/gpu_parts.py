"""What benchmarks/gpu.py measures, part by part: each yields rows, and a row that cannot be had says why.

The other benchmarks measure; here is what they are asked on a GPU, with the sizes of base, and with tiny ones that a
test runs on a CPU. Steps are forward and backward of generated batches in bf16, timed one by one after a warm-up, with
the device waited for before and after; the median counts. Operations are those of the model (PaLM, appendix B).
"""

import argparse
import importlib.util
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product as product_of
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from benchmarks import finetune, pretrain_step, read_tokens, score_minimal_pairs, training_loop, training_step
from benchmarks.flex_attention import FlexSelfAttention
from benchmarks.training_step import Setting, Width
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.finetuning.loop import train_model
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence
from hatchery.evaluation.runtime import prepare_device
from hatchery.modeling import attention_core
from hatchery.modeling.families import training_flops
from hatchery.modeling.flops import PassShape
from hatchery.modeling.language_model import UNLABELLED, LanguageModel
from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.modeling.store import WEIGHTS_FILE
from hatchery.pretraining.processes import process_group
from hatchery.pretraining.topology import SINGLE_PROCESS
from hatchery.storage.manifests import stage_run, volatile_facts

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


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


# Steps ----------------------------------------------------------------------------------------------------------------

Step = Callable[[], None]


def _ours(bench: Bench, setting: Setting) -> Step:
    return training_step.make_step("ours", setting)


def _written_out(bench: Bench, setting: Setting) -> Step:
    step = training_step.make_step("ours", setting)

    def written_out() -> None:
        with patch.object(attention_core, "_fused_is_faster", return_value=False):
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


# The loop -------------------------------------------------------------------------------------------------------------


def loop(bench: Bench) -> Rows:
    """The whole loop against bare forward and backward, and alone, drawn by a thread and by processes."""
    sizes = bench.sizes
    length = sizes.lengths[0]
    sequences = sizes.step_tokens // length
    with tempfile.TemporaryDirectory() as name:
        tokens = read_tokens.write_shards(Path(name) / "tokens", sizes.corpus_tokens, 500, sizes.width.vocabulary)
        arguments = argparse.Namespace(
            tokens=tokens,
            device=bench.device.type,
            precision="bf16",
            steps=sizes.loop_steps,
            # Four micro-batches per update, as where a batch does not fit.
            sequences=4 * sequences,
            micro_batch=sequences,
            length=length,
            workers=sizes.workers[-1],
        )

        def folder(run: str) -> Path:
            (made := Path(name) / run).mkdir()
            return made

        def beside() -> Row:
            found = training_loop.run(arguments, SINGLE_PROCESS, folder("beside"), partial(_model, bench))
            share = found["loop"] / found["bare"]
            remark = f"{share:.3f} of bare forward and backward ({found['bare']:,.0f} tokens/s)"
            return Row("loop", "in turns with the bare step", found["loop"], remark=remark)

        def alone(workers: int) -> Row:
            arguments.workers = workers
            model = partial(_model, bench)
            found = training_loop.run(arguments, SINGLE_PROCESS, folder(f"alone_{workers}"), model, beside_bare=False)
            remark = f"waits {100 * found['waited']:.1f} % of its time for batches"
            what = f"alone, batches by {f'{workers} processes' if workers else 'a thread'}"
            return Row("loop", what, found["wall"], remark=remark)

        yield attempted("loop", "in turns with the bare step", beside)
        for workers in sizes.workers:
            yield attempted("loop", f"alone, {workers} processes", partial(alone, workers))
    yield attempted("loop", "waits for the device", partial(_waits, bench))


def _model(bench: Bench, vocabulary_size: int, device: torch.device) -> LanguageModel:
    return training_loop.initialised(bench.config(vocabulary_size), device)


def _waits(bench: Bench) -> Row:
    """How often PyTorch sees the host wait in a step of the engine; the benchmark reads the loss of every step."""
    if not bench.on_gpu:
        raise LeftOutError("nobody waits for a CPU")
    with process_group(SINGLE_PROCESS, bench.device):
        step = pretrain_step.engine_step(bench.device, pretrain_step.make_batch(32, 64))
        for number in range(3):
            step(number)
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                step(3)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = sum("synchroniz" in str(warning.message) for warning in seen)
    return Row("loop", "waits for the device", remark=f"{waits} in a step, of which 1 reads the loss")


# Evaluation -----------------------------------------------------------------------------------------------------------


AS_THE_STAGE = "fp32, as the stage"


def score(bench: Bench) -> Rows:
    """Minimal pairs of the lengths of BLiMP, in the arithmetic of the stage and in cheaper ones."""
    prepare_device(bench.device.type)
    width = bench.sizes.width
    pairs = score_minimal_pairs.random_pairs(bench.sizes.pairs, width.vocabulary)
    sentences = [EncodedSentence(tuple(sentence)) for pair in pairs for sentence in pair]
    network = score_minimal_pairs.build_model(width.vocabulary, width.hidden, bench.sizes.layers)
    model = score_minimal_pairs.Framed(network.to(bench.device), bench.device)
    decisions: dict[str, np.ndarray] = {}

    def scored(what: str, matmul: str, autocast: bool) -> Row:
        torch.set_float32_matmul_precision(matmul)
        try:
            with torch.autocast(bench.device.type, torch.bfloat16, enabled=autocast):
                token_scores(model, sentences[:64], "pll")
                started = time.perf_counter()
                found = sentence_scores(token_scores(model, sentences, "pll")).reshape(-1, 2)
                seconds = time.perf_counter() - started
        finally:
            torch.set_float32_matmul_precision("highest")
        decisions[what] = found[:, 0] > found[:, 1]
        remark = f"{len(pairs):,} pairs in {seconds:.1f} s, {len(pairs) / seconds:,.0f} pairs/s"
        if what != AS_THE_STAGE and AS_THE_STAGE in decisions:
            otherwise = int((decisions[what] != decisions[AS_THE_STAGE]).sum())
            remark += f", {otherwise:,} decided otherwise than in fp32"
        return Row("score", what, milliseconds=1000 * seconds, remark=remark)

    for what, matmul, autocast in (
        (AS_THE_STAGE, "highest", False),
        ("TensorFloat-32", "high", False),
        ("bf16 autocast", "highest", True),
    ):
        yield attempted("score", what, partial(scored, what, matmul, autocast))


def finetuning(bench: Bench) -> Rows:
    """One epoch on short and on longer texts, and the loop against bare forward and backward."""
    prepare_device(bench.device.type)
    sizes = bench.sizes
    words = finetune.vocabulary_of_words()
    tokenizer = finetune.train_tokenizer(words)
    make = partial(finetune.make_model, tokenizer, sizes.width.hidden, sizes.layers, bench.device)
    # Sums over position tables in a fixed order may cost much on a GPU; a CPU knows no other.
    modes = {"": "warn", ", order of sums left open": "default"} if bench.on_gpu else {"": "default"}
    for (name, segments, n_words), (suffix, mode) in product_of(finetune.TASKS[::2], modes.items()):

        def trained(what: str, segments: int, n_words: int, mode: str) -> Row:
            torch.set_deterministic_debug_mode(mode)
            examples = finetune.make_examples(words, sizes.examples, segments, n_words)
            data = encode_texts(examples, tokenizer, finetune.MAX_LENGTH)
            share = finetune.loop_share(make, data, 1, bench.device)
            model = make()
            bench.wait()
            started = time.perf_counter()
            train_model(model, data, None, finetune.PROTOCOL, 5e-5, 12, bench.device)
            bench.wait()
            seconds = time.perf_counter() - started
            remark = f"{len(examples) / seconds:,.0f} examples/s, {share:.2f} of bare forward and backward"
            return Row("finetune", what, int(data.lengths.sum()) / seconds, remark=remark)

        what = name + suffix
        yield attempted("finetune", what, partial(trained, what, segments, n_words, mode))


# Kill and resume ------------------------------------------------------------------------------------------------------


def resume(bench: Bench) -> Rows:
    """One run killed after its first checkpoint and started again, beside two that nobody touches."""
    yield attempted("resume", "killed once", partial(_killed_and_resumed, bench))


def _killed_and_resumed(bench: Bench) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = _pretraining(bench, folder)
        # All at once: a small model leaves room on a GPU, and starting takes longest.
        running = {run: _start(command, folder, run) for run in ("whole", "again", "killed")}
        try:
            until = time.monotonic() + 120
            while not list((folder / "killed" / "checkpoints").glob("*/step_*")):
                if running["killed"].poll() is not None or time.monotonic() > until:
                    raise RuntimeError("no checkpoint was written before the run ended")
                time.sleep(0.01)
            running["killed"].kill()
            if running["killed"].wait() != -signal.SIGKILL:
                raise RuntimeError("the run was over before it could be killed")
            running["killed"] = _start(command, folder, "killed")
            for run, process in running.items():
                if process.wait():
                    raise RuntimeError(f"the run {run!r} failed: {_last_line(folder / run / 'log')}")
        finally:
            for process in running.values():
                process.kill()
        weights = {run: load_file(folder / run / WEIGHTS_FILE) for run in running}
        resumed_from = volatile_facts(folder / "killed" / "manifest.json")["resumed_from_step"]
    again, killed = (_difference(weights["whole"], weights[run]) for run in ("again", "killed"))
    said = "the same weights bit for bit" if killed == 0 else f"weights differ by at most {killed:.1e}"
    twice = "the same" if again == 0 else f"{again:.1e}"
    remark = f"resumed from step {resumed_from} of {bench.sizes.kill_steps}: {said}; two whole runs differ by: {twice}"
    return Row("resume", "killed once", remark=remark)


def _pretraining(bench: Bench, folder: Path) -> list[str]:
    """The command of a small run on a corpus that it writes; what is missing are the places of its results."""
    width, steps = bench.sizes.width, bench.sizes.kill_steps
    tokenizer = folder / "tokenizer" / "manifest.json"
    with stage_run(tokenizer, {"stage": "train_tokenizer"}) as run:
        path = tokenizer.parent / "tokenizer.json"
        finetune.train_tokenizer(finetune.vocabulary_of_words()).backend.save(str(path))
        run.add_output(path)
    tokens = read_tokens.write_shards(folder / "tokens", 200_000, 500, width.vocabulary, {"tokenizer": tokenizer})
    # Checkpoints of base would be a gigabyte each.
    model = {"hidden_size": width.hidden // 4, "num_attention_heads": width.heads // 4}
    model |= {"intermediate_size": width.intermediate // 4, "num_hidden_layers": bench.sizes.layers}
    settings = {"model": model, "steps": steps, "batch_size": 16, "sequence_length": bench.sizes.lengths[0]}
    settings |= {"seed": 42, "evaluation_sequences": 0}
    runtime = {"device": bench.device.type, "checkpoint_interval_steps": steps // 3, "threads": 1}
    options = {"--settings": json.dumps(settings), "--runtime": json.dumps(runtime)}
    options |= {"--tokens": str(tokens), "--tokenizer": str(tokenizer)}
    return [sys.executable, str(SCRIPTS / "pretrain.py"), *(part for option in options.items() for part in option)]


def _start(command: list[str], folder: Path, run: str) -> subprocess.Popen[bytes]:
    own = folder / run
    own.mkdir(exist_ok=True)
    places = ["--checkpoints", str(own / "checkpoints"), "--output", str(own / "manifest.json")]
    with (own / "log").open("ab") as log:
        return subprocess.Popen([*command, *places], stdout=log, stderr=log)


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1][:200]


def _difference(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    return max(float((left[name] - right[name]).abs().max()) for name in left)


@dataclass(frozen=True)
class Part:
    """What is measured in a process of its own, and the seconds that it may take."""

    seconds: float
    rows: Callable[[Bench], Rows]


def _steps_part(name: str, index: int, weighting: str, seconds: float) -> Part:
    return Part(seconds, lambda bench: steps(bench, name, bench.sizes.lengths[index], weighting))


PARTS: dict[str, Part] = {
    "product": Part(30, product),
    "ltg_short": _steps_part("ltg_short", 0, "none", 110),
    "score": Part(110, score),
    "loop": Part(60, loop),
    "resume": Part(60, resume),
    "finetune": Part(50, finetuning),
    "elc_short": _steps_part("elc_short", 0, "biased", 80),
    "ltg_long": _steps_part("ltg_long", 1, "none", 90),
    "elc_long": _steps_part("elc_long", 1, "biased", 80),
}
"""In the order in which they are wanted where the time does not suffice for all."""
