"""Where the files of the stages that make data lie, from raw sources to tokenizers and their sweeps."""

from pathlib import Path
from typing import Any

from hatchery.config.project import Project, corpora_of, corpus_kind
from hatchery.config.stages import stage_settings
from hatchery.config.terms import about
from hatchery.errors import ConfigError
from hatchery.storage.checksums import canonical_json, digest


class DataLayout:
    """Input paths of the rules that make data: sources, vocabularies, corpora, tokenizers; by their wildcards.

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
        """What a tokenizer is made of: manifests of the corpora that it is trained on, or the file that it is."""
        block = self.project.block("tokenizer", tokenizer)
        if "path" in block:
            return [str(Path(block["path"]).expanduser())]
        return [self.corpus_manifest(corpus) for corpus in corpora_of(block)]

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
