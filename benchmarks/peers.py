"""Processor times of other tools divided by Hatchery's processor times for the same work.

- pretraining: single steps of a BERT and a GPT-2 of `transformers` with the sizes of Hatchery's models, and whole
  trainings with the Trainer of `transformers`
- scoring of sentences, and of texts of about 400 tokens: minicons and lm-evaluation-harness, with the exported model
  and equal scores. minicons needs version 4 of `transformers` for masked models.
- reading and filtering of text: datatrove (`peers_text`)
- the start of a job: a plain script that loads the same model and scores one sentence

Nothing is installed: if packages are missing, a message replaces their rows. `PYTHONPATH=.tools` contains the packages
of `make test-tools`. Hatchery and the other tool use one thread each and alternate. A ratio is the other tool's minimal
processor time divided by Hatchery's minimal processor time, including child processes. If a ratio is above 1, Hatchery
is faster. docs/performance.md has a table of the ratios.

    PYTHONPATH=.tools python benchmarks/peers.py [--rows step loop score text start] [--repetitions 5] [--tiny]
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from processor_time import seconds

from hatchery.artifacts.manifests import stage_run
from hatchery.evaluation.asked_model import AskedModel
from hatchery.evaluation.opening import open_model
from hatchery.export.model_folder import write_model_folder
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.store import save_model
from hatchery.tokenization.trainer import train as train_tokenizer
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.training.objectives.causal import CausalSettings
from hatchery.training.objectives.masked import MaskedSettings

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
Row = tuple[str, str, float | str]
"""The work, the peer, and the ratio of the times, or the reason why there is no ratio."""


def ratio(peer: Callable[[], object], ours: Callable[[], object], repetitions: int) -> float:
    """Return the minimal processor time of `peer` divided by the minimal processor time of `ours`. The two functions
    alternate, and the first repetition does not count.
    """
    best = {peer: float("inf"), ours: float("inf")}
    for repetition in range(repetitions + 1):
        for side in (ours, peer):
            began = seconds()
            side()
            if repetition:
                best[side] = min(best[side], seconds() - began)
    return best[peer] / best[ours]


def is_there(*packages: str) -> str:
    """Return the versions of packages, for example `minicons 0.3.39`. Raises ImportError if a package cannot be
    imported."""
    for package in packages:
        __import__(package)
    names = {"lm_eval": "lm-evaluation-harness"}
    return ", ".join(f"{names.get(each, each)} {importlib.metadata.version(each)}" for each in packages)


def step_rows(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield rows (work, other tool, Hatchery's speed / the other tool's speed) for training steps without the update:
    forward and backward passes of 2,048 tokens. The models have four layers with the width of LTG-BERT base.
    """
    from peers_training import causal_step
    from training_step import Setting, Width, make_step

    peer, layers = is_there("transformers"), 2 if arguments.tiny else 4
    for length in (32,) if arguments.tiny else (128, 512):
        width = Width(256, 64, 2, 128) if arguments.tiny else Width()
        setting = Setting("cpu", "fp32", layers, length, 4 * length if arguments.tiny else 2048, 0.0, 1, width)
        sides = [make_step(name, setting) for name in ("bert", "ours")]
        yield f"masked step, {length} tokens", f"BERT, {peer}", ratio(sides[0], sides[1], arguments.repetitions)
        sides = [causal_step(kind, setting) for kind in ("gpt2", "ours")]
        yield f"causal step, {length} tokens", f"GPT-2, {peer}", ratio(sides[0], sides[1], arguments.repetitions)


