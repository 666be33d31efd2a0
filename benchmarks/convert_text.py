"""Whether one large text file is converted in flat memory, and by two processes in half the time, to the same bytes.

Baselines: the memory for a text of a fifth of the size, and the time of one process. The limits: a fifth more memory in
the largest process, and 0.65 of the seconds with two processes (there must be two cores to have); the manifests are
equal. Usage: benchmarks/convert_text.py [--megabytes 1000]; exit code 1 above a limit.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from split_sentences import generated_paragraphs

from hatchery.corpora.convert import convert_corpus
from hatchery.corpora.settings import ConvertSettings
from hatchery.storage.manifests import stage_run
from hatchery.storage.sources import register_source
from hatchery.typed import build

MEMORY_LIMIT = 1.2
SECONDS_LIMIT = 0.65
PART = 5


def write_text(path: Path, megabytes: float) -> None:
    """One file of wrapped paragraphs; ten megabytes of them, again and again."""
    paragraphs = generated_paragraphs(min(megabytes, 10.0))
    text = "".join(textwrap.fill(paragraph, 80) + "\n\n" for paragraph in paragraphs).encode()
    with path.open("wb") as handle:
        while handle.tell() < megabytes * 1e6:
            handle.write(text)


def measure(source: Path, workers: int) -> None:
    """Convert and print the seconds, the resident memory of the largest process in MiB, and the manifest."""
    settings = {"sources": [{"name": "text", "reader": "plain_text"}]}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        with stage_run(Path(name) / "manifest.json", settings) as run:
            convert_corpus(build(ConvertSettings, settings), {"text": source}, run, workers=workers)
        manifest = (Path(name) / "manifest.json").read_text(encoding="utf-8")
    seconds = time.monotonic() - started
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(json.dumps([seconds, peak, manifest]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1000.0)
    parser.add_argument("--measure", nargs=2, metavar=("SOURCE", "WORKERS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(Path(arguments.measure[0]), int(arguments.measure[1]))
        return 0
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for megabytes in (arguments.megabytes / PART, arguments.megabytes):
            text = Path(name) / f"{megabytes:.0f}.txt"
            write_text(text, megabytes)
            register_source("text", text, text.with_suffix(".json"))
            for workers in (1, 2):
                command = [sys.executable, __file__, "--measure", str(text.with_suffix(".json")), str(workers)]
                result = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                found[megabytes, workers] = seconds, peak, _ = json.loads(result.stdout)
                print(
                    f"{megabytes:,.0f} MB, processes: {workers}: {seconds:.1f} s, at most {peak:.0f} MiB in one process"
                )
    small, one, two = (
        found[key] for key in ((arguments.megabytes / PART, 1), *((arguments.megabytes, n) for n in (1, 2)))
    )
    memory, seconds, same = one[1] / small[1], two[0] / one[0], one[2] == two[2]
    print(f"memory {memory:.2f} times that of a {PART}th, limit {MEMORY_LIMIT}")
    agree = "agree" if same else "DIFFER"
    print(f"two processes {seconds:.2f} of the time of one, limit {SECONDS_LIMIT}; the manifests {agree}")
    return 0 if memory <= MEMORY_LIMIT and seconds <= SECONDS_LIMIT and same else 1


if __name__ == "__main__":
    sys.exit(main())
