"""Hatchery's tokenizer training against the trainers of the library `tokenizers`: processor time, vocabulary, and
quality of encoding.

The comparison covers the two kinds of tokenizers whose library trainer is not deterministic: WordPiece with a prefix,
and Unigram. Hatchery and the library train on the same text. The program prints processor seconds, the number of
entries that both vocabularies contain and, on held-out text, the number of tokens per word and the share of tokens that
are unknown. Every twentieth line of the text is held out. Without `--text`, the text is generated.

    benchmarks/train_tokenizer.py --text FILE [--vocabulary-size 16384] [--kinds wordpiece unigram]
"""

import argparse
import random
import sys
import time
from pathlib import Path

from tokenizers import Tokenizer as Backend
from tokenizers import trainers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.tokenization.documents import training_lines
from hatchery.tokenization.trainer import train, untrained
from hatchery.tokenization.trainer_settings import TokenizerSettings

HELD_OUT_EVERY = 20
GENERATED_LINES = 50_000


def settings_of(kind: str, size: int) -> TokenizerSettings:
    """Return the settings of the WordPiece tokenizer of the experiment `bnc`, or of a Unigram tokenizer as in
    SentencePiece.
    """
    if kind == "wordpiece":
        return TokenizerSettings(
            "wordpiece",
            size,
            0,
            special_tokens="bnc",
            normalizer="ltg_bnc",
            pre_tokenizer="ltg_bnc",
            continuing_subword_prefix="@@",
        )
    return TokenizerSettings(
        "unigram",
        size,
        0,
        special_tokens="roberta",
        normalizer="nmt_nfkc",
        pre_tokenizer="metaspace",
        individual_digits=False,
    )


def library(lines: list[str], settings: TokenizerSettings) -> Backend:
    """Return a tokenizer with these settings that the library `tokenizers` has trained."""
    backend = untrained(settings)
    names = list(settings.special_tokens)
    trainer: trainers.Trainer
    if settings.kind == "wordpiece":
        trainer = trainers.WordPieceTrainer(
            vocab_size=settings.vocabulary_size,
            special_tokens=names,
            continuing_subword_prefix=settings.continuing_subword_prefix,
            show_progress=False,
        )
    else:
        trainer = trainers.UnigramTrainer(
            vocab_size=settings.vocabulary_size,
            special_tokens=names,
            unk_token=settings.special.unknown,
            show_progress=False,
        )
    backend.train_from_iterator(lines, trainer)
    return backend


def generated() -> list[str]:
    """Return lines of Zipf-distributed invented words."""
    rng = random.Random("train_tokenizer")
    syllables = [consonant + vowel for consonant in "bcdfghklmnprstvw" for vowel in ("a", "e", "i", "o", "ou", "an")]
    types = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 4)))) for _ in range(30_000)]
    weights = [1 / (rank + 3) for rank in range(len(types))]
    return [" ".join(rng.choices(types, weights, k=14)) for _ in range(GENERATED_LINES)]


def quality(backend: Backend, unknown: int, lines: list[str]) -> str:
    """Return, as text, tokens per word and the share of unknown tokens in the encoding of held-out lines."""
    encodings = backend.encode_batch_fast(lines, add_special_tokens=False)
    ids = [index for encoding in encodings for index in encoding.ids]
    words = sum(len(line.split()) for line in lines)
    return f"{len(ids) / words:.4f} tokens per word, {100 * ids.count(unknown) / len(ids):.4f} % of the tokens unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, help="plain text, one sentence or paragraph per line")
    parser.add_argument("--vocabulary-size", type=int, default=16_384)
    parser.add_argument("--kinds", nargs="+", choices=["wordpiece", "unigram"], default=["wordpiece", "unigram"])
    arguments = parser.parse_args()
    text = "\n".join(generated()) if arguments.text is None else arguments.text.read_text(encoding="utf-8")
    lines = list(training_lines(text))
    held_out, learned = lines[::HELD_OUT_EVERY], [line for i, line in enumerate(lines) if i % HELD_OUT_EVERY]
    print(f"{sum(len(line.split()) for line in learned):,} training words, {len(held_out):,} lines held out")
    for kind in arguments.kinds:
        settings = settings_of(kind, arguments.vocabulary_size)
        seconds, made = {}, {}
        for name, maker in (("library", library), ("ours", train)):
            started = time.process_time()
            made[name] = maker(learned, settings)
            seconds[name] = time.process_time() - started
        unknown = settings.special.ids[settings.special.unknown]
        for name, backend in made.items():
            measured = quality(backend, unknown, held_out)
            print(
                f"{kind:10}{name:8} vocabulary of {backend.get_vocab_size():,} entries, "
                f"{seconds[name]:.1f} CPU s, {measured}"
            )
        common = len(set(made["ours"].get_vocab()) & set(made["library"].get_vocab()))
        print(
            f"{kind:10}{common:,} entries in both vocabularies; "
            f"our CPU time / library's CPU time: {seconds['ours'] / seconds['library']:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
