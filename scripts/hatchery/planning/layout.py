"""Where readers find the files of each stage: with `data_layout.py` the place that knows `resources/` and `results/`.

Where results are kept that experiments share is in `kept_results.py`.
"""

from hatchery.analysis.figures.registry import Need, figures_drawn_from, require_figure, tables_of
from hatchery.analysis.msgs_features import bias_features
from hatchery.config.continuation import origin_of, path_of
from hatchery.config.finetuning_jobs import task_batch
from hatchery.config.overrides import pretraining_of
from hatchery.config.paper_tables import paper_of_tables
from hatchery.planning.data_layout import DataLayout
from hatchery.rendering.figures import Declaration


class Layout(DataLayout):
    """Input paths of the rules of experiments, from pretraining to pages, as functions of their wildcards."""

    def experiment_tokens(self, experiment: str) -> str:
        """Manifest of the token shards that an experiment pretrains on."""
        block = self.project.experiment(experiment)
        return f"results/tokens/{block['corpus']}/{block['tokenizer']}/manifest.json"

    def experiment_tokenizer(self, experiment: str) -> str:
        """Manifest of an experiment's tokenizer."""
        return f"results/tokenizers/{self.project.experiment(experiment)['tokenizer']}/manifest.json"

    def evaluation_source(self, kind: str, name: str) -> str:
        """Source manifest of a suite or task."""
        return self.source(self.project.block(kind, name))

    def pretrained(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's pretrained models by run and seed."""
        return {
            run.name: f"results/{experiment}/pretraining/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def initial_model(self, experiment: str, run: str) -> list[str]:
        """Manifest of the model that a pretraining starts from; none where its weights are random."""
        chosen = self.project.seeded_run(experiment, run)
        given = path_of(self.project, pretraining_of(self.project.experiment(experiment), chosen.model))
        if given is not None:
            return [given]
        origin = origin_of(self.project, experiment, chosen.model, chosen.seed)
        return [] if origin is None else [self.pretrained(origin.experiment)[origin.name]]

    def run_cards(self, experiment: str) -> dict[str, str]:
        """Cards of an experiment's pretraining runs by run and seed."""
        return {
            run.name: f"results/{experiment}/run_cards/{run.name}.html" for run in self.project.seeded_runs(experiment)
        }

    def minimal_pairs(self, experiment: str) -> dict[str, str]:
        """Manifests of minimal-pair scores by `RUN-sSEED:SUITE`."""
        return {
            f"{run.name}:{suite}": f"results/{experiment}/minimal_pairs/{run.name}/{suite}/manifest.json"
            for run in self.project.seeded_runs(experiment)
            for suite in self.project.experiment(experiment)["minimal_pairs"]
        }

    def finetuned(self, experiment: str) -> dict[str, str]:
        """Manifests of fine-tuning results by `RUN-sSEED:TASK`."""
        return {
            f"{run.name}:{task}": f"results/{experiment}/finetuning/{run.name}/{task}/manifest.json"
            for run in self.project.seeded_runs(experiment)
            for task in self.project.experiment(experiment)["finetuning"]["tasks"]
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
        block = self.project.block("task", task)
        return {name: self.evaluation_source("task", name) for name in (task, *block["transfer_tasks"])}

    def task_vocabulary(self, task: str) -> list[str]:
        """Manifest of the vocabulary that the rows of a task are filtered by, if they are."""
        tasks = (task, *self.project.block("task", task)["transfer_tasks"])
        filters = [self.project.block("task", name)["vocabulary"] for name in tasks]
        return sorted({f"results/vocabularies/{entry['name']}/manifest.json" for entry in filters if entry is not None})

    def perplexities(self, experiment: str) -> dict[str, str]:
        """Manifests of perplexities by run and seed; none where no split is asked for."""
        if not self.project.experiment(experiment)["perplexity"]["splits"]:
            return {}
        return {
            run.name: f"results/{experiment}/perplexity/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def baseline_model(self, baseline: str) -> str:
        """Source manifest of a model that others pretrained."""
        return self.source(self.project.block("baseline", baseline))

    def baselines(self, experiment: str) -> dict[str, str]:
        """Manifests of minimal-pair scores of models that others pretrained, by `BASELINE:SUITE`."""
        block = self.project.experiment(experiment)
        return {
            f"{baseline}:{suite}": f"results/baselines/{baseline}/{suite}/manifest.json"
            for baseline in block["baselines"]
            for suite in block["minimal_pairs"]
        }

    def probed(self, experiment: str) -> dict[str, str]:
        """Manifests of the fine-tuning results that have layer weights (edge probing), by `RUN-sSEED:TASK`."""
        finetuned = self.finetuned(experiment)
        kinds = {name: self.project.block("task", name.split(":")[1])["head"]["kind"] for name in finetuned}
        return {name: path for name, path in finetuned.items() if kinds[name] == "span_classification"}

    def ambiguous(self, experiment: str) -> dict[str, str]:
        """Manifests of the fine-tuning results on the ambiguous tasks of MSGS, by `RUN-sSEED:TASK`."""
        finetuned = self.finetuned(experiment)
        return {name: path for name, path in finetuned.items() if bias_features(name.split(":")[1]) is not None}

    def table_layout(self, experiment: str) -> list[str]:
        """The layout of a paper's tables, where the experiment repeats one, or is the miniature of one that does."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/paper_tables/{paper}.yaml"]

    def table_numbers(self, experiment: str) -> list[str]:
        """The numbers of the paper whose tables an experiment has."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/published/values/{paper}.csv"]

    def paper_tables(self, experiment: str) -> list[str]:
        """Manifest of the tables in the layout of a paper, where an experiment has such."""
        return [f"results/{experiment}/paper_tables/manifest.json"] if self.table_layout(experiment) else []

    def exported(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's models as folders for `transformers`, by run and seed."""
        return {
            run.name: f"results/{experiment}/export/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def experiment_corpus(self, experiment: str) -> str:
        """Manifest of the documents that an experiment pretrains on."""
        return self.corpus_manifest(self.project.experiment(experiment)["corpus"])

    def filled_sentences(self, experiment: str) -> dict[str, str]:
        """Manifests of the sentences that an experiment's models filled in, by run and seed."""
        return {
            run.name: f"results/{experiment}/filled_sentences/{run.name}/manifest.json"
            for run in self.project.seeded_runs(experiment)
        }

    def published(self, experiment: str) -> list[str]:
        """The numbers of the paper that an experiment repeats, if it names one."""
        chosen = self.project.experiment(experiment)["published"]
        return [] if chosen is None else [f"config/published/values/{chosen['paper']}.csv"]

    def figures(self, experiment: str) -> dict[str, str]:
        """The figures of an experiment by name: those that its results give something to draw for."""
        drawn = figures_drawn_from(self._drawable(experiment))
        return {name: f"results/{experiment}/figures/{name}.svg" for name in drawn}

    def figure(self, experiment: str, figure: str) -> Declaration:
        """What a figure of an experiment is. Raises ConfigError where the experiment has nothing to draw in it."""
        return require_figure(figure, self._drawable(experiment), experiment)

    def figure_tables(self, experiment: str, figure: str) -> dict[str, str]:
        """What a figure of an experiment is drawn from: tidy tables, and published values if it marks such."""
        declared = self.figure(experiment, figure)
        tables = {name: f"results/{experiment}/{name}.parquet" for name in tables_of(declared)}
        published = self.published(experiment) if declared.published else []
        return tables | {"published": published[0]} if published else tables

    def figure_text(self, experiment: str, figure: str) -> str:
        """What the report says of a figure of an experiment."""
        return self.figure(experiment, figure).report_text(experiment, bool(self.published(experiment)))

    def _drawable(self, experiment: str) -> list[Need]:
        results: dict[Need, dict[str, str]] = {
            "runs": self.pretrained(experiment),
            "curves": self.pretrained(experiment),
            "layer_weights": self.pretrained(experiment),
            "minimal_pairs": self.minimal_pairs(experiment),
            "tasks": self.finetuned(experiment),
            "ambiguous_tasks": self.ambiguous(experiment),
            "probes": self.probed(experiment),
        }
        return [need for need, found in results.items() if found]
