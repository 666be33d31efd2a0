"""Seconds that the processes of a run spend on imports, by stage.

Python writes the time of each import to standard error if PYTHONPROFILEIMPORTTIME is set, and the workflow keeps the
standard error of each job in `logs/<stage>/`. Writing these lines also takes time, so the measured seconds are upper
bounds.

    PYTHONPROFILEIMPORTTIME=1 snakemake --cores 2 results/demo/index.html
    python benchmarks/stage_imports.py logs
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

LINE = re.compile(r"import time: +(\d+) \| +\d+ \| *(\S+)")
"""Microseconds of a module without the modules that it imports, and the module's name."""


def imports_of(log: Path) -> tuple[float, bool]:
    """Return the seconds of all imports that a job's log lists, and whether PyTorch is one of the imported modules."""
    found = [LINE.fullmatch(line.rstrip()) for line in log.read_text("utf-8", "replace").splitlines()]
    lines = [line for line in found if line is not None]
    return sum(int(line[1]) for line in lines) / 1e6, any(line[2] == "torch" for line in lines)


def rows(logs: Path) -> Iterator[tuple[str, int, float, bool]]:
    """Yield stage, number of jobs, mean seconds that a job spends on imports, and whether a job imported PyTorch;
    slowest stage first.
    """
    stages: dict[str, list[tuple[float, bool]]] = {}
    for log in sorted(logs.rglob("*.log")):
        stages.setdefault(log.relative_to(logs).parts[0].removesuffix(".log"), []).append(imports_of(log))
    means = {stage: sum(seconds for seconds, _ in jobs) / len(jobs) for stage, jobs in stages.items()}
    for stage in sorted(stages, key=lambda stage: (-means[stage], stage)):
        yield stage, len(stages[stage]), means[stage], any(has_torch for _, has_torch in stages[stage])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, help="folder with the logs of the run")
    found = list(rows(parser.parse_args().logs))
    print(
        "Each row is one stage; the last row is the sum over all stages.\n\n"
        "| stage | number of jobs | mean seconds of imports per job | imports PyTorch |\n|---|---:|---:|---|"
    )
    for stage, jobs, seconds, has_torch in found:
        print(f"| `{stage}` | {jobs} | {seconds:.2f} | {'yes' if has_torch else 'no'} |")
    print(f"| all | {sum(row[1] for row in found)} | {sum(row[1] * row[2] for row in found):.0f} in all | |")


if __name__ == "__main__":
    main()
