"""`hatchery.job`: the settings and inputs of any job of the workflow, for a notebook or a debugger.

The job is the one that Snakemake would start, run without Snakemake: the same record of the stage makes its settings
and inputs. Paths are relative to the current folder, the checkout.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
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
"""Arguments of a record's functions that are not names of wildcards."""


@dataclass(frozen=True)
class StageJob:
    """One job: `names` are its wildcards' values, and `call` is the content of its file in results/settings/."""

    record: Stage
    names: Mapping[str, str]
    call: Call
    models: Mapping[str, str]
    given: Mapping[str, object]
    """Further arguments of the stage's function, on which no result depends."""

    @cached_property
    def settings(self) -> Any:
        """The settings as the stage's function gets them: an object of their class, or a mapping of JSON values."""
        settings = json.loads(self.call.settings)
        cls = self.record.settings_class
        return settings if cls is None else build(cls, stage_body(settings), self.record.name)

    @property
    def inputs(self) -> dict[str, Paths]:
        """The paths of all inputs, by the arguments of the stage's function."""
        return {**self.models, **self.call.arguments}

    @property
    def outputs(self) -> dict[str, str]:
        """File names of the outputs that `run` writes, by their names in the record; further files are in the same
        folder."""
        files = {name: path for name, path in self.record.outputs.items() if isinstance(path, str)}
        return {name: PurePosixPath(path).name.format(**self.names) for name, path in files.items()}

    def run(self, into: str | Path) -> Path:
        """Run the job in this process, with its outputs in the folder `into`; returns the path of the first output.

        The results of the experiment stay unchanged. Raises the errors of the stage: ManifestError for a missing input,
        and for other files in a training's folder.
        """
        folder, function = Path(into).resolve(), function_of(self.record.name)
        folder.mkdir(parents=True, exist_ok=True)
        arguments = arguments_of(function)
        places = {name: str(folder / file) for name, file in self.outputs.items() if name in arguments}
        if "checkpoints" in arguments:
            # Unfinished work of the experiment's own jobs is not used.
            places["checkpoints"] = str(folder / "checkpoints")
        output = folder / next(iter(self.outputs.values()))
        given = {**self.given, **self.models, **places}
        chosen = {name: value for name, value in given.items() if name in arguments}
        settings = json.loads(self.call.settings)
        run_given(function, {**self.call.arguments, **chosen, "settings": settings, "output": str(output)})
        return output


def job(stage: str, config: str | Path = "config", **names: str) -> StageJob:
    """Return a job of the workflow: `names` are its experiment, run, suite and so on, as in the path of its result.

    Raises ConfigError for an unknown stage, experiment or other name, naming the nearest match, and for a missing name.
    """
    if not Path(config).is_dir():
        raise ConfigError(
            f"job {stage}: there is no folder {config}; run it in a checkout, or name the folder as `config`"
        )
    record, jobs = stage_of(stage), Jobs(Project(config))
    own = (*parameters(record.settings)[1:], *(name for name in parameters(record.inputs) if name not in NOT_NAMES))
    of_model = () if record.shared is None or record.shared.folder in MODELS else ("experiment", "run")
    wanted = list(dict.fromkeys((*of_model, *own, *(record.shared.names if record.shared else ()))))
    for name in names:
        if name not in wanted:
            raise ConfigError(f"job {stage}: got the name {name!r}{nearest(name, wanted)}")
    if missing := [name for name in wanted if name not in names]:
        raise ConfigError(f"job {stage}: {', '.join(missing)}: missing; for example {missing[0]}='...'")
    if "experiment" in names:
        jobs.project.check("experiment", names["experiment"])
    call, address = jobs.call(stage, **names), _model_address(record, jobs, names)
    known = {**jobs.known(names), "model": address, **names}
    unrecorded = record.unrecorded(**arguments_for(record.unrecorded, known))
    runtime = Resources(jobs, is_main_process=True).runtime(stage)
    models = {} if record.shared is None else record.shared.models(address)
    return StageJob(record, names, call, models, {"threads": 1, "workers": 1, "runtime": runtime, **unrecorded})


def _model_address(record: Stage, jobs: Jobs, names: Mapping[str, str]) -> str:
    """Return the storage path of the model that a job makes or measures; empty for stages without a model."""
    if record.shared is None or "run" not in names:
        return ""
    own = [names[name] for name in record.shared.names]
    place = jobs.storage_path(ReadablePath(names["experiment"], record.shared.folder, names["run"], *own))
    return "/".join(PurePosixPath(place).parts[2 : -1 if record.shared.folder in MODELS else -2])
