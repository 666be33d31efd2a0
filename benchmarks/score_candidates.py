"""BabyLM's zero-shot tasks: Hatchery's scorer and a plain loop over `transformers` with the same rules.

The loop follows BabyLM's pipeline (docs/papers/babylm-2026.md, "Scored tokens"). Texts are in the order of the file, 64
items in a batch. The k-th candidates of all items of a batch are computed together, padded to the longest. For masked
models, there is one copy for each scored token, in batches of 64 copies. Logits are computed at every position in
float32, and log-probabilities for the whole vocabulary.

Hatchery and the loop score the same items with the same weights: GPT-2 and BERT of `transformers`, and Hatchery's
models, which the loop loads from their export. The items are invented, with the lengths of the tasks' texts: sentences
of about 10 words, and five options after a story about boxes. The two scorers alternate, with one thread. The program
prints candidates per second of CPU time, the ratio, and the largest difference of a score; the exit status is 1 if a
difference is above 1e-3.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, SentenceModel
from hatchery.evaluation.settings import BaselineSettings
from hatchery.evaluation.ways_of_scoring import Architecture
from hatchery.export.model_folder import write_model_folder
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

BATCH = 64
SIZES = {"tiny": (128, 4), "small": (384, 12), "base": (768, 12)}
WORDS = 3000
# Factor for the number of items of causal models. With this factor, batches are full, as in a real suite, in which many
# texts have equal length.
CAUSAL_ITEMS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument(
        "--items",
        type=int,
        default=64,
        help="number of sentence pairs; there are a quarter as many items of five options",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--architectures", nargs="+", choices=["causal", "masked"], default=["causal", "masked"])
    parser.add_argument("--vocabulary", type=int, default=16384)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed = False
    print(
        f"model size {arguments.size}; {arguments.items} sentence pairs (short) and "
        f"{arguments.items // 4} items of five options (long), "
        "one thread"
    )
    print(f"causal models are timed on {CAUSAL_ITEMS} times as many pairs and items: they compute one row per text")
    with tempfile.TemporaryDirectory() as folder:
        for name, architecture, scorer, network, tokenizer in models_of(Path(folder), arguments):
            count = arguments.items * (CAUSAL_ITEMS if architecture == "causal" else 1)
            for kind, items in (("short", short_items(count)), ("long", long_items(count // 4))):
                failed |= not compared(f"{name}, {kind}", items, architecture, scorer, network, tokenizer, arguments)
    sys.exit(failed)


def compared(
    title: str,
    items: Sequence[Item],
    architecture: Architecture,
    scorer: SentenceModel,
    network: Any,
    tokenizer: Any,
    arguments: argparse.Namespace,
) -> bool:
    """Measure the two scorers alternately, print the results, and return whether the scores agree."""

    def ours() -> np.ndarray:
        return candidate_scores(items, scorer).scores

    def theirs() -> np.ndarray:
        return plain_loop(items, network, tokenizer, architecture == "causal")

    times: dict[str, list[float]] = {"ours": [], "plain": []}
    found = {}
    candidate_scores(items[:2], scorer)
    for _ in range(arguments.rounds):
        for name, function in (("plain", theirs), ("ours", ours)):
            started = time.process_time()
            found[name] = function()
            times[name].append(time.process_time() - started)
    ours_s, plain_s = (statistics.median(times[name]) for name in ("ours", "plain"))
    count = sum(len(item.candidates) for item in items)
    difference = float(np.nanmax(np.abs(found["ours"] - found["plain"])))
    print(
        f"{title}: Hatchery scores {count / ours_s:.1f} candidates per CPU second, "
        f"the plain loop scores {count / plain_s:.1f}; "
        f"Hatchery needs {ours_s / plain_s:.2f} times the CPU time of the loop; "
        f"largest difference between the two scores of a candidate {difference:.0e}",
        flush=True,
    )
    return difference < 1e-3


@torch.inference_mode()
def plain_loop(items: Sequence[Item], network: Any, tokenizer: Any, causal: bool) -> np.ndarray:
    """Return sums of log-probabilities as in BabyLM's pipeline, float64 [items, candidates]."""
    scores = np.full((len(items), max(len(item.candidates) for item in items)), np.nan)
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        for k in range(len(part[0].candidates)):
            chosen = [item.candidates[k] for item in part]
            encoded = [tokenizer(one.text, return_offsets_mapping=True) for one in chosen]
            ids = [torch.tensor(one["input_ids"]) for one in encoded]
            scored = [
                torch.tensor([end > len(one.prefix) and end > begin for begin, end in each["offset_mapping"]])
                for one, each in zip(chosen, encoded, strict=True)
            ]
            sums = causal_sums(network, ids, scored) if causal else masked_sums(network, tokenizer, ids, scored)
            scores[start : start + len(part), k] = sums
    return scores


