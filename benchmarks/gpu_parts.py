"""The parts of benchmarks/gpu.py. Each part yields rows; if a row cannot be measured, it contains the reason.

The parts call the other benchmarks on a GPU, with the sizes of LTG-BERT base, or with tiny sizes in a test on a CPU.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product as product_of
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from benchmarks import finetune, pretrain_step, read_tokens, score_minimal_pairs, training_loop
from benchmarks.gpu_steps import Bench, LeftOutError, Row, Rows, attempted, product, steps
from hatchery.artifacts.manifests import stage_run, volatile_facts
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.finetuning.loop import train_model
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence
from hatchery.evaluation.runtime import prepare_device
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import WEIGHTS_FILE
from hatchery.training.compilation import compile_layers_
from hatchery.training.processes import process_group
from hatchery.training.topology import SINGLE_PROCESS

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


# The loop -------------------------------------------------------------------------------------------------------------


def loop(bench: Bench) -> Rows:
    """Yield table rows with the speed of the whole training loop: first in turns with bare forward and backward passes,
    then without these passes. In the second measurement, batches are drawn by a thread or by worker processes.
    """
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
            # Use four micro-batches per update, as for a batch that does not fit on the device.
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
            remark = f"{share:.3f} of the speed of bare forward and backward passes ({found['bare']:,.0f} tokens/s)"
            return Row("loop", "alternating with bare passes", found["loop"], remark=remark)

        def alone(workers: int) -> Row:
            arguments.workers = workers
            model = partial(_model, bench)
            found = training_loop.run(arguments, SINGLE_PROCESS, folder(f"alone_{workers}"), model, beside_bare=False)
            remark = f"waits {100 * found['waited']:.1f} % of its time for batches"
            what = f"alone, batches by {f'{workers} processes' if workers else 'a thread'}"
            return Row("loop", what, found["wall"], remark=remark)

        yield attempted("loop", "alternating with bare passes", beside)
        for workers in sizes.workers:
            yield attempted("loop", f"alone, batches by {workers} processes", partial(alone, workers))
    yield attempted("loop", "waits for the device", partial(_waits, bench))


def _model(bench: Bench, vocabulary_size: int, device: torch.device) -> LanguageModel:
    return training_loop.initialised(bench.config(vocabulary_size), device)


def _waits(bench: Bench) -> Row:
    """Return a row with the number of synchronisations of host and GPU that PyTorch reports in a step of the engine.

    The benchmark reads the loss of every step.
    """
    if not bench.on_gpu:
        raise LeftOutError("a CPU needs no synchronisation")
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
    return Row("loop", "waits for the device", remark=f"{waits} waits per step; 1 of these waits reads the loss")


# Evaluation -----------------------------------------------------------------------------------------------------------


AS_THE_STAGE = "fp32, as the stage"


def score(bench: Bench) -> Rows:
    """Yield table rows with the speed of scoring minimal pairs of BLiMP's lengths: in fp32 (as in the workflow), and in
    lower precision.
    """
    prepare_device(bench.device.type)
    width = bench.sizes.width
    pairs = score_minimal_pairs.random_pairs(bench.sizes.pairs, width.vocabulary)
    sentences = [EncodedSentence(tuple(sentence)) for pair in pairs for sentence in pair]
    network = score_minimal_pairs.build_model(width.vocabulary, width.hidden, bench.sizes.layers)
    model = score_minimal_pairs.Framed(network.to(bench.device), bench.device)
    decisions: dict[str, np.ndarray] = {}

    def scored(what: str, matmul: str, autocast: bool, compiled: bool) -> Row:
        torch.set_float32_matmul_precision(matmul)
        if compiled:
            compile_layers_(network, bench.sizes.compiler, evaluated=True, any_length=True)
        started = time.perf_counter()
        try:
            with torch.autocast(bench.device.type, torch.bfloat16, enabled=autocast):
                token_scores(model, sentences[:64], "pll")
                bench.wait()
                first = time.perf_counter() - started
                started = time.perf_counter()
                found = sentence_scores(token_scores(model, sentences, "pll")).reshape(-1, 2)
                seconds = time.perf_counter() - started
        finally:
            torch.set_float32_matmul_precision("highest")
        decisions[what] = found[:, 0] > found[:, 1]
        all_of_blimp = 67_000 * seconds / len(pairs)
        remark = f"{len(pairs):,} pairs in {seconds:.1f} s, so BLiMP's 67,000 pairs in {all_of_blimp:.0f} s"
        if what != AS_THE_STAGE and AS_THE_STAGE in decisions:
            otherwise = int((decisions[what] != decisions[AS_THE_STAGE]).sum())
            remark += f", {otherwise:,} decisions differ from fp32"
        if compiled:
            remark += f"; before, compilation took {first:.0f} s"
        return Row("score", what, milliseconds=1000 * seconds, pairs=len(pairs), remark=remark)

    # The compiled variant is last, because the layers remain compiled.
    for what, matmul, autocast, compiled in (
        (AS_THE_STAGE, "highest", False, False),
        ("TensorFloat-32", "high", False, False),
        ("bf16 autocast", "highest", True, False),
        ("TensorFloat-32, layers compiled", "high", False, True),
    ):
        yield attempted("score", what, partial(scored, what, matmul, autocast, compiled))


def finetuning(bench: Bench) -> Rows:
    """Yield the speed of fine-tuning for one epoch on short and on longer texts, compared with bare forward and
    backward passes.
    """
    prepare_device(bench.device.type)
    sizes = bench.sizes
    words = finetune.vocabulary_of_words()
    tokenizer = finetune.train_tokenizer(words)
    make = partial(finetune.make_model, tokenizer, sizes.width.hidden, sizes.layers, bench.device)
    # Also measure sums in any order: on a GPU, deterministic sums over position tables may be slow. On a CPU, all sums
    # are deterministic.
    modes = {"": "warn", ", order of sums left open": "default"} if bench.on_gpu else {"": "default"}

    def trained(what: str, segments: int, n_words: int, mode: str, compiled: bool = False) -> Row:
        torch.set_deterministic_debug_mode(mode)
        examples = finetune.make_examples(words, sizes.examples, segments, n_words)
        data = encode_texts(examples, tokenizer, finetune.MAX_LENGTH)
        share = None if compiled else finetune.loop_share(make, data, 1, bench.device)
        seconds = []
        # Models of equal size share compiled code, as the runs of a stage do, so the second model needs no compilation.
        for _ in range(1 + compiled):
            model = make()
            if compiled:
                compile_layers_(model, sizes.compiler, any_length=True)
            bench.wait()
            started = time.perf_counter()
            train_model(model, data, None, finetune.PROTOCOL, 5e-5, 12, bench.device)
            bench.wait()
            seconds.append(time.perf_counter() - started)
        remark = f"{len(examples) / seconds[-1]:,.0f} examples/s"
        if share is None:
            remark += f"; the first training, with compilation, took {seconds[0] - seconds[-1]:.0f} s more"
        else:
            remark += f", {share:.2f} of the speed of bare forward and backward passes"
        return Row("finetune", what, int(data.lengths.sum()) / seconds[-1], remark=remark)

    for (name, segments, n_words), (suffix, mode) in product_of(finetune.TASKS[::2], modes.items()):
        what = name + suffix
        yield attempted("finetune", what, partial(trained, what, segments, n_words, mode))
    name, segments, n_words = finetune.TASKS[0]
    what = f"{name}, layers compiled"
    yield attempted("finetune", what, partial(trained, what, segments, n_words, modes[""], compiled=True))


# Kill and resume ------------------------------------------------------------------------------------------------------


def resume(bench: Bench) -> Rows:
    """Yield a row with two numbers; each is the largest difference between the weights of two runs. The first number
    compares an undisturbed run with a run that was killed after its first checkpoint and resumed. The second number
    compares two undisturbed runs.
    """
    yield attempted("resume", "killed once", partial(_killed_and_resumed, bench))


def _killed_and_resumed(bench: Bench) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = _pretraining(bench, folder)
        # Run all three at the same time: small models share a GPU, and most of the time is needed for the start.
        running = {run: _start(command, folder, run) for run in ("whole", "again", "killed")}
        try:
            until = time.monotonic() + 120
            while not list((folder / "killed" / "checkpoints").glob("*/step_*")):
                if running["killed"].poll() is not None or time.monotonic() > until:
                    said = _last_line(folder / "killed" / "log")
                    raise RuntimeError(f"no checkpoint was written; last line of the log: {said}")
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
    said = (
        "weights equal to those of an undisturbed run"
        if killed == 0
        else f"weights differ from those of an undisturbed run by at most {killed:.1e}"
    )
    twice = "are equal" if again == 0 else f"differ by at most {again:.1e}"
    remark = (
        f"resumed from step {resumed_from} of {bench.sizes.kill_steps}: {said}; weights of two undisturbed runs {twice}"
    )
    return Row("resume", "killed once", remark=remark)


def _pretraining(bench: Bench, folder: Path) -> list[str]:
    """Write token shards, and return the command of a small pretraining, without the paths of its results."""
    width, steps = bench.sizes.width, bench.sizes.kill_steps
    tokenizer = folder / "tokenizer" / "manifest.json"
    with stage_run(tokenizer, {"stage": "train_tokenizer"}) as run:
        path = tokenizer.parent / "tokenizer.json"
        finetune.train_tokenizer(finetune.vocabulary_of_words()).backend.save(str(path))
        run.add_output(path)
    tokens = read_tokens.write_shards(folder / "tokens", 200_000, 500, width.vocabulary, {"tokenizer": tokenizer})
    # Use a smaller model than base, whose checkpoints have a gigabyte.
    model = {"hidden_size": width.hidden // 4, "num_attention_heads": width.heads // 4}
    model |= {"intermediate_size": width.intermediate // 4, "num_hidden_layers": bench.sizes.layers}
    settings = {"model": model, "steps": steps, "batch_size": 16, "sequence_length": bench.sizes.lengths[0]}
    settings |= {"seed": 42, "evaluation_sequences": 0}
    runtime = {"device": bench.device.type, "checkpoint_interval_steps": steps // 3, "threads": 1}
    # Compile the layers on a GPU: compilation changes the order of random numbers and sums, and a resumed run must
    # reproduce this order.
    runtime["compile"] = "layers" if bench.on_gpu else "off"
    given = {"settings": settings, "runtime": runtime, "tokens": str(tokens), "tokenizer": str(tokenizer)}
    return [sys.executable, str(SCRIPTS / "run.py"), "pretrain", json.dumps(given)]


def _start(command: list[str], folder: Path, run: str) -> subprocess.Popen[bytes]:
    own = folder / run
    own.mkdir(exist_ok=True)
    places = json.dumps({"checkpoints": str(own / "checkpoints"), "output": str(own / "manifest.json")})
    with (own / "log").open("ab") as log:
        return subprocess.Popen([*command, places], stdout=log, stderr=log)


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").strip().splitlines() or ["(empty)"])[-1][:200]


def _difference(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    return max(float((left[name] - right[name]).abs().max()) for name in left)


@dataclass(frozen=True)
class Part:
    """One part of the benchmark: the function that measures its table rows, and the time limit of its process in
    seconds.
    """

    seconds: float
    rows: Callable[[Bench], Rows]


def _steps_part(name: str, index: int, model: str, ways: slice, seconds: float) -> Part:
    return Part(seconds, lambda bench: steps(bench, name, bench.sizes.lengths[index], model, ways))


PARTS: dict[str, Part] = {
    "product": Part(25, product),
    "ltg_short": _steps_part("ltg_short", 0, "ltg", slice(8), 85),
    "ltg_long": _steps_part("ltg_long", 1, "ltg", slice(8), 75),
    "elc_short": _steps_part("elc_short", 0, "elc", slice(2), 60),
    "gpt_short": _steps_part("gpt_short", 0, "gpt", slice(2), 50),
    "score": Part(65, score),
    "finetune": Part(60, finetuning),
    "resume": Part(60, resume),
    "loop": Part(45, loop),
    "others_long": _steps_part("others_long", 1, "ltg", slice(8, None), 80),
}
"""Most important parts first, because the time may not suffice for all parts."""
