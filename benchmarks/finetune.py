"""Speed of Hatchery's fine-tuning, compared with a plain loop that tokenises and pads every batch.

The plain loop tokenises each batch again, pads each batch to the maximum length and computes all positions. Both loops
train the same model for one epoch, with the same optimiser and number of steps, and alternate. Hatchery encodes each
text only once, and the time of this encoding is included; a batch contains texts of similar length.

The table has a row for each of several tasks, whose texts differ in length:

- `our examples/s`, `plain examples/s`: examples per second of wall time, for Hatchery's loop and for the plain loop
- `plain/our CPU time`, `plain/our wall time`: time of the plain loop divided by the time of Hatchery's loop
- `packed/our CPU time`: as `plain/our CPU time`, but the encoder of the plain loop leaves out padding on a CPU, as in
  Hatchery's loop
- `our/bare speed`: speed of Hatchery's loop divided by the speed of bare forward and backward passes of the same model.
  The loop and the bare passes alternate batch by batch.

The exit status is 1 if the speed-up of a short task is below its minimum. The speed-up is `plain/our CPU time` on a
CPU, and `plain/our wall time` on a GPU. The exit status is also 1 if `our/bare speed` is below its minimum.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.evaluation.finetuning.batches import Batch
from hatchery.evaluation.finetuning.encoding import EncodedTexts, encode_texts
from hatchery.evaluation.finetuning.loop import build_optimizer, set_rates, train_model
from hatchery.evaluation.runtime import prepare_device
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.settings import ProtocolSettings
from hatchery.modeling.heads.registry import build_task_model
from hatchery.modeling.heads.sequence_classifier import FirstToken
from hatchery.modeling.heads.task_model import HeadContext, TaskModel
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

MAX_LENGTH = 128
BATCH_SIZE = 16
# Minimum of plain time / our time on two CPU cores, for tasks with a mean length below SHORT tokens.
LIMIT_RATIO, SHORT = 2.0, 50
# Limit of the loop's speed, as a share of the speed of bare forward and backward passes.
LIMIT_LOOP = 0.85
# Name, segments, mean words per segment: CoLA and SST-2, then pairs of some 40 tokens, then long pairs.
TASKS = [("cola", 1, 8), ("sst2", 1, 13), ("rte", 2, 14), ("long pairs", 2, 45)]
PROTOCOL = ProtocolSettings(
    epochs=1,
    batch_size=BATCH_SIZE,
    learning_rates=(5e-5,),
    warmup_fraction=0.0,
    schedule="linear",
    weight_decay=0.1,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    max_gradient_norm=1.0,
    dropout=0.1,
    max_length=MAX_LENGTH,
    selection="last",
    development_fraction=0.0,
    evaluation_interval_steps=None,
    patience_evaluations=None,
    minimum_improvement=0.0,
    selection_metric=None,
    seeds=(12,),
)


class Seconds(NamedTuple):
    """CPU and wall time of one call, in seconds."""

    cpu: float
    wall: float


class BesideBare:
    """Encoded texts for Hatchery's loop. Before the loop receives a batch, a second model, `bare`, computes the batch,
    and `bare_seconds` is the total time of this second model.
    """

    def __init__(self, data: EncodedTexts, bare: TaskModel, device: torch.device) -> None:
        self.data, self.bare, self.device = data, bare.train(), device
        self.lengths, self.labels, self.n_units = data.lengths, data.labels, data.n_units
        self.bare_seconds = 0.0

    def batch(self, items: np.ndarray) -> Batch:
        """Return the batch of the texts with the indices `items`. Before this, the model `bare` computes a forward and
        backward pass of the batch, and the time of this pass is added to `bare_seconds`.
        """
        batch = self.data.batch(items)
        moved = batch.to(self.device)
        started = now(self.device)
        self.bare.loss(self.bare(**moved.inputs), moved.labels).mean.backward()
        self.bare.zero_grad(set_to_none=True)
        self.bare_seconds += now(self.device) - started
        return batch


def loop_share(make: Callable[[], TaskModel], data: EncodedTexts, rounds: int, device: torch.device) -> float:
    """Return the speed of Hatchery's loop divided by the speed of bare forward and backward passes of the same model:
    the median of this ratio over the rounds.
    """
    shares = []
    for _ in range(rounds + 1):
        beside = BesideBare(data, make(), device)
        model = make()
        started = now(device)
        train_model(model, beside, None, PROTOCOL, 5e-5, 12, device)
        shares.append(beside.bare_seconds / (now(device) - started - beside.bare_seconds))
    # Skip the first round, which allocates memory.
    return statistics.median(shares[1:])


def now(device: torch.device) -> float:
    """Return the CPU time of the process, or on a GPU the wall time."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


