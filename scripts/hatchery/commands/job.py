"""`hatchery job`: show or run one job of the workflow."""

from pathlib import Path
from typing import Annotated

import typer

from hatchery.commands._options import print_json


def command(
    stage: Annotated[str, typer.Argument(help="Name of a stage, such as draw_figure.", show_default=False)],
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...", help="Wildcards of the job, such as experiment=demo.", show_default=False
        ),
    ],
    into: Annotated[
        Path | None, typer.Option(help="Run the job, and write its outputs into this folder.", show_default=False)
    ] = None,
) -> None:
    """Show or run one job of the workflow, in a checkout.

    hatchery job draw_figure experiment=demo figure=phenomena --into scratch

    Without --into, the job's settings and inputs are printed as JSON. The experiment's results are not changed.
    """
    from json import loads

    import hatchery
    from hatchery.errors import ConfigError

    pairs = [name.partition("=") for name in names]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise ConfigError(f"got {name + sign!r}, expected NAME=VALUE, such as experiment=demo")
    job = hatchery.job(stage, **{name: value for name, _, value in pairs})
    if into is None:
        print_json({"settings": loads(job.call.settings), "inputs": job.inputs, "outputs": job.outputs})
    else:
        print(job.run(into))
