"""Where the files of each stage lie: the one place that knows the layout of `resources/` and `results/`."""

from pathlib import Path
from typing import Any

from hatchery.analysis.msgs_features import bias_features
from hatchery.config.finetuning_jobs import declared_outputs, task_batch
from hatchery.config.paper_tables import paper_of_tables
from hatchery.config.project import Project, corpus_kind
from hatchery.config.stages import stage_settings
from hatchery.config.terms import about
from hatchery.errors import ConfigError
from hatchery.storage.checksums import canonical_json, digest


class Layout:
    """Input paths of the rules, as functions of their wildcards.

    Frozen settings (`results/settings/<digest>.json`) are remembered while the inputs of expensive jobs are asked
    for, so that the rule that writes them knows their text: a job queued on a cluster must use the settings of the
    moment of its submission, not those that the configuration holds when it starts.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._frozen: dict[str, str] = {}
        self._settings: dict[tuple[str, ...], str] = {}

    def settings(self, stage: str, **wildcards: str) -> str:
        """Canonical settings of a job, computed once."""
        key = (stage, *(f"{name}={value}" for name, value in sorted(wildcards.items())))
        if key not in self._settings:
            self._settings[key] = stage_settings(self.project, stage, **wildcards)
        return self._settings[key]

    def frozen_settings(self, stage: str, **wildcards: str) -> str:
        """Path of the file with the frozen settings of a job."""
        text = self.settings(stage, **wildcards)
        name = digest(text)[:16]
        self._frozen[name] = text
        return f"results/settings/{name}.json"

    def frozen_text(self, name: str) -> str:
        """Content of a frozen settings file that some job of this invocation asked for.

        Raises ConfigError for another name: settings cannot be made from their digest.
        """
        if name not in self._frozen:
            raise ConfigError(f"results/settings/{name}.json: no job asked for these settings; ask for its result")
        return self._frozen[name]

    def source_inputs(self, source: str) -> list[str]:
        """What registering a source reads: the generated files, or the user's path when it exists.

        A missing path is no input, so that the DAG of an experiment can be looked at before its data is there; the
        job itself then says what is missing and where to get it.
        """
        if source.startswith("embedded_"):
            return ["resources/embedded/manifest.json"]
        data = self.project.config["data"].get(source, {"path": None})
        return [data["path"]] if data["path"] is not None and Path(data["path"]).exists() else []

    def about_source(self, source: str) -> str:
        """Canonical JSON of the origin, licence and terms of a source."""
        return canonical_json(about(self.project, source))

    def corpus_manifest(self, corpus: str) -> str:
        """Manifest of a corpus, in the folder of its kind."""
        folders = {"sources": "corpora", "sample": "samples", "sequences": "sequences"}
        return f"results/{folders[corpus_kind(self.project.block('corpus', corpus))]}/{corpus}/manifest.json"

    def corpus_sources(self, corpus: str) -> dict[str, str]:
        """Source manifests of a converted corpus by the names that its documents carry."""
        return {source["name"]: source_manifest(source) for source in self._part(corpus, "sources")}

    def sentence_model(self, corpus: str) -> list[str]:
        """Source manifest of the sentence splitter's parameters, if a corpus does not take ours."""
        return data_manifests(self.project.block("corpus", corpus)["sentence_model"])

    def sampled_corpora(self, corpus: str) -> dict[str, str]:
        """Manifests of the corpus that a sample is drawn from and, if its size is another's, of that one."""
        sample = self._part(corpus, "sample")
        return {key: self.corpus_manifest(sample[key]) for key in ("corpus", "size_of") if key in sample}

    def grouped_selections(self, corpus: str) -> dict[str, str]:
        """Manifests of the selections that are grouped into sequences, by their names."""
        groups = self._part(corpus, "sequences")["groups"]
        return {name: selection_manifest(name) for group in groups for name in group["selections"]}

    def held_out(self, corpus: str) -> list[str]:
        """Manifest of the corpus whose development and test sequences these are held against, if there is one."""
        other = self._part(corpus, "sequences")["held_out_from"]
        return [] if other is None else [self.corpus_manifest(other)]

    def card_tokens(self, corpus: str) -> list[str]:
        """Manifest of the token shards whose counts a corpus's card shows, if the corpus names a tokenizer."""
        tokenizer = self.project.block("corpus", corpus)["card_tokenizer"]
        return [] if tokenizer is None else [f"results/tokens/{corpus}/{tokenizer}/manifest.json"]

    def cards(self, experiment: str) -> dict[str, str]:
        """Manifests of the corpus cards of an experiment: its own corpus first, then those it names."""
        block = self.project.experiment(experiment)
        return {corpus: f"results/cards/{corpus}/manifest.json" for corpus in (block["corpus"], *block["cards"])}

    def _part(self, corpus: str, kind: str) -> Any:
        block = self.project.block("corpus", corpus)
        if kind not in block:
            raise ConfigError(
                f"the corpus {corpus!r} is made from `{corpus_kind(block)}`; ask for {self.corpus_manifest(corpus)}"
            )
        return block[kind]

    def vocabulary_inputs(self, vocabulary: str) -> dict[str, str]:
        """Source manifests that a vocabulary is made from: source, dictionary, released."""
        block = self.project.block("vocabulary", vocabulary)
        found = {"source": source_manifest(block)}
        for key in ("dictionary", "released"):
            if block.get(key) is not None:
                found[key] = source_manifest({"data": block[key]})
        return found

    def selection_inputs(self, selection: str) -> dict[str, str]:
        """Manifests that a selection is made from: source, vocabulary and, if it names one, sentence model."""
        block = self.project.block("selection", selection)
        vocabulary = f"results/vocabularies/{block['vocabulary']}/manifest.json"
        model = (
            {}
            if block["sentence_model"] is None
            else {"sentence_model": source_manifest({"data": block["sentence_model"]})}
        )
        return {"source": source_manifest(block), "vocabulary": vocabulary, **model}

    def tokenizer_corpora(self, tokenizer: str) -> list[str]:
        """Manifests of the corpora that a tokenizer is trained on: one, or several together."""
        block = self.project.block("tokenizer", tokenizer)
        return [
            self.corpus_manifest(corpus) for corpus in (block["corpora"] if "corpora" in block else [block["corpus"]])
        ]

    def sweep_corpus(self, sweep: str) -> str:
        """Manifest of the corpus that a sweep of tokenizers is trained and measured on."""
        return self.corpus_manifest(self.project.block("tokenizer_sweep", sweep)["corpus"])

    def sweep_morphemes(self, sweep: str) -> list[str]:
        """Source manifest of the user's list of morphemes, if a sweep names one."""
        return data_manifests(self.project.block("tokenizer_sweep", sweep)["morphemes_data"])

    def sweep_references(self, sweep: str) -> dict[str, str]:
        """Source manifests of the reference tokenizers of a sweep by type."""
        types = self.project.block("tokenizer_sweep", sweep)["types"]
        named = {name: entry["reference"] for name, entry in types.items() if entry["reference"] is not None}
        return {name: source_manifest({"data": data}) for name, data in named.items()}

    def sweep_published(self, sweep: str) -> list[str]:
        """The table of published values of a sweep, if it names one."""
        name = self.project.block("tokenizer_sweep", sweep)["published"]
        return [] if name is None else [f"config/published/tokenizers/{name}.csv"]

    def experiment_tokens(self, experiment: str) -> str:
        """Manifest of the token shards that an experiment pretrains on."""
        block = self.project.experiment(experiment)
        return f"results/tokens/{block['corpus']}/{block['tokenizer']}/manifest.json"

    def experiment_tokenizer(self, experiment: str) -> str:
        """Manifest of an experiment's tokenizer."""
        return f"results/tokenizers/{self.project.experiment(experiment)['tokenizer']}/manifest.json"

    def evaluation_source(self, kind: str, name: str) -> str:
        """Source manifest of a suite or task."""
        return source_manifest(self.project.block(kind, name))

    def pretrained(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's pretrained models by cell."""
        return {
            cell.name: f"results/{experiment}/pretraining/{cell.name}/manifest.json"
            for cell in self.project.cells(experiment)
        }

    def run_cards(self, experiment: str) -> dict[str, str]:
        """Cards of an experiment's pretraining runs by cell."""
        return {
            cell.name: f"results/{experiment}/run_cards/{cell.name}.html" for cell in self.project.cells(experiment)
        }

    def minimal_pairs(self, experiment: str) -> dict[str, str]:
        """Manifests of minimal-pair scores by `CELL:SUITE`."""
        return {
            f"{cell.name}:{suite}": f"results/{experiment}/minimal_pairs/{cell.name}/{suite}/manifest.json"
            for cell in self.project.cells(experiment)
            for suite in self.project.experiment(experiment)["minimal_pairs"]
        }

    def finetuned(self, experiment: str) -> dict[str, str]:
        """Manifests of fine-tuning results by `CELL:TASK`."""
        return {
            f"{cell.name}:{task}": f"results/{experiment}/finetuning/{cell.name}/{task}/manifest.json"
            for cell in self.project.cells(experiment)
            for task in self.project.experiment(experiment)["finetuning"]["tasks"]
        }

    def finetuning_outputs(self, experiment: str, finetuned: dict[str, str]) -> list[str]:
        """What to ask for to have these results, manifests by `CELL:TASK`: theirs, or those of jobs with several."""
        return declared_outputs(self.project, experiment, finetuned)

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
        """Manifests of perplexities by cell; none where no split is asked for."""
        if not self.project.experiment(experiment)["perplexity"]["splits"]:
            return {}
        return {
            cell.name: f"results/{experiment}/perplexity/{cell.name}/manifest.json"
            for cell in self.project.cells(experiment)
        }

    def baseline_model(self, baseline: str) -> str:
        """Source manifest of a model that others pretrained."""
        return source_manifest(self.project.block("baseline", baseline))

    def baselines(self, experiment: str) -> dict[str, str]:
        """Manifests of minimal-pair scores of models that others pretrained, by `BASELINE:SUITE`."""
        block = self.project.experiment(experiment)
        return {
            f"{baseline}:{suite}": f"results/baselines/{baseline}/{suite}/manifest.json"
            for baseline in block["baselines"]
            for suite in block["minimal_pairs"]
        }

    def probed(self, experiment: str) -> dict[str, str]:
        """Manifests of the fine-tuning results that have layer weights (edge probing), by `CELL:TASK`."""
        finetuned = self.finetuned(experiment)
        kinds = {name: self.project.block("task", name.split(":")[1])["head"]["kind"] for name in finetuned}
        return {name: path for name, path in finetuned.items() if kinds[name] == "span_classification"}

    def ambiguous(self, experiment: str) -> dict[str, str]:
        """Manifests of the fine-tuning results on the ambiguous tasks of MSGS, by `CELL:TASK`."""
        finetuned = self.finetuned(experiment)
        return {name: path for name, path in finetuned.items() if bias_features(name.split(":")[1]) is not None}

    def table_layout(self, experiment: str) -> list[str]:
        """The layout of a paper's tables, where the experiment or the one it is a twin of repeats such a paper."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/paper_tables/{paper}.yaml"]

    def table_numbers(self, experiment: str) -> list[str]:
        """The numbers of the paper whose tables an experiment has."""
        paper = paper_of_tables(self.project, experiment)
        return [] if paper is None else [f"config/published/values/{paper}.csv"]

    def paper_tables(self, experiment: str) -> list[str]:
        """Manifest of the tables in the layout of a paper, where an experiment has such."""
        return [f"results/{experiment}/paper_tables/manifest.json"] if self.table_layout(experiment) else []

    def contribution_table(self, experiment: str) -> list[str]:
        """The layers' contributions to the probes of an experiment, if it has probes."""
        return [f"results/{experiment}/tables/layer_contributions.csv"] if self.probed(experiment) else []

    def exported(self, experiment: str) -> dict[str, str]:
        """Manifests of an experiment's models as folders for `transformers`, by cell."""
        return {
            cell.name: f"results/{experiment}/export/{cell.name}/manifest.json"
            for cell in self.project.cells(experiment)
        }

    def published(self, experiment: str) -> list[str]:
        """The numbers of the paper that an experiment repeats, if it names one."""
        chosen = self.project.experiment(experiment)["published"]
        return [] if chosen is None else [f"config/published/values/{chosen['paper']}.csv"]

    def figures(self, experiment: str) -> dict[str, str]:
        """The figures of an experiment by name: those that its evaluations give something to draw for."""
        names = ["learning_curves", "layer_weights"]
        if self.project.experiment(experiment)["minimal_pairs"]:
            names.append("phenomena")
        if self.finetuned(experiment):
            names.append("task_scores")
        if self.ambiguous(experiment):
            names += ["bias_violins", "feature_dots"]
        if self.probed(experiment):
            names.append("layer_contributions")
        return {name: f"results/{experiment}/figures/{name}.svg" for name in names}


def source_manifest(entry: dict[str, Any]) -> str:
    """Source manifest that a block with a `data` or `embedded` key refers to."""
    name = entry["data"] if "data" in entry else f"embedded_{entry['embedded']}"
    return f"resources/sources/{name}.json"


def data_manifests(name: str | None) -> list[str]:
    """Source manifest of a raw input of config.yaml, if one is named."""
    return [] if name is None else [source_manifest({"data": name})]


def selection_manifest(selection: str) -> str:
    """Manifest of a selection."""
    return f"results/selections/{selection}/manifest.json"


def arguments(flag: str, named: dict[str, str]) -> str:
    """Command-line text that repeats `flag NAME=path` for every entry."""
    return " ".join(f"{flag} {name}={path}" for name, path in named.items())


def flags(named: dict[str, str]) -> str:
    """Command-line text with `--name path` for every entry, underscores as hyphens."""
    return " ".join(f"--{name.replace('_', '-')} {path}" for name, path in named.items())
