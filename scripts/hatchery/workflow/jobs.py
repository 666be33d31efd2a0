"""The specifications of jobs (`Call`: settings and inputs), and the storage paths of results that several experiments
may share.

Pretrained models and their evaluations are stored by digest, not by experiment. The name of a result's folder is the
address of the result. It contains a digest of the result's settings and of the addresses of its inputs. So if an
experiment is copied or renamed, or if two runs have equal settings, the model is trained once and shared. Users, pages
and tables use readable paths such as `results/<experiment>/pretraining/<model>/`, which are links to the storage paths.
The links are created when the workflow starts.

    results/models/<corpus>-<digest>/                      pretraining
    results/models/imported-<baseline>-<digest>/           baselines
    results/<kind>/<model's address>/<name>-<digest>/      evaluations (minimal_pairs, perplexity, finetuning, ...),
                                                           finetuning_jobs, minimal_pairs_jobs, filled_sentences

The digest is the beginning of the SHA-256 of the file with the job's specification (`hatchery.job_spec`). A cluster job
reads its settings from this file.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.artifacts.links import links_to, put_link
from hatchery.errors import ConfigError
from hatchery.experiment.finetuning import batches_by_task
from hatchery.experiment.milestones import suite_batches
from hatchery.experiment.project import Project
from hatchery.experiment.seeded_run import SeededRun
from hatchery.job_spec import FOLDER, Call, read_call
from hatchery.settings.problems import alternatives
from hatchery.stage import IMPORTED, MODEL, MODELS, arguments_for
from hatchery.training.milestones import milestone_place
from hatchery.workflow.outputs import Outputs, ReadablePath
from hatchery.workflow.registry import SHARED, stage_of
from hatchery.workflow.result_paths import ResultPaths


@dataclass(frozen=True)
class SharedResult:
    """A result of an experiment that is stored by digest.

    `names` contain the name of the suite, task or batch to which the result belongs; `names` are empty for other
    results. A batch is a job for several suites or tasks.
    """

    experiment: str
    kind: str
    run: str
    names: Mapping[str, str]
    # Address (name of the folder) of the model; if the result is an evaluation, followed by the address of the
    # evaluation.
    addresses: tuple[str, ...]

    @property
    def readable(self) -> str:
        """Readable path of the result, which is a link to `folder`."""
        return "/".join(["results", self.experiment, self.kind, self.run, *self.names.values()])

    @property
    def folder(self) -> str:
        """Folder in which the result is stored."""
        return "/".join(["results", "models" if self.kind in MODELS else self.kind, *self.addresses])


class Jobs:
    """The specifications (`Call`) of a project's jobs, and the storage paths of the jobs' results.

    Each specification is built once.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.results = ResultPaths(project)
        self._writes = False
        self._settings: dict[tuple[str, ...], str] = {}
        self._calls: dict[tuple[str, ...], Call] = {}
        self._by_digest: dict[str, Call] = {}
        self._shared: dict[str, SharedResult] = {}
        self._at: dict[tuple[str, ...], list[SharedResult]] = {}
        self._batches: dict[str, dict[str, str]] = {}

    # Specifications --------------------------------------------------------------------------------------------------

    def settings(self, stage: str, **wildcards: str) -> str:
        """Return the settings of a job as canonical JSON, which is computed once.

        Wildcards on which the settings do not depend are ignored.
        """
        record = stage_of(stage)
        chosen = arguments_for(record.settings, wildcards)
        key = (stage, *chosen.values())
        if key not in self._settings:
            self._settings[key] = record.canonical_settings(self.project, **chosen)
        return self._settings[key]

    def call(self, stage: str, **wildcards: str) -> Call:
        """Return the specification of a stage's job; wildcards that the stage does not need are ignored.

        Raises ConfigError for an impossible job, for example a conversion of a corpus that is a sample of another
        corpus.
        """
        record = stage_of(stage)
        taken = {**arguments_for(record.settings, wildcards), **arguments_for(record.inputs, wildcards)}
        key = (stage, *taken.values())
        if key not in self._calls:
            known = {**self.known(taken), **taken}
            # Compute the inputs before the settings: the function for inputs reports unknown names, and the function
            # for settings assumes valid names.
            inputs = record.inputs(**arguments_for(record.inputs, known))
            self._calls[key] = call = Call(self.settings(stage, **taken), inputs)
            if call.digest not in self._by_digest:
                self._by_digest[call.digest] = call
                if self._writes:
                    call.write()
        return self._calls[key]

    def known(self, wildcards: Mapping[str, str]) -> dict[str, Any]:
        """Return a mapping from argument names to values, for a job with these wildcards. The functions in a stage's
        record (`Stage`) can have these arguments. For example, `of` builds the paths of the job's inputs and outputs.
        """
        of = Outputs(self.project, **wildcards)
        return {"of": of, "jobs": self, "results": self.results, "project": self.project}

    def call_at(self, address: str) -> Call:
        """Return the specification of the job whose result has this address (name of its folder).

        Raises ConfigError for an unknown address.
        """
        digest = _digest(address)
        if digest not in self._by_digest:
            path = FOLDER / f"{digest}.json"
            if not path.exists():
                raise ConfigError(
                    f"{address}: this path belongs to no known result; request "
                    "results/<experiment>/pretraining/<model>/manifest.json or another result of an experiment"
                )
            self._by_digest[digest] = read_call(path)
        return self._by_digest[digest]

    def is_requested(self, address: str) -> bool:
        """Return True if this process knows the specification of the result at `address`. A specification is known if
        the result was requested, or if `call_at` has read the specification.
        """
        return _digest(address) in self._by_digest

    def write_calls(self) -> None:
        """Write the specifications of all known jobs, and the links at readable paths to their results. From now on,
        also write the specification and the links of each further job when it is planned.

        Dry runs do not call this method.
        """
        self._writes = True
        for call in self._by_digest.values():
            call.write()
        for result in self._shared.values():
            put_link(Path(result.readable), Path(result.folder))

    # Paths -----------------------------------------------------------------------------------------------------------

    def storage_path(self, path: str) -> str:
        """Return the storage path of a file: the path by digest if experiments can share the file, otherwise `path`.

        Raises ConfigError, which suggests the most similar name, for an unknown experiment, model, suite or task.
        """
        return f"{self._result(path).folder}/manifest.json" if isinstance(path, ReadablePath) else path

    def is_outdated_link(self, path: ReadablePath) -> bool:
        """Return True if a readable path is a link to a result that was made with other settings or inputs than the
        current configuration defines.
        """
        return Path(path).exists() and os.path.realpath(path) != os.path.realpath(self.storage_path(path))

    def targets_for(self, paths: Iterable[str]) -> list[str]:
        """Return the storage paths that Snakemake must build for the files `paths`, in the same order, without
        duplicates.

        If one job makes the results of several tasks or suites, the target is the manifest of this job.
        """
        return list(dict.fromkeys(self._target_for(path) for path in paths))

    def _target_for(self, path: str) -> str:
        # Each task and each suite has a readable path. If one job makes the results of several tasks or suites, the
        # target is the manifest of this job.
        stored = self.storage_path(path)
        if isinstance(path, ReadablePath) and path.kind == "minimal_pairs":
            return self._target_of_suites(path) or stored
        if not isinstance(path, ReadablePath) or path.kind != "finetuning":
            return stored
        if path.experiment not in self._batches:
            self._batches[path.experiment] = batches_by_task(self.project, path.experiment)
        batch = self._batches[path.experiment].get(path.names[0])
        if batch is None:
            return stored
        return self.storage_path(ReadablePath(path.experiment, "finetuning_jobs", path.run, batch))

    def _target_of_suites(self, path: ReadablePath) -> str | None:
        """Return the manifest of the job that scores a suite together with other suites; None if the suite has its own
        job.
        """
        block = self.project.experiment(path.experiment)
        if block.suites_per_job == 1:
            return None
        batches = suite_batches(block, path.run in self.project.milestones(path.experiment))
        batch = next((name for name, suites in batches.items() if path.names[0] in suites), None)
        return batch and self.storage_path(ReadablePath(path.experiment, "minimal_pairs_jobs", path.run, batch))

    def address(self, experiment: str, kind: str, **names: str) -> str:
        """Return the folder name of a result. `names` identify the result: the run and, for some kinds of results, the
        suite, task or batch. A batch is a job for several suites or tasks.

        The folder name of an evaluation begins with the suite, task or batch, and the folder name of a model with the
        corpus. Both folder names end with the digest of the job's specification (settings and inputs).
        """
        stage, shared = SHARED[kind]
        call = self.call(stage.name, experiment=experiment, **names)
        own = [names[name] for name in shared.names]
        return f"{own[0] if own else self.project.experiment(experiment).corpus}-{call.digest}"

    def _result(self, path: ReadablePath) -> SharedResult:
        if path not in self._shared:
            names = dict(zip(SHARED[path.kind][1].names, path.names, strict=True))
            tasks = self.project.experiment(path.experiment).finetuning.tasks
            if "task" in names and names["task"] not in tasks:
                raise ConfigError(
                    f"experiment {path.experiment!r} has no fine-tuning task {names['task']!r}"
                    f"{alternatives(names['task'], tasks)}"
                )
            model = self._model_address(path.experiment, path.kind, path.run)
            own = () if path.kind in MODELS else (self.address(path.experiment, path.kind, run=path.run, **names),)
            self._shared[path] = result = SharedResult(path.experiment, path.kind, path.run, names, (model, *own))
            self._at.setdefault(result.addresses, []).append(result)
            if self._writes:
                put_link(Path(result.readable), Path(result.folder))
        return self._shared[path]

    def checkpoints(self, experiment: str, run: str) -> dict[str, str]:
        """Return the manifests of the intermediate models that a run saves at word counts, by name of the milestone.

        If the training of a run continues the training of other runs, the intermediate models of those runs are
        included.
        """
        return {
            kept.milestone: MODEL.format(model=self._milestone_address(where, kept))
            for where, kept in self.project.checkpoints(experiment, run)
        }

    def _milestone_address(self, experiment: str, milestone: SeededRun) -> str:
        trained = self.address(experiment, "pretraining", run=milestone.milestone_of)
        return f"{trained}/{milestone_place(milestone.milestone)}"

    def _model_address(self, experiment: str, kind: str, run: str) -> str:
        """Return the address (name of the folder) of the model to which a result of the kind `kind` belongs. The model
        is trained or external.
        """
        known = self.project.experiment(experiment).baselines
        if (milestone := self.project.milestones(experiment).get(run)) is not None:
            return self._milestone_address(experiment, milestone)
        if kind == "baselines" and run not in known:
            raise ConfigError(f"experiment {experiment!r} has no baseline {run!r}{alternatives(run, known)}")
        if kind == "pretraining" or run not in known:
            return self.address(experiment, "pretraining", run=run)
        return f"{IMPORTED}{run}-{self.call(SHARED['baselines'][0].name, baseline=run).digest}"

    # Names -----------------------------------------------------------------------------------------------------------

    def learn_names(self, experiments: Iterable[str]) -> None:
        """Record the names (experiment, run and so on) of all results of these experiments, by the results' addresses
        (names of folders). The method `names` then finds the names that belong to an address.
        """
        for experiment in experiments:
            made = self.results.models(experiment), self.results.evaluations(experiment)
            self.targets_for(
                path for paths in (*made, self.results.filled_sentences(experiment)) for path in paths.values()
            )

    def results_at(self, model: str, address: str = "") -> list[SharedResult]:
        """Return the results that this Snakemake call has requested and that are stored in one folder, in the order of
        the requests. Several experiments may share the folder.

        `model` is the name of the model's folder, and `address` is the name of an evaluation's folder. Without
        `address`, the result is the model.
        """
        return self._at.get((model, address) if address else (model,), [])

    def names(self, model: str, address: str = "") -> dict[str, str]:
        """Return the names of the result in a folder named `address`: `experiment`, `run`, and `suite`, `task` or
        `batch`.

        If several experiments share the result, the names in the experiment that was requested first are returned.
        Empty if the result was not requested.
        """
        found = self.results_at(model, address)
        return {"experiment": found[0].experiment, "run": found[0].run, **found[0].names} if found else {}

    def names_of_wildcards(self, wildcards: Mapping[str, str]) -> list[str]:
        """Return readable names for the wildcards of a job.

        If a wildcard is an address (the name of a result's folder, which contains a digest), the names of experiment,
        run, and suite, task or batch replace the wildcards. Otherwise, the wildcards are already readable names.
        """
        named = self.names(wildcards.get("model", ""), wildcards.get("address", ""))
        return list((named or wildcards).values())

    def title(self, model: str, address: str = "") -> str:
        """Return a readable name of a result, for terminals and reports.

        If the result was not requested, the run's name is read from an existing link; without a link, the model's
        address replaces this name.
        """
        names = self.names(model, address)
        if names:
            return " ".join(value for key, value in names.items() if key != "experiment")
        links = (path for kind in MODELS for path in Path("results").glob(f"*/{kind}/*"))
        found = links_to(f"results/models/{model}", links)
        run = found[0].name if found else model
        return f"{run} {address.rpartition('-')[0]}".strip()


def _digest(address: str) -> str:
    return address.rpartition("-")[2]
