"""The configuration of a checkout: named blocks, loaded when first asked for, validated, references resolved.

A broken experiment file hurts only its own targets, because nothing is read before somebody asks for it.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.settings import SeededRun, within
from hatchery.artifacts.roots import expanded
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.experiment.checks import check_block
from hatchery.experiment.grids import WithoutGrid, write_out_grid
from hatchery.experiment.kinds import FILES, FOLDERS
from hatchery.experiment.names import is_name, misnamed_file
from hatchery.experiment.overrides import merged
from hatchery.experiment.paper_tables import with_rows_by_name
from hatchery.experiment.protocols import resolve_protocol
from hatchery.experiment.reserved import RESERVED
from hatchery.experiment.study_file import check_study, with_analyses
from hatchery.experiment.sweeps import WrittenOut, refuse_sweeps, text_of, write_out
from hatchery.modeling.families import DEFAULT_FAMILY
from hatchery.settings.fields import DATA
from hatchery.settings.problems import Problems, offered
from hatchery.settings.walk import Named, references
from hatchery.typed import validated

_CHOICES = {"task": [{"data", "embedded"}], "experiment": [{"runs", "grid"}]}
"""Keys of which a file has one: what it says takes the place of what its base says."""


def corpus_kind(corpus: Mapping[str, Any]) -> str:
    """How a corpus is made: `sources` (converted), `sample` (of another corpus) or `sequences` (of selections)."""
    return next(kind for kind in ("sources", "sample", "sequences") if kind in corpus)


class Project:
    """All configuration below a folder (`config/`).

    `overrides` are merged into config.yaml, as `snakemake --config key=value` hands them over.
    """

    def __init__(self, folder: str | Path = "config", overrides: Mapping[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        self.overrides = dict(overrides or {})
        self._names: dict[str, list[str]] = {}
        self._blocks: dict[tuple[str, str], dict[str, Any]] = {}
        self._experiments: dict[str, dict[str, Any]] = {}
        self._grids: dict[str, WithoutGrid] = {}
        self._written: dict[str, WrittenOut] = {}
        self._runs: dict[str, dict[str, SeededRun]] = {}

    @cached_property
    def config(self) -> dict[str, Any]:
        """The main configuration, validated, with defaults."""
        path = self.folder / "config.yaml"
        config = validated(FILES["config"], merged(read_yaml(path), self.overrides), str(path))
        for data in config["data"].values():
            data["path"] = expanded(data["path"])
        for named in references(FILES["config"], config):
            self.require(named.kind, named.name, f"{path}: {named.key}")
        return config

    def names(self, kind: str) -> list[str]:
        """Sorted names of the blocks of a kind, one of FOLDERS; a file that no block may be called after is none."""
        if kind not in self._names:
            stems = (path.stem for path in (self.folder / FOLDERS[kind]).glob("*.yaml"))
            self._names[kind] = sorted(stem for stem in stems if is_name(stem))
        return self._names[kind]

    def block(self, kind: str, name: str) -> dict[str, Any]:
        """The block of this kind and name, validated, with defaults.

        Raises ConfigError naming the file, the key, what was given, what is allowed and the nearest match.
        """
        if (kind, name) not in self._blocks:
            block = self.validated(kind, name)
            try:
                self._check(kind, name, block, str(self.folder / FOLDERS[kind] / f"{name}.yaml"))
            except ConfigError as error:
                if kind != "experiment":
                    raise
                raise ConfigError(self._grids[name].as_in_the_file(str(error))) from None
            self._blocks[kind, name] = block
        return self._blocks[kind, name]

    def validated(self, kind: str, name: str) -> dict[str, Any]:
        """The block with defaults, after its class alone: it may not fit other files, or name none that is there."""
        if kind == "experiment":
            return self.written_experiment(name)
        self.require(kind, name, str(self.folder / FOLDERS[kind]))
        path = self.folder / FOLDERS[kind] / f"{name}.yaml"
        raw = self._with_base(kind, name) if kind in ("task", "study") else read_yaml(path)
        refuse_sweeps(raw, str(path))
        if kind == "study":
            return with_analyses(raw, str(path))
        return validated(FILES[kind], {"family": DEFAULT_FAMILY, **raw} if kind == "model" else raw, str(path))

    def written_experiment(self, name: str) -> dict[str, Any]:
        """The experiment called `name` with grid and sweeps written out, validated, but not compared with other files.

        For what leads from one experiment to another, which could lead back. Raises ConfigError like `block`.
        """
        if name not in self._experiments:
            self.require("experiment", name, str(self.folder / FOLDERS["experiment"]))
            path = self.folder / FOLDERS["experiment"] / f"{name}.yaml"
            self._grids[name] = grid = write_out_grid(self._with_base("experiment", name), str(path))
            written = write_out(grid.document, str(path))
            try:
                made = validated(FILES["experiment"], written.document, str(path))
                self._experiments[name] = with_rows_by_name(made, str(path), self.folder)
            except ConfigError as error:
                raise ConfigError(grid.as_in_the_file(written.as_in_the_file(str(error)))) from None
            self._written[name] = written
        return self._experiments[name]

    def labels(self, experiment: str) -> dict[str, str]:
        """The names for people of the runs that sweeps or a grid made, by run: `ltg_bert, learning_rate 0.005`."""
        self.written_experiment(experiment)
        written, grid = self._written[experiment], self._grids[experiment].labels
        bases = {run: grid.get(base, base) for run, base in written.bases.items()}
        return grid | {run: bases[run] + told for run, told in written.labels.items()}

    def swept(self, experiment: str) -> dict[str, str]:
        """The runs that sweeps made, each with the name of the run in the file that it comes from."""
        self.written_experiment(experiment)
        return self._written[experiment].bases

    def swept_values(self, experiment: str) -> dict[str, dict[str, Any]]:
        """The runs that sweeps or a grid made: `line`, what they have in common, and the swept `values` by key.

        What a grid makes has its size for a value, which its name does not tell.
        """
        self.written_experiment(experiment)
        written, grid = self._written[experiment], self._grids[experiment]
        found: dict[str, dict[str, Any]] = {}
        for run in self._experiments[experiment]["runs"]:
            base = written.bases.get(run, run)
            line = " ".join(filter(None, [grid.sets[base], grid.variants[base]])) if base in grid.sets else base
            values = {
                key: value if isinstance(value, int | float) and not isinstance(value, bool) else text_of(value)
                for key, value in written.values.get(run, {}).items()
            }
            if base in grid.sets or values:
                found[run] = {"line": line, "sized": base in grid.sets, "values": values}
        return found

    def sets(self, experiment: str) -> dict[str, str]:
        """The set of each run that a grid made: `set_1`. Runs that were made without a grid are in none."""
        self.written_experiment(experiment)
        grid, bases = self._grids[experiment], self._written[experiment].bases
        names = {run: bases.get(run, run) for run in self._experiments[experiment]["runs"]}
        return {run: grid.sets[base] for run, base in names.items() if base in grid.sets}

    def sets_of(self, experiments: Iterable[str]) -> dict[str, str]:
        """The sets of the runs of several experiments, as a study calls these."""
        return {f"{part}/{run}": name for part in experiments for run, name in self.sets(part).items()}

    def _with_base(self, kind: str, name: str, below: tuple[str, ...] = ()) -> dict[str, Any]:
        """The keys of a task, a study or an experiment laid over those of its base, not validated.

        A key that is null in a file is not taken from its base.
        Raises ConfigError for a circle of bases.
        """
        path = self.folder / FOLDERS[kind] / f"{name}.yaml"
        raw = read_yaml(path)
        base = raw.get("base")
        if base is None:
            return raw
        self.require(kind, base, f"{path}: base")
        if base in (*below, name):
            raise ConfigError(f"{path}: base: got {base!r}, whose own base leads back to {name!r}")
        inherited = self._with_base(kind, base, (*below, name))
        # Of these, a file has one.
        for choice in _CHOICES.get(kind, []):
            if raw.keys() & choice:
                inherited = {key: value for key, value in inherited.items() if key not in choice - raw.keys()}
        kept = {key: value for key, value in inherited.items() if raw.get(key, value) is not None}
        return merged(kept, {key: value for key, value in raw.items() if value is not None})

    def protocol_of(self, experiment: str, task: str) -> dict[str, Any]:
        """How an experiment fine-tunes on a task, with defaults; see `resolve_protocol`."""
        return {key: value for key, value in self._protocol(experiment, task).items() if key != "reported_metric"}

    def reported_metric(self, experiment: str, task: str) -> str:
        """The metric that stands for a task in the tables of an experiment."""
        return str(self._protocol(experiment, task)["reported_metric"])

    def _protocol(self, experiment: str, task: str) -> dict[str, Any]:
        where = f"{self.folder / FOLDERS['experiment'] / experiment}.yaml"
        return resolve_protocol(self.experiment(experiment)["finetuning"], task, self, where)

    def experiment(self, name: str) -> dict[str, Any]:
        """The experiment called `name`."""
        return self.block("experiment", name)

    @cached_property
    def _studies(self) -> frozenset[str]:
        return frozenset(self.names("study"))

    def is_study(self, name: str) -> bool:
        """Whether a folder of `results/` is that of a study."""
        return name in self._studies

    def results_of(self, name: str) -> dict[str, Any]:
        """The experiment or the study whose results lie in `results/<name>/`; both have a description and figures."""
        return self.block("study" if self.is_study(name) else "experiment", name)

    def parts(self, name: str) -> list[str]:
        """The experiments that a name of results stands for: those of a study, or the experiment itself."""
        return list(self.block("study", name)["experiments"]) if self.is_study(name) else [name]

    def shown_runs(self, name: str) -> list[SeededRun]:
        """The models of an experiment, or those of a study, which are called after their experiments, too."""
        if not self.is_study(name):
            return self.seeded_runs(name)
        return [within(part, run) for part in self.parts(name) for run in self.seeded_runs(part)]

    def model_of(self, experiment: str, run: str) -> dict[str, Any]:
        """The architecture of a run: its model's block with the run's `model_changes`."""
        return self.model_of_run(self.experiment(experiment)["runs"][run], f"experiment {experiment}: runs.{run}")

    def model_of_run(self, run: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The architecture of a run's entry in an experiment; `where` names the entry.

        Raises ConfigError when a change does not fit the model.
        """
        model = self.block("model", run["model"])
        if not run["model_changes"]:
            return model
        where = f"{where}.model_changes"
        changed = merged(model, run["model_changes"])
        if changed["family"] != model["family"]:
            raise ConfigError(f"{where}: family: a run cannot change it; name a model of that family instead")
        return validated(FILES["model"], changed, where)

    def loaded(self, kind: str) -> list[str]:
        """Names of the blocks of a kind that somebody asked for, in that order."""
        return [name for loaded_kind, name in self._blocks if loaded_kind == kind]

    def seeded_runs(self, experiment: str) -> list[SeededRun]:
        """The models of an experiment in the order of its file, one for each run and pretraining seed."""
        return list(self._seeded_runs(experiment).values())

    def _seeded_runs(self, experiment: str) -> dict[str, SeededRun]:
        if experiment not in self._runs:
            runs, labels = self.experiment(experiment)["runs"], self.labels(experiment)
            pairs = [(name, seed) for name, run in runs.items() for seed in run["seeds"]]
            found = [SeededRun.of(name, seed, labels.get(name, "")) for name, seed in pairs]
            self._runs[experiment] = {run.name: run for run in found}
        return self._runs[experiment]

    def seeded_run(self, experiment: str, name: str) -> SeededRun:
        """The run and seed called `name`. Raises ConfigError with the nearest match when there is none such."""
        known = self._seeded_runs(experiment)
        if name not in known:
            raise ConfigError(f"experiment {experiment!r} has no model {name!r}{offered(name, known)}")
        return known[name]

    def require(self, kind: str, name: str, where: str) -> None:
        """Raise ConfigError with the nearest match unless a block of this kind and name exists."""
        known = self.names(kind)
        if name not in known:
            if wrong := misnamed_file(self.folder / FOLDERS[kind], name, known):
                raise ConfigError(wrong)
            if kind == "experiment" and self.is_study(name):
                allowed = ", ".join(known) or "none"
                raise ConfigError(f"{where}: got {name!r}, which is a study; expected one of the experiments {allowed}")
            # Where an experiment can stand, people may mean a study.
            also = self._studies if kind == "experiment" else ()
            raise ConfigError(f"{where}: got {name!r}, no such {kind}{offered(name, known, also=also)}")

    def _check(self, kind: str, name: str, block: dict[str, Any], where: str) -> None:
        if kind in ("experiment", "study"):
            self._check_name(kind, name, where)
        problems = Problems()
        for named in references(FILES[kind], block):
            with problems.collecting():
                self._require_named(named, f"{where}: {named.key}")
        # What follows looks into the blocks that are named.
        problems.raise_any()
        check_block(kind, name, block, where, self)
        if kind == "study":
            runs = [within(part, run) for part in block["experiments"] for run in self.seeded_runs(part)]
            check_study(block, Study(name, tuple(runs), self.sets_of(block["experiments"])), where, self)

    def _check_name(self, kind: str, name: str, where: str) -> None:
        """Results of experiments and studies lie beside each other."""
        if name in RESERVED:
            word = "an experiment" if kind == "experiment" else "a study"
            raise ConfigError(f"{where}: {name!r} cannot be {word}'s name, results/{name}/ is taken")
        other = "experiment" if kind == "study" else "study"
        if name in self.names(other):
            raise ConfigError(
                f"{where}: {self.folder / FOLDERS[other] / name}.yaml has the same name, and results/{name}/ can be of "
                "one of them only; rename the other"
            )

    def _require_named(self, named: Named, where: str) -> None:
        if named.kind != DATA:
            self.require(named.kind, named.name, where)
            return
        known = self.config["data"]
        if named.name not in known:
            raise ConfigError(
                f"{where}: got {named.name!r}, not under `data` in {self.folder / 'config.yaml'}"
                f"{offered(named.name, sorted(known))}"
            )
