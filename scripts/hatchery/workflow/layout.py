"""Where readers find the files of each stage: with `data_layout.py` the place that knows `resources/` and `results/`.

Where results are kept that experiments share is in `kept_results.py`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from hatchery.analysis.analyses.analysis import (
    CORPORA,
    CORPUS,
    MINIMAL_PAIRS,
    SUMMARY,
    SWEEP,
    TIDY_TABLES,
    TOKENS,
    TRANSLATION,
    TRANSLATIONS,
)
from hatchery.analysis.analyses.registry import analysis_called
from hatchery.evaluation.translation.settings import translated_runs
from hatchery.experiment.continuation import origin_of, path_of
from hatchery.experiment.finetuning_jobs import task_batch
from hatchery.experiment.paper_tables import paper_of_tables
from hatchery.experiment.study_file import analysis_entry
from hatchery.experiment.text_files import source_of
from hatchery.rendering.figures import Declaration
from hatchery.settings.fields import NAME
from hatchery.stages.figures import drawable
from hatchery.views.figures.registry import PUBLISHED, figures_drawn_from, require_figure, tables_of
from hatchery.workflow.data_layout import DataLayout, sweep_manifest


class Layout(DataLayout):
    """Input paths of the rules of experiments, from pretraining to pages, as functions of their wildcards."""

    def experiment_tokens(self, experiment: str) -> str:
        """Manifest of the token shards that an experiment pretrains on."""
        block = self.project.experiment(experiment)
        return f"results/tokens/{block.corpus}/{block.tokenizer}/manifest.json"

    def experiment_tokenizer(self, experiment: str) -> str:
        """Manifest of an experiment's tokenizer."""
        return f"results/tokenizers/{self.project.experiment(experiment).tokenizer}/manifest.json"

    def evaluation_source(self, kind: str, name: str) -> str:
        """Source manifest of a suite or task."""
        return self.source(source_of(self.project.block(kind, name)))

    def pretrained(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's pretrained models by run and seed."""
        return {
            run.name: f"results/{experiment}/pretraining/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def initial_model(self, experiment: str, run: str) -> list[str]:
        """Manifest of the model that a pretraining starts from; none where its weights are random."""
        chosen = self.project.seeded_run(experiment, run)
        given = path_of(self.project, self.project.experiment(experiment).runs[chosen.model].pretraining)
        if given is not None:
            return [given]
        origin = origin_of(self.project, experiment, chosen.model, chosen.seed)
        return [] if origin is None else [self.pretrained(origin.experiment)[origin.name]]

    def minimal_pairs(self, experiment: str) -> dict[str, str]:
        """Manifests of minimal-pair scores by `RUN-sSEED:SUITE`."""
        return {
            f"{run.name}:{suite}": f"results/{experiment}/minimal_pairs/{run.name}/{suite}/manifest.json"
            for run in self.project.seeded_runs(experiment)
            for suite in self.project.experiment(experiment).minimal_pairs
        }

    def finetuned(self, experiment: str) -> dict[str, str]:
        """Manifests of fine-tuning results by `RUN-sSEED:TASK`."""
        return {
            f"{run.name}:{task}": f"results/{experiment}/finetuning/{run.name}/{task}/manifest.json"
            for run in self.project.seeded_runs(experiment)
            for task in self.project.experiment(experiment).finetuning.tasks
        }

    def batch_tasks(self, experiment: str, batch: str) -> list[str]:
        """The tasks of a job with several."""
        return task_batch(self.project, experiment, batch)

    def batch_sources(self, experiment: str, batch: str) -> dict[str, str]:
        """Source manifests of all tasks of a job and of those that their models are also scored on, by task."""
        tasks = task_batch(self.project, experiment, batch)
        return {name: path for task in tasks for name, path in self.task_sources(task).items()}

    def batch_vocabularies(self, experiment: str, batch: str) -> dict[str, str]:
        """Manifests of the vocabularies that rows are filtered by, by task of a job."""
        tasks = task_batch(self.project, experiment, batch)
        return {task: path for task in tasks for path in self.task_vocabulary(task)}

    def task_sources(self, task: str) -> dict[str, str]:
        """Source manifests of a task and of the tasks that its models are also scored on, by task."""
        names = (task, *self.project.task(task).transfer_tasks)
        return {name: self.evaluation_source("task", name) for name in names}

    def task_vocabulary(self, task: str) -> list[str]:
        """Manifest of the vocabulary that the rows of a task are filtered by, if they are."""
        tasks = (task, *self.project.task(task).transfer_tasks)
        filters = [self.project.task(name).vocabulary for name in tasks]
        return sorted({f"results/vocabularies/{entry.name}/manifest.json" for entry in filters if entry is not None})

    def perplexities(self, experiment: str) -> dict[str, str]:
        """Manifests of perplexities by run and seed; none where no split is asked for."""
        if not self.project.experiment(experiment).perplexity.splits:
            return {}
        return {
            run.name: f"results/{experiment}/perplexity/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def translated(self, experiment: str) -> dict[str, str]:
        """Manifests of translated test sets by run and seed; none where no test set is asked for."""
        block = self.project.experiment(experiment)
        translated = translated_runs(block.translation, block.runs)
        return {
            run.name: f"results/{experiment}/translation/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
            if run.model in translated
        }

    def translation_corpora(self, experiment: str) -> dict[str, str]:
        """Manifests of the corpora of an experiment's test sets, by the names of the test sets."""
        tests = self.project.experiment(experiment).translation.tests
        return {name: self.corpus_manifest(test.corpus) for name, test in tests.items()}

    def baseline_model(self, baseline: str) -> str:
        """Source manifest of a model that others pretrained."""
        return self.source(self.project.baseline(baseline).data)

    def baselines(self, experiment: str) -> dict[str, str]:
        """Manifests of minimal-pair scores of models that others pretrained, by `BASELINE:SUITE`."""
        block = self.project.experiment(experiment)
        return {
            f"{baseline}:{suite}": f"results/baselines/{baseline}/{suite}/manifest.json"
            for baseline in block.baselines
            for suite in block.minimal_pairs
        }

    def table_layout(self, experiment: str) -> list[str]:
        """The layout of a paper's tables, where the experiment repeats one, or is the miniature of one that does."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/paper_tables/{paper}.yaml"]

    def table_numbers(self, experiment: str) -> list[str]:
        """The numbers of the paper whose tables an experiment has."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/published/values/{paper}.csv"]

    def paper_tables(self, experiment: str) -> list[str]:
        """Manifest of the tables in the layout of a paper, where an experiment has such; a study has none."""
        has = not self.project.is_study(experiment) and self.table_layout(experiment)
        return [f"results/{experiment}/paper_tables/manifest.json"] if has else []

    def exported(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's models as folders for `transformers`, by run and seed."""
        return {
            run.name: f"results/{experiment}/export/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def experiment_corpus(self, experiment: str) -> str:
        """Manifest of the documents that an experiment pretrains on."""
        return self.corpus_manifest(self.project.experiment(experiment).corpus)

    def filled_sentences(self, experiment: str) -> dict[str, str]:
        """Manifests of the sentences that the models of an experiment or a study filled in, by run and seed."""
        return self.of_parts(
            experiment,
            lambda part: {
                run.name: f"results/{part}/filled_sentences/{run.name}/manifest.json"
                for run in self.project.seeded_runs(part)
            },
        )

    def published(self, experiment: str) -> list[str]:
        """The numbers of the papers that an experiment, or those of a study, repeat, if they name any."""
        chosen = [self.project.experiment(part).published for part in self.project.parts(experiment)]
        papers = dict.fromkeys(block.paper for block in chosen if block is not None)
        return [f"config/published/values/{paper}.csv" for paper in papers]

    # Studies ---------------------------------------------------------------------------------------------------------

    def names_of_studies(self) -> str:
        """A pattern that the names of studies fit alone; where there are none, one that no name fits."""
        return "|".join(self.project.names("study")) or "-"

    def names_of_experiments(self) -> str:
        """A pattern that no name of a study fits."""
        return f"(?!(?:{self.names_of_studies()})/){NAME}"

    def of_parts(self, name: str, found: Callable[[str], Mapping[str, str]]) -> dict[str, str]:
        """What an experiment has, or what each experiment of a study has, there with the experiment in its name."""
        if not self.project.is_study(name):
            return dict(found(name))
        return {f"{part}/{key}": path for part in self.project.parts(name) for key, path in found(part).items()}

    def joined(self, study: str, table: str) -> dict[str, str]:
        """The tidy tables of this name of the experiments of a study, by experiment."""
        return {part: f"results/{part}/{table}.parquet" for part in self.project.study(study).experiments}

    def analyses(self, study: str) -> dict[str, str]:
        """Manifests of what the analyses of a study or an experiment found, by entry."""
        entries = self.project.analyses(study)
        return {name: f"results/{study}/analyses/{name}/manifest.json" for name in entries}

    def analysis_tables(self, study: str, analysis: str) -> dict[str, str]:
        """The tables and manifests that an analysis of a study needs, by name.

        Raises ConfigError for one that it does not have.
        """
        entry = analysis_entry(self.project, study, analysis)
        declared = analysis_called(entry.analysis)
        needs = declared.needs
        tables = {name: f"results/{study}/{name}.parquet" for name in needs if name in TIDY_TABLES}
        if SUMMARY in needs:
            tables[SUMMARY] = f"results/{study}/{SUMMARY}.parquet"
        parts = self.project.parts(study) if CORPORA in needs else []
        tables |= {f"{CORPUS}/{part}": self.experiment_corpus(part) for part in parts}
        tables |= {f"{TOKENS}/{part}": self.experiment_tokens(part) for part in parts}
        if TRANSLATIONS in needs:
            for part in self.project.parts(study):
                tables |= {f"{TRANSLATION}/{part}/{run}": path for run, path in self.translated(part).items()}
        if MINIMAL_PAIRS in needs:
            judged = self.of_parts(study, lambda part: self.minimal_pairs(part) | self.baselines(part))
            tables |= {f"{MINIMAL_PAIRS}/{name}": path for name, path in judged.items()}
        return tables | {f"{SWEEP}/{name}": sweep_manifest(name) for name in declared.sweeps(entry)}

    def analysis_files(self, study: str, analysis: str) -> dict[str, str]:
        """The published tables that an analysis of a study reads, by their path below `config/published/`."""
        entry = analysis_entry(self.project, study, analysis)
        names = analysis_called(entry.analysis).published(entry)
        return {name: f"config/published/{name}.csv" for name in names}

    def pages_of_parts(self, experiment: str) -> dict[str, str]:
        """The pages of the experiments of a study; an experiment has none."""
        parts = self.project.parts(experiment) if self.project.is_study(experiment) else []
        return {part: f"results/{part}/index.html" for part in parts}

    def costs(self, experiment: str) -> list[str]:
        """The estimates of the cost of an experiment, or of the experiments of a study."""
        return [f"results/{part}/cost.html" for part in self.project.parts(experiment)]

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
            entries = self.project.analyses(experiment)
            made = self.analyses(experiment)
            needed = {name: entry.analysis for name, entry in entries.items() if entry.analysis in declared.needs}
            tables |= {f"{kind}/{name}": made[name] for name, kind in needed.items()}
        published = self.published(experiment) if declared.published else []
        more = {f"{PUBLISHED}/{Path(path).stem}": path for path in published[1:]}
        return tables | ({PUBLISHED: published[0]} if published else {}) | more

    def _drawable(self, experiment: str) -> list[str]:
        has = [need for part in self.project.parts(experiment) for need in drawable(self.project, part)]
        if self.project.is_study(experiment):
            has += [entry.analysis for entry in self.project.analyses(experiment).values()]
        return has
