"""Trace a number of a summary back to the raw files, with manifests and settings. Status 1 if something differs.

For example: python scripts/trace.py results/demo/summary.csv --cell elc_bert/demo_pairs/binding
"""

import argparse
import json
import signal
import sys
from collections.abc import Collection
from pathlib import Path

from hatchery.analysis.summary_rows import COLUMNS, SELECTORS, read_summary
from hatchery.artifacts.checksums import vouched
from hatchery.command import run_command
from hatchery.errors import EvaluationError
from hatchery.provenance.chain import follow
from hatchery.provenance.chain_json import chain_json
from hatchery.provenance.manifest_index import ManifestIndex
from hatchery.provenance.row_selection import select
from hatchery.provenance.tree_text import tree_text
from hatchery.provenance.verification import generated_problems, output_problems, raw_problems
from hatchery.sanitize import visible


def cell_selectors(cell: str, models: Collection[str]) -> dict[str, str | None]:
    """The words of `model/suite/task/metric`, of which the later ones may be left out.

    The models of a study have a stroke in their names. Raises EvaluationError for more words than that.
    """
    words = [word.strip() for word in cell.split("/")] if cell else []
    if "/".join(words[:2]) in models:
        words = ["/".join(words[:2]), *words[2:]]
    if len(words) > len(SELECTORS):
        raise EvaluationError(f"--cell: got {cell!r}, expected {'/'.join(SELECTORS)} or the first words of that")
    return {column: word or None for column, word in zip(SELECTORS, words, strict=False)}


def selectors_given(arguments: argparse.Namespace) -> dict[str, str | None]:
    """The options that name a value of a column."""
    return {column: getattr(arguments, column) for column in SELECTORS if getattr(arguments, column) is not None}


def main(arguments: argparse.Namespace) -> None:
    """Print the chain of one row, or the rows to choose from."""
    where = str(arguments.summary)
    # The same rows, as numbers.
    summary = read_summary(vouched(arguments.summary).with_suffix(".parquet"))
    numbers = {row.selectors: number for number, row in enumerate(summary, start=1)}
    cell = cell_selectors(arguments.cell, {row.model for row in summary})
    rows = select(summary, {**cell, **selectors_given(arguments)}, arguments.row, where)
    if len(rows) > 1:
        for row in rows:
            print(visible(f"{numbers[row.selectors]:>5}  {' '.join(row.selectors)}  {row.whole()}"))
        raise EvaluationError(f"{where}: {len(rows)} rows match; choose by --row or --{', --'.join(SELECTORS)}")
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
        # Names of raw files are strangers'.
        print(visible(tree), end="")
    for problem in problems:
        print(f"error: {visible(problem)}", file=sys.stderr)
    if problems:
        sys.exit(1)


if __name__ == "__main__":
    # A reader that closes the pipe, such as head, ends the program without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("summary", type=Path, help="results/<experiment>/summary.csv")
    parser.add_argument("--row", type=int, help="number of the row, counted from 1")
    parser.add_argument(
        "--cell", default="", metavar="/".join(SELECTORS), help="values of these columns; the last ones may be left out"
    )
    for column in SELECTORS:
        parser.add_argument(f"--{column}", help=f"value of the column `{column}`")
    parser.add_argument("--full", action="store_true", help="print all settings, outputs, measures and raw files")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a tree")
    parser.add_argument("--verify", action="store_true", help="compare the outputs of all stages with their checksums")
    parser.add_argument("--verify-raw", action="store_true", help="compare the raw files with their checksums")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder with results/ and resources/")
    run_command(main, parser)
