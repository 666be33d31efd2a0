"""Speed of scoring minimal pairs: Hatchery, which scores batches of distinct masked inputs of equal length, compared
with a loop that calls the model once per pair and computes the logits of all tokens.

The baseline is the loop of the published scorers. The masked copies of both sentences of a pair are one batch, in which
the shorter sentence is padded. Log-probabilities of the whole vocabulary are computed at every position. A second
baseline makes one call per masked copy. The program prints pairs per second, the ratios of CPU times and of wall times,
the largest difference of a score, and the ratio of the numbers of multiplications. The exit status is 1 if Hatchery and
a baseline prefer different sentences of a pair, or if Hatchery's speed-up over the first baseline is below the minimum
for the model size.

The encoder's work for different masked copies cannot be shared exactly. Hatchery saves work in the product with the
vocabulary, in the products with the last layer's weights, and in exponentials of a whole vocabulary. It also saves
padding, repeated inputs and the overhead of small calls. The time in bf16 is the time of the first pass of `precision:
screened`; the second pass scores some of the items again.

Sentences are random ids with the lengths and the pairing of BLiMP (mean 10.4 tokens, 17 % of the pairs of unequal
length; docs/papers/babylm-evaluation.md, "Cost of scoring"), or the sentences of a given archive, encoded with a given
tokenizer.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
import torch

from hatchery.evaluation.minimal_pairs.likelihoods import expand
from hatchery.evaluation.minimal_pairs.scoring import sentence_scores, token_scores
from hatchery.evaluation.minimal_pairs.screening import in_bf16
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame, HatcheryModel
from hatchery.evaluation.runtime import prepare_device
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.tokenization.tokenizer_file import load_tokenizer

CLS, SEP, PAD, MASK = 1, 2, 3, 4
FRAME = Frame((CLS,), (SEP,))
FIRST_ORDINARY_ID = 7
# Hidden size, number of layers, and the smallest allowed ratio of the baseline's CPU time to ours, on two CPU cores
# with the default settings. The ratio is larger on GPUs, which small calls do not use fully.
SIZES = {
    "demo": (64, 2, 8.0),
    "tiny": (128, 4, 2.8),
    "xs": (192, 12, 1.5),
    "small": (384, 12, 1.2),
    "base": (768, 12, 1.1),
}

Pair = tuple[list[int], list[int]]


class Framed(HatcheryModel):
    """The model with which the workflow scores, but without a tokenizer: sentences are ids."""

    def __init__(self, network: LanguageModel, device: torch.device) -> None:
        special: Any = SimpleNamespace(cls_id=CLS, end_ids=[SEP], mask_id=MASK)
        super().__init__(network, special, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["demo", "tiny", "xs", "small"])
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--vocabulary", type=int, default=16384)
    parser.add_argument("--tokens-per-batch", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument(
        "--blimp",
        type=Path,
        help="archive or folder of BLiMP; evenly spaced pairs of BLiMP are scored instead of random pairs",
    )
    parser.add_argument("--tokenizer", type=Path, help="tokenizer that encodes the pairs of --blimp")
    arguments = parser.parse_args()
    device = prepare_device(arguments.device, arguments.threads)
    pairs = random_pairs(arguments.pairs, arguments.vocabulary)
    if arguments.blimp is not None:
        pairs = blimp_pairs(arguments.pairs, arguments.blimp, arguments.tokenizer)
    print(
        f"{len(pairs)} minimal pairs, vocabulary {arguments.vocabulary:,}, {device}, {torch.get_num_threads()} threads"
    )
    failed = [size for size in arguments.sizes if not holds(size, pairs, arguments, device)]
    sys.exit(1 if failed else 0)


def holds(size: str, pairs: Sequence[Pair], arguments: argparse.Namespace, device: torch.device) -> bool:
    """Measure a model of one size and print the results. Return True if Hatchery and both baselines prefer the same
    sentence of every pair, and Hatchery's speed-up over the baseline with one call per pair is at least the minimum for
    this size.
    """
    hidden_size, layers, limit = SIZES[size]
    network = build_model(arguments.vocabulary, hidden_size, layers).to(device)
    model = Framed(network, device)
    sentences = [EncodedSentence(tuple(sentence)) for pair in pairs for sentence in pair]

    def ours() -> np.ndarray:
        return sentence_scores(token_scores(model, sentences, "pll", arguments.tokens_per_batch)).reshape(-1, 2)

    def in_half() -> np.ndarray:
        with in_bf16(device):
            return ours()

    def by_pair() -> np.ndarray:
        return np.array([one_pair(network, pair, device) for pair in pairs])

    def by_row() -> np.ndarray:
        return np.array([[one_row_each(network, sentence, device) for sentence in pair] for pair in pairs])

    one_pair(network, pairs[0], device), ours()
    measured = {name: ([], []) for name in ("ours", "in bf16", "per pair", "per row")}
    results = {}
    for _ in range(arguments.rounds):  # Alternate the scorers, so that other jobs slow all scorers equally.
        for name, function in zip(measured, (ours, in_half, by_pair, by_row), strict=True):
            results[name], cpu, wall = timed(function, device)
            measured[name][0].append(cpu)
            measured[name][1].append(wall)
    cpu, wall = ({name: statistics.median(times[index]) for name, times in measured.items()} for index in (0, 1))
    others = np.stack([results["per pair"], results["per row"]])
    changed = int(((np.diff(results["ours"]) < 0) != (np.diff(others) < 0)).sum())
    difference = float(np.abs(results["ours"] - others).max())
    print(f"{size} (width {hidden_size}, {layers} layers): Hatchery scores {len(pairs) / wall['ours']:.1f} pairs/s")
    print(
        f"  largest difference between our score and a baseline's score {difference:.0e}; "
        f"number of decisions that differ: {changed}"
    )
    for name in ("per pair", "per row"):
        print(
            f"  baseline that calls the model once {name}: {len(pairs) / wall[name]:8.1f} pairs/s; "
            f"CPU time {cpu[name] / cpu['ours']:.2f} times ours, wall time {wall[name] / wall['ours']:.2f} times ours"
        )
    error = float(np.ptp(results["in bf16"] - results["ours"], axis=1).max())
    shares = (times["in bf16"] / times["ours"] for times in (cpu, wall))
    print(
        "  Hatchery in bf16: CPU time {:.2f} times ours in fp32, wall time {:.2f} times ours in fp32; ".format(*shares)
        + f"largest error of the difference between the two scores of a pair {error:.2f} nats"
    )
    print(
        f"  the baseline with one call per pair needs {allowed_ratio(network, pairs):.2f} times our multiplications; "
        f"its time must be at least {limit:.1f} times ours"
    )
    ratio = (cpu if device.type == "cpu" else wall)["per pair"] / (cpu if device.type == "cpu" else wall)["ours"]
    return changed == 0 and ratio >= limit


def allowed_ratio(network: LanguageModel, pairs: Sequence[Pair]) -> float:
    """Return the baseline's number of multiplications divided by Hatchery's number. A token costs one multiplication
    per weight of the encoder. A token with logits also costs one multiplication per weight of the head.

    In the last layer, Hatchery applies the weights only at the masked token of an input. The other products of this
    layer multiply, in each head, the vector of every token by the position vectors, by the query, and by the
    probabilities.
    """
    encoder, once = (
        sum(weight.numel() for weight in part.parameters() if weight.ndim == 2)
        for part in (network.encoder.layers, network.encoder.layers[-1])
    )
    per_head = network.config.hidden_size * network.config.num_attention_heads
    head = network.config.hidden_size * (network.config.vocab_size + network.config.hidden_size)
    baseline = sum(sum(map(len, pair)) * (max(map(len, pair)) + 2) for pair in pairs) * (encoder + head)
    by_length: dict[int, set[EncodedSentence]] = {}
    for sentence in (sentence for pair in pairs for sentence in pair):
        by_length.setdefault(len(sentence), set()).add(EncodedSentence(tuple(sentence)))
    ours = 0
    for bucket in by_length.values():
        rows = expand(list(bucket), FRAME, MASK, within_word=False).ids
        reading = per_head * (network.encoder.relative_positions(rows.shape[1]).n_rows + 2)
        ours += rows.size * (encoder - once + reading) + len(rows) * (once + head)
    return baseline / ours


def build_model(vocabulary: int, hidden_size: int, layers: int) -> LanguageModel:
    config = LtgBertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden_size,
        intermediate_size=hidden_size * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden_size // 64),
    )
    model = LanguageModel(config)
    initialise_(model, seed=0)
    return model.eval()


def random_pairs(n_pairs: int, vocabulary: int) -> list[Pair]:
    random = np.random.default_rng(0)
    pairs = []
    for _ in range(n_pairs):
        good = random.integers(FIRST_ORDINARY_ID, vocabulary, size=min(33, 4 + random.poisson(6.4))).tolist()
        bad = list(good)
        place, other = int(random.integers(len(bad))), int(random.integers(FIRST_ORDINARY_ID, vocabulary))
        bad[place : place + (random.random() > 0.17)] = [other]
        pairs.append((good, bad))
    return pairs


def blimp_pairs(n_pairs: int, archive: Path, tokenizer_path: Path) -> list[Pair]:
    import tempfile

    from hatchery.evaluation.minimal_pairs.pairs import read_minimal_pairs
    from hatchery.raw.registration import open_source, register_source

    with tempfile.TemporaryDirectory() as folder:
        register_source("blimp", archive, Path(folder) / "source.json")
        pairs = read_minimal_pairs(open_source(Path(folder) / "source.json"))
    chosen = pairs[:: max(1, len(pairs) // n_pairs)][:n_pairs]
    tokenizer = load_tokenizer(tokenizer_path, recognise=())
    good = tokenizer.encode_sentences([pair.sentence_good for pair in chosen])
    return list(zip(good, tokenizer.encode_sentences([pair.sentence_bad for pair in chosen]), strict=True))


@torch.inference_mode()
def one_pair(model: LanguageModel, pair: Pair, device: torch.device) -> list[float]:
    width = max(map(len, pair)) + 2
    framed = [[CLS, *sentence, SEP, *[PAD] * (width - 2 - len(sentence))] for sentence in pair]
    rows = [row for row, sentence in zip(framed, pair, strict=True) for _ in sentence]
    positions = torch.tensor([index + 1 for sentence in pair for index in range(len(sentence))], device=device)
    ids = torch.tensor(rows, device=device)
    number = torch.arange(len(ids), device=device)
    targets = ids[number, positions]
    ids[number, positions] = MASK
    logits = model.logits_at(model.encoder(ids, ids != PAD)[-1])
    log_probabilities = torch.log_softmax(logits, dim=-1)
    values = log_probabilities[number, positions, targets].double().cpu()
    return [float(values[: len(pair[0])].sum()), float(values[len(pair[0]) :].sum())]


@torch.inference_mode()
def one_row_each(model: LanguageModel, sentence: Sequence[int], device: torch.device) -> float:
    framed = torch.tensor([[CLS, *sentence, SEP]], device=device)
    total = 0.0
    for position, target in enumerate(sentence, start=1):
        ids = framed.clone()
        ids[0, position] = MASK
        logits = model.logits_at(model.encoder(ids, torch.ones_like(ids, dtype=torch.bool))[-1])
        total += float(torch.log_softmax(logits, dim=-1)[0, position, target])
    return total


def timed(function: Callable[[], np.ndarray], device: torch.device) -> tuple[np.ndarray, float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return result, time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    main()
