"""Reading times, and ages at which children learn words, for the generated language, in the layout of BabyLM's files.

A longer or rarer word has a longer reading time, and children say frequent words earlier. Therefore a model's surprisal
can predict these data.
"""

import csv
import io
import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from demo.grammar import text_of
from demo.rows import Pair

SENTENCES, WORDS, CONTEXTS = 40, 12, 4
MONTHS = range(16, 31)
TIMES = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound", "self_paced_reading_time")
COLUMNS = (
    *("item", "word", "prev_item", "prev_word", "Subtlex_log10", "length", "context_length", "prev_length"),
    *TIMES,
)


def human_files(pairs: Mapping[str, Sequence[Pair]], seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of the files with reading times of words, and with ages of acquisition.

    The sentences are good sentences of `pairs`, the minimal pairs by paradigm.
    """
    drawn = random.Random(f"{seed}/babylm_evaluation/human")
    every = sorted({text_of(pair.good) for found in pairs.values() for pair in found})
    sentences = [text.split() for text in drawn.sample(every, min(SENTENCES, len(every)))]
    counts = Counter(word for text in every for word in text.split())
    reading = _table(COLUMNS, _read(sentences, counts, drawn))
    for part in ("full_eval", "fast_eval"):
        yield f"{part}/reading/reading_data.csv", reading
    learnt = [word for word, _ in counts.most_common() if word.isalpha() and word.islower() and len(word) > 2][:WORDS]
    contexts: dict[str, list[dict[str, object]]] = {word: [] for word in learnt}
    for words in sentences:
        for place, word in enumerate(words):
            context: dict[str, object] = {"context": " ".join(words[:place])}
            found = contexts.get(word)
            if place and found is not None and len(found) < CONTEXTS and context not in found:
                found.append(context)
    yield "full_eval/aoa/cdi_childes.json", (json.dumps(contexts, indent=1) + "\n").encode()
    yield "full_eval/aoa/cdi_human.csv", _table(("word", *map(str, MONTHS)), _children(learnt, counts, drawn))


def _read(
    sentences: Sequence[Sequence[str]], counts: Mapping[str, int], drawn: random.Random
) -> Iterator[list[object]]:
    for words in sentences:
        for place in range(1, len(words)):
            word, frequency = words[place], round(math.log10(1 + 1000 * counts[words[place]]), 3)
            before = [" ".join(words[: place - 1]), words[place - 1]] if place > 1 else ["", ""]
            times = [round(150 + 12 * len(word) - 10 * frequency + drawn.gauss(0, 20), 3) for _ in TIMES]
            numbers = [frequency, len(word), place, len(before[1]) or ""]
            yield [" ".join(words[:place]), word, *before, *numbers, *times]


def _children(words: Sequence[str], counts: Mapping[str, int], drawn: random.Random) -> Iterator[list[object]]:
    for word in words:
        middle = 26 - 2 * math.log2(1 + counts[word] / (1 + min(counts[one] for one in words))) + drawn.gauss(0, 1)
        yield [word, *(round(1 / (1 + math.exp(-0.5 * (month - middle))), 4) for month in MONTHS)]


def _table(columns: Sequence[str], rows: Iterator[list[object]]) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return written.getvalue().encode()
