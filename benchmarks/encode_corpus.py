"""How fast the encoding stage is beside the bare tokenizers library, on generated text.

Baseline: `Tokenizer.encode_batch` over the same sentences with the same threads, ids discarded. Ours: the whole stage,
from Parquet documents to Arrow shards with word starts, counts and checksums. The limit: at least 0.8 of the
baseline. Usage: benchmarks/encode_corpus.py [--words 1000000] [--threads N] [--rounds 3]; exit code 1 below the limit.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.runner import run_stage
from hatchery.tokenization.documents import read_batches, split_sentences
from hatchery.tokenization.encoder import SENTENCES_PER_CALL
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.tokenizer_file import load_tokenizer, use_threads

LIMIT = 0.8
SENTENCES_PER_DOCUMENT = 40
WORD_TYPES = 30_000
VOCABULARY_SIZE = 8192


def write_documents(folder: Path, words: int) -> Path:
    """Documents of Zipf-distributed invented words, sentences of 4 to 30 words, some numbers and punctuation."""
    rng = random.Random(0)
    syllables = [consonant + vowel for consonant in "bcdfghklmnprstvw" for vowel in ("a", "e", "i", "o", "ou", "an")]
    types = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 4)))) for _ in range(WORD_TYPES)]
    weights = [1 / (rank + 3) for rank in range(WORD_TYPES)]
    schema = pa.schema([("doc_id", pa.string()), ("source", pa.string()), ("text", pa.string())])
    written = 0
    with stage_run(folder / "manifest.json", {"stage": "convert_corpus"}) as run:
        with ShardWriter(folder, "train", schema, 500) as writer:
            while written < words:
                sentences = []
                for _ in range(SENTENCES_PER_DOCUMENT):
                    length = rng.randint(4, 30)
                    written += length
                    chosen = rng.choices(types, weights, k=length)
                    if rng.random() < 0.1:
                        chosen[0] = str(rng.randint(1, 2000))
                    sentences.append(", ".join((" ".join(chosen[:3]), " ".join(chosen[3:]))).capitalize() + ".")
                writer.write({"doc_id": str(writer.rows), "source": "generated", "text": "\n".join(sentences)})
        for path in writer.paths:
            run.add_output(path)
    return folder / "manifest.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3, help="the best round of each counts")
    arguments = parser.parse_args()
    use_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = write_documents(folder / "corpus", arguments.words)
        tokenizer = folder / "tokenizer" / "manifest.json"
        training = {"kind": "wordpiece", "vocabulary_size": VOCABULARY_SIZE, "min_frequency": 10}
        run_stage(train_tokenizer, {**training, "special_tokens": "babylm"}, tokenizer, corpus=[corpus])
        texts = [
            text
            for path in read_manifest(corpus).files(".parquet")
            for batch in read_batches(path, 256)
            for text in batch.texts
        ]
        sentences = [sentence for text in texts for sentence in split_sentences(text)[0]]
        backend = load_tokenizer(tokenizer.parent / "tokenizer.json").backend
        bare, ours = [], []
        # The two alternate, so that a neighbour on the machine slows both.
        for _ in range(arguments.rounds):
            started = time.perf_counter()
            for start in range(0, len(sentences), SENTENCES_PER_CALL):
                backend.encode_batch(sentences[start : start + SENTENCES_PER_CALL], add_special_tokens=False)
            bare.append(time.perf_counter() - started)
            started = time.perf_counter()
            run_stage(
                encode_corpus,
                {},
                folder / "tokens" / "manifest.json",
                corpus=corpus,
                tokenizer=tokenizer,
            )
            ours.append(time.perf_counter() - started)
        counts = read_manifest(folder / "tokens" / "manifest.json").measures["splits"]["train"]
    ratio = min(bare) / min(ours)
    print(f"{counts['sentences']:,} sentences, {counts['words']:,} words, {counts['tokens']:,} tokens")
    print(f"{arguments.threads} threads, best of {arguments.rounds} rounds")
    print(f"bare encode_batch: {counts['tokens'] / min(bare):,.0f} tokens/s ({min(bare):.2f} s)")
    print(f"encoding stage:    {counts['tokens'] / min(ours):,.0f} tokens/s ({min(ours):.2f} s)")
    print(f"ratio {ratio:.2f}, limit {LIMIT}: {'kept' if ratio >= LIMIT else 'MISSED'}")
    return 0 if ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
