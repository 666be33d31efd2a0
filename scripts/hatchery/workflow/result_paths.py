"""Where readers find the results of experiments and studies, from pretraining to pages.

With `data_paths.py` the place that knows `resources/` and `results/`. Where results lie that experiments share is in
`jobs.py`.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from hatchery.analysis.analyses.analysis import TIDY_TABLES, analysis_called
from hatchery.analysis.studies import analyses_of, analysis_entry
from hatchery.errors import ConfigError
from hatchery.evaluation.evaluation import Result, evaluations
from hatchery.experiment.continuation import origin_of, path_of
from hatchery.experiment.milestones import is_asked
from hatchery.experiment.paper_tables import paper_of_tables
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import source_of
from hatchery.raw.listings import source_manifest
from hatchery.settings.fields import ABSENT, NAME
from hatchery.views.figures.needs import drawable
from hatchery.views.figures.registry import PUBLISHED, Declaration, figures_drawn_from, require_figure, tables_of
from hatchery.views.paper_tables.layout import TableLayout, TasksLayout, read_layout
from hatchery.workflow.data_paths import (
    DataPaths,
    sweep_manifest,
    tokens_manifest,
    vocabulary_manifest,
)
from hatchery.workflow.registry import SHARED

SURPRISAL = "surprisal"
"""Name of the kind of evaluation that measures words of texts."""


class ReadablePath(str):
    """`results/<experiment>/<kind>/<run>/.../manifest.json`: a link to what experiments share, and whose it is.

    `names` are those of suite, task or batch, if there is one. Where the link leads, `jobs.py` knows.
    """

    experiment: str
    kind: str
    run: str
    names: tuple[str, ...]

    def __new__(cls, experiment: str, kind: str, run: str, *names: str) -> "ReadablePath":
        """The path of a result of a run, or of a model of others."""
        path = super().__new__(cls, "/".join(["results", experiment, kind, run, *names, "manifest.json"]))
        path.experiment, path.kind, path.run, path.names = experiment, kind, run, names
        return path


def readable_path(experiment: str, kind: str, place: str) -> ReadablePath:
    """The readable path that a user asks for: `place` is `<run>`, `<run>/<suite>` and so on, as the kind has names.

    Raises ConfigError for a place of more or fewer parts.
    """
    run, *names = place.split("/")
    named = SHARED[kind][1].names
    if len(names) != len(named):
        parts = "".join(f"/<{name}>" for name in named)
        raise ConfigError(
            f"results/{experiment}/{kind}/{place}: ask for results/{experiment}/{kind}/<run>{parts}/manifest.json"
        )
    return ReadablePath(experiment, kind, run, *names)


class ResultPaths:
    """Input paths of the rules of experiments, from pretraining to pages, as functions of their wildcards."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._data = DataPaths(project)

    def file(self, experiment: str, name: str) -> str:
        """A table, text or page of an experiment or a study."""
        return f"results/{experiment}/{name}"

    def tokens(self, experiment: str) -> str:
        """Manifest of the token shards that an experiment pretrains on."""
        block = self.project.experiment(experiment)
        return tokens_manifest(block.corpus, block.tokenizer)

    def tokenizer(self, experiment: str) -> str:
        """Manifest of an experiment's tokenizer."""
        return self._data.tokenizer_manifest(self.project.experiment(experiment).tokenizer)

    def model(self, experiment: str, run: str) -> str:
        """Manifest of one pretrained model."""
        return ReadablePath(experiment, "pretraining", run)

    def pretrained(self, experiment: str) -> dict[str, str]:
        """Manifests of the pretrained models of an experiment or a study, by run and seed."""
        return self.project.of_members(experiment, self._own_models)

    def filled(self, experiment: str, run: str) -> str:
        """Manifest of the sentences that one model filled in."""
        return ReadablePath(experiment, "filled_sentences", run)

    def filled_sentences(self, experiment: str) -> dict[str, str]:
        """The same of all models of an experiment or a study, by run and seed."""
        return self.project.of_members(experiment, partial(self._own_models, kind="filled_sentences"))

    def shown_sentences(self, experiment: str) -> dict[str, str]:
        """Those among `filled_sentences` that the page shows: of each model, the ones of its first pretraining seed."""
        return self.project.of_members(experiment, self._sentences_of_first_seeds)

    def _sentences_of_first_seeds(self, experiment: str) -> dict[str, str]:
        first: dict[str, str] = {}
        for run in self.project.seeded_runs(experiment):
            first.setdefault(run.model, run.name)
        return {name: self.filled(experiment, name) for name in first.values()}

    def exported(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's models as folders for `transformers`, by run and seed."""
        names = [run.name for run in self.project.seeded_runs(experiment)]
        return {name: f"results/{experiment}/export/{name}/manifest.json" for name in names}

    def _own_models(self, experiment: str, kind: str = "pretraining") -> dict[str, str]:
        names = [run.name for run in self.project.seeded_runs(experiment)]
        return {name: ReadablePath(experiment, kind, name) for name in names}

    def models(self, experiment: str) -> dict[str, str]:
        """Manifests of all models that an experiment evaluates, by run and seed, or the name of a baseline."""
        baselines = self.project.experiment(experiment).baselines
        others = {name: ReadablePath(experiment, "baselines", name) for name in baselines}
        milestones = self.project.milestones(experiment)
        return (
            self._own_models(experiment)
            | others
            | {name: ReadablePath(experiment, "pretraining", name) for name in milestones}
        )

    def evaluations(self, experiment: str) -> dict[Result, str]:
        """Manifests of everything that is measured of these models: by kind in the order of tables, then by model."""
        block, runs = self.project.experiment(experiment), self.project.evaluated_runs(experiment)
        milestones = self.project.milestones(experiment).values()
        found = []
        for kind, evaluation in evaluations().items():
            names = {run.name: list(evaluation.asked(block, run)) for run in runs}
            found += [Result(kind, run, name) for run in names for name in names[run]]
            found += [
                Result(kind, run.name, name)
                for run in milestones
                for name in names[run.milestone_of]
                if is_asked(block, kind, name)
            ]
        return {result: ReadablePath(experiment, *filter(None, result)) for result in found}

    def of_kind(self, experiment: str, kind: str) -> dict[str, str]:
        """Those of one kind by `RUN:NAME`, or by `RUN` where the kind has no names; not those of milestones."""
        found, milestones = self.evaluations(experiment), self.project.milestones(experiment)
        chosen = {one: path for one, path in found.items() if one.kind == kind and one.run not in milestones}
        return {result.of_its_kind: path for result, path in chosen.items()}

    def surprisals_of_models(self, experiment: str) -> dict[str, str]:
        """Manifests of the surprisals of all texts under all models, milestones included, by `Result.key`."""
        found = self.evaluations(experiment)
        return {result.key: path for result, path in found.items() if result.kind == SURPRISAL}

    def surprisals(self, experiment: str) -> list[str]:
        """List with the path of the table of all surprisals; empty for studies and without texts under `surprisal`."""
        has = not self.project.is_study(experiment) and self.project.experiment(experiment).surprisal
        return [f"results/{experiment}/surprisals.csv"] if has else []

    def held_out_text(self, experiment: str, run: str) -> dict[str, str]:
        """What a perplexity is measured on: token shards, or documents for a model with a tokenizer of its own."""
        if run in self.project.experiment(experiment).baselines:
            return {"corpus": self.corpus(experiment)}
        return {"tokens": self.tokens(experiment)}

    def initial_model(self, experiment: str, run: str) -> list[str]:
        """Manifest of the model that a pretraining starts from; none where its weights are random."""
        chosen = self.project.seeded_run(experiment, run)
        given = path_of(self.project, self.project.experiment(experiment).runs[chosen.model].pretraining)
        if given is not None:
            return [given]
        origin = origin_of(self.project, experiment, chosen.model, chosen.seed)
        return [] if origin is None else [self.pretrained(origin.experiment)[origin.name]]

    def larger_tokens(self, experiment: str, run: str) -> list[str]:
        """Manifest of the token shards of a larger corpus whose counts an output bias starts from, if a run says so."""
        block = self.project.experiment(experiment)
        chosen = block.runs[self.project.seeded_run(experiment, run).model].pretraining.output_bias.larger_corpus
        return [] if chosen is ABSENT else [tokens_manifest(chosen, block.tokenizer)]

    def tuned_tasks(self, experiment: str) -> dict[str, str]:
        """One model's fine-tuning manifests by task, where a paper's table has the sizes of the tasks; else none."""
        if not any(isinstance(table, TasksLayout) for table in self._tables_of_paper(experiment)):
            return {}
        first, finetuned = self.project.evaluated(experiment)[0], self.of_kind(experiment, "finetuning")
        return {task: finetuned[f"{first}:{task}"] for task in self.project.experiment(experiment).finetuning.tasks}

    def task_sources(self, task: str) -> dict[str, str]:
        """Source manifests of a task and of the tasks that its models are also scored on, by task."""
        names = (task, *self.project.task(task).transfer_tasks)
        return {name: source_manifest(source_of(self.project.task(name))) for name in names}

    def task_vocabulary(self, task: str) -> list[str]:
        """Manifest of the vocabulary that the rows of a task are filtered by, if they are."""
        tasks = (task, *self.project.task(task).transfer_tasks)
        filters = [self.project.task(name).vocabulary for name in tasks]
        return sorted({vocabulary_manifest(entry.name) for entry in filters if entry is not None})

    def translation_corpora(self, experiment: str) -> dict[str, str]:
        """Manifests of the corpora of an experiment's test sets, by the names of the test sets."""
        tests = self.project.experiment(experiment).translation.tests
        return {name: self._data.corpus_manifest(test.corpus) for name, test in tests.items()}

    def cards(self, experiment: str) -> dict[str, str]:
        """Manifests of the corpus cards of an experiment or a study: own corpora first, then those that are named."""
        blocks = [self.project.experiment(part) for part in self.project.members(experiment)]
        corpora = [*(block.corpus for block in blocks), *(corpus for block in blocks for corpus in block.cards)]
        return {corpus: f"results/cards/{corpus}/manifest.json" for corpus in corpora}

    def card_statistics(self, experiment: str) -> dict[str, str]:
        """The tables of these cards."""
        return {corpus: f"results/cards/{corpus}/statistics.csv" for corpus in self.cards(experiment)}

    def table_layout(self, experiment: str) -> list[str]:
        """The layout of a paper's tables, where the experiment repeats one, or is the miniature of one that does."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/paper_tables/{paper}.yaml"]

    def _tables_of_paper(self, experiment: str) -> Iterable[TableLayout]:
        return [
            table
            for path in self.table_layout(experiment)
            for table in read_layout(self.project.folder.parent / path).tables.values()
        ]

    def table_numbers(self, experiment: str) -> list[str]:
        """The numbers of the paper whose tables an experiment has."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/published/values/{paper}.csv"]

    def paper_tables(self, experiment: str) -> list[str]:
        """Manifest of the tables in the layout of a paper, where an experiment has such; a study has none."""
        has = not self.project.is_study(experiment) and self.table_layout(experiment)
        return [f"results/{experiment}/paper_tables/manifest.json"] if has else []

    def corpus(self, experiment: str) -> str:
        """Manifest of the documents that an experiment pretrains on."""
        return self._data.corpus_manifest(self.project.experiment(experiment).corpus)

    def published(self, experiment: str) -> list[str]:
        """The numbers of the papers that an experiment, or those of a study, repeat, if they name any."""
        chosen = [self.project.experiment(part).published for part in self.project.members(experiment)]
        papers = dict.fromkeys(block.paper for block in chosen if block is not None)
        return [f"config/published/values/{paper}.csv" for paper in papers]

    # Studies ---------------------------------------------------------------------------------------------------------

    def names_of_studies(self) -> str:
        """A pattern that the names of studies fit alone; where there are none, one that no name fits."""
        return "|".join(self.project.names("study")) or "-"

    def names_of_experiments(self) -> str:
        """A pattern that no name of a study fits."""
        return f"(?!(?:{self.names_of_studies()})/){NAME}"

    def joined(self, experiment: str) -> dict[str, dict[str, str]]:
        """The tidy tables of the experiments of a study: of each table, by experiment."""
        parts = self.project.study(experiment).experiments
        return {table: {part: f"results/{part}/{table}.parquet" for part in parts} for table in TIDY_TABLES}

    def analyses(self, experiment: str) -> dict[str, str]:
        """Manifests of what the analyses of a study or an experiment found, by entry."""
        entries = analyses_of(self.project, experiment)
        return {name: f"results/{experiment}/analyses/{name}/manifest.json" for name in entries}

    def analysis_tables(self, experiment: str, analysis: str) -> dict[str, str]:
        """The tables and manifests that an analysis of an experiment or a study needs, by name.

        Raises ConfigError for one that it does not have.
        """
        entry, tables = analysis_entry(self.project, experiment, analysis), dict[str, str]()
        for need in analysis_called(entry.analysis).needs:
            tables |= need(self, experiment, entry)
        return tables

    def tokenizer_sweep(self, sweep: str) -> str:
        """Manifest of a sweep of tokenizers."""
        return sweep_manifest(sweep)

    def analysis_files(self, experiment: str, analysis: str) -> dict[str, str]:
        """The published tables that an analysis of a study reads, by their path below `config/published/`."""
        entry = analysis_entry(self.project, experiment, analysis)
        names = analysis_called(entry.analysis).published(entry)
        return {name: f"config/published/{name}.csv" for name in names}

    def pages_of_parts(self, experiment: str) -> dict[str, str]:
        """The pages of the experiments of a study; an experiment has none."""
        parts = self.project.members(experiment) if self.project.is_study(experiment) else []
        return {part: f"results/{part}/index.html" for part in parts}

    def costs(self, experiment: str) -> list[str]:
        """The estimates of the cost of an experiment, or of the experiments of a study."""
        return [f"results/{part}/cost.html" for part in self.project.members(experiment)]

    # Figures ---------------------------------------------------------------------------------------------------------

    def figures(self, experiment: str) -> dict[str, str]:
        """The figures of an experiment or a study by name: those that its results give something to draw for."""
        drawn = figures_drawn_from(self._drawable(experiment))
        return {name: f"results/{experiment}/figures/{name}.svg" for name in drawn}

    def figure(self, experiment: str, figure: str) -> Declaration:
        """What a figure of an experiment is. Raises ConfigError where the experiment has nothing to draw in it."""
        return require_figure(figure, self._drawable(experiment), experiment)

    def figure_tables(self, experiment: str, figure: str) -> dict[str, str]:
        """What a figure of an experiment is drawn from: tidy tables, and published values if it marks such."""
        declared = self.figure(experiment, figure)
        tables = {name: f"results/{experiment}/{name}.parquet" for name in tables_of(declared)}
        if self.project.is_study(experiment):
            entries = analyses_of(self.project, experiment)
            made = self.analyses(experiment)
            needed = {name: entry.analysis for name, entry in entries.items() if entry.analysis in declared.needs}
            tables |= {f"{kind}/{name}": made[name] for name, kind in needed.items()}
        published = self.published(experiment) if declared.published else []
        more = {f"{PUBLISHED}/{Path(path).stem}": path for path in published[1:]}
        return tables | ({PUBLISHED: published[0]} if published else {}) | more

    def _drawable(self, experiment: str) -> list[str]:
        has = [need for part in self.project.members(experiment) for need in drawable(self.project, part)]
        if self.project.is_study(experiment):
            has += [entry.analysis for entry in analyses_of(self.project, experiment).values()]
        return has
