"""Number of code lines and processor seconds of programs that a user writes with Hatchery and with other tools.

- scores of minimal pairs of BLiMP, of a causal and of a masked model: lm-evaluation-harness, minicons;
- the surprisal of each word of 1,000 sentences: minicons;
- a model trained and evaluated on the user's own text: `transformers`' Trainer.

Each program runs in a separate process with one thread, and its time includes its imports. Programs with the same
purpose alternate for `--rounds` rounds, and the table contains the minimum of the times. The models are a GPT-2 and a
BERT of `transformers` with random weights, because scores are only compared with each other. Programs with the same
purpose must print equal numbers, except for trainings, whose initial weights differ. Nothing is installed: if a program
lacks its packages, the table contains its error instead of a number. `PYTHONPATH=.tools` contains the packages of `make
test-tools`, and `--transformers-4` names the folder with version 4 of transformers, which minicons' masked scorer
needs. docs/performance.md has a table of the results.

    PYTHONPATH=.tools python benchmarks/doors.py --blimp blimp.zip --transformers-4 .transformers-4 [--tiny]
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from processor_time import seconds

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
SENTENCES, TEXT, HELD_OUT = "sentences.txt", "own.txt", "held_out.txt"


class Program(NamedTuple):
    """A program as a user writes it, which runs in a folder with the models and data; its last output is a number."""

    tool: str
    text: str
    needs_version_4: bool = False
    """True if the program fails with version 5 of transformers."""


OURS_BLIMP = """
import hatchery
found = hatchery.evaluate("{model}", "blimp", "blimp", expected=None)
print(found.summary.filter(task="paradigm_average")["value"][0])
"""
MINICONS_BLIMP = """
import json
from pathlib import Path
from minicons import scorer
model = scorer.{scorer}("{model}", "cpu")
pairs = [json.loads(line) for path in sorted(Path("blimp").glob("*.jsonl")) for line in path.open()]
def scores(key, found=()):
    texts = [pair[key] for pair in pairs]
    for start in range(0, len(texts), 32):
        found += tuple(model.sequence_score(texts[start : start + 32], reduction=lambda x: x.sum().item(), {options}))
    return found
good, bad = scores("sentence_good"), scores("sentence_bad")
print(100 * sum(one > other for one, other in zip(good, bad)) / len(pairs))
"""
HARNESS_BLIMP = """
from lm_eval import simple_evaluate
task = {"task": "pairs", "dataset_path": "json", "dataset_kwargs": {"data_files": "pairs.jsonl"},
        "output_type": "multiple_choice", "validation_split": "train", "doc_to_text": "", "doc_to_target": 0,
        "doc_to_choice": "{{[sentence_good, sentence_bad]}}", "target_delimiter": "",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]}
found = simple_evaluate("hf", model_args="pretrained=gpt2", tasks=[task], batch_size=32, device="cpu")
print(100 * found["results"]["pairs"]["acc,none"])
"""
OURS_WORDS = """
from pathlib import Path
import hatchery
words = hatchery.surprisals("gpt2", Path("sentences.txt"))
words.write_csv("words.csv")
print(words["surprisal"].sum())
"""
MINICONS_WORDS = """
import csv
from pathlib import Path
from minicons import scorer
model = scorer.IncrementalLMScorer("gpt2", "cpu")
sentences, total = Path("sentences.txt").read_text().splitlines(), 0.0
with open("words.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["sentence", "position", "word", "surprisal"])
    for start in range(0, len(sentences), 32):
        batch = sentences[start : start + 32]
        scored = model.word_score_tokenized(batch, str.split, bos_token=True, surprisal=True, base_two=True)
        for number, words in enumerate(scored, start + 1):
            writer.writerows((number, place, *word) for place, word in enumerate(words, 1))
            total += sum(surprisal for _, surprisal in words)
print(total)
"""
OURS_TRAINING = """
import hatchery
model = {"hidden_size": 128, "intermediate_size": 344, "num_hidden_layers": 4, "num_attention_heads": 4}
made = hatchery.train("own.txt", "made", model, steps={steps}, batch_size=32, sequence_length=64,
                      tokenizer={"kind": "byte_bpe", "vocabulary_size": 2048, "allow_smaller": True},
                      objective={"task": "causal"})
print(hatchery.evaluate(made, [("The name is bound.", "The name are bound.")]).summary["value"][0])
print(hatchery.evaluate(made, "perplexity", "held_out.txt", sequence_length=64).rows["value"][0])
"""
TRAINER_TRAINING = """
from pathlib import Path
import torch
from datasets import Dataset
from tokenizers import ByteLevelBPETokenizer
from transformers import (DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast,
                          Trainer, TrainingArguments)
learnt = ByteLevelBPETokenizer()
learnt.train("own.txt", vocab_size=2048, special_tokens=["<s>", "<pad>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=learnt._tokenizer, bos_token="<s>", eos_token="<s>",
                                    pad_token="<pad>")
def blocks(file):
    ids = tokenizer("<s>".join(Path(file).read_text().split("\\n\\n")))["input_ids"]
    return Dataset.from_dict({"input_ids": [ids[i : i + 64] for i in range(0, len(ids), 64)]})
torch.manual_seed(42)
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_embd=128, n_layer=4, n_head=4, n_inner=516,
                                   n_positions=64))
