"""What Snakemake's rules take from the records of their stages, in the words of Snakemake's directives."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from hatchery.errors import HatcheryError
from hatchery.job_spec import Call
from hatchery.os_errors import refusal
from hatchery.stages.record import Stage
from hatchery.workflow.compute import Compute

Result = TypeVar("Result")


def plainly(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, with errors that end the invocation with their own lines, as what the machine refuses does.

    Snakemake wraps every exception of an input function, its own WorkflowError too, in a message with a traceback;
    only SystemExit passes through untouched.
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
            raise SystemExit(f"error: {line}") from None

    # Snakemake asks for it some thirty times a job.
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def error_lines(error: HatcheryError) -> str:
    """An error as the terminal shows it."""
    return "\n".join(f"error: {line}" for line in str(error).splitlines())


class StageRule:
    """What is the same in every rule, for one stage: `log`, `benchmark`, `conda`, `threads`, `resources`, `params`.

    Of the parameters, Snakemake records `settings` and `call`, from which reruns follow. How a job computes it does not
    record: those functions ask for resources.
    """

    def __init__(self, layout: Compute, record: Stage) -> None:
        self._layout = layout
        self._record = record
        self.log = record.place("logs", ".log")
        self.benchmark = record.place("results/benchmarks", ".tsv")
        # Relative to workflow/rules, as Snakemake wants it.
        self.conda = f"../../envs/{record.environment}.yaml"
        self.threads = layout.threads(record.threads)
        self.resources = {
            key: plainly(value) if callable(value) else value for key, value in layout.resources(record.name).items()
        }
        self.params = self._params()

    def given(self, *names: str) -> Callable[[Any], list[str]]:
        """An input function: the files that the job's call names as these arguments, or as any; see `Stage`."""

        def paths(wildcards: Any) -> list[str]:
            return self._layout.all_kept(self._call(wildcards).paths(*names))

        return plainly(paths)

    def _call(self, wildcards: Any) -> Call:
        if self._record.kept is None:
            return self._layout.job(self._record.name, **wildcards)
        return self._layout.job_at(wildcards[self._record.wildcards[-1]])

    def _params(self) -> dict[str, Callable[..., str]]:
        layout, record = self._layout, self._record

        def settings(wildcards: Any) -> str:
            return self._call(wildcards).settings

        def call(wildcards: Any) -> str:
            return str(self._call(wildcards).path)

        def runtime(wildcards: Any, resources: Any) -> str:
            return layout.runtime(record.name)

        def claim(wildcards: Any, resources: Any) -> str:
            return layout.gpu_claim(resources)

        def launch(wildcards: Any, resources: Any) -> str:
            return layout.launch(resources)

        chosen: dict[str, Callable[..., str]] = {"settings": settings, "call": call}
        if record.runtime:
            chosen["runtime"] = runtime
        if record.sort == "model":
            chosen["claim"] = claim
        if record.sort == "pretraining":
            chosen["launch"] = launch
        return {name: plainly(function) for name, function in chosen.items()}
