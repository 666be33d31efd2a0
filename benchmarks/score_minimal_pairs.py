"""Scoring minimal pairs: batches of equal length against one call per sentence, the loop of the published scorers.

The baseline calls the same model once per sentence with all its masked copies and applies the head to every position,
as LTG-BERT's and BabyLM's scorers do. Prints the ratio, the largest difference of a score, and how many decisions
differ; leaves with 1 when the ratio is below the limit or a decision differs. Sentences are random ids whose lengths
follow BLiMP (mean 10 tokens, at most 33; reference section 5).
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
import torch

from hatchery.evaluation.minimal_pairs.pseudo_log_likelihood import SpecialIds, sentence_scores, token_log_probabilities
from hatchery.evaluation.runtime import prepare_device
from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.masked_language_model import MaskedLanguageModel

SPECIAL = SpecialIds(cls=1, sep=2, mask=4)
FIRST_ORDINARY_ID = 7
# What must hold on two CPU cores with the default sizes; GPUs gain far more, because small calls leave them idle.
LIMIT_RATIO = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--hidden-size", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--tokens-per-batch", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--limit", type=float, default=LIMIT_RATIO)
    arguments = parser.parse_args()
    device = prepare_device(arguments.device, arguments.threads)
    model = build_model(arguments.vocabulary, arguments.hidden_size, arguments.layers).to(device)
    pairs = random_pairs(arguments.pairs, arguments.vocabulary)
    sentences = [sentence for pair in pairs for sentence in pair]

    def batched() -> np.ndarray:
        return sentence_scores(token_log_probabilities(model, sentences, SPECIAL, arguments.tokens_per_batch, device))

    def looped() -> np.ndarray:
        return np.array([one_call(model, sentence, device) for sentence in sentences])

    batched(), [one_call(model, sentence, device) for sentence in sentences[:10]]
    fast_seconds, slow_seconds = [], []
    for _ in range(arguments.rounds):  # in turns, so that a busy machine slows both
        fast, seconds = timed(batched)
        fast_seconds.append(seconds)
        slow, seconds = timed(looped)
        slow_seconds.append(seconds)
    ratio = statistics.median(slow_seconds) / statistics.median(fast_seconds)
    rows = sum(map(len, sentences))
    changed = int(((fast[0::2] > fast[1::2]) != (slow[0::2] > slow[1::2])).sum())
    print(f"one call per sentence: {rows / statistics.median(slow_seconds):10,.0f} rows/s")
    print(f"batches of equal length: {rows / statistics.median(fast_seconds):8,.0f} rows/s")
    print(f"largest difference of a score: {np.abs(fast - slow).max():.1e}; decisions that differ: {changed}")
    print(f"ratio: {ratio:.2f} (limit {arguments.limit:.2f})")
    sys.exit(0 if ratio >= arguments.limit and changed == 0 else 1)


def build_model(vocabulary: int, hidden_size: int, layers: int) -> MaskedLanguageModel:
    config = LtgBertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden_size,
        intermediate_size=hidden_size * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden_size // 64),
    )
    model = MaskedLanguageModel(config)
    initialise_(model, seed=0)
    return model.eval()


def random_pairs(n_pairs: int, vocabulary: int) -> list[tuple[list[int], list[int]]]:
    random = np.random.default_rng(0)
    pairs = []
    for _ in range(n_pairs):
        good = random.integers(FIRST_ORDINARY_ID, vocabulary, size=min(33, 4 + random.poisson(6.4))).tolist()
        bad = list(good)
        bad[random.integers(len(bad))] = int(random.integers(FIRST_ORDINARY_ID, vocabulary))
        pairs.append((good, bad))
    return pairs


@torch.inference_mode()
def one_call(model: MaskedLanguageModel, sentence: Sequence[int], device: torch.device) -> float:
    framed = torch.tensor([SPECIAL.cls, *sentence, SPECIAL.sep], device=device)
    positions = torch.arange(len(sentence), device=device)
    ids = framed.repeat(len(sentence), 1)
    ids[positions, positions + 1] = SPECIAL.mask
    logits = model.logits_at(model.encoder(ids, torch.ones_like(ids, dtype=torch.bool))[-1])
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)[positions, positions + 1]
    return float(log_probabilities.gather(-1, framed[1:-1, None]).double().sum())


def timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    started = time.perf_counter()
    result = function()
    return result, time.perf_counter() - started


if __name__ == "__main__":
    main()
