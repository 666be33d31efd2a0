"""What the Snakefile holds in its hand: this checkout's configuration, with errors that are shown plainly."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.analysis.terminal import show_summaries
from hatchery.config.compute import Compute
from hatchery.config.lost_outputs import watch_rules
from hatchery.config.project import Project
from hatchery.errors import HatcheryError
from hatchery.storage.roots import link_roots


class Workflow(Compute):
    """Layout and compute settings, together with the targets of plain `snakemake`."""

    def notice_changes(self, workflow: Any) -> None:
        """Have the plan notice raw files that were edited and outputs that were lost; after the last rule."""
        self.is_planning = True
        watch_rules(workflow)

    def default_pages(self) -> list[str]:
        """Pages of the experiments that config.yaml names."""
        return [f"results/{experiment}/index.html" for experiment in self.project.config["experiments"]]

    def show_summaries(self) -> None:
        """Print the tables of the experiments that this invocation looked at."""
        paths = [Path(f"results/{experiment}/summary.txt") for experiment in self.project.loaded("experiment")]
        show_summaries([path for path in paths if path.is_file()], sys.stderr)


class _Guarded:
    """A workflow whose configuration errors end the invocation with their own line.

    Snakemake wraps every exception of an input function, its own WorkflowError too, in a message with a traceback;
    only SystemExit passes through untouched.
    """

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._workflow, name)

        def call(*positional: Any, **named: Any) -> Any:
            try:
                return method(*positional, **named)
            except HatcheryError as error:
                raise SystemExit(_message(error)) from None

        return call


def _message(error: HatcheryError) -> str:
    return "\n".join(f"error: {line}" for line in str(error).splitlines())


def open_workflow(folder: str | Path, overrides: Mapping[str, Any]) -> Any:
    """The workflow configured in `folder`; an error of the configuration ends the program with one line.

    The main configuration is checked at once, experiments when they are asked for.
    """
    project = Project(folder, overrides)
    try:
        link_roots(project.config["storage_root"])
    except HatcheryError as error:
        raise SystemExit(_message(error)) from None
    return _Guarded(Workflow(project))
