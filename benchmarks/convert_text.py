"""Whether one large file is converted in flat memory, and by two processes in half the time, to the same bytes.

The same text as plain text, plain text in documents of 200 paragraphs, CSV with line ends inside quotes, TSV whose
documents have many rows, and JSON lines for either reader. Baselines: the memory for a file of a fifth of the size, and
the time of one process. The limits: a fifth more memory in the largest process, and 0.65 of the seconds with two
processes (there must be two cores to have); the manifests are equal.
Usage: benchmarks/convert_text.py [--megabytes 1000] [--formats text csv ...]; exit code 1 above a limit.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from split_sentences import generated_paragraphs

from hatchery.artifacts.manifests import stage_run
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.raw.registration import register_source
from hatchery.typed import build

MEMORY_LIMIT = 1.2
SECONDS_LIMIT = 0.65
PART = 5
# Suffix, reader and its options.
FORMATS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "text": (".txt", "plain_text", {}),
    "paragraphs": (".txt", "plain_text", {"lines_per_document": 200}),
    "csv": (".csv", "plain_text", {}),
    "tsv": (".tsv", "plain_text", {"document_column": "book"}),
    "jsonl": (".jsonl", "plain_text", {}),
    "raw_jsonl": (".jsonl", "raw_text", {"format": "json_lines"}),
    "raw_text": (".txt", "raw_text", {"format": "text", "lines_per_document": 200}),
}


def write_file(path: Path, megabytes: float) -> None:
    """One file of wrapped paragraphs; ten megabytes of them, again and again. In rows, three make a text."""
    texts = [textwrap.fill(paragraph, 80) for paragraph in generated_paragraphs(min(megabytes, 10.0))]
    with path.open("w", encoding="utf-8", newline="") as handle:
        table = csv.writer(handle, delimiter="\t" if path.suffix == ".tsv" else ",")
        if path.suffix in (".csv", ".tsv"):
            table.writerow(["book", "text"])
        written = row = 0
        while written < megabytes * 1e6:
            first = row % (len(texts) - 2)
            text = "\n\n".join(texts[first : first + 3])
            match path.suffix:
                case ".txt":
                    handle.write(text + "\n\n")
                case ".jsonl":
                    handle.write(json.dumps({"text": text}) + "\n")
                case _:
                    table.writerow([row // 30, text])
            row, written = row + 3, written + len(text)


def measure(source: Path, format_name: str, workers: int) -> None:
    """Convert and print the seconds, those of the processors in this process and in its children, and the rest."""
    _, reader, options = FORMATS[format_name]
    settings = {"sources": [{"name": "text", "reader": reader, "options": options}]}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        with stage_run(Path(name) / "manifest.json", settings) as run:
            convert_corpus(build(ConvertSettings, settings), {"text": source}, run, workers=workers)
        manifest = (Path(name) / "manifest.json").read_text(encoding="utf-8")
    seconds = time.monotonic() - started
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, children = (usage.ru_utime + usage.ru_stime for usage in used)
    print(json.dumps([seconds, own, children, max(usage.ru_maxrss for usage in used) / 1024, manifest]))


def compare(format_name: str, megabytes: float, folder: Path) -> bool:
    """Print the figures of one format; whether they are within the limits."""
    found = {}
    for size in (megabytes / PART, megabytes):
        path = folder / f"{size:.0f}{FORMATS[format_name][0]}"
        write_file(path, size)
        register_source("text", path, path.with_suffix(".json"))
        for workers in (1, 2) if size == megabytes else (1,):
            command = [sys.executable, __file__, "--measure", str(path.with_suffix(".json")), format_name, str(workers)]
            result = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            seconds, own, children, peak, manifest = json.loads(result.stdout)
            found[size, workers] = seconds, peak, manifest
            print(
                f"{format_name}, {size:,.0f} MB, processes: {workers}: {seconds:.1f} s (of a processor {own:.1f} s, in "
                f"children {children:.1f} s), at most {peak:.0f} MiB in one process",
                flush=True,
            )
        path.unlink()
    small, one, two = found[megabytes / PART, 1], found[megabytes, 1], found[megabytes, 2]
    memory, ratio, same = one[1] / small[1], two[0] / one[0], one[2] == two[2]
    agree = "agree" if same else "DIFFER"
    print(
        f"{format_name}: memory {memory:.2f} times that of a {PART}th, limit {MEMORY_LIMIT}; two processes "
        f"{ratio:.2f} of the time of one, limit {SECONDS_LIMIT}; the manifests {agree}",
        flush=True,
    )
    return bool(memory <= MEMORY_LIMIT and ratio <= SECONDS_LIMIT and same)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1000.0)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--measure", nargs=3, metavar=("SOURCE", "FORMAT", "WORKERS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        source, format_name, workers = arguments.measure
        measure(Path(source), format_name, int(workers))
        return 0
    with tempfile.TemporaryDirectory() as name:
        kept = [compare(format_name, arguments.megabytes, Path(name)) for format_name in arguments.formats]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