def loop_rows(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield rows (work, other tool, Hatchery's speed / the other tool's speed) for training steps with all their parts:
    drawing and masking batches, forward, backward, clipping, update, a row of metrics.

    The training loop is measured with two models: a narrow model, and a model of four layers with the width of LTG-BERT
    base.
    """
    from peers_training import trainer_speed
    from read_tokens import write_shards
    from training_loop import initialised, run
    from training_step import Width

    from hatchery.training.topology import read_topology

    peer = is_there("transformers", "accelerate")
    # The Trainer imports `datasets`, some versions of which do not support the installed version of the hub's library.
    is_there("datasets")
    narrow = Width(4096, 128, 4, 344)
    sizes = [(narrow, 6, 8, 4)] if arguments.tiny else [(narrow, 6, 64, 8), (Width(), 4, 16, 5)]
    for width, layers, sequences, steps in sizes:
        own = folder / str(width.hidden)
        own.mkdir()
        # Use long texts, so that only 6 % of Hatchery's batches is padding. Speeds do not count padding, and the
        # Trainer's batches have none.
        shards = write_shards(own / "tokens", 40_000 if arguments.tiny else 400_000, 4000, width.vocabulary)
        given = argparse.Namespace(
            tokens=shards, steps=steps, sequences=sequences, micro_batch=8, length=128, workers=0, device="cpu",
            precision="fp32",
        )  # fmt: skip
        config = LtgBertConfig(
            vocab_size=width.vocabulary,
            hidden_size=width.hidden,
            intermediate_size=width.intermediate,
            num_hidden_layers=layers,
            num_attention_heads=width.heads,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        for name, work, objective in (("BERT", "masked", MaskedSettings()), ("GPT-2", "causal", CausalSettings())):

            def model_of(_: int, device: torch.device, causal: bool = work == "causal") -> LanguageModel:
                return initialised(config, device, causal)  # noqa: B023 it is called within this turn

            ours, theirs = 0.0, 0.0
            for _ in range(1 if arguments.tiny else min(2, arguments.repetitions)):
                with tempfile.TemporaryDirectory() as run_folder:
                    found = run(given, read_topology({}), Path(run_folder), model_of, False, objective)
                    ours = max(ours, found["loop"])
                # Remove the environment variables of Hatchery's run with one process, because the Trainer would look
                # for other processes.
                for variable in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
                    os.environ.pop(variable, None)
                theirs = max(theirs, trainer_speed(own, width, layers, sequences, steps, work == "causal"))
            name = f"{name} and Trainer, {peer}"
            yield f"whole {work} loop, {width.hidden} wide, {layers} layers, 128 tokens", name, ours / theirs


def made_model(folder: Path, tiny: bool) -> tuple[dict[str, Path], list[str], list[str]]:
    """Return (manifests of a masked and of a causal model, sentences, texts). The models are untrained, and are also
    exported. The texts have 300 to 400 words.
    """
    nouns, others = ("dogs", "cat", "house"), ("near", "like", "she", "of")
    words = ("the", "a", "old", "small", *nouns, "sleeps", "sleep", "chases", *others)
    random = torch.Generator().manual_seed(3)
    drawn = torch.randint(len(words), (20 if tiny else 400, 30), generator=random).tolist()
    lengths = torch.randint(4, 30, (len(drawn),), generator=random).tolist()
    sentences = [" ".join(words[i] for i in row[:n]) + "." for row, n in zip(drawn, lengths, strict=True)]
    places = torch.randint(len(words), (4 if tiny else 40, 400), generator=random).tolist()
    ends = torch.randint(300, 400, (len(places),), generator=random).tolist()
    texts = [" ".join(words[i] for i in row[:n]) + "." for row, n in zip(places, ends, strict=True)]
    tokenizer = folder / "tokenizer.json"
    settings = TokenizerSettings(kind="byte_bpe", vocabulary_size=320, min_frequency=2, special_tokens="babylm")
    train_tokenizer(iter(sentences), settings).save(str(tokenizer))
    config = LtgBertConfig(
        vocab_size=4096, hidden_size=128, intermediate_size=344, num_hidden_layers=6, num_attention_heads=4
    )
    made = {}
    for kind, objective in (("masked", {"kind": "span"}), ("causal", {"task": "causal"})):
        model = LanguageModel(config, causal=kind == "causal")
        initialise_(model, 42)
        (folder / kind).mkdir()
        (folder / kind / "tokenizer.json").write_bytes(tokenizer.read_bytes())
        stage = {"stage": "pretrain", "stage_version": 1, "steps": 0, "objective": objective, "seed": 7}
        with stage_run(folder / kind / "manifest.json", stage, {"tokenizer": tokenizer}) as run:
            for path in [*save_model(folder / kind, model), folder / kind / "tokenizer.json"]:
                run.add_output(path)
        (folder / kind / "export").mkdir()
        write_model_folder(folder / kind / "export", model.eval(), (kind,), tokenizer)  # type: ignore[arg-type]
        made[kind] = folder / kind / "manifest.json"
    return made, sentences, texts


def score_rows(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield rows for the log-likelihoods of sentences and of texts, including tokenisation."""
    models, sentences, texts = made_model(folder, arguments.tiny)
    models = {kind: path.resolve() for kind, path in models.items()}

    def compared(
        name: str, peer: str, kind: str, score: Callable[[list[str]], list[float]], given: list[str] = sentences
    ) -> Row:
        asked = AskedModel(open_model(models[kind].parent))
        ours = asked.scores(given)["score"].to_list()
        torch.testing.assert_close(torch.tensor(score(given)), torch.tensor(ours), atol=1e-2, rtol=1e-4)
        return name, peer, ratio(partial(score, given), partial(asked.scores, given), arguments.repetitions)

    name, of_texts = "scoring from left to right", "scoring of texts of 300 to 400 words"
    try:
        peer = is_there("minicons")
        from minicons import scorer

        model = scorer.IncrementalLMScorer(*loaded(models["causal"], "AutoModelForCausalLM"))
        # minicons expects padding on the right.
        model.tokenizer.padding_side = "right"
        score = partial(in_batches, model.sequence_score)
        yield compared(name, peer, "causal", score)
        yield compared(of_texts, peer, "causal", score, texts)
    except ImportError as error:
        yield name, "minicons", str(error)
    try:
        peer = is_there("lm_eval")
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM

        causal, device, tokenizer = loaded(models["causal"], "AutoModelForCausalLM")
        harness = HFLM(causal, tokenizer=tokenizer, device=device, batch_size=32)

        def harness_scores(given: list[str]) -> list[float]:
            requests = [Instance("loglikelihood", {}, ("", text), 0) for text in given]
            return [score for score, _ in harness.loglikelihood(requests, True)]

        yield compared(name, peer, "causal", harness_scores)
        yield compared(of_texts, peer, "causal", harness_scores, texts)
    except ImportError as error:
        yield name, "lm-evaluation-harness", str(error)
    name = "pseudo-log-likelihoods"
    try:
        peer = is_there("minicons", "transformers")
        from minicons import scorer

        masked = scorer.MaskedLMScorer(*loaded(models["masked"], "AutoModelForMaskedLM"))
        if not hasattr(masked.tokenizer, "batch_encode_plus"):
            raise ImportError("minicons calls batch_encode_plus, which transformers 5 does not have")
        score = partial(in_batches, partial(masked.sequence_score, PLL_metric="original"))
        # Use fewer sentences, because each token of each sentence needs a forward pass.
        yield compared(name, peer, "masked", score, sentences[:100])
    except ImportError as error:
        yield name, "minicons", str(error)


def loaded(manifest: Path, name: str) -> tuple[Any, str, Any]:
    """Return the exported model in the folder of a manifest, its device, and its tokenizer. `name` is the class of
    `transformers` that loads the model.
    """
    import transformers

    folder = manifest.parent / "export"
    model = getattr(transformers, name).from_pretrained(folder, trust_remote_code=True)
    return model.eval(), "cpu", transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def in_batches(score: Callable[..., list[float]], sentences: list[str]) -> list[float]:
    """Return the log-likelihood of each sentence: the sum over its tokens. minicons scores 32 sentences per call."""
    found: list[float] = []
    for start in range(0, len(sentences), 32):
        found += score(sentences[start : start + 32], reduction=lambda values: values.sum().item())
    return found


PLAIN = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder = sys.argv[1]
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
ids = tokenizer("The dogs sleep.", return_tensors="pt")["input_ids"]
with torch.no_grad():
    scores = model(ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None])
