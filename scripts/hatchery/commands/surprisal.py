"""`hatchery surprisal`: the surprisal of every word of a file of texts."""

from pathlib import Path
from typing import Annotated

import typer

from hatchery.commands._options import Architecture, AsJson, Device, Model, Set, print_json, settings_in


def command(
    model: Model,
    texts: Annotated[
        Path,
        typer.Argument(help="A text file with a text on each line, or a table (.csv, .tsv, .jsonl, .parquet)."),
    ],
    column: Annotated[
        str | None, typer.Option(help="The column of a table that holds the texts.", show_default=False)
    ] = None,
    set: Set = None,
    architecture: Architecture = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Print the surprisal of every word of a file, as CSV.

    In bits, with the columns of the file:

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
