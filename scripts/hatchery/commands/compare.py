"""`hatchery compare`: compare two experiments."""

from pathlib import Path
from typing import Annotated

import typer

from hatchery.commands._options import AsJson, Project, print_json


def command(
    first: Annotated[str, typer.Argument(help="Name of an experiment.", show_default=False)],
    second: Annotated[str, typer.Argument(help="Name of another experiment.", show_default=False)],
    all: Annotated[bool, typer.Option("--all", help="Also show scores whose difference may be noise.")] = False,
    project: Project = Path(),
    json: AsJson = False,
) -> None:
    """Show settings and scores in which two experiments differ.

    hatchery compare strict strict_small
    """
    from hatchery.experiment.shipped import open_project
    from hatchery.views.side_by_side import shown, side_by_side

    table = side_by_side(open_project(project / "config"), (first, second), project / "results", all)
    if json:
        print_json({"rows": table.records(), "notes": list(table.notes)})
    else:
        print(shown(table), end="")