arguments = TrainingArguments("made_by_trainer", max_steps={steps}, per_device_train_batch_size=32, report_to=[],
                              learning_rate=2e-3, warmup_steps=3, lr_scheduler_type="cosine", use_cpu=True)
trainer = Trainer(model, arguments, train_dataset=blocks("own.txt"), eval_dataset=blocks("held_out.txt"),
                  data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False))
trainer.train()
trainer.save_model()
tokenizer.save_pretrained("made_by_trainer")
model.eval()
def score(text):
    ids = tokenizer("<s>" + text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(ids).logits.log_softmax(-1)
    return logits[0, :-1].gather(1, ids[0, 1:, None]).sum().item()
print(100 * (score("The name is bound.") > score("The name are bound.")))
print(trainer.evaluate()["eval_loss"])
"""


def works(steps: int) -> dict[str, list[Program]]:
    """Return programs by purpose; in each list, Hatchery's program is first. Programs that train a model run `steps`
    training steps.
    """
    causal = MINICONS_BLIMP.replace("{scorer}", "IncrementalLMScorer").replace("{options}", "bos_token=True")
    masked = MINICONS_BLIMP.replace("{scorer}", "MaskedLMScorer").replace("{options}", 'PLL_metric="original"')
    return {
        "minimal pairs, causal": [
            Program("hatchery", OURS_BLIMP.replace("{model}", "gpt2")),
            Program("lm-evaluation-harness", HARNESS_BLIMP),
            Program("minicons", causal.replace("{model}", "gpt2")),
        ],
        "minimal pairs, masked": [
            Program("hatchery", OURS_BLIMP.replace("{model}", "bert")),
            Program("minicons", masked.replace("{model}", "bert"), needs_version_4=True),
        ],
        "surprisal of the words of 1,000 sentences": [
            Program("hatchery", OURS_WORDS),
            Program("minicons", MINICONS_WORDS),
        ],
        "train and evaluate on own text": [
            Program("hatchery", OURS_TRAINING.replace("{steps}", str(steps))),
            Program("transformers' Trainer", TRAINER_TRAINING.replace("{steps}", str(steps))),
        ],
    }


def prepare(folder: Path, blimp: Path, pairs: int, tiny: bool) -> None:
    """Write models, the first `pairs` pairs of each paradigm, sentences and texts into `folder`."""
    from pydoc_data.topics import topics

    sentences, both = list[str](), list[dict[str, str]]()
    (folder / "blimp").mkdir()
    with zipfile.ZipFile(blimp) as archive:
        for name in [one for one in archive.namelist() if one.endswith(".jsonl")]:
            lines = archive.read(name).decode("utf-8").splitlines()
            (folder / "blimp" / Path(name).name).write_text("\n".join(lines[:pairs]) + "\n", encoding="utf-8")
            sentences += [json.loads(line)["sentence_good"] for line in lines[-15:]]
            # Give all rows the same keys, because lm-evaluation-harness reads all rows as one table.
            both += [
                {key: json.loads(line)[key] for key in ("sentence_good", "sentence_bad")} for line in lines[:pairs]
            ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in both), encoding="utf-8")
    (folder / SENTENCES).write_text("\n".join(sentences[: 20 if tiny else 1000]) + "\n", encoding="utf-8")
    texts = [topics[name] for name in sorted(topics)]
    (folder / TEXT).write_text("\n\n".join(texts[:8] if tiny else texts[:40]), encoding="utf-8")
    (folder / HELD_OUT).write_text("\n\n".join(texts[-4:]), encoding="utf-8")
    save_models(folder, sentences, tiny)


def save_models(folder: Path, sentences: list[str], tiny: bool) -> None:
    """Save a GPT-2 and a BERT of `transformers` with random weights, and tokenizers that are trained on `sentences`."""
    import torch
    import transformers
    from tokenizers import ByteLevelBPETokenizer
    from tokenizers.implementations import BertWordPieceTokenizer
    from tokenizers.processors import BertProcessing

    width, layers = (32, 1) if tiny else (256, 6)
    byte_level = ByteLevelBPETokenizer()
    byte_level.train_from_iterator(sentences, vocab_size=4096, special_tokens=["<|endoftext|>"])
    end = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>")
    pieces = BertWordPieceTokenizer(lowercase=False)
    pieces.train_from_iterator(sentences, vocab_size=4096)
    # Create the tokenizer with a vocabulary, because otherwise its class does not add BERT's template.
    ends = [(name, pieces.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    pieces._tokenizer.post_processor = BertProcessing(*ends)
    torch.manual_seed(1)
    causal = transformers.GPT2Config(vocab_size=4096, n_embd=width, n_layer=layers, n_head=4, n_positions=128)
    masked = transformers.BertConfig(
        vocab_size=4096, hidden_size=width, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=4 * width
    )
    fast = transformers.PreTrainedTokenizerFast
    transformers.GPT2LMHeadModel(causal).save_pretrained(folder / "gpt2")
    fast(tokenizer_object=byte_level._tokenizer, **end).save_pretrained(folder / "gpt2")
    transformers.BertForMaskedLM(masked).save_pretrained(folder / "bert")
    roles = {f"{name.lower()}_token": f"[{name}]" for name in ("CLS", "SEP", "MASK", "PAD", "UNK")}
    fast(tokenizer_object=pieces._tokenizer, **roles).save_pretrained(folder / "bert")
    for path in folder.glob("*/tokenizer_config.json"):
        # Write a class name that versions 4 and 5 of transformers can read: version 4 cannot read the name that version
        # 5 writes.
        settings = json.loads(path.read_text(encoding="utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast"}
        path.write_text(json.dumps(settings), encoding="utf-8")


def run(program: Program, folder: Path, version_4: Path | None) -> tuple[float, float] | str:
    """Return the processor seconds of the program and the last number that it prints, or the last line of its error."""
    given = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if program.needs_version_4 and version_4 is not None:
        given.insert(0, str(version_4))
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPTS), *given])}
    for made in folder.glob("made*"):
        # Delete the models of the earlier round, so that the program does not use them again.
        shutil.rmtree(made)
    began = seconds()
    done = subprocess.run(
        [sys.executable, "-c", program.text], cwd=folder, env=surroundings, capture_output=True, text=True
    )
    took = seconds() - began
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return took, float(done.stdout.strip().splitlines()[-1])


def lines_of(program: Program) -> int:
    """Return the number of non-empty lines of a program."""
    return sum(bool(line.strip()) for line in program.text.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blimp", type=Path, required=True, help="archive of BLiMP, with its 67 files")
    parser.add_argument("--pairs", type=int, default=3, help="number of minimal pairs per paradigm of BLiMP")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--work", default="", help="run only the kinds of work whose name contains this text")
    parser.add_argument("--transformers-4", type=Path, help="folder with version 4 of the package transformers")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, only to test that the programs run")
    arguments = parser.parse_args()
    os.environ.update(RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    print(f"{platform.processor() or platform.machine()}; Python {platform.python_version()}; one thread each\n")
    print(
        "Each row is one program, which does the work with the tool and prints a number.\n\n"
        "| work | tool | lines of code | processor seconds | seconds / Hatchery's seconds | printed number or error |\n"
        "|---|---|---:|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, arguments.blimp.resolve(), 1 if arguments.tiny else arguments.pairs, arguments.tiny)
        for work, programs in works(2 if arguments.tiny else arguments.steps).items():
            if arguments.work not in work:
                continue
            version_4 = arguments.transformers_4 and arguments.transformers_4.resolve()
            found = [[run(program, folder, version_4) for program in programs] for _ in range(arguments.rounds)]
            ours = 0.0
            for program, results in zip(programs, zip(*found, strict=True), strict=True):
                count, errors = lines_of(program), [one for one in results if isinstance(one, str)]
                if errors:
                    print(f"| {work} | {program.tool} | {count} | - | - | {errors[0]} |", flush=True)
                    continue
                took, number = min(one for one in results if not isinstance(one, str))
                ours = ours or took
                row = f"| {work} | {program.tool} | {count} | {took:.1f} | {took / ours:.2f} | {number:.4f} |"
                print(row, flush=True)


if __name__ == "__main__":
    main()
