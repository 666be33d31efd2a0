"""The functions with which the Snakefile builds the rules: inputs, outputs and parameters, from the stages' records."""

import inspect
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from snakemake.io import ancient, report

from hatchery.artifacts.checksums import canonical_json
from hatchery.artifacts.manifests import FORCED
from hatchery.errors import HatcheryError, refusal
from hatchery.experiment.project import Project
from hatchery.job_spec import Call, Paths, paths_of
from hatchery.raw.registration import RawSource, present
from hatchery.runner import arguments_of
from hatchery.sanitize import visible
from hatchery.source_parts import is_what_was_read
from hatchery.stage import Stage, arguments_for, function_of
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import readable_path
from hatchery.workflow.raw_files import RawFiles
from hatchery.workflow.registry import STAGES
from hatchery.workflow.resources import SLOTS, Resources

Result = TypeVar("Result")


def with_plain_errors(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return `function` wrapped so that an error of Hatchery or of the operating system ends Snakemake with one line
    per problem.

    The errors are converted to SystemExit. Snakemake shows any other exception of an input function with a traceback,
    even an exception of Snakemake's own class WorkflowError.
    """

    @wraps(function)
    def call(*positional: Any, **named: Any) -> Result:
        try:
            return function(*positional, **named)
        except HatcheryError as error:
            raise SystemExit(error_lines(error)) from None
        except OSError as error:
            if (line := refusal(error)) is None:
                raise
            raise SystemExit(f"error: {visible(line)}") from None

    # Store the signature, because Snakemake reads the signature about thirty times per job.
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def error_lines(error: HatcheryError) -> str:
    """Return an error's message as lines for the terminal.

    Control characters, which may come from a file that the message quotes, are replaced.
    """
    return "\n".join(f"error: {visible(line)}" for line in str(error).splitlines())


class Rules:
    """Functions and values with which the Snakefile defines its rules for a project. In the process of a single cluster
    job, `is_main_process` is false and nothing is planned.
    """

    def __init__(self, project: Project, is_main_process: bool = True) -> None:
        self.project = project
        self.jobs = Jobs(project)
        self.raw_files = RawFiles(project, is_main_process)
        self.resources = Resources(self.jobs, is_main_process)
        self._is_planning = is_main_process
        # Registered sources together with their current files; the key is the path of the source manifest.
        self._present: dict[str, RawSource] = {}

    # Inputs and parameters -------------------------------------------------------------------------------------------

    def outputs(self, record: Stage) -> dict[str, Any]:
        """Return the output patterns of a stage's rule by name.

        Outputs that `snakemake --report` shows are wrapped in Snakemake's `report`.
        """
        found: dict[str, Any] = dict(record.outputs)
        for name, (category, subcategory) in record.reported.items():
            labels = {key: f"{{{key}}}" for key in record.wildcards if key != "experiment"} | {"file": name}
            caption = f"workflow/report/{record.name}.rst"
            found[name] = report(found[name], caption, category=category, subcategory=subcategory, labels=labels)
        return found

    def inputs(self, record: Stage) -> Callable[[Any], list[str]]:
        """Return the input function of a stage's rule. The input function returns the files that a job reads or that
        must be made before the job.
        """

        def found(wildcards: Any) -> list[str]:
            paths = paths_of(self.inputs_by_argument(record.name, wildcards).values())
            made = Path(record.first_output.format(**wildcards))
            before = record.made_after(**arguments_for(record.made_after, self._known(wildcards)))
            return [*before, *(self._as_input(path, made) for path in self.jobs.targets_for(paths))]

        return with_plain_errors(found)

    def inputs_by_argument(self, name: str, wildcards: Any) -> dict[str, Paths]:
        """Return all files that a stage's job reads, by name of the argument with which the stage's function receives
        them.
        """
        record, arguments = STAGES[name], arguments_of(function_of(name))
        models = {} if record.shared is None else record.shared.models(wildcards.model)
        given = self._call(record, wildcards).arguments
        return {**models, **{key: given[key] for key, each in arguments.items() if each.is_input and key in given}}

    def shown_manifest(self, workflow: Any) -> Callable[[Any], str]:
        """Return the input function of the rule `show_result`. This rule makes a link at a readable path, and the input
        function returns the manifest to which the link must point.

        If an existing link points to another manifest, the rule is forced to run, because Snakemake itself checks only
        that the link exists.
        """

        def manifest(wildcards: Any) -> str:
            shown = readable_path(wildcards.experiment, wildcards.kind, wildcards.place)
            if self._is_planning and self.jobs.is_outdated_link(shown):
                workflow.dag.forcefiles.add(shown)
            return self.jobs.storage_path(shown)

        return with_plain_errors(manifest)

    def kept(self, wildcards: Any) -> str:
        """Return the path of the manifest to which the link at `results/<experiment>/<kind>/<place>` must point. The
        path is a parameter of the rule `show_result`.
        """
        return self.jobs.storage_path(readable_path(wildcards.experiment, wildcards.kind, wildcards.place))

    def _as_input(self, path: str, made: Path) -> str:
        return ancient(path) if self.raw_files.are_the_same(path) or self._reads_the_same(path, made) else path

    def _reads_the_same(self, path: str, made: Path) -> bool:
        """Return True if the raw input with the manifest `path` has changed, but those files of the raw input that were
        read to compute `made` are unchanged.
        """
        if (changed := self.raw_files.changed(path, made)) is None:
            return False
        try:
            if path not in self._present:
                self._present[path] = present(path, *changed)
            return is_what_was_read(made, path, self._present[path])
        except (OSError, HatcheryError):
            return False

    def _known(self, wildcards: Any) -> dict[str, Any]:
        """Return a mapping from argument names to values, for a job with these wildcards. The functions in a stage's
        record (`Stage`) can have these arguments. The wildcards are included.
        """
        return {**self.jobs.known(dict(wildcards.items())), "raw_files": self.raw_files, **wildcards}

    def _call(self, record: Stage, wildcards: Any) -> Call:
        if record.shared is not None:
            return self.jobs.call_at(wildcards.get("address") or wildcards["model"])
        return self.jobs.call(record.name, **dict(wildcards.items()))

    def resources_of(self, record: Stage) -> dict[str, Any]:
        """Return the resources of a stage's rule."""
        resources = self.resources.of_rule(record.name)
        return {name: with_plain_errors(value) if callable(value) else value for name, value in resources.items()}

    def params(self, record: Stage) -> dict[str, Callable[..., str]]:
        """Return the `params` of a stage's rule.

        Snakemake records the settings, the path of the job's specification, and the texts of `Stage.recorded`, and runs
        a job again if one of these changes. Snakemake does not record parameters that depend on `resources`. Therefore
        the parameters `given` and `run`, on which no result depends, depend on `resources`: their changes cause no
        rerun. The command is a parameter and not a part of `shell`, because Snakemake formats `shell` after the
        Snakefile's loop over stages, when the loop variable names the last stage.
        """
        params: dict[str, Callable[..., str]] = {
            "settings": lambda wildcards: self._call(record, wildcards).settings,
            "call": lambda wildcards: str(self._call(record, wildcards).path),
            "given": self._given(record),
            "run": lambda wildcards, resources: self.resources.command(record, resources),
        }
        recorded = {name: self._recorded(record, text) for name, text in record.recorded.items()}
        return {name: with_plain_errors(function) for name, function in (params | recorded).items()}

    def _recorded(self, record: Stage, text: Callable[..., str]) -> Callable[..., str]:
        # If the recorded text is empty (for example, if no raw files are listed), return the settings instead, so that
        # the empty text does not count as a change of the job. The settings add nothing new: Snakemake compares a job's
        # parameters as an unordered set, which already contains the settings.
        def value(wildcards: Any) -> str:
            return text(**arguments_for(text, self._known(wildcards))) or self._call(record, wildcards).settings

        return value

    def _given(self, record: Stage) -> Callable[..., str]:
        """Return a function that returns, as JSON, those arguments of a job that change no result: paths of outputs and
        model, numbers of threads, and runtime settings.
        """
        function = function_of(record.name)
        places = [name for name, each in arguments_of(function).items() if each.is_place]

        def given(wildcards: Any, output: Any, threads: int, resources: Any) -> str:
            names = dict(wildcards.items())
            written = {name: path for name, path in output.items() if name in places}
            found: dict[str, object] = {
                "threads": threads,
                "workers": threads,
                "runtime": self.resources.runtime(record.name),
                **({} if record.shared is None else record.shared.models(names["model"])),
                **written,
                **record.unrecorded(**arguments_for(record.unrecorded, self._known(wildcards))),
            }
            return canonical_json({"output": output[0], **arguments_for(function, found)})

        return given

    # A call of Snakemake ---------------------------------------------------------------------------------------------

    def count_gpus(self, workflow: Any) -> None:
        """Register the number of GPU slots of this machine in Snakemake.

        With this number, Snakemake starts a job only when its GPU slots are free, so a job that waits for a GPU
        occupies no processors.
        """
        # Snakemake's setting `nodes` is set only on a cluster. There, the GPUs are on other machines, and `nodes`
        # limits the number of jobs, so no GPU slots are registered.
        is_here = self._is_planning and workflow.resource_settings.nodes is None
        if is_here and SLOTS not in workflow.global_resources and (slots := self.resources.gpu_slots_here()):
            workflow.register_resource(SLOTS, slots)

    def default_pages(self) -> list[str]:
        """Return the paths of the pages of the experiments that config.yaml lists."""
        return [f"results/{experiment}/index.html" for experiment in self.project.config.experiments]

    def start(self, is_forced: bool) -> None:
        """Write the specifications of jobs, and the readable links to results, before the first job of a Snakemake call
        starts; not called in a dry run.

        An environment variable tells the jobs whether the user forces them to run.
        """
        os.environ[FORCED] = "1" if is_forced else ""
        self.jobs.write_calls()
