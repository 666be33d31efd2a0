"""How fast sentences are split beside the bare NLTK tokenizer with the same model, on generated or given text.

Baseline: `PunktSentenceTokenizer.tokenize` of every paragraph, nothing else. Ours: `SentenceSplitter.split`, which also
collapses white space. The limit: at least 1.5 times the baseline in CPU time, with the same sentences under
`as_published`. Usage: benchmarks/split_sentences.py [--text FILE] [--megabytes 3] [--rounds 3]; exit code 1 below it.
"""

import argparse
import random
import sys
import time
from pathlib import Path

from nltk.tokenize.punkt import PunktSentenceTokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.corpora.sentences import pinned_splitter

LIMIT = 1.5


def generated_paragraphs(megabytes: float) -> list[str]:
    """Paragraphs of one to eight sentences of the model's own words, with titles, initials, numbers and quotes."""
    rng = random.Random(0)
    words = sorted(word for word in pinned_splitter().model.contexts if word.isascii() and word.isalpha())
    special = ("Mr. Alder", "J. R. Finch", "3.5", "No. 5", "e.g. bread", "p.m.", '"Well!"', "(why?)", "...")
    paragraphs, characters = [], 0
    while characters < megabytes * 1e6:
        sentences = []
        for _ in range(rng.randint(1, 8)):
            chosen = rng.choices(words, k=rng.randint(5, 25))
            if rng.random() < 0.2:
                chosen[rng.randrange(len(chosen))] = rng.choice(special)
            sentences.append(" ".join(chosen).capitalize() + rng.choice((".", ".", ".", ".", "?", "!", '."')))
        paragraphs.append(" ".join(sentences))
        characters += len(paragraphs[-1])
    return paragraphs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, help="UTF-8 file, a paragraph per line, instead of generated text")
    parser.add_argument("--megabytes", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3, help="the best round of each counts")
    arguments = parser.parse_args()
    if arguments.text:
        paragraphs = [line for line in arguments.text.read_text(encoding="utf-8").split("\n") if line.strip()]
    else:
        paragraphs = generated_paragraphs(arguments.megabytes)
    megabytes = sum(len(paragraph.encode()) for paragraph in paragraphs) / 1e6
    published, corrected = pinned_splitter("as_published"), pinned_splitter()
    bare = PunktSentenceTokenizer(published.model.parameters())
    seconds: dict[str, list[float]] = {"bare NLTK": [], "as_published": [], "corrected": []}
    work = {"bare NLTK": bare.tokenize, "as_published": published.split, "corrected": corrected.split}
    found = {}
    # They alternate, so that a neighbour on the machine slows all.
    for _ in range(arguments.rounds):
        for name, split in work.items():
            started = time.process_time()
            found[name] = [split(paragraph) for paragraph in paragraphs]
            seconds[name].append(time.process_time() - started)
    expected = [[" ".join(piece.split()) for piece in pieces if piece.strip()] for pieces in found["bare NLTK"]]
    same = expected == found["as_published"]
    print(f"{len(paragraphs):,} paragraphs, {megabytes:.1f} MB, {sum(map(len, expected)):,} sentences")
    print(f"best of {arguments.rounds} rounds, CPU time of one process")
    for name, times in seconds.items():
        print(f"{name:13} {megabytes / min(times):6.1f} MB/s ({min(times):.2f} s)")
    ratio = min(seconds["bare NLTK"]) / min(seconds["corrected"])
    print(f"sentences under as_published {'the same' if same else 'DIFFER'}")
    print(f"ratio {ratio:.2f}, limit {LIMIT}: {'kept' if ratio >= LIMIT else 'MISSED'}")
    return 0 if same and ratio >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
