"""Gaze durations of readers for texts of the generated languages, with the columns of MECO (docs/reading_times.md,
"MECO").

Longer and rarer words have longer first-pass durations, by amounts that differ between readers. Some durations are
missing.
"""

import csv
import io
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from demo.grammar import text_of
from demo.multilingual import LANGUAGES
from demo.rows import Pair

READERS, ITEMS, SENTENCES = 5, 6, 4
CODES = {"en": "en", "nl": "du", "zh": "ch_s"}
"""MECO's codes of the languages, by Hatchery's codes."""
COLUMNS = ("lang", "subid", "itemid", "sentnum", "wordnum", "word", "firstrun.dur", "freq")
_MISSING_EVERY = 37


def meco_files(pairs: Mapping[str, Sequence[Pair]], seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of two tables: L1 (reading in the first language) with three languages, and L2, with
    English texts for Dutch and Chinese readers.
    """
    every = sorted({text_of(pair.good) for found in pairs.values() for pair in found})
    first = {code: code for code in LANGUAGES}
    for name, texts in (("l1", first), ("l2", {"nl": "en", "zh": "en"})):
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(COLUMNS)
        for readers, language in texts.items():
            writer.writerows(_rows(every, readers, language, random.Random(f"{seed}/meco/{name}/{readers}")))
        yield f"meco_{name}.csv", written.getvalue().encode()


def _rows(every: Sequence[str], readers: str, language: str, drawn: random.Random) -> Iterator[tuple[object, ...]]:
    """Yield table rows with the gaze durations of readers for texts in `language`. The texts are drawn from the
    sentences `every`.

    `readers` is the first language of the readers.
    """
    spelled = LANGUAGES[language]
    counts = Counter(spelled(word) for text in every for word in text.split())
    sentences = drawn.sample(every, min(ITEMS * SENTENCES, len(every)))
    number = 0
    for reader in range(1, READERS + 1):
        speed, per_letter, per_rarity = drawn.gauss(210, 20), drawn.gauss(9, 3), drawn.gauss(14, 5)
        for start in range(0, len(sentences), SENTENCES):
            item = sentences[start : start + SENTENCES]
            words = [(place, spelled(word)) for place, text in enumerate(item, start=1) for word in text.split()]
            for position, (sentence, word) in enumerate(words, start=1):
                zipf = round(math.log10(counts[word] / counts.total()) + 9, 2)
                time = round(speed + per_letter * len(word) + per_rarity * (9 - zipf) + drawn.gauss(0, 30))
                number += 1
                cell = "NA" if number % _MISSING_EVERY == 0 else time
                subject = f"{CODES[readers]}_{reader}"
                yield (CODES[readers], subject, start // SENTENCES + 1, sentence, position, word, cell, zipf)
