"""Where pretrained models and what is measured of them are kept: under what they are made from, not under who asks.

A result's address is the digest of its settings and of the addresses of its inputs, so a copied or renamed experiment,
or two runs with equal settings, find the same model. What users read and what views are given are the readable places
`results/<experiment>/pretraining/<model>/` and so on, links to the kept results, made when the workflow starts.

    results/models/<corpus>-<digest>/                      pretraining
    results/<kind>/<model's address>/<name>-<digest>/      minimal_pairs, perplexity, translation,
                                                          finetuning, finetuning_jobs

The digest is that of the call's file (`hatchery.job_spec`), from which a job of a cluster learns what an address means.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hatchery.artifacts.links import links_to, put_link
from hatchery.errors import ConfigError
from hatchery.experiment.finetuning_jobs import batches_by_task
from hatchery.experiment.project import Project
from hatchery.experiment.reserved import RESERVED
from hatchery.job_spec import FOLDER, Argument, Call, read_call
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import offered
from hatchery.stages.record import wanted
from hatchery.stages.registry import KEPT, stage_of
from hatchery.workflow.layout import Layout

_READABLE = re.compile(rf"results/([^/]+)/({'|'.join(KEPT)})/([^/]+)(?:/(.*))?")


class KeptResults(Layout):
    """The layout with the calls of jobs, and with the places where results that experiments share are kept."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._running = False
        self._calls: dict[str, Call] = {}
        self._addresses: dict[tuple[str, ...], str] = {}
        self._kept: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._made: dict[tuple[str, ...], Call] = {}
        self._batches: dict[str, dict[str, str]] = {}

    # Calls -----------------------------------------------------------------------------------------------------------

    def job(self, name: str, **wildcards: str) -> Call:
        """The call of a stage's job, as the stage's record makes it of those wildcards that it needs."""
        key = (name, *(f"{key}={value}" for key, value in sorted(wildcards.items())))
        if key not in self._made:
            arguments = stage_of(name).arguments
            given = arguments(self, **wanted(arguments, wildcards))
            self._made[key] = Call(self.settings(name, **wildcards), given)
            self._note(self._made[key])
        return self._made[key]

    def job_at(self, address: str) -> Call:
        """The call of the job whose result is kept at `address`. Raises ConfigError where nobody knows it."""
        digest = address.rpartition("-")[2]
        if digest not in self._calls:
            path = FOLDER / f"{digest}.json"
            if not path.exists():
                raise ConfigError(
                    f"{address}: nothing that was asked for has this address; ask for "
                    "results/<experiment>/pretraining/<model>/manifest.json or another result of an experiment"
                )
            self._calls[digest] = read_call(path)
        return self._calls[digest]

    def knows(self, address: str) -> bool:
        """Whether something that was asked for in this invocation has this address."""
        return address.rpartition("-")[2] in self._calls

    def write_calls(self) -> None:
        """Write the calls and the links of everything planned so far and from now on; never in a dry run."""
        self._running = True
        for call in self._calls.values():
            call.write()
        for folder, kept in self._kept.items():
            put_link(Path(folder), Path(kept))

    def _note(self, call: Call) -> None:
        if call.digest not in self._calls:
            self._calls[call.digest] = call
            if self._running:
                call.write()

    def pretraining_inputs(self, experiment: str, run: str) -> dict[str, Argument]:
        """Manifests that a pretraining reads: tokens, tokenizer and, if it goes on from one, the initial model."""
        found: dict[str, Argument] = {
            "tokens": self.experiment_tokens(experiment),
            "tokenizer": self.experiment_tokenizer(experiment),
        }
        for initial in self.all_kept(self.initial_model(experiment, run)):
            found["initial_model"] = initial
        block = self.project.experiment(experiment)
        larger = block.runs[self.project.seeded_run(experiment, run).model].pretraining.output_bias.larger_corpus
        if larger is not ABSENT:
            found["counts"] = f"results/tokens/{larger}/{block.tokenizer}/manifest.json"
        return found

    def batch_folders(self, experiment: str, batch: str) -> dict[str, str]:
        """The addresses of the results of each task of a job of several."""
        return {
            task: self._address(experiment, "finetuning", {"task": task})
            for task in self.batch_tasks(experiment, batch)
        }

    # Places ----------------------------------------------------------------------------------------------------------

    def kept(self, path: str) -> str:
        """Where a file is kept: below an address for `results/<experiment>/pretraining/...` and the like, else `path`.

        Raises ConfigError with the nearest match for an unknown experiment, model, suite or task.
        """
        match = _READABLE.fullmatch(path)
        if match is None or match[1] in RESERVED:
            return path
        experiment, kind, run, rest = match.groups(default="")
        names = KEPT[kind][1].names
        parts = rest.split("/", len(names))
        if len(parts) < len(names) or (names and not parts[0]):
            return path
        folder = "/".join(["results", experiment, kind, run, *parts[: len(names)]])
        if folder not in self._kept:
            self._kept[folder] = self._kept_folder(experiment, kind, run, dict(zip(names, parts, strict=False)))
            if self._running:
                put_link(Path(folder), Path(self._kept[folder]))
        return "/".join([self._kept[folder], *(part for part in parts[len(names) :] if part)])

    def kept_kinds(self) -> str:
        """A pattern of the folders of an experiment that hold such links."""
        return "|".join(KEPT)

    def kept_manifest(self, experiment: str, kind: str, place: str) -> str:
        """Where the manifest of a result of an experiment is kept."""
        return self.kept(f"results/{experiment}/{kind}/{place}/manifest.json")

    def leads_elsewhere(self, path: str) -> bool:
        """Whether a readable place still links to what was made with other settings."""
        kept = self.kept(path)
        return kept != path and Path(path).exists() and os.path.realpath(path) != os.path.realpath(kept)

    def all_kept(self, paths: Iterable[str] | Mapping[str, str]) -> list[str]:
        """What to ask for to have these files: where they are kept, each once, in their order.

        Where one job makes several fine-tuning results, its manifest stands for them.
        """
        paths = paths.values() if isinstance(paths, Mapping) else paths
        return list(dict.fromkeys(self._asked(path) for path in paths))

    def _asked(self, path: str) -> str:
        # Views read each result at its readable place, also where a job of several tasks makes it.
        kept = self.kept(path)
        match = _READABLE.fullmatch(path) if kept != path else None
        if match is None or match[2] != "finetuning":
            return kept
        experiment, _, run, rest = match.groups(default="")
        if experiment not in self._batches:
            self._batches[experiment] = batches_by_task(self.project, experiment)
        batch = self._batches[experiment].get(rest.partition("/")[0])
        return kept if batch is None else self.kept(f"results/{experiment}/finetuning_jobs/{run}/{batch}/manifest.json")

    def look_at(self, experiments: Iterable[str]) -> None:
        """Learn what the addresses of all results of these experiments stand for."""
        for experiment in experiments:
            self.all_kept(self.results_of(experiment))

    def results_of(self, experiment: str) -> list[str]:
        """The readable manifests of everything that is kept elsewhere for an experiment."""
        found = (self.pretrained, self.minimal_pairs, self.perplexities, self.translated, self.finetuned)
        return [path for paths in found for path in paths(experiment).values()]

    def names(self, model: str, address: str = "") -> dict[str, str]:
        """What addresses stand for: `experiment`, `run`, and `suite`, `task` or `batch`; empty where nobody asked.

        Of several names, that of the experiment that was asked for first.
        """
        return self._names.get(f"{model}/{address}", {})

    def words(self, wildcards: Mapping[str, str]) -> list[str]:
        """What the wildcards of a job stand for: experiment, model and so on for an address that has a name."""
        named = self.names(wildcards.get("model", ""), wildcards.get("address", ""))
        return list((named or wildcards).values())

    def title(self, model: str, address: str = "") -> str:
        """A readable name of a result, for terminals and reports; its address where nobody knows a name."""
        names = self.names(model, address)
        if names:
            return " ".join(value for key, value in names.items() if key != "experiment")
        found = links_to(f"results/models/{model}", Path("results").glob("*/pretraining/*"))
        run = found[0].name if found else model
        return f"{run} {address.rpartition('-')[0]}".strip()

    def readable(self, model: str, address: str = "") -> list[str]:
        """The readable folders whose links lead to a result, of what was asked for in this invocation."""
        return [
            folder
            for folder, kept in self._kept.items()
            if kept.split("/")[2:] == [model, *([address] * bool(address))]
        ]

    def _kept_folder(self, experiment: str, kind: str, run: str, names: dict[str, str]) -> str:
        model = self._address(experiment, "pretraining", {"run": run})
        tasks = self.project.experiment(experiment).finetuning.tasks
        if "task" in names and names["task"] not in tasks:
            raise ConfigError(
                f"experiment {experiment!r} has no fine-tuning task {names['task']!r}{offered(names['task'], tasks)}"
            )
        if kind == "pretraining":
            self._names.setdefault(f"{model}/", {"experiment": experiment, "run": run})
            return f"results/models/{model}"
        address = self._address(experiment, kind, names)
        self._names.setdefault(f"{model}/{address}", {"experiment": experiment, "run": run, **names})
        return f"results/{kind}/{model}/{address}"

    def _address(self, experiment: str, kind: str, names: Mapping[str, str]) -> str:
        key = (kind, experiment, *names.values())
        if key not in self._addresses:
            call = self.job(KEPT[kind][0].name, experiment=experiment, **names)
            corpus = self.project.experiment(experiment).corpus
            self._addresses[key] = (
                f"{corpus if kind == 'pretraining' else next(iter(names.values()), corpus)}-{call.digest}"
            )
        return self._addresses[key]
