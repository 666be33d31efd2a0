"""Speed of the vocabulary filter, end to end: gzip-compressed JSON lines in, Parquet out, in one process.

There are two baselines on the same input. The plain implementation divides every document into sentences (with NLTK's
Punkt) or into spans (windows of words), and then looks up each word in a set; its output must be identical to
Hatchery's. The other baseline is bare decompression and JSON decoding. There are three minimum speeds: for sentences, 5
times the speed of the plain implementation; for spans, 3 times the speed of the plain implementation; and, also for
spans, a third of the speed of bare reading. Speeds are computed from the minimum CPU time of the rounds. The exit code
is 1 below a minimum speed. Usage: benchmarks/select_text.py [--megabytes 32] [--rounds 3] [--reading corrected]
"""

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from nltk.tokenize.punkt import PunktSentenceTokenizer
from web_pages import make_vocabulary, write_pages

from hatchery.artifacts.manifests import stage_run
from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.corpora.sentences import pinned_splitter
from hatchery.raw.registration import register_source
from hatchery.vocabulary.comparison import COMPARISONS, Rule, plain_sentences, plain_spans
from hatchery.vocabulary.items import SCHEMA
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.vocabulary.stages.select_text import select_text
from hatchery.vocabulary.word_lists import read_vocabulary

LIMITS = {"sentences": 5.0, "spans": 3.0}
BARE_LIMIT = 1 / 3
DOCUMENTS_PER_UNIT = 10_000
MINIMUM = {"sentences": 6, "spans": 41}


def plain(pages: Path, vocabulary: Path, level: str, reading: Any, output: Path) -> dict[str, int]:
    """Run the plain implementation, with the rules and output columns of the stage `select_text`; return the number of
    accepted texts, and the numbers of rejected texts by reason.
    """
    rule = Rule(read_vocabulary(vocabulary), COMPARISONS[reading], MINIMUM[level], lower_case=True)
    punkt = PunktSentenceTokenizer(pinned_splitter().model.parameters())
    rows: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    unit = -1
    for path in sorted(pages.iterdir()):
        with gzip.open(path) as handle:
            for index, line in enumerate(handle):
                if index % DOCUMENTS_PER_UNIT == 0:
                    seen: set[str] = set()
                    unit += 1
                text = json.loads(line)["text"]
                if level == "sentences":
                    outcome = plain_sentences(text, rule, punkt.tokenize)
                else:
                    outcome = plain_spans(text, rule, 110, 30)
                counts.update(outcome.rejected)
                for item, counted in outcome.accepted:
                    if item in seen:
                        counts["duplicate"] += 1
                        continue
                    seen.add(item)
                    words = item.count(" ") + 1
                    document = f"{path.name}/{index:08d}"
                    row = {"source": "pages", "document": document, "unit": unit, "text": item}
                    rows.append({**row, "n_words": words, "n_counted": counted})
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), output, compression="zstd")
    return {**counts, "accepted": len(rows)}


def ours(pages: Path, source: Path, vocabulary: Path, level: Any, reading: Any, folder: Path) -> dict[str, int]:
    """Run the stage `select_text` as the workflow does; return the stage's measures, such as the number of accepted
    texts.
    """
    settings = SelectionSettings(
        name=level,
        options=RawTextOptions("json_lines"),
        level=level,
        reading=reading,
        lower_case=True,
        rows_per_shard=1_000_000,
        minimum_counted_words=MINIMUM[level],
        documents_per_unit=DOCUMENTS_PER_UNIT,
    )
    with stage_run(folder / "manifest.json", {}) as run:
        select_text(settings, source, vocabulary, run)
    return run.measures


def bare(pages: Path) -> None:
    """Decompress and decode the JSON lines in the folder `pages`, without filtering them."""
    for path in sorted(pages.iterdir()):
        with gzip.open(path) as handle:
            for line in handle:
                json.loads(line)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=32.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reading", choices=sorted(COMPARISONS), default="corrected")
    arguments = parser.parse_args()
    kept = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = folder / "pages"
        megabytes = write_pages(pages, int(arguments.megabytes * 1e6)) / 1e6
        vocabulary = make_vocabulary(folder)
        source = folder / "pages.json"
        register_source("pages", pages, source)
        # Load the model before the measurement.
        pinned_splitter().punkt  # noqa: B018
        print(
            f"{megabytes:.1f} million characters of text; version of the filter: {arguments.reading}; "
            f"minimum CPU time of {arguments.rounds} rounds\n"
            "bare: only decompression and JSON decoding; plain: plain implementation; ours: Hatchery"
        )
        for level, limit in LIMITS.items():
            times: dict[str, list[float]] = {"bare": [], "plain": [], "ours": []}
            # Alternate the three programs, so that other jobs slow all three equally.
            for _ in range(arguments.rounds):
                times["bare"].append(seconds(lambda: bare(pages))[0])
                work = (pages, source, vocabulary, level, arguments.reading, folder / level)
                spent, found = seconds(lambda work=work: ours(*work))
                times["ours"].append(spent)
                work = (pages, vocabulary, level, arguments.reading, folder / "plain.parquet")
                spent, expected = seconds(lambda work=work: plain(*work))
                times["plain"].append(spent)
            if pq.read_table(folder / "plain.parquet") != pa.concat_tables(
                [pq.read_table(path) for path in sorted((folder / level).glob("items-*.parquet"))]
            ) or any(found[key] != value for key, value in expected.items()):
                print(f"{level}: the output DIFFERS from the output of the plain implementation")
                return 1
            best = {key: min(value) for key, value in times.items()}
            for key in ("bare", "plain", "ours"):
                print(f"{level}: {key:5} {megabytes / best[key]:7.1f} million characters/s ({best[key]:.2f} s)")
            print(
                f"{level}: accepted {found['accepted']:,} of {found['candidates']:,} candidates; "
                "Hatchery's output equals the output of the plain implementation"
            )
            ratio = best["plain"] / best["ours"]
            kept &= ratio >= limit
            print(
                f"{level}: our speed / speed of the plain implementation {ratio:.1f}, minimum {limit}: "
                f"{'reached' if ratio >= limit else 'MISSED'}"
            )
            share = best["bare"] / best["ours"]
            if level == "spans":
                kept &= share >= BARE_LIMIT
                verdict = f", minimum {BARE_LIMIT:.2f}: {'reached' if share >= BARE_LIMIT else 'MISSED'}"
            else:
                verdict = ""
            print(f"{level}: our speed / speed of bare reading {share:.2f}{verdict}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