def causal_sums(network: Any, ids: list[torch.Tensor], scored: list[torch.Tensor]) -> np.ndarray:
    padded, counted = pad_sequence(ids, batch_first=True), pad_sequence(scored, batch_first=True)
    seen = pad_sequence([torch.ones_like(one) for one in ids], batch_first=True)
    logits = network(input_ids=padded[:, :-1], attention_mask=seen[:, :-1]).logits
    values = torch.log_softmax(logits, dim=-1).gather(2, padded[:, 1:, None]).squeeze(2)
    return (values * counted[:, 1:]).sum(dim=1).double().numpy()


def masked_sums(network: Any, tokenizer: Any, ids: list[torch.Tensor], scored: list[torch.Tensor]) -> np.ndarray:
    copies, places, of = [], [], []
    for number, (one, counted) in enumerate(zip(ids, scored, strict=True)):
        for place in counted.nonzero().flatten().tolist():
            copies.append(one.clone())
            copies[-1][place] = tokenizer.mask_token_id
            places.append(place)
            of.append(number)
    sums = np.zeros(len(ids))
    for start in range(0, len(copies), BATCH):
        part = slice(start, start + BATCH)
        padded = pad_sequence(copies[part], batch_first=True)
        seen = pad_sequence([torch.ones_like(one) for one in copies[part]], batch_first=True)
        log_probabilities = torch.log_softmax(network(input_ids=padded, attention_mask=seen).logits, dim=-1)
        for row, (place, number) in enumerate(zip(places[part], of[part], strict=True)):
            sums[number] += float(log_probabilities[row, place, ids[number][place]])
    return sums


def models_of(
    folder: Path, arguments: argparse.Namespace
) -> Iterator[tuple[str, Architecture, SentenceModel, Any, Any]]:
    """Yield models with random weights: Hatchery's models with their exports, and two models of `transformers`."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    hidden, layers = SIZES[arguments.size]
    heads, inner, vocabulary = max(1, hidden // 64), hidden * 4, arguments.vocabulary
    backend = train(iter(sentences(random.Random(1), 4000)), TokenizerSettings("wordpiece", vocabulary_size=4000))
    backend.save(str(folder / "tokenizer.json"))
    own = load_tokenizer(folder / "tokenizer.json", recognise=())
    auto = {"causal": transformers.AutoModelForCausalLM, "masked": transformers.AutoModelForMaskedLM}
    shape = {"vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": layers}
    for architecture in arguments.architectures:
        config = LtgBertConfig(**shape, intermediate_size=hidden * 8 // 3, num_attention_heads=heads)
        network = LanguageModel(config, causal=architecture == "causal")
        initialise_(network, seed=0)
        place = folder / architecture
        place.mkdir()
        write_model_folder(place, network.eval(), (architecture,), folder / "tokenizer.json")
        exported = auto[architecture].from_pretrained(place, trust_remote_code=True).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=True)
        yield f"LTG-BERT, {architecture}", architecture, HatcheryModel(network, own, CPU), exported, tokenizer
        if architecture == "causal":
            sizes = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": vocabulary}
            theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))
        else:
            sizes = {**shape, "num_attention_heads": heads, "intermediate_size": inner}
            theirs = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
        its = BaselineTokenizer(tokenizer, architecture, architecture, template=True)
        baseline = BaselineModel(theirs.eval(), its, BaselineSettings(architecture), CPU, template=True)
        yield f"{type(theirs).__name__}", architecture, baseline, theirs, tokenizer


def words(draw: random.Random) -> list[str]:
    return ["".join(draw.choices("abcdefghijklmnopqrst", k=draw.randint(2, 8))) for _ in range(WORDS)]


def sentences(draw: random.Random, count: int) -> Iterator[str]:
    known = words(random.Random(0))
    for _ in range(count):
        yield " ".join(draw.choices(known, k=10)) + "."


def short_items(count: int) -> list[Item]:
    """Return pairs of sentences that differ in one word."""
    draw, known = random.Random(2), words(random.Random(0))
    items = []
    for number in range(count):
        good = draw.choices(known, k=draw.randint(5, 13))
        bad = list(good)
        bad[draw.randrange(len(bad))] = draw.choice(known)
        texts = (Candidate(f"{' '.join(text)}.") for text in (good, bad))
        items.append(Item("short", "short", str(number), tuple(texts)))
    return items


def long_items(count: int) -> list[Item]:
    """Return items with five options, which follow a text of about sixty words."""
    draw, known = random.Random(3), words(random.Random(0))
    items = []
    for number in range(count):
        prefix = " ".join(draw.choices(known, k=draw.randint(45, 75)))
        options = tuple(Candidate(f" {' '.join(draw.choices(known, k=2))}.", prefix) for _ in range(5))
        items.append(Item("long", "long", str(number), options))
    return items


CPU = torch.device("cpu")


if __name__ == "__main__":
    main()