class EveryPosition(nn.Module):
    """The usual pooling of the first token: all positions are computed, and only the vector of the first position is
    used.
    """

    def forward(self, encoder: nn.Module, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the vector of the first token of each text, [texts, hidden size]."""
        return encoder(input_ids, attention_mask)[-1][:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=128)
    parser.add_argument("--hidden-size", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--limit", type=float, default=LIMIT_RATIO)
    parser.add_argument("--loop-limit", type=float, default=LIMIT_LOOP)
    arguments = parser.parse_args()
    device = prepare_device(arguments.device, arguments.threads)
    words = vocabulary_of_words()
    tokenizer = train_tokenizer(words)
    slow_tasks, slow_loops = [], []
    print(
        "Each row is one task. our: Hatchery's loop; plain: a plain loop; packed: a plain loop without padding in the "
        "encoder; bare: forward and backward passes without a loop\n"
        f"{'task':12}{'tokens/example':>16}{'our examples/s':>16}{'plain examples/s':>18}{'plain/our CPU time':>20}"
        f"{'plain/our wall time':>21}{'packed/our CPU time':>21}{'our/bare speed':>16}"
    )
    for name, segments, n_words in TASKS:
        examples = make_examples(words, arguments.examples, segments, n_words)
        data = encode_texts(examples, tokenizer, MAX_LENGTH)
        mean_length = float(data.lengths.mean())
        make = partial(make_model, tokenizer, arguments.hidden_size, arguments.layers, device)
        ours, fixed, packed = timed(
            [
                partial(train_ours, make, examples, tokenizer, device),
                partial(train_fixed, make, EveryPosition(), examples, tokenizer, device),
                partial(train_fixed, make, FirstToken(), examples, tokenizer, device),
            ],
            arguments.rounds,
        )
        share = loop_share(make, data, arguments.rounds, device)
        cpu_ratio, wall_ratio = fixed.cpu / ours.cpu, fixed.wall / ours.wall
        print(
            f"{name:12}{mean_length:16.1f}{len(examples) / ours.wall:16,.0f}{len(examples) / fixed.wall:18,.0f}"
            f"{cpu_ratio:20.2f}{wall_ratio:21.2f}{packed.cpu / ours.cpu:21.2f}{share:16.2f}",
            flush=True,
        )
        if mean_length < SHORT and (cpu_ratio if device.type == "cpu" else wall_ratio) < arguments.limit:
            slow_tasks.append(name)
        if share < arguments.loop_limit:
            slow_loops.append(name)
    print(
        f"required minimum of plain time / our time, tasks with less than {SHORT} tokens: {arguments.limit:.2f}; "
        f"tasks below the minimum: {', '.join(slow_tasks) or 'none'}"
    )
    print(
        f"required minimum of our speed / bare speed, for each task: {arguments.loop_limit:.2f}; "
        f"tasks below the minimum: {', '.join(slow_loops) or 'none'}"
    )
    sys.exit(1 if slow_tasks or slow_loops else 0)


def train_ours(
    make: Callable[[], TaskModel], examples: list[Example], tokenizer: Tokenizer, device: torch.device
) -> None:
    """Train one epoch with Hatchery's loop, including the encoding of the texts."""
    train_model(make(), encode_texts(examples, tokenizer, MAX_LENGTH), None, PROTOCOL, 5e-5, 12, device)


def train_fixed(
    make: Callable[[], TaskModel],
    pooling: nn.Module,
    examples: list[Example],
    tokenizer: Tokenizer,
    device: torch.device,
) -> None:
    """Train one epoch with the plain loop, which tokenises each batch and pads each batch to the maximum length."""
    model = make()
    model.pooling = pooling
    optimizer = build_optimizer(model, PROTOCOL, 5e-5)
    order = np.random.default_rng(0).permutation(len(examples))
    steps = -(-len(order) // BATCH_SIZE)
    model.train()
    for step in range(steps):
        batch = [examples[index] for index in order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]]
        ids = torch.full((len(batch), MAX_LENGTH), tokenizer.pad_id)
        mask = torch.zeros((len(batch), MAX_LENGTH), dtype=torch.bool)
        for row, example in enumerate(batch):
            sequence = [tokenizer.cls_id]
            for segment in tokenizer.encode_sentences(example.segments):
                sequence += [*segment, tokenizer.sep_id]
            sequence = sequence[:MAX_LENGTH]
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = True
        labels = torch.tensor([example.label for example in batch])
        set_rates(optimizer, PROTOCOL, step, steps)
        scores = model(ids.to(device), mask.to(device))
        loss = model.loss(scores, labels.to(device)).mean
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    loss.item()


def timed(functions: list[Callable[[], None]], rounds: int) -> list[Seconds]:
    """Return the median CPU and wall seconds of each function. The functions alternate, so that other jobs slow all
    functions equally.
    """
    for function in functions:
        function()
    seconds: list[list[tuple[float, float]]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, seconds, strict=True):
            cpu, wall = time.process_time(), time.perf_counter()
            function()
            found.append((time.process_time() - cpu, time.perf_counter() - wall))
    return [Seconds(*(statistics.median(values) for values in zip(*found, strict=True))) for found in seconds]


def make_model(tokenizer: Tokenizer, hidden_size: int, layers: int, device: torch.device) -> TaskModel:
    config = LtgBertConfig(
        vocab_size=tokenizer.vocabulary_size,
        hidden_size=hidden_size,
        intermediate_size=hidden_size * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden_size // 64),
    )
    network = LanguageModel(config)
    initialise_(network, seed=0)
    context = HeadContext(2, PROTOCOL.dropout, 12, tokenizer.pad_id)
    return build_task_model("sequence_classification", network.encoder, context).to(device)


def vocabulary_of_words() -> list[str]:
    random = np.random.default_rng(0)
    letters = np.array(list("aeioulnrst"))
    return ["".join(random.choice(letters, size=length)) for length in random.integers(2, 8, size=1500)]


def make_examples(words: list[str], n: int, segments: int, n_words: int) -> list[Example]:
    random = np.random.default_rng(1)

    def text() -> str:
        return " ".join(random.choice(words, size=max(2, random.poisson(n_words))))

    return [Example((tuple(text() for _ in range(segments)),), int(i % 2)) for i in range(n)]


def train_tokenizer(words: list[str]) -> Tokenizer:
    settings = TokenizerSettings("wordpiece", vocabulary_size=2048, min_frequency=2)
    backend = train(iter([" ".join(words)] * 4), settings)
    with tempfile.TemporaryDirectory() as folder:
        backend.save(str(Path(folder) / "tokenizer.json"))
        return load_tokenizer(Path(folder) / "tokenizer.json", recognise=())


if __name__ == "__main__":
    main()
