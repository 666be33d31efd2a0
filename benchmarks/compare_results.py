"""Compare the results of an experiment on a GPU with its results on a CPU: two `summary.csv`, value by value.

On a GPU, models are trained in bf16, with other random numbers for dropout and another order of sums, so the values
differ. Perplexities may differ by 1 %, and accuracies of minimal pairs by one percentage point. The differences of all
other values (tasks, probing, translations) are shown, but have no limit, because these values come from short
fine-tuning runs or single decisions. The tidy tables next to the summary show which values are accuracies of minimal
pairs. The exit status is 1 if a difference exceeds its limit or a value is missing.

    python benchmarks/compare_results.py CPU/results/demo/summary.csv results/demo/summary.csv
"""

import argparse
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from hatchery.analysis.tidy_tables import MEASUREMENTS
from hatchery.rendering.table import Column, Group, Table

Key = tuple[str, str, str, str]
"""Model, suite, task and metric."""
KEYS = ("model", "suite", "task", "metric")
PERPLEXITY_PERCENT, PAIRS_POINTS = 1.0, 1.0


def means(path: Path) -> dict[Key, float]:
    """Return the means in a `summary.csv` by model, suite, task and metric; rows without a mean are left out."""
    rows = pl.read_csv(path, schema_overrides={"mean": pl.Float64}).drop_nulls("mean").select(*KEYS, "mean")
    return {(model, suite, task, metric): mean for model, suite, task, metric, mean in rows.rows()}


def shares_of_pairs(path: Path) -> set[Key]:
    """Return the keys (model, suite, task, metric) of all accuracies of minimal pairs, read from the tidy table next to
    a `summary.csv`.
    """
    measurements = pl.read_parquet(MEASUREMENTS.in_folder_of(path))
    is_share = (pl.col("kind") == "minimal_pairs") & pl.col("metric").str.contains("accuracy")
    return set(measurements.filter(is_share).select(KEYS).rows())


def judged(metric: str, is_pairs: bool, on_cpu: float, on_gpu: float) -> tuple[str, bool]:
    """Return the difference between a score on a CPU and on a GPU as text, and whether the difference is within its
    limit. Only perplexities and accuracies of minimal pairs have a limit.
    """
    if "perplexity" in metric:
        percent = 100 * (on_gpu / on_cpu - 1)
        return f"{percent:+.2f} %", abs(percent) <= PERPLEXITY_PERCENT
    difference = on_gpu - on_cpu
    return f"{difference:+.2f}", not is_pairs or abs(difference) <= PAIRS_POINTS


def compared(on_cpu: Mapping[Key, float], on_gpu: Mapping[Key, float], pairs: Collection[Key]) -> tuple[Table, bool]:
    """Return a table of the values on CPU and GPU, and whether each of the CPU's values exists on the GPU and differs
    by at most its limit. `pairs` are the keys of accuracies of minimal pairs.
    """
    rows: list[list[str]] = []
    for key, value in on_cpu.items():
        difference, fits = "", False
        if (other := on_gpu.get(key)) is not None:
            difference, fits = judged(key[-1], key in pairs, value, other)
        remark = "" if fits else "no value on the GPU" if other is None else "the difference is above its limit"
        rows.append([*key, f"{value:.2f}", "" if other is None else f"{other:.2f}", difference, remark])
    columns = [*(Column(name, words=True) for name in KEYS), Column("CPU"), Column("GPU"), Column("GPU - CPU")]
    return Table([*columns, Column("", words=True)], [Group(rows)]), not any(row[-1] for row in rows)


def compared_summaries(on_cpu: Path, on_gpu: Path) -> tuple[Table, bool]:
    """Return the results of `compared` for two files `summary.csv` with their tidy tables."""
    return compared(means(on_cpu), means(on_gpu), shares_of_pairs(on_cpu))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("on_cpu", type=Path)
    parser.add_argument("on_gpu", type=Path)
    arguments = parser.parse_args()
    table, within = compared_summaries(arguments.on_cpu, arguments.on_gpu)
    print(table.markdown())
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