print(float(scores.sum()))
"""
OURS = """
import sys
sys.path.insert(0, sys.argv[2])
from hatchery.evaluation.asked_model import AskedModel
from hatchery.evaluation.opening import open_model
print(AskedModel(open_model(sys.argv[1])).scores(["The dogs sleep."])["score"][0])
"""


def start_rows(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield the row for a process that loads a model of six layers and scores one sentence."""
    peer = is_there("transformers")
    models, _, _ = made_model(folder, tiny=True)
    causal = models["causal"].parent

    def process(code: str, *given: str) -> None:
        subprocess.run([sys.executable, "-c", code, *given], check=True, capture_output=True)

    ours = partial(process, OURS, str(causal), str(SCRIPTS))
    yield (
        "start of a process that scores",
        f"a plain script, {peer}",
        ratio(partial(process, PLAIN, str(causal / "export")), ours, 1 if arguments.tiny else arguments.repetitions),
    )


def text_rows(arguments: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Yield rows for reading and filtering of the same texts by Hatchery and by datatrove."""
    peer = is_there("datatrove", "orjson").partition(",")[0]
    from peers_text import sides

    for work, theirs, ours in sides(folder.resolve(), 200_000 if arguments.tiny else 16_000_000):
        yield work, peer, ratio(theirs, ours, min(3, arguments.repetitions))


ROWS = {"step": step_rows, "loop": loop_rows, "score": score_rows, "text": text_rows, "start": start_rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, only to test that the programs run")
    arguments = parser.parse_args()
    # Set these variables before the tokenizers and the hub's library read them.
    os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    torch.set_num_threads(1)
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = names[0].partition(": ")[2] if names else platform.processor()
    print(f"{processor}; Python {platform.python_version()}, torch {torch.__version__}; each program has one thread\n")
    print(
        "Each row compares Hatchery with one other tool, or gives the reason why the row has no number.\n\n"
        "| work | other tool | Hatchery's speed / the other tool's speed |\n|---|---|---:|"
    )
    for name in arguments.rows:
        with tempfile.TemporaryDirectory() as folder:
            try:
                for work, peer, found in ROWS[name](arguments, Path(folder)):
                    print(f"| {work} | {peer} | {found if isinstance(found, str) else f'{found:.2f}'} |", flush=True)
            except ImportError as error:
                print(f"| {name} | left out | {error} |", flush=True)


if __name__ == "__main__":
    main()
