"""`hatchery export`: write a model of Hatchery as a folder for transformers."""

from pathlib import Path
from typing import Annotated

import typer

from hatchery.commands._options import AsJson, Model, print_json


def command(
    model: Model,
    folder: Annotated[Path, typer.Argument(help="The new folder.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Export a model of Hatchery as a folder for transformers.

    hatchery export results/demo/pretraining/ltg_bert-s42 my_model

    The workflow's export (docs/models.md) also writes a model card with data, licence and scores.
    """
    from hatchery.export.direct import export

    written = export(model, folder)
    if json:
        print_json({"folder": str(folder), "files": [path.name for path in written]})
    else:
        print(f"{folder}: {', '.join(path.name for path in written)}")
