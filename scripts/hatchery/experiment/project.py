"""The configuration of a project. Every file is read when it is first requested, and becomes an immutable object.

An invalid experiment affects only its own targets, because files are read on request. Errors within one file are
reported when the file is read. `check` compares a file with other files and with the data on this machine, once per
file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, TypeVar

from hatchery.artifacts.links import expanded
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.evaluation.tasks.settings import HeadSettings, ProtocolChoice
from hatchery.experiment.checks import check_block
from hatchery.experiment.expansion import Expansion, write_out
from hatchery.experiment.experiment_file import Experiment, ProtocolFile, StudyFile
from hatchery.experiment.finetuning import head_of_task, resolve_protocol, task_batch
from hatchery.experiment.given_settings import Given, place_of
from hatchery.experiment.kinds import FILES, BaselineFile, MainFile, ReadingTableFile, SuiteFile, TaskFile
from hatchery.experiment.milestones import chain_of_marks, milestones_of, own_marks, suite_batches
from hatchery.experiment.paper_tables import with_rows_by_name
from hatchery.experiment.raw_inputs import LEAVE_OUT, with_named_raw_input, without_baselines
from hatchery.experiment.seeded_run import SeededRun, of_member, runs_with_seeds
from hatchery.experiment.sweeps import refuse_sweeps
from hatchery.experiment.text_files import CorpusFile, SelectionFile, TokenizerFile, TokenizerSweepFile, VocabularyFile
from hatchery.experiment.tracks import TRACKS
from hatchery.experiment.written_blocks import Document, WrittenBlocks, merged
from hatchery.modeling.configuration import EncoderSizes
from hatchery.raw.settings import SourceKeys
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import alternatives
from hatchery.training.start_settings import BudgetSettings
from hatchery.typed import build, validated

File = TypeVar("File")
Value = TypeVar("Value")


def _named(kind: str, cls: type[File]) -> "Callable[[Project, str], File]":
    """Return a method that returns the configuration block of the kind `kind` with a given name.

    `cls` is the settings class of the kind; for models, the class depends on the model family.
    """

    def read(project: "Project", name: str) -> File:
        found: File = project.block(kind, name)
        return found

    return read


class Project:
    """All configuration below a folder (`config/`).

    If the folder `shipped` is given, missing files are read from it, and its config.yaml is merged with the project's
    config.yaml. Values from Snakemake's command line (`given`) override config.yaml, and `overrides` override the file
    and the command line. An unknown name raises ConfigError with the file, the key, the value, the allowed values and
    the most similar name.
    """

    def __init__(
        self,
        folder: str | Path = "config",
        overrides: Mapping[str, Any] | None = None,
        given: Given = (),
        shipped: Path | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._shipped = shipped
        self._given: Given = [*given, *([("the settings given in Python", overrides)] if overrides else [])]
        self.written = WrittenBlocks(self.folder, shipped)
        self.checked: dict[tuple[str, str], None] = {}
        """Kind and name of each configuration block that was already checked against other blocks, in the order of the
        checks.
        """
        self._blocks: dict[tuple[str, str], Any] = {}
        self._raw_inputs: dict[str, SourceKeys] = {}
        self._expansions: dict[str, Expansion] = {}
        self._architectures: dict[tuple[str, str], EncoderSizes] = {}
        self._runs: dict[str, dict[str, SeededRun]] = {}
        self._milestones: dict[str, dict[str, SeededRun]] = {}

    # Files -----------------------------------------------------------------------------------------------------------

    @cached_property
    def config(self) -> MainFile:
        """The main configuration, config.yaml."""
        paths = [folder / "config.yaml" for folder in (self._shipped, self.folder) if folder is not None]
        found = [path for path in paths if path.exists()]
        if not found:
            raise ConfigError(f"{paths[-1]}: expected this file in {Path.cwd()}, but there is none")
        given: Given = [*((str(path), read_yaml(path)) for path in found), *self._given]
        document: Document = reduce(merged, (values for _, values in given), {})

        def place(key: str) -> str:
            return place_of(key, given)

        config = validated(MainFile, document, place)
        for experiment in config.experiments:
            self.require("experiment", experiment, f"{place('experiments')}: experiments")
        for baseline in config.leave_out_baselines:
            self.require("baseline", baseline, f"{place(LEAVE_OUT)}: {LEAVE_OUT}")
        return config

    experiment = _named("experiment", Experiment)
    study = _named("study", StudyFile)
    corpus = _named("corpus", CorpusFile)
    tokenizer = _named("tokenizer", TokenizerFile)
    model = _named("model", EncoderSizes)
    suite = _named("suite", SuiteFile)
    task = _named("task", TaskFile)
    reading_table = _named("reading_table", ReadingTableFile)
    vocabulary = _named("vocabulary", VocabularyFile)
    selection = _named("selection", SelectionFile)
    tokenizer_sweep = _named("tokenizer_sweep", TokenizerSweepFile)
    protocol = _named("protocol", ProtocolFile)
    baseline = _named("baseline", BaselineFile)

    def block(self, kind: str, name: str) -> Any:
        """Return the configuration block `name` of the kind `kind`, as an object of its settings class. The block is
        not yet checked against other files (`check`).
        """
        found = self._as_written(kind, name)
        return self._with_rows_that_are_here(found) if kind == "task" else found

    def readable(self, kind: str, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield name and content of each named configuration block that can be read.

        Errors in other blocks are reported when those blocks are checked.
        """
        for name in names:
            with suppress(ConfigError):
                yield name, self.block(kind, name)

    def _as_written(self, kind: str, name: str) -> Any:
        if (kind, name) not in self._blocks:
            self._blocks[kind, name] = self._read(kind, name)
        return self._blocks[kind, name]

    def _with_rows_that_are_here(self, task: TaskFile) -> TaskFile:
        """Return the task, or a copy that reads the files of another task, which the key `otherwise` names. The result
        is the copy if config.yaml contains the raw input of the other task, but not the raw input of this task.
        """
        if task.otherwise is None or task.data is ABSENT or self._can_be_had(task.data):
            return task
        other: TaskFile = self._as_written("task", task.otherwise)
        if not self._can_be_had(other.data):
            return task
        return replace(task, data=other.data, format=other.format, files=other.files, label_field=other.label_field)

    def _can_be_had(self, data: str) -> bool:
        found = self.config.data.get(data)
        return found is not None and any((found.path, found.hub, found.hub_model, found.download))

    def _read(self, kind: str, name: str) -> Any:
        if kind == "experiment":
            return self._experiment(name)
        raw = self._written_model(name) if kind == "model" else self.written.read(kind, name)
        place = self.place(kind, name)
        refuse_sweeps(raw, place)
        if stem := self.written.file_of_variant(kind, name):
            # Read the file's own block first, so that errors in the file are reported only once.
            self._as_written(kind, stem)
        # In messages, a colon separates the file's name from the first key, and full stops separate further keys. The
        # place of a variant already contains a key, so the other keys follow after a full stop.
        made = (build if ": " in place else validated)(FILES[kind], raw, place)
        if kind != "corpus":
            return made
        made, own = with_named_raw_input(name, made, place, self.config.data, self.folder / "config.yaml")
        if own is not None:
            self._raw_inputs[name] = own
        return made

    def _experiment(self, name: str) -> Experiment:
        expansion, place = self.expansion(name), self.place("experiment", name)
        try:
            made = validated(Experiment, expansion.document, place)
            return without_baselines(with_rows_by_name(made, place, self.folder), self.config.leave_out_baselines)
        except ConfigError as error:
            raise ConfigError(expansion.as_in_the_file(str(error))) from None

    def expansion(self, experiment: str) -> Expansion:
        """Return the experiment's file with complete runs (`expansion.py`)."""
        if experiment not in self._expansions:
            raw, place = self.written.read("experiment", experiment), self.place("experiment", experiment)
            self._expansions[experiment] = write_out(experiment, raw, place)
        return self._expansions[experiment]

    # Names -----------------------------------------------------------------------------------------------------------

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of all blocks of a kind (such as `task`), including variants of another block."""
        return self.written.names(kind)

    def has_inline_model(self, name: str) -> bool:
        """Return True if `name` is `<experiment>.<run>` for a run that contains the keys of its model."""
        experiment, dot, run = name.partition(".")
        return bool(dot) and self.written.has("experiment", experiment) and run in self.expansion(experiment).models

    def has(self, kind: str, name: str) -> bool:
        """Return True if there is a configuration block of this kind and name."""
        return self.written.has(kind, name) or (kind == "model" and self.has_inline_model(name))

    def place(self, kind: str, name: str) -> str:
        """Return, for use in messages, the file of a configuration block; if the block is inside another block's file,
        also its key.
        """
        if kind == "model" and self.has_inline_model(name):
            experiment, run = name.split(".")
            made = self.expansion(experiment).runs[run].place
            return f"{self.written.place('experiment', experiment)}: {made}.model"
        return self.written.place(kind, name)

    def require(self, kind: str, name: str, where: str) -> None:
        """Raise ConfigError, which suggests the most similar name, unless a configuration block of this kind and name
        exists.
        """
        if not (kind == "model" and self.has_inline_model(name)):
            self.written.require(kind, name, where)

    def raw_input(self, name: str) -> SourceKeys | None:
        """Return the raw input `name` of config.yaml, or the inline raw input of the corpus `name`; None if neither
        exists.
        """
        if name not in self.config.data and name not in self._raw_inputs and self.written.has_raw_input(name):
            self.corpus(name)
        found = self.config.data.get(name) or self._raw_inputs.get(name)
        return None if found is None else replace(found, path=found.path and expanded(found.path))

    # Experiments and studies -----------------------------------------------------------------------------------------

    def sets_of(self, experiments: Iterable[str]) -> dict[str, str]:
        """Return the name of the group of each run that a grid generated. Keys are `<experiment>/<run>`."""
        return {f"{part}/{run}": name for part in experiments for run, name in self.expansion(part).sets().items()}

    def protocol_of(self, experiment: str, task: str) -> ProtocolChoice:
        """Return an experiment's protocol for a task; see `resolve_protocol`."""
        where = self.place("experiment", experiment)
        return resolve_protocol(self.experiment(experiment).finetuning, task, self, where)

    def head_of(self, experiment: str, task: str) -> HeadSettings:
        """Return the head of a task, with the experiment's `head_options`."""
        return head_of_task(self.experiment(experiment).finetuning, self.task(task).settings(task).head)

    def task_batch(self, experiment: str, batch: str) -> list[str]:
        """Return the tasks of one job. Raises ConfigError for an unknown job of the experiment."""
        return task_batch(self, experiment, batch)

    def is_study(self, name: str) -> bool:
        """Return True if the folder `results/<name>/` belongs to a study."""
        return name in self.names("study")

    def results_of(self, name: str) -> Experiment | StudyFile:
        """Return the experiment or the study whose results are in `results/<name>/`. Experiments and studies have a
        description and figures."""
        return self.study(name) if self.is_study(name) else self.experiment(name)

    def members(self, name: str) -> list[str]:
        """Return the experiments of a study, or the experiment itself."""
        return list(self.study(name).experiments) if self.is_study(name) else [name]

    def for_members(self, name: str, values_of: Callable[[str], Mapping[str, Value]]) -> dict[str, Value]:
        """Return `values_of(name)` if `name` is an experiment. If `name` is a study, return the values of all its
        experiments in one mapping, whose keys have the prefix `<experiment>/`.
        """
        if not self.is_study(name):
            return dict(values_of(name))
        return {f"{part}/{key}": value for part in self.members(name) for key, value in values_of(part).items()}

    def cards(self, name: str) -> list[str]:
        """Return the corpora that the page of an experiment or a study describes: the training corpora, then the
        corpora that experiments list under the key `cards`.
        """
        blocks = [self.experiment(part) for part in self.members(name)]
        return [*(block.corpus for block in blocks), *(corpus for block in blocks for corpus in block.cards)]

    def shown_runs(self, name: str) -> list[SeededRun]:
        """Return the models of an experiment or, for a study, the models of its experiments, with `<experiment>/`
        before their names.
        """
        if not self.is_study(name):
            return self.seeded_runs(name)
        return [of_member(part, run) for part in self.members(name) for run in self.seeded_runs(part)]

    def model_of(self, experiment: str, run: str) -> EncoderSizes:
        """Return the architecture of a run: its model with the run's `model_changes`.

        Raises ConfigError if a change does not fit the model.
        """
        if (experiment, run) not in self._architectures:
            self._architectures[experiment, run] = self._changed_model(experiment, run)
        return self._architectures[experiment, run]

    def _changed_model(self, experiment: str, run: str) -> EncoderSizes:
        entry = self.experiment(experiment).runs[run]
        model = self.model(entry.model)
        if not entry.model_changes:
            return model
        where = f"{self.place('experiment', experiment)}: runs.{run}.model_changes"
        changes = entry.model_changes
        if changes.get("family", model.family) != model.family:
            raise ConfigError(f"{where}: family: a run cannot change it; name a model of that family instead")
        changed: EncoderSizes = validated(
            FILES["model"], merged(self._written_model(entry.model), changes, FILES["model"]), where
        )
        return changed

    def _written_model(self, name: str) -> Document:
        if self.has_inline_model(name):
            experiment, run = name.split(".")
            return self.expansion(experiment).models[run]
        return self.written.read("model", name)

    def seeded_runs(self, experiment: str) -> list[SeededRun]:
        """Return the models of an experiment in the order of its file, one for each run and pretraining seed."""
        return list(self._seeded_runs(experiment).values())

    def _seeded_runs(self, experiment: str) -> dict[str, SeededRun]:
        if experiment not in self._runs:
            runs, labels = self.experiment(experiment).runs, self.expansion(experiment).labels()
            found = runs_with_seeds({name: run.seeds for name, run in runs.items()}, labels)
            self._runs[experiment] = {run.name: run for run in found}
        return self._runs[experiment]

    def evaluated_runs(self, experiment: str) -> list[SeededRun]:
        """Return all models that an experiment evaluates: its own models and the baselines."""
        baselines = self.experiment(experiment).baselines
        return [*self.seeded_runs(experiment), *map(SeededRun.of_baseline, baselines)]

    def milestones(self, experiment: str) -> dict[str, SeededRun]:
        """Return the intermediate checkpoints that an experiment evaluates, by name."""
        if experiment not in self._milestones:
            block = self.experiment(experiment)
            runs = self.seeded_runs(experiment) if block.evaluate_milestones else []
            found = [milestone for run in runs for milestone in milestones_of(self, experiment, run)]
            self._milestones[experiment] = {run.name: run for run in found}
        return self._milestones[experiment]

    def within_track(self, experiment: str, budget: BudgetSettings) -> BudgetSettings:
        """Return the budget, with limits on epochs and corpus words lowered to the limits of the experiment's track. If
        the experiment has no track, the budget is unchanged.
        """
        name = self.experiment(experiment).track
        return budget if name is None else TRACKS[name].limited(budget)

    def marks(self, experiment: str, run: SeededRun) -> tuple[int, ...]:
        """Return the word counts at which a run saves checkpoints, without the word counts that its initial model has
        already passed.
        """
        return own_marks(self, experiment, run.model, run.seed)

    def suite_batch(self, experiment: str, batch: str) -> list[str]:
        """Return the suites of a job. Raises ConfigError for an unknown job of the experiment."""
        block = self.experiment(experiment)
        batches = {**suite_batches(block, of_milestone=False), **suite_batches(block, of_milestone=True)}
        if batch not in batches:
            raise ConfigError(f"experiment {experiment!r} has no job {batch!r} that combines several suites")
        return batches[batch]

    def checkpoints(self, experiment: str, run: str) -> list[tuple[str, SeededRun]]:
        """Return (experiment, checkpoint) for all checkpoints that a run saves at word counts. The checkpoints of its
        initial model, of this model's own initial model and so on come first.
        """
        return chain_of_marks(self, experiment, self.seeded_run(experiment, run))

    def evaluated(self, experiment: str) -> list[str]:
        """Return the names of all models that an experiment evaluates."""
        return [run.name for run in self.evaluated_runs(experiment)]

    def seeded_run(self, experiment: str, name: str) -> SeededRun:
        """Return the run and seed of the model `name`.

        Raises ConfigError, which suggests the most similar name, for an unknown name.
        """
        known = self._seeded_runs(experiment)
        if name not in known:
            raise ConfigError(f"experiment {experiment!r} has no model {name!r}{alternatives(name, known)}")
        return known[name]

    def check(self, kind: str, name: str) -> None:
        """Check a configuration block against the blocks that it names and the data on this machine.

        Raises ConfigError with a line for each problem.
        """
        if (kind, name) in self.checked:
            return
        try:
            check_block(kind, name, self)
        except ConfigError as error:
            if kind != "experiment":
                raise
            raise ConfigError(self.expansion(name).as_in_the_file(str(error))) from None
        self.checked[kind, name] = None
