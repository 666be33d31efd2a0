"""Zero-shot suites of BabyLM's multilingual track: Hatchery's scorer and lm-evaluation-harness on the same rows.

The organisers score with lm-evaluation-harness and its model `hf`, with one BOS before the text and without the
tokenizer's template. That library scores one text at a time by default; `--batches` names further batch sizes. Hatchery
loads the model once for all suites, sorts texts by length, and computes shared prompts once.

Rows are invented. Their numbers of words and of choices are typical of the tasks: pairs of sentences (BLiMP,
MultiBLiMP, XCOMPS, Hanzi) and choices after a prompt (MuBench, GlobalPIQA). The two scorers alternately score a GPT-2
with random weights, with one thread. The program prints texts per second of CPU time, the ratio, and the largest
difference of a score; the exit status is 1 if a difference is above 1e-3. The packages of `make test-tools`
(`PYTHONPATH=.tools`) are needed; without them, a message is printed and a plain loop, one text at a time, replaces the
library.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
import torch
from score_candidates import CPU, SIZES, sentences, short_items, words

from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.baselines.loading import BaselineTokenizer
from hatchery.evaluation.minimal_pairs.items import Candidate, Item
from hatchery.evaluation.minimal_pairs.prefix_tokens import frame_by_bos_
from hatchery.evaluation.minimal_pairs.score_suite import candidate_scores
from hatchery.evaluation.settings import BaselineSettings
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

SHAPES = {
    # For each suite: its number of items as a share of `--items`, the number of choices (0: pairs of sentences), and
    # the number of words in the prompt.
    "pairs of sentences": (1.0, 0, 0),
    "hellaswag": (0.25, 4, 40),
    "xstorycloze": (0.25, 2, 35),
    "winogrande": (0.25, 2, 15),
    "global_piqa": (0.1, 4, 12),
}
Scorer = Callable[[Sequence[Item]], list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument(
        "--items",
        type=int,
        default=200,
        help="number of sentence pairs per suite; suites of items with choices have fewer items",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64], help="batch sizes of lm-evaluation-harness")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    suites = {name: items_of(name, arguments.items) for name in SHAPES}
    with tempfile.TemporaryDirectory() as folder:
        network, tokenizer = model_of(Path(folder), arguments.size)
    model = our_model(network, tokenizer)
    sides: dict[str, Scorer] = {"ours": lambda items: flat(candidate_scores(items, model, by_prefix=True).of(items))}
    sides |= {f"other scorer, batches of {size}": official(network, tokenizer, size) for size in arguments.batches}
    count = sum(len(item.candidates) for items in suites.values() for item in items)
    print(
        f"GPT-2 of size {arguments.size}, {len(suites)} suites with {count:,} texts, one thread, "
        f"median speed of {arguments.rounds} rounds"
    )
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    scores: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            started = time.process_time()
            scores[name] = [value for items in suites.values() for value in side(items)]
            seconds[name].append(time.process_time() - started)
    ours, worst = statistics.median(seconds["ours"]), 0.0
    for name, found in seconds.items():
        middle = statistics.median(found)
        difference = float(np.abs(np.array(scores[name]) - np.array(scores["ours"])).max())
        worst = max(worst, difference)
        spread = f"{count / max(found):,.0f} to {count / min(found):,.0f}"
        print(
            f"{name:28} {count / middle:8,.1f} texts per CPU second (single rounds: {spread}), "
            f"our speed / this speed {middle / ours:.1f}, "
            f"largest difference between this score and our score of a text {difference:.1e}"
        )
    sys.exit(worst > 1e-3)


def flat(rows: Sequence[Sequence[float]]) -> list[float]:
    return [value for row in rows for value in row]


def items_of(name: str, count: int) -> list[Item]:
    """Return the items of a suite: pairs of sentences, or prompts with several choices of 3 to 12 words each."""
    share, choices, length = SHAPES[name]
    if choices == 0:
        return short_items(count)
    draw, known = random.Random(name), words(random.Random(0))
    found = []
    for number in range(max(2, round(count * share))):
        prompt = " ".join(draw.choices(known, k=length + draw.randint(-5, 5)))
        ends = (Candidate(f" {' '.join(draw.choices(known, k=draw.randint(3, 12)))}.", prompt) for _ in range(choices))
        found.append(Item(name, name, str(number), tuple(ends)))
    return found


def model_of(folder: Path, size: str) -> tuple[Any, Any]:
    """Return a GPT-2 with random weights, and a tokenizer whose template adds a token before and after a text."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    backend = train(iter(sentences(random.Random(1), 4000)), TokenizerSettings("wordpiece", vocabulary_size=4000))
    backend.save(str(folder / "tokenizer.json"))
    named = {"bos_token": "[CLS]", "eos_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **named)
    hidden, layers = SIZES[size]
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=16384, n_embd=hidden, n_layer=layers, n_head=max(1, hidden // 64), n_positions=1024
    )
    return transformers.GPT2LMHeadModel(config).eval(), tokenizer


def our_model(network: Any, tokenizer: Any) -> BaselineModel:
    its = BaselineTokenizer(tokenizer, "causal", "GPT-2", template=True)
    model = BaselineModel(network, its, BaselineSettings("causal"), CPU, template=True)
    frame_by_bos_(model)
    return model


def official(network: Any, tokenizer: Any, batch: int) -> Scorer:
    """Return a scorer that uses lm-evaluation-harness. If this library is not installed, the scorer calls `plain` for
    each text.
    """
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        print("lm-evaluation-harness is not installed; a plain loop replaces it", file=sys.stderr)
        return lambda items: [plain(network, tokenizer, one) for item in items for one in item.candidates]
    # The template adds no special tokens, and the subclass adds one BOS before the text.
    harness = with_one_bos(HFLM)(pretrained=network, tokenizer=tokenizer, batch_size=batch, device="cpu")

    def scores(items: Sequence[Item]) -> list[float]:
        asked = [
            Instance(request_type="loglikelihood", doc={}, arguments=(one.prefix, one.completion), idx=0)
            for item in items
            for one in item.candidates
        ]
        return [float(value) for value, _ in harness.loglikelihood(asked, disable_tqdm=True)]

    return scores


def with_one_bos(base: Any) -> Any:
    """Return a subclass of `base`, where `base` is the model class of lm-evaluation-harness. The subclass adds one BOS
    before a context instead of using the tokenizer's template.
    """

    class OneBos(base):
        def tok_encode(self, string: str, *arguments: Any, **more: Any) -> list[int]:
            return self.tokenizer.encode(string, add_special_tokens=False)

        def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
            blanks = len(context) - len(context.rstrip())
            context, continuation = context[: len(context) - blanks], context[len(context) - blanks :] + continuation
            whole, given = self.tok_encode(context + continuation), self.tok_encode(context) if context else []
            return [self.prefix_token_id, *given], whole[len(given) :]

    return OneBos


@torch.inference_mode()
def plain(network: Any, tokenizer: Any, one: Candidate) -> float:
    """Return the score of one text: the sum of the log-probabilities of all tokens after the prompt.

    The log-probabilities of the whole vocabulary are computed at every position.
    """
    whole = tokenizer.encode(one.text, add_special_tokens=False)
    given = len(tokenizer.encode(one.prefix, add_special_tokens=False)) if one.prefix else 0
    ids = torch.tensor([[tokenizer.bos_token_id, *whole]])
    values = torch.log_softmax(network(input_ids=ids[:, :-1]).logits.float(), dim=-1)
    return float(values[0].gather(1, ids[0, 1:, None])[given:].sum())


if __name__ == "__main__":
    main()
