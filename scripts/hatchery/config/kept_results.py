"""Where pretrained models and what is measured of them are kept: under what they are made from, not under who asks.

A result's address is the digest of its settings and of the addresses of its inputs, so a copied or renamed experiment,
or two runs with equal settings, find the same model. What users read and what views are given are the readable places
`results/<experiment>/pretraining/<model>/` and so on, links to the kept results, made when the workflow starts.

    results/models/<corpus>-<digest>/                      pretraining
    results/<kind>/<model's address>/<name>-<digest>/      minimal_pairs, perplexity, finetuning, finetuning_jobs

The digest is that of the call's file (`hatchery.call`), from which a job of a cluster learns what an address means.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hatchery.call import FOLDER, Argument, Call, read_call
from hatchery.config.finetuning_jobs import declared_outputs
from hatchery.config.layout import Layout
from hatchery.config.project import Project
from hatchery.config.reserved import RESERVED
from hatchery.config.schema import nearest
from hatchery.errors import ConfigError
from hatchery.storage.links import links_to, put_link

# The folders of an experiment whose results are kept elsewhere, with the rule that makes them and what tells results
# of one model apart.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pretraining": ("pretrain", ()),
    "minimal_pairs": ("score_minimal_pairs", ("suite",)),
    "perplexity": ("measure_perplexity", ()),
    "finetuning": ("finetune", ("task",)),
    "finetuning_jobs": ("finetune_tasks", ("batch",)),
}
_READABLE = re.compile(rf"results/([^/]+)/({'|'.join(KINDS)})/([^/]+)(?:/(.*))?")


class KeptResults(Layout):
    """The layout with the calls of jobs, and with the places where results that experiments share are kept."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._running = False
        self._calls: dict[str, Call] = {}
        self._addresses: dict[tuple[str, ...], str] = {}
        self._kept: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}

    # Calls -----------------------------------------------------------------------------------------------------------

    def call(self, stage: str, arguments: Mapping[str, Argument] | None = None, **wildcards: str) -> str:
        """The file with the settings of a job and its arguments; see `Call`. It is written once jobs really run."""
        return self._noted(Call(self.settings(stage, **wildcards), arguments or {}))

    def call_of(self, address: str) -> str:
        """The file of the call that a result at `address` comes from."""
        return self._noted(self._call(address))

    def settings_of(self, address: str) -> str:
        """Canonical settings of the stage whose result is kept at `address`."""
        return self._call(address).settings

    def knows(self, address: str) -> bool:
        """Whether something that was asked for in this invocation has this address."""
        return address.rpartition("-")[2] in self._calls

    def given(self, address: str, argument: str) -> list[str]:
        """The paths that the job of an address is given as this argument, each once."""
        return self._call(address).paths(argument)

    def write_calls(self) -> None:
        """Write the calls and the links of everything planned so far and from now on; never in a dry run."""
        self._running = True
        for call in self._calls.values():
            call.write()
        for folder, kept in self._kept.items():
            put_link(Path(folder), Path(kept))

    def _noted(self, call: Call) -> str:
        if call.digest not in self._calls:
            self._calls[call.digest] = call
            if self._running:
                call.write()
        return str(call.path)

    def _call(self, address: str) -> Call:
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

    # Places ----------------------------------------------------------------------------------------------------------

    def kept(self, path: str) -> str:
        """Where a file is kept: below an address for `results/<experiment>/pretraining/...` and the like, else `path`.

        Raises ConfigError with the nearest match for an unknown experiment, model, suite or task.
        """
        match = _READABLE.fullmatch(path)
        if match is None or match[1] in RESERVED:
            return path
        experiment, kind, cell, rest = match.groups(default="")
        names = KINDS[kind][1]
        parts = rest.split("/", len(names))
        if len(parts) < len(names) or (names and not parts[0]):
            return path
        folder = "/".join(["results", experiment, kind, cell, *parts[: len(names)]])
        if folder not in self._kept:
            self._kept[folder] = self._kept_folder(experiment, kind, cell, dict(zip(names, parts, strict=False)))
            if self._running:
                put_link(Path(folder), Path(self._kept[folder]))
        return "/".join([self._kept[folder], *(part for part in parts[len(names) :] if part)])

    def kept_kinds(self) -> str:
        """A pattern of the folders of an experiment that hold such links."""
        return "|".join(KINDS)

    def kept_manifest(self, experiment: str, kind: str, place: str) -> str:
        """Where the manifest of a result of an experiment is kept."""
        return self.kept(f"results/{experiment}/{kind}/{place}/manifest.json")

    def leads_elsewhere(self, path: str) -> bool:
        """Whether a readable place still links to what was made with other settings."""
        kept = self.kept(path)
        return kept != path and Path(path).exists() and os.path.realpath(path) != os.path.realpath(kept)

    def all_kept(self, paths: Iterable[str] | Mapping[str, str]) -> list[str]:
        """Where files are kept, each once, in their order."""
        paths = paths.values() if isinstance(paths, Mapping) else paths
        return list(dict.fromkeys(self.kept(path) for path in paths))

    def finetuning_inputs(self, experiment: str, finetuned: Mapping[str, str]) -> list[str]:
        """What to ask for to have these fine-tuning results, manifests by `CELL:TASK`."""
        # Views read each result at its readable place, also where a job of several tasks makes it.
        self.all_kept(finetuned)
        return self.all_kept(declared_outputs(self.project, experiment, finetuned))

    def figure_inputs(self, experiment: str, figure: str) -> list[str]:
        """What to ask for to have what a figure draws."""
        drawn = self.drawn(experiment, figure)
        finetuned = self.finetuned(experiment).values()
        if all(path in finetuned for path in drawn.values()):
            return self.finetuning_inputs(experiment, drawn)
        return self.all_kept(drawn)

    def look_at(self, experiments: Iterable[str]) -> None:
        """Learn what the addresses of all results of these experiments stand for."""
        for experiment in experiments:
            self.all_kept(self.results_of(experiment))

    def results_of(self, experiment: str) -> list[str]:
        """The readable manifests of everything that is kept elsewhere for an experiment."""
        finetuned = self.finetuned(experiment)
        found = (self.pretrained(experiment), self.minimal_pairs(experiment), self.perplexities(experiment), finetuned)
        readable = [path for paths in found for path in paths.values()]
        return list(dict.fromkeys([*readable, *declared_outputs(self.project, experiment, finetuned)]))

    def names(self, model: str, address: str = "") -> dict[str, str]:
        """What addresses stand for: `experiment`, `cell`, and `suite`, `task` or `batch`; empty where nobody asked.

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
        cell = found[0].name if found else model
        return f"{cell} {address.rpartition('-')[0]}".strip()

    def readable(self, model: str, address: str = "") -> list[str]:
        """The readable folders whose links lead to a result, of what was asked for in this invocation."""
        return [
            folder
            for folder, kept in self._kept.items()
            if kept.split("/")[2:] == [model, *([address] * bool(address))]
        ]

    def _kept_folder(self, experiment: str, kind: str, cell: str, names: dict[str, str]) -> str:
        model = self._model(experiment, cell)
        tasks = self.project.experiment(experiment)["finetuning"]["tasks"]
        if "task" in names and names["task"] not in tasks:
            raise ConfigError(
                f"experiment {experiment!r} has no fine-tuning task {names['task']!r}; there are: "
                f"{', '.join(tasks) or 'none'}{nearest(names['task'], tasks)}"
            )
        if kind == "pretraining":
            self._names.setdefault(f"{model}/", {"experiment": experiment, "cell": cell})
            return f"results/models/{model}"
        address = self._address(experiment, kind, **names)
        self._names.setdefault(f"{model}/{address}", {"experiment": experiment, "cell": cell, **names})
        return f"results/{kind}/{model}/{address}"

    def _model(self, experiment: str, cell: str) -> str:
        key = ("pretraining", experiment, cell)
        if key not in self._addresses:
            arguments: dict[str, Argument] = {
                "tokens": self.experiment_tokens(experiment),
                "tokenizer": self.experiment_tokenizer(experiment),
            }
            for initial in self.all_kept(self.initial_model(experiment, cell)):
                arguments["initial_model"] = initial
            call = Call(self.settings("pretrain", experiment=experiment, cell=cell), arguments)
            self._noted(call)
            self._addresses[key] = f"{self.project.experiment(experiment)['corpus']}-{call.digest}"
        return self._addresses[key]

    def _address(self, experiment: str, kind: str, **names: str) -> str:
        key = (kind, experiment, *names.values())
        if key not in self._addresses:
            stage = KINDS[kind][0]
            wildcards = names if kind == "minimal_pairs" else {"experiment": experiment, **names}
            call = Call(self.settings(stage, **wildcards), self._arguments(experiment, kind, names))
            self._noted(call)
            word = next(iter(names.values()), self.project.experiment(experiment)["corpus"])
            self._addresses[key] = f"{word}-{call.digest}"
        return self._addresses[key]

    def _arguments(self, experiment: str, kind: str, names: Mapping[str, str]) -> dict[str, Argument]:
        match kind:
            case "minimal_pairs":
                return {"source": self.evaluation_source("suite", names["suite"])}
            case "perplexity":
                return {"tokens": self.experiment_tokens(experiment)}
            case "finetuning":
                vocabulary = self.task_vocabulary(names["task"])
                return {"source": self.task_sources(names["task"]), "vocabulary": vocabulary}
        tasks = self.batch_tasks(experiment, names["batch"])
        return {
            "source": self.batch_sources(experiment, names["batch"]),
            "vocabulary": self.batch_vocabularies(experiment, names["batch"]),
            "folder": {task: self._address(experiment, "finetuning", task=task) for task in tasks},
        }
