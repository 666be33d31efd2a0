"""Self-paced reading times of texts in the generated language: one row per word and reader.

Longer and rarer words have longer reading times, so the surprisal of a model can predict the times. Readers differ in
their speed and in the effect of rarity, and some times are missing.
"""

import csv
import io
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from demo.grammar import text_of
from demo.rows import Pair

READERS, TEXTS, SENTENCES = 6, 12, 3
COLUMNS = ("participant", "item", "sentence", "position", "word", "rt")
_MISSING_EVERY = 41


def reading_files(pairs: Mapping[str, Sequence[Pair]], seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the table of reading times.

    `pairs` contains the minimal pairs of each paradigm, and the sentences of the table are good sentences of these
    pairs.
    """
    drawn = random.Random(f"{seed}/reading_times")
    every = sorted({text_of(pair.good) for found in pairs.values() for pair in found})
    counts = Counter(word for text in every for word in text.split())
    sentences = drawn.sample(every, min(TEXTS * SENTENCES, len(every)))
    texts = [sentences[first : first + SENTENCES] for first in range(0, len(sentences), SENTENCES)]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    number = 0
    for reader in range(1, READERS + 1):
        speed, slowed = drawn.gauss(320, 30), drawn.gauss(12, 3)
        for item, text in enumerate(texts, start=1):
            words = [(place, word) for place, sentence in enumerate(text, start=1) for word in sentence.split()]
            for position, (sentence, word) in enumerate(words, start=1):
                rarity = -math.log10(counts[word] / counts.total())
                time = round(speed + 8 * len(word) + slowed * rarity + drawn.gauss(0, 40), 1)
                number += 1
                cell = "NA" if number % _MISSING_EVERY == 0 else time
                writer.writerow([f"r{reader}", item, sentence, position, word, cell])
    yield "self_paced.csv", written.getvalue().encode()
