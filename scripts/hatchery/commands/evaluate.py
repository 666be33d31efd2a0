"""`hatchery evaluate`: evaluate one model on one suite."""

from pathlib import Path
from typing import Annotated

import typer

from hatchery.commands._options import Architecture, AsJson, Device, Model, Set, print_json, settings_in

SUITE_HELP = (
    "Name of a suite, task or kind of evaluation (perplexity, reading, ...), a YAML file of a suite, or a table of "
    "pairs (.csv, .tsv, .jsonl, .parquet)."
)


def command(
    model: Model,
    suite: Annotated[str, typer.Option(help=SUITE_HELP, show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(help="Path of the suite's data; by default, the path in config.yaml.", show_default=False),
    ] = None,
    set: Set = None,
    architecture: Architecture = None,
    device: Device = "auto",
    rows: Annotated[Path | None, typer.Option(help="Also write all scores to this CSV file.")] = None,
    json: AsJson = False,
) -> None:
    """Evaluate a model on a suite: scores with 95 % intervals.

    hatchery evaluate bert-base-cased --suite blimp --data ~/blimp/data
    """
    import hatchery
    from hatchery.artifacts.atomic import write_text
    from hatchery.evaluation.scores import csv_of

    settings = settings_in(set, ("model", "suite", "data", "architecture", "device"))
    found = hatchery.evaluate(model, suite, data, architecture=architecture, device=device, **settings)
    if rows is not None:
        write_text(rows, csv_of(found.rows))
    if json:
        parts = {"summary": found.summary.to_dicts(), "rows": found.rows.to_dicts(), "facts": dict(found.facts)}
        print_json({"model": found.model, "suite": found.name, **parts})
    else:
        print(found)
