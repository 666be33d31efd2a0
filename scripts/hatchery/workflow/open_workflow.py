"""What the Snakefile holds in its hand: this checkout's configuration, with errors that are shown plainly."""

import atexit
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from snakemake.io import strip_wildcard_constraints

from hatchery.artifacts.finished import FORCED
from hatchery.artifacts.roots import check_roots, link_roots
from hatchery.errors import ConfigError, HatcheryError
from hatchery.experiment.invocation import read_request
from hatchery.experiment.plan_checks import collect_problems
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources, planned_sources
from hatchery.experiment.targets import check_targets
from hatchery.experiment.text_limits import epochs_to_tell
from hatchery.stages.registry import KEPT, STAGES, stage_of
from hatchery.workflow.compute import Compute
from hatchery.workflow.rules import StageRule, error_lines, plainly
from hatchery.workflow.software import require_slurm
from hatchery.workflow.summaries import show_summaries

DEFAULT_RULE = "all"
"""The rule of plain `snakemake`."""


class Workflow(Compute):
    """Layout and compute settings, together with the targets of plain `snakemake`."""

    def stage(self, name: str) -> StageRule:
        """What the rule of a stage takes from the stage's record."""
        return StageRule(self, stage_of(name))

    def local_rules(self) -> list[str]:
        """The rules whose jobs run on this machine: light ones, and those that need the network."""
        return [name for name, record in STAGES.items() if record.sort == "local"]

    def shown_manifest(self, workflow: Any, experiment: str, kind: str, place: str) -> str:
        """Where the manifest behind a readable place is kept; a link to another one is planned to be put right.

        Snakemake sees that something is there, and not what.
        """
        shown = f"results/{experiment}/{kind}/{place}/manifest.json"
        if self.is_planning and self.leads_elsewhere(shown):
            workflow.dag.forcefiles.add(shown)
        return self.kept(shown)

    def default_pages(self) -> list[str]:
        """Pages of the experiments that config.yaml names."""
        return [f"results/{experiment}/index.html" for experiment in self.project.config.experiments]

    def start(self, asked: Any) -> None:
        """What the main process does before the first job, and not in a dry run; `asked` is its DAGSettings.

        Writes the calls and links of what is planned, and tells the jobs where the user forces them to run.
        """
        os.environ[FORCED] = "1" if asked.forceall or asked.forcetargets or asked.forcerun else ""
        self.write_calls()

    def check_request(self, workflow: Any) -> None:
        """Stop this call of Snakemake, before it plans, for everything that is known to be wrong with what it asks for.

        A dry run ends with a list of the raw data that is missing. Says which corpora surely have less text than their
        trainings read. Raises ConfigError with one line for each problem.
        """
        request = read_request(sys.argv) if workflow.is_main_process else None
        if request is None:
            return
        require_slurm(request.executor, request.dry_run)
        targets = [target for target in request.targets if target != DEFAULT_RULE]
        if not request.targets or len(targets) < len(request.targets):
            targets += self.default_pages()
        outputs = [strip_wildcard_constraints(str(output)) for rule in workflow.rules for output in rule.output]
        patterns = [
            output.replace("{kind}", kind) for output in outputs for kind in (KEPT if "{kind}" in output else "-")
        ]
        made = {target: _is_made(target, workflow) for target in targets}
        asked, problems = check_targets(targets, patterns, [rule.name for rule in workflow.rules], made, self.project)
        collect_problems(self.project, asked, problems)
        problems.raise_any()
        if request.dry_run:
            atexit.register(self._list_missing_data, workflow)
        self._tell_epochs(asked)

    def _tell_epochs(self, asked: list[tuple[str, str]]) -> None:
        parts = [part for kind, name in asked if kind in ("experiment", "study") for part in self.project.parts(name)]
        for line in epochs_to_tell(dict.fromkeys(parts), self.project):
            print(f"note: {line}", file=sys.stderr)

    def require_raw_data(self, dag: Any) -> None:
        """Raise ConfigError with one line for each raw input that the planned jobs need and that cannot be had."""
        if lines := missing_sources(self.project, planned_sources(dag)):
            raise ConfigError("\n".join(lines))

    def _list_missing_data(self, workflow: Any) -> None:
        try:
            lines = missing_sources(self.project, planned_sources(workflow.dag))
        except Exception:  # there is no plan, and why was said
            return
        for line in lines:
            print(f"missing: {line}", file=sys.stderr)

    def show_summaries(self) -> None:
        """Print the tables of the experiments and studies that this invocation looked at; a study's stand for all."""
        studies = [name for kind, name in self.project.checked if kind == "study"]
        read = {part for study in studies for part in self.project.parts(study)}
        experiments = [name for kind, name in self.project.checked if kind == "experiment"]
        named = [name for name in experiments if name not in read] + studies
        paths = [Path(f"results/{name}/summary.txt") for name in named]
        show_summaries([path for path in paths if path.is_file()], sys.stderr)


def _is_made(target: str, workflow: Any) -> bool:
    """Whether Snakemake can do something with a target: a rule's name, a file that a rule makes or that is there."""
    return (
        workflow.is_rule(target) or Path(target).is_file() or any(rule.is_producer(target) for rule in workflow.rules)
    )


def open_workflow(
    folder: str | Path, overrides: Mapping[str, Any], is_main_process: bool = True, is_real_run: bool = False
) -> SimpleNamespace:
    """What the rules call: the methods of the workflow configured in `folder`, each made to end the program `plainly`.

    The main configuration is checked at once, experiments when they are asked for. Only a real run makes anything. In
    the process of one job of a cluster, calls are written as they are asked for.
    """
    project = Project(folder, overrides)
    try:
        told = (link_roots if is_real_run else check_roots)(project.config.storage_root)
        print("".join(f"{line}\n" for line in told), end="", file=sys.stderr)
    except HatcheryError as error:
        raise SystemExit(error_lines(error)) from None
    workflow = Workflow(project, is_main_process)
    workflow.is_planning = is_main_process
    if not is_main_process:
        workflow.write_calls()
    methods = (name for name, _ in inspect.getmembers(Workflow, inspect.isfunction) if not name.startswith("_"))
    return SimpleNamespace(**{name: plainly(getattr(workflow, name)) for name in methods})
