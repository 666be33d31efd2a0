"""`hatchery surprisal`: print the surprisal of each word of a file of texts."""

from pathlib import Path
from typing import Annotated

import typer

from hatchery.commands._options import Architecture, AsJson, Device, Model, Set, print_json, settings_in


def command(
    model: Model,
    texts: Annotated[
        Path,
        typer.Argument(help="A text file with one text per line, or a table (.csv, .tsv, .jsonl, .parquet)."),
    ],
    column: Annotated[
        str | None, typer.Option(help="Column of the table that contains the texts.", show_default=False)
    ] = None,
    set: Set = None,
    architecture: Architecture = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Print the surprisal of each word of a file, as CSV.

    Surprisals are in bits. The columns of a table are printed too:

    hatchery surprisal gpt2 sentences.csv --column sentence > words.csv
    """
    import sys

    import hatchery
    from hatchery.evaluation.scores import csv_of

    settings = settings_in(set, ("model", "texts", "column", "architecture", "device"))
    words = hatchery.surprisals(model, texts, column, architecture=architecture, device=device, **settings)
    if json:
        print_json(words.to_dicts())
    else:
        sys.stdout.write(csv_of(words))
