"""Planning time: a dry run of the full-size `strict` experiment against a dry run of one job, in the same checkout.

Baseline: planning `resources/embedded/manifest.json`, which is start-up and imports alone. The limit is 10 seconds for
`strict` (issue of the workflow); the ratio says how much of the time is the graph itself.
"""

import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LIMIT_SECONDS = 10.0
REPETITIONS = 3


def planning_seconds(target: str) -> float:
    """Seconds of the fastest of several dry runs for `target`."""
    best = float("inf")
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all", "--", target]
        subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
        best = min(best, time.perf_counter() - started)
    return best


def main() -> int:
    """Print both times and their ratio; the exit status is 1 beyond the limit."""
    baseline = planning_seconds("resources/embedded/manifest.json")
    strict = planning_seconds("results/strict/summary.csv")
    print(
        f"one job: {baseline:.2f} s; strict: {strict:.2f} s; ratio {strict / baseline:.2f}; limit {LIMIT_SECONDS:.0f} s"
    )
    return int(strict > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
