"""`hatchery.job`: settings and inputs of any job of the workflow, for a notebook or a debugger.

Settings and inputs are computed by the same code as for a job that Snakemake starts. Paths are relative to the current
folder, which must be the checkout.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.shipped import open_project
from hatchery.job_spec import Call, Paths
from hatchery.runner import arguments_of, run_given
from hatchery.settings.problems import nearest
from hatchery.stage import MODELS, Stage, arguments_for, function_of, parameters
from hatchery.typed import build, stage_body
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.outputs import ReadablePath
from hatchery.workflow.registry import stage_of
from hatchery.workflow.resources import Resources

NOT_NAMES = ("jobs", "results", "of", "project")
"""Names of the parameters that functions in a stage's record may have in addition to wildcards."""


@dataclass(frozen=True)
class StageJob:
    """One job: `names` are the values of the job's wildcards, and `call` is the job's specification (`job_spec`)."""

    record: Stage
    names: Mapping[str, str]
    call: Call
    models: Mapping[str, str]
    given: Mapping[str, object]
    """Further arguments of the stage's function, which do not affect results."""

    @cached_property
    def settings(self) -> Any:
        """Settings that the stage's function receives: an object of the settings class, or a mapping of JSON values."""
        settings = json.loads(self.call.settings)
        cls = self.record.settings_class
        return settings if cls is None else build(cls, stage_body(settings), self.record.name)

    @property
    def inputs(self) -> dict[str, Paths]:
        """Paths of all inputs, by name of the argument of the stage's function."""
        return {**self.models, **self.call.arguments}

    @property
    def outputs(self) -> dict[str, str]:
        """File names of the outputs that `run` writes, by name of the output. `run` may write further files to the same
        folder.
        """
        files = {name: path for name, path in self.record.outputs.items() if isinstance(path, str)}
        return {name: PurePosixPath(path).name.format(**self.names) for name, path in files.items()}

    def run(self, into: str | Path) -> Path:
        """Run the job in this process, write the outputs into the folder `into`, and return the path of the first
        output.

        The experiment's results are not changed. Raises the errors of the job's stage, such as ManifestError for a
        missing input.
        """
        folder, function = Path(into).resolve(), function_of(self.record.name)
        folder.mkdir(parents=True, exist_ok=True)
        arguments = arguments_of(function)
        places = {name: str(folder / file) for name, file in self.outputs.items() if name in arguments}
        if "checkpoints" in arguments:
            # Write checkpoints into a separate folder, so that the job does not continue unfinished runs of the
            # experiment.
            places["checkpoints"] = str(folder / "checkpoints")
        output = folder / next(iter(self.outputs.values()))
        given = {**self.given, **self.models, **places}
        chosen = {name: value for name, value in given.items() if name in arguments}
        settings = json.loads(self.call.settings)
        run_given(function, {**self.call.arguments, **chosen, "settings": settings, "output": str(output)})
        return output


def job(stage: str, config: str | Path = "config", **names: str) -> StageJob:
    """Return a job of the workflow; `names` are its experiment, run, suite and so on, as in the path of the job's
    result.

    Raises ConfigError for a missing name. Also raises ConfigError, which suggests the most similar name, for an unknown
    stage, experiment or other name.
    """
    if not Path(config).is_dir():
        raise ConfigError(
            f"job {stage}: there is no folder {config}; run the job in a checkout, or pass the folder as `config`"
        )
    record, jobs = stage_of(stage), Jobs(open_project(config))
    own = (*parameters(record.settings)[1:], *(name for name in parameters(record.inputs) if name not in NOT_NAMES))
    of_model = () if record.shared is None or record.shared.folder in MODELS else ("experiment", "run")
    wanted = list(dict.fromkeys((*of_model, *own, *(record.shared.names if record.shared else ()))))
    for name in names:
        if name not in wanted:
            raise ConfigError(f"job {stage}: unknown argument {name!r}{nearest(name, wanted)}")
    if missing := [name for name in wanted if name not in names]:
        raise ConfigError(f"job {stage}: missing arguments: {', '.join(missing)}; pass for example {missing[0]}='...'")
    if "experiment" in names:
        jobs.project.check("experiment", names["experiment"])
    call, address = jobs.call(stage, **names), _model_address(record, jobs, names)
    known = {**jobs.known(names), "model": address, **names}
    unrecorded = record.unrecorded(**arguments_for(record.unrecorded, known))
    runtime = Resources(jobs, is_main_process=True).runtime(stage)
    models = {} if record.shared is None else record.shared.models(address)
    return StageJob(record, names, call, models, {"threads": 1, "workers": 1, "runtime": runtime, **unrecorded})


def _model_address(record: Stage, jobs: Jobs, names: Mapping[str, str]) -> str:
    """Return the address (name of the folder) of the model that a job trains or evaluates. The address is empty if the
    job's results are not stored by digest, or if the job has no run.
    """
    if record.shared is None or "run" not in names:
        return ""
    own = [names[name] for name in record.shared.names]
    place = jobs.storage_path(ReadablePath(names["experiment"], record.shared.folder, names["run"], *own))
    return "/".join(PurePosixPath(place).parts[2 : -1 if record.shared.folder in MODELS else -2])
