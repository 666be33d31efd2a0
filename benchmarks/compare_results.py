"""Whether an experiment that ran on a GPU comes to the results of a CPU: two of its `summary.csv`, value by value.

On a GPU models are trained in bf16, drop other elements and sum in another order, so nothing is equal. Perplexities may
differ by 1 %, and shares of minimal pairs by one point; of what depends on short runs of fine-tuning and on single
decisions (tasks, probing, translations) the differences are shown. Leaves with 1 where a limit is passed or a value
is missing.

    python benchmarks/compare_results.py CPU/results/demo/summary.csv results/demo/summary.csv
"""

import argparse
import csv
import sys
from collections.abc import Mapping
from pathlib import Path

Key = tuple[str, str, str, str]
"""Model, suite, task and metric."""
PERPLEXITY_PERCENT, PAIRS_POINTS = 1.0, 1.0


def means(path: Path) -> dict[Key, float]:
    """The means of a summary; rows without one are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["model"], row["suite"], row["task"], row["metric"]): float(row["mean"])
            for row in csv.DictReader(file)
            if row["mean"]
        }


def judged(key: Key, on_cpu: float, on_gpu: float) -> tuple[str, bool]:
    """The difference in words, and whether it is within the limit of its kind, if there is one."""
    metric = key[3]
    if "perplexity" in metric:
        percent = 100 * (on_gpu / on_cpu - 1)
        return f"{percent:+.2f} %", abs(percent) <= PERPLEXITY_PERCENT
    difference = on_gpu - on_cpu
    is_pairs = "accuracy" in metric and "pairs" in key[1]
    return f"{difference:+.2f}", not is_pairs or abs(difference) <= PAIRS_POINTS


def compared(on_cpu: Mapping[Key, float], on_gpu: Mapping[Key, float]) -> tuple[list[str], bool]:
    """The rows of a Markdown table, and whether all values are there and within their limits."""
    lines = ["| model | suite | task | metric | CPU | GPU | difference | |", "|---|---|---|---|---|---|---|---|"]
    within = True
    for key, value in on_cpu.items():
        if key not in on_gpu:
            lines.append(f"| {' | '.join(key)} | {value:.2f} |  |  | missing |")
            within = False
            continue
        difference, fits = judged(key, value, on_gpu[key])
        within &= fits
        cells = *key, f"{value:.2f}", f"{on_gpu[key]:.2f}", difference, "" if fits else "beyond"
        lines.append(f"| {' | '.join(cells)} |")
    return lines, within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("on_cpu", type=Path)
    parser.add_argument("on_gpu", type=Path)
    arguments = parser.parse_args()
    lines, within = compared(means(arguments.on_cpu), means(arguments.on_gpu))
    print("\n".join(lines))
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
