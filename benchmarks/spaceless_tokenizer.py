"""Memory and processor time of the training of a tokenizer, mainly on text without spaces, and the number of pieces per
character that the trained tokenizer produces.

The text is generated: 60,000 words of 1 to 4 characters of a script, drawn by Zipf's law, with a punctuation mark after
about six words. The trained tokenizer then encodes another 1 MB of generated text. With `--text`, a folder of text
files replaces the generated text: every tenth file is encoded, and the tokenizer learns from the other files. Stages of
the workflow convert the corpus and train the tokenizer. The training runs in a separate process, whose peak memory is
measured.

    python benchmarks/spaceless_tokenizer.py [--megabytes 100] [--script chinese] [--kinds byte_bpe] [--distinct 5]
    python benchmarks/spaceless_tokenizer.py --text FOLDER [--kinds byte_bpe unigram wordpiece] [--vocabulary-size 8192]
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import numpy as np
from peak_memory import peak_memory
from tokenizers import Tokenizer as Backend

from hatchery.artifacts.manifests import stage_run
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.raw.registration import register_source
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.typed import build

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
# First character, number of characters, marks after a clause, and the lengths of words with their shares.
TEXTS = {
    "chinese": (0x4E00, 5000, "，，。", {1: 0.35, 2: 0.5, 3: 0.1, 4: 0.05}),
    "japanese": (0x3041, 86, "、、。", {1: 0.2, 2: 0.3, 3: 0.3, 4: 0.2}),
    "thai": (0x0E01, 46, "  \n", {2: 0.2, 3: 0.3, 4: 0.3, 5: 0.2}),
}
WORDS = 60_000
UNKNOWN = {known.unknown for known in SPECIAL_SETS.values()}
KINDS = {
    "byte_bpe": {"special_tokens": "gpt_bert", "normalizer": "gpt_bert", "pre_tokenizer": "gpt_bert"},
    "unigram": {
        "special_tokens": "roberta", "normalizer": "nmt_nfkc", "pre_tokenizer": "metaspace", "individual_digits": False,
    },
    "wordpiece": {"special_tokens": "babylm", "normalizer": "nmt_nfkc"},
}  # fmt: skip


def zipf(count: int) -> np.ndarray:
    """Return the cumulative probabilities of ranks by Zipf's law."""
    weights = 1 / (np.arange(count) + 2.7)
    cumulative: np.ndarray = np.cumsum(weights / weights.sum())
    return cumulative


def drawn(draw: np.random.Generator, cumulative: np.ndarray, count: int) -> np.ndarray:
    """Return `count` ranks, drawn at random; `cumulative` contains the cumulative probabilities of the ranks."""
    return np.minimum(np.searchsorted(cumulative, draw.random(count)), len(cumulative) - 1)


def text(script: str, seed: int, size: int) -> Iterator[str]:
    """Yield paragraphs of about `size` bytes (UTF-8) in total; the words do not depend on `seed`."""
    first, characters, marks, shares = TEXTS[script]
    lexicon = np.random.default_rng(0)
    lengths = lexicon.choice(list(shares), WORDS, p=list(shares.values()))
    spelled = iter(drawn(lexicon, zipf(characters), int(lengths.sum())).tolist())
    words = ["".join(chr(first + next(spelled)) for _ in range(length)) for length in lengths]
    draw, ranks = np.random.default_rng([1, seed]), zipf(WORDS)
    written = 0
    while written < size:
        chosen = drawn(draw, ranks, 400).tolist()
        ends = (draw.random(400) < 1 / 6).tolist()
        kinds = draw.integers(len(marks), size=400).tolist()
        paragraph = "".join(
            words[word] + (marks[kind] if end else "") for word, end, kind in zip(chosen, ends, kinds, strict=True)
        )
        written += len(paragraph.encode()) + 1
        yield paragraph + "\n"


def texts(arguments: argparse.Namespace) -> tuple[Iterator[str], list[str]]:
    """Return the text that the tokenizer learns from, and the paragraphs that are encoded afterwards."""
    if arguments.text is None:
        learned = text(arguments.script, 0, int(1e6 * arguments.megabytes))
        return learned, list(text(arguments.script, 1, 1_000_000))
    files = sorted(arguments.text.glob("*.txt"))
    encoded = files[::10]
    other = [line for path in encoded for line in path.read_text(encoding="utf-8").splitlines()]
    return (path.read_text(encoding="utf-8") for path in files if path not in encoded), other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--script", choices=TEXTS, default="chinese")
    parser.add_argument("--text", type=Path, help="folder of text files (UTF-8) instead of generated text")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["byte_bpe"])
    parser.add_argument("--vocabulary-size", type=int, default=16_384)
    parser.add_argument(
        "--distinct",
        type=float,
        nargs="+",
        default=[5.0],
        help="values of the setting `spaceless_megabytes` to measure",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text").mkdir()
        learned, other = texts(arguments)
        with (folder / "text/text.txt").open("w", encoding="utf-8") as handle:
            handle.writelines(learned)
        register_source("text", folder / "text", folder / "text.json")
        source = {"name": "text", "reader": "plain_text", "options": {"sentences": "line", "cleaning": "none"}}
        settings = build(ConvertSettings, {"sources": [source]}, "corpus")
        corpus = folder / "corpus/manifest.json"
        with stage_run(corpus, {}) as run:
            convert_corpus(settings, {"text": folder / "text.json"}, run)
        for kind in arguments.kinds:
            for distinct in arguments.distinct:
                output = folder / f"{kind}-{distinct}/manifest.json"
                chosen = {
                    "stage": "learn_tokenizer", "kind": kind, "vocabulary_size": arguments.vocabulary_size,
                    "spaceless_megabytes": distinct, "allow_smaller": True, **KINDS[kind],
                }  # fmt: skip
                call = json.dumps({"settings": chosen, "output": str(output), "corpus": [str(corpus)]})
                command = [sys.executable, str(SCRIPTS / "run.py"), "train_tokenizer", call]
                memory, seconds = peak_memory(command, {**os.environ, "TOKENIZERS_PARALLELISM": "false"})
                backend = Backend.from_file(str(output.with_name("tokenizer.json")))
                encodings = backend.encode_batch_fast(other, add_special_tokens=False)
                ids = [token for encoding in encodings for token in encoding.ids]
                pieces = len(ids) / sum(map(len, other))
                unknown = sum(token in UNKNOWN for token in map(backend.id_to_token, ids)) / len(ids)
                print(
                    f"{arguments.text.name if arguments.text else arguments.script} "
                    f"{(folder / 'text/text.txt').stat().st_size / 1e6:.2f} MB, {kind}, "
                    f"spaceless_megabytes {distinct:g}, "
                    f"{backend.get_vocab_size():,} entries: peak memory {memory:,.0f} MB, {seconds:,.0f} CPU s, "
                    f"{pieces:.4f} pieces per character, share of unknown pieces {unknown:.4f}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
