"""Trace a number in a summary back to the raw files, and show the manifests and settings on the way.

The exit status is 1 if a file on the way is missing or has changed.

For example: python scripts/trace.py results/demo/summary.csv --cell elc_bert/demo_pairs/binding
"""

import argparse
import json
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hatchery.analysis.summary_rows import COLUMNS, SELECTORS, SummaryRow, read_summary
from hatchery.artifacts.checksums import verified_view
from hatchery.command import run_command
from hatchery.errors import EvaluationError
from hatchery.provenance.chain import ManifestIndex, follow, generated_problems, output_problems, raw_problems
from hatchery.provenance.chain_text import chain_json, tree_text
from hatchery.sanitize import visible
from hatchery.settings.problems import alternatives


def cell_selectors(cell: str, models: Collection[str]) -> dict[str, str | None]:
    """Return the components of a text `model/suite/task/metric` by column; the last components may be missing.

    The name of a model in a study contains a slash. Raises EvaluationError for too many components.
    """
    words = [word.strip() for word in cell.split("/")] if cell else []
    if "/".join(words[:2]) in models:
        words = ["/".join(words[:2]), *words[2:]]
    if len(words) > len(SELECTORS):
        raise EvaluationError(f"--cell: got {cell!r}, expected {'/'.join(SELECTORS)}; the last values may be omitted")
    return {column: word or None for column, word in zip(SELECTORS, words, strict=False)}


def selectors_given(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return the values of the command-line options that select rows, by column; columns without an option are left
    out.
    """
    return {column: getattr(arguments, column) for column in SELECTORS if getattr(arguments, column) is not None}


def select(
    rows: Sequence[SummaryRow], wanted: Mapping[str, str | None], number: int | None, where: str
) -> list[SummaryRow]:
    """Return the rows that match `wanted`, the required values by column; None allows any value. If `number` is given,
    return only row `number`.

    Raises EvaluationError if `number` is not the number of a row, or if no row has all values. For a value that does
    not occur, the error suggests the most similar value.
    """
    if number is not None:
        if not 1 <= number <= len(rows):
            raise EvaluationError(f"{where}: got row {number}, expected 1 to {len(rows)}")
        rows = [rows[number - 1]]
    chosen = {column: value for column, value in wanted.items() if value is not None}
    matching = list(rows)
    for column, value in chosen.items():
        known = sorted({getattr(row, column) for row in rows})
        if value not in known:
            raise EvaluationError(
                f"{where}: {column}: got {value!r}, expected a value of a row{alternatives(value, known)}"
            )
        narrowed = [row for row in matching if getattr(row, column) == value]
        if not narrowed:
            there = ", ".join(sorted({getattr(row, column) for row in matching}))
            raise EvaluationError(
                f"{where}: {column}: got {value!r}, but the rows with the other given values have: {there}"
            )
        matching = narrowed
    return matching


def main(arguments: argparse.Namespace) -> None:
    """Print the provenance of one row: the chain of manifests back to the raw files. If several rows match, list these
    rows and raise EvaluationError.
    """
    where = str(arguments.summary)
    # Read the Parquet file, which contains the rows of the CSV file with typed values.
    summary = read_summary(verified_view(arguments.summary).with_suffix(".parquet"))
    numbers = {row.selectors: number for number, row in enumerate(summary, start=1)}
    cell = cell_selectors(arguments.cell, {row.model for row in summary})
    rows = select(summary, {**cell, **selectors_given(arguments)}, arguments.row, where)
    if len(rows) > 1:
        for row in rows:
            print(visible(f"{numbers[row.selectors]:>5}  {' '.join(row.selectors)}  {row.whole()}"))
        raise EvaluationError(f"{where}: {len(rows)} rows match; select one row by --row or --{', --'.join(SELECTORS)}")
    row, number = rows[0], numbers[rows[0].selectors]
    chain = follow(
        ManifestIndex(arguments.project),
        row.digests,
        where=f"{where}, row {number}",
        prefer=Path("results") / row.experiment,
    )
    problems = chain.problems + generated_problems(chain)
    problems += output_problems(chain) if arguments.verify else []
    problems += raw_problems(chain) if arguments.verify_raw else []
    if arguments.json:
        found = chain_json({"number": number, **{column: row.printed(column) for column in COLUMNS}}, chain, problems)
        print(visible(json.dumps(found, indent=1, ensure_ascii=False)))
    else:
        tree = tree_text(f"{where}, row {number}: {' '.join(row.selectors)} = {row.whole()}", chain, arguments.full)
        # Names of raw files come from third parties, so replace control characters before printing the names.
        print(visible(tree), end="")
    for problem in problems:
        print(f"error: {visible(problem)}", file=sys.stderr)
    if problems:
        sys.exit(1)


if __name__ == "__main__":
    # If the program that reads the output exits first, as `head` does, end without a message.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("summary", type=Path, help="results/<experiment>/summary.csv")
    parser.add_argument("--row", type=int, help="number of the row in summary.csv, counted from 1")
    parser.add_argument(
        "--cell",
        default="",
        metavar="/".join(SELECTORS),
        help="values of the columns model, suite, task and metric, separated by slashes; the last values may be "
        "omitted",
    )
    for column in SELECTORS:
        parser.add_argument(f"--{column}", help=f"value of the column `{column}`")
    parser.add_argument("--full", action="store_true", help="print all settings, outputs, measures and raw files")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the chain of manifests, from the row to the raw files, as JSON and not as a tree",
    )
    parser.add_argument("--verify", action="store_true", help="compare the outputs of all stages with their checksums")
    parser.add_argument("--verify-raw", action="store_true", help="compare the raw files with their checksums")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with results/ and resources/")
    run_command(main, parser)
