"""The configuration of a checkout: named blocks, loaded when first asked for, validated, references resolved.

A broken experiment file hurts only its own targets, because nothing is read before somebody asks for it.
"""

from collections.abc import Iterable, Iterator, Mapping
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
from hatchery.experiment.kinds import FILES
from hatchery.experiment.overrides import merged
from hatchery.experiment.paper_tables import with_rows_by_name
from hatchery.experiment.protocols import resolve_protocol
from hatchery.experiment.reserved import RESERVED
from hatchery.experiment.study_file import check_study, own_analyses, with_analyses
from hatchery.experiment.sweeps import WrittenOut, refuse_sweeps, text_of, write_out
from hatchery.experiment.written_blocks import INLINE, VARIANTS, WrittenBlocks, with_corpus_of
from hatchery.settings.fields import DATA
from hatchery.settings.problems import Problems, offered
from hatchery.settings.walk import Named, references
from hatchery.typed import validated


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
        self.written = WrittenBlocks(self.folder)
        # Of experiments, and of corpora: what can be asked for by a name, too.
        self._inline: dict[tuple[str, str], dict[str, Any]] = {}
        self._raw_inputs: dict[str, dict[str, Any]] = {}
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
        """Sorted names of the blocks of a kind that have files, and of the variants in them."""
        return self.written.names(kind)

    def has(self, kind: str, name: str) -> bool:
        """Whether there is a block of this kind and name."""
        return (kind, name) in self._inline or self.written.has(kind, name)

    def place(self, kind: str, name: str) -> str:
        """Where a block is written, for messages: a file, with the key in it where it is another block's."""
        if kind == "model" and (kind, name) in self._inline:
            experiment, run = name.split(".")
            return f"{self.written.place('experiment', experiment)}: runs.{run}.model"
        return self.written.place(kind, name)

    def references_of(self, kind: str, name: str) -> Iterator[Named]:
        """What a block names, as it is written: it may not be valid, and what it names need not exist."""
        if self.written.has(kind, name):
            yield from references(FILES[kind], self.written.read(kind, name))

    def block(self, kind: str, name: str) -> dict[str, Any]:
        """The block of this kind and name, validated, with defaults.

        Raises ConfigError naming the file, the key, what was given, what is allowed and the nearest match.
        """
        if (kind, name) not in self._blocks:
            block = self.validated(kind, name)
            try:
                self._check(kind, name, block, self.place(kind, name))
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
        if (kind, name) not in self._inline and self.written.is_inline(kind, name):
            self.written_experiment(name)
        if (kind, name) in self._inline:
            return self._inline[kind, name]
        raw, place = self.written.read(kind, name), self.place(kind, name)
        refuse_sweeps(raw, place)
        if kind == "study":
            return with_analyses(raw, place)
        if kind == "task" and (task := self.written.file_of_variant(name)):
            # What is wrong with the file is told once, where it stands.
            self.validated(kind, task)
        made = validated(FILES[kind], raw, place)
        if kind == "corpus":
            self._take_raw_input(name, made, place)
        return {key: value for key, value in made.items() if key != VARIANTS}

    def written_experiment(self, name: str) -> dict[str, Any]:
        """The experiment called `name` with grid and sweeps written out, validated, but not compared with other files.

        For what leads from one experiment to another, which could lead back. Blocks that stand in it are named like
        others, and can be asked for. Raises ConfigError like `block`.
        """
        if name not in self._experiments:
            raw, place = self.written.read("experiment", name), self.place("experiment", name)
            self._grids[name] = grid = write_out_grid(raw, place)
            written = write_out(grid.document, place)
            try:
                made = validated(FILES["experiment"], with_corpus_of(name, written.document), place)
                made = with_rows_by_name(made, place, self.folder)
            except ConfigError as error:
                raise ConfigError(grid.as_in_the_file(written.as_in_the_file(str(error)))) from None
            self._take_inline(name, made, place)
            self._experiments[name] = made
            self._written[name] = written
        return self._experiments[name]

    def _take_inline(self, experiment: str, block: dict[str, Any], where: str) -> None:
        """Keep the blocks that stand in an experiment, and put names in their places."""
        for kind in INLINE:
            if isinstance(block[kind], dict):
                self.written.require(kind, experiment, where)
                if kind == "corpus":
                    self._take_raw_input(experiment, block[kind], f"{where}: {kind}")
                self._inline[kind, experiment], block[kind] = block[kind], experiment
        for run, entry in block["runs"].items():
            if isinstance(entry["model"], dict):
                # No file can be called so.
                called = f"{experiment}.{run}"
                self._inline["model", called], entry["model"] = entry["model"], called

    def _take_raw_input(self, corpus: str, block: dict[str, Any], where: str) -> None:
        """Keep the raw input that stands in a corpus, and put its name in its place: that of the corpus."""
        own = [source for source in block.get("sources", []) if isinstance(source.get("data"), dict)]
        if len(own) > 1:
            raise ConfigError(
                f"{where}: sources: got {len(own)} sources whose `data` has keys, expected one at most: it is called "
                f"{corpus!r} like the corpus; enter the others under `data` in {self.folder / 'config.yaml'}"
            )
        for source in own:
            if corpus in self.config["data"]:
                raise ConfigError(
                    f"{where}: sources: `data` has keys, and {self.folder / 'config.yaml'} has a raw input called "
                    f"{corpus!r}, too; write `data: {corpus}` and the keys there, or give this file another name"
                )
            self._raw_inputs[corpus] = {**source["data"], "path": expanded(source["data"]["path"])}
            source["data"] = corpus

    def raw_input(self, name: str) -> dict[str, Any] | None:
        """The raw input of config.yaml called `name`, or that of the corpus of this name; None where there is none."""
        known: dict[str, Any] = self.config["data"]
        if name in known:
            return known[name]
        if name not in self._raw_inputs and self.written.has_raw_input(name):
            self.validated("corpus", name)
        return self._raw_inputs.get(name)

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

    def protocol_of(self, experiment: str, task: str) -> dict[str, Any]:
        """How an experiment fine-tunes on a task, with defaults; see `resolve_protocol`."""
        return {key: value for key, value in self._protocol(experiment, task).items() if key != "reported_metric"}

    def reported_metric(self, experiment: str, task: str) -> str:
        """The metric that stands for a task in the tables of an experiment."""
        return str(self._protocol(experiment, task)["reported_metric"])

    def _protocol(self, experiment: str, task: str) -> dict[str, Any]:
        where = self.place("experiment", experiment)
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

    def analyses(self, name: str) -> dict[str, dict[str, Any]]:
        """The entries of a study's analyses, or those that an experiment has by itself."""
        if not self.is_study(name):
            return own_analyses(self.experiment(name))
        entries: dict[str, dict[str, Any]] = self.block("study", name)["analyses"]
        return entries

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
        if (kind, name) not in self._inline:
            self.written.require(kind, name, where)

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
                f"{where}: {self.place(other, name)} has the same name, and results/{name}/ can be of one of them "
                "only; rename the other"
            )

    def _require_named(self, named: Named, where: str) -> None:
        if named.kind != DATA:
            self.require(named.kind, named.name, where)
            return
        if self.raw_input(named.name) is None:
            raise ConfigError(
                f"{where}: got {named.name!r}, not under `data` in {self.folder / 'config.yaml'}"
                f"{offered(named.name, sorted(self.config['data']))}"
            )
