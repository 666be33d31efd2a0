"""Whether the memory of conversion and vocabulary filter stays flat as their input grows tenfold.

The conversion and each selection run in a process of their own on one file of compressed JSON lines and on one of ten
times its size; the largest resident memory of the second may exceed that of the first by a tenth at most. Exit code 1
above that. Much less than 100 MB would not fill the buffers and the remembered words, whose sizes are bounded.
Usage: benchmarks/corpus_memory.py [--megabytes 100]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from web_pages import make_vocabulary, write_pages

from hatchery.artifacts.manifests import StageRun, stage_run
from hatchery.corpora.raw_texts import RawTextOptions
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.raw.registration import register_source
from hatchery.typed import build
from hatchery.vocabulary.settings import SelectionSettings
from hatchery.vocabulary.stages.select_text import select_text

LIMIT = 1.1
GROWTH = 10
SELECTIONS: dict[str, dict[str, Any]] = {
    "sentences": {"minimum_counted_words": 6, "documents_per_unit": 1000},
    "sentences, one save unit": {"minimum_counted_words": 6},
    "spans": {"minimum_counted_words": 41, "documents_per_unit": 1000},
    "windows": {"windows_per_text": 4},
    "windows, one text": {"documents_per_text": None, "windows_per_text": 2000},
}
CONVERSION = "conversion"


def convert(source: Path, run: StageRun) -> None:
    options = {"format": "json_lines", "paragraphs": "line"}
    settings = {"sources": [{"name": "pages", "reader": "raw_text", "options": options}]}
    convert_corpus(build(ConvertSettings, settings), {"pages": source}, run)


def select(selection: str, source: Path, vocabulary: Path, run: StageRun) -> None:
    settings: dict[str, Any] = {
        "name": "memory",
        "options": RawTextOptions("json_lines"),
        "level": selection.split(",")[0],
        "reading": "corrected",
        "lower_case": True,
        "rows_per_shard": 1_000_000,
        **SELECTIONS[selection],
    }
    select_text(SelectionSettings(**settings), source, vocabulary, run)


def measure(work: str, source: str, vocabulary: str) -> None:
    """Run the conversion or a selection and print the largest resident memory in MiB."""
    with tempfile.TemporaryDirectory() as name, stage_run(Path(name) / "manifest.json", {}) as run:
        if work == CONVERSION:
            convert(Path(source), run)
        else:
            select(work, Path(source), Path(vocabulary), run)
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--measure", nargs=3, metavar=("WORK", "SOURCE", "VOCABULARY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*arguments.measure)
        return 0
    kept = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = []
        for size in (1, GROWTH):
            write_pages(folder / f"pages{size}", int(arguments.megabytes * size * 1e6))
            register_source("pages", folder / f"pages{size}", folder / f"pages{size}.json")
            sources.append(folder / f"pages{size}.json")
        vocabulary = make_vocabulary(folder)
        for work in (CONVERSION, *SELECTIONS):
            peaks = []
            for source in sources:
                command = [sys.executable, __file__, "--measure", work, str(source), str(vocabulary)]
                result = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                peaks.append(json.loads(result.stdout))
            ratio = peaks[1] / peaks[0]
            kept &= ratio <= LIMIT
            print(
                f"{work}: {peaks[0]:.0f} MiB for {arguments.megabytes:.0f} MB, {peaks[1]:.0f} MiB for "
                f"{GROWTH * arguments.megabytes:.0f} MB: {ratio:.2f} times, limit {LIMIT}: "
                f"{'kept' if ratio <= LIMIT else 'MISSED'}"
            )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
