"""Where the files of the stages that make data lie, from raw sources to tokenizers and their sweeps."""

from pathlib import Path
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import about, readings, source_of
from hatchery.raw.listings import source_manifest
from hatchery.settings.fields import ABSENT
from hatchery.typed import plain


class DataPaths:
    """Input paths of the rules that make data: sources, vocabularies, corpora, tokenizers; by their wildcards."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def source_inputs(self, source: str) -> list[str]:
        """What registering a source reads of ours: the generated files. The user's are noticed by `RawFiles`."""
        return ["resources/embedded/manifest.json"] if source.startswith("embedded_") else []

    def data_sources(self, name: str | None) -> list[str]:
        """Source manifest of a raw input of config.yaml, if one is named."""
        return [] if name is None else [source_manifest(name)]

    def about_source(self, source: str) -> object:
        """The origin, licence and terms of a source."""
        return about(self.project, source)

    def readings(self, source: str) -> object:
        """What suites and tasks will read from a source."""
        return plain(readings(self.project, source))

    def suite_source(self, suite: str) -> str:
        """Source manifest of a suite of minimal pairs."""
        return source_manifest(source_of(self.project.suite(suite)))

    def baseline_source(self, baseline: str) -> str:
        """Source manifest of a model that others pretrained."""
        return source_manifest(self.project.baseline(baseline).data)

    def corpus_manifest(self, corpus: str) -> str:
        """Manifest of a corpus, in the folder of its kind."""
        folders = {"sources": "corpora", "sample": "samples", "sequences": "sequences"}
        return f"results/{folders[self.project.corpus(corpus).made_from]}/{corpus}/manifest.json"

    def corpus_sources(self, corpus: str) -> dict[str, str]:
        """Source manifests of a converted corpus by the names that its documents carry."""
        return {source.name: source_manifest(source_of(source)) for source in self._part(corpus, "sources")}

    def sentence_model(self, corpus: str) -> list[str]:
        """Source manifest of the sentence splitter's parameters, if a corpus does not take ours."""
        return self.data_sources(self.project.corpus(corpus).sentence_model)

    def sampled_corpora(self, corpus: str) -> dict[str, str]:
        """Manifests of the corpus that a sample is drawn from and, if its size is another's, of that one."""
        sample = self._part(corpus, "sample")
        named = {"corpus": sample.corpus, "size_of": sample.size_of}
        return {key: self.corpus_manifest(name) for key, name in named.items() if name is not ABSENT}

    def grouped_selections(self, corpus: str) -> dict[str, str]:
        """Manifests of the selections that are grouped into sequences, by their names."""
        return {name: selection_manifest(name) for name in self._part(corpus, "sequences").selections}

    def held_out(self, corpus: str) -> list[str]:
        """Manifest of the corpus whose development and test sequences these are held against, if there is one."""
        other = self._part(corpus, "sequences").held_out_from
        return [] if other is None else [self.corpus_manifest(other)]

    def card_tokens(self, corpus: str) -> list[str]:
        """Manifest of the token shards whose counts a corpus's card shows, if the corpus names a tokenizer."""
        tokenizer = self.project.corpus(corpus).card_tokenizer
        return [] if tokenizer is None else [tokens_manifest(corpus, tokenizer)]

    def _part(self, corpus: str, kind: str) -> Any:
        block = self.project.corpus(corpus)
        if block.made_from != kind:
            raise ConfigError(
                f"the corpus {corpus!r} is made from `{block.made_from}`; ask for {self.corpus_manifest(corpus)}"
            )
        return getattr(block, kind)

    def vocabulary_inputs(self, vocabulary: str) -> dict[str, str]:
        """Source manifests that a vocabulary is made from: source, dictionary, released."""
        block = self.project.vocabulary(vocabulary)
        named = {"source": source_of(block), "dictionary": block.dictionary, "released": block.released}
        return {key: source_manifest(name) for key, name in named.items() if name is not None}

    def selection_inputs(self, selection: str) -> dict[str, str]:
        """Manifests that a selection is made from: source or corpus, vocabulary and perhaps a sentence model."""
        block = self.project.selection(selection)
        model = {} if block.sentence_model is None else {"sentence_model": source_manifest(block.sentence_model)}
        source = source_manifest(source_of(block)) if block.corpus is ABSENT else self.corpus_manifest(block.corpus)
        return {"source": source, "vocabulary": vocabulary_manifest(block.vocabulary), **model}

    def tokenizer_corpora(self, tokenizer: str) -> list[str]:
        """What a tokenizer is made of: manifests of the corpora that it is trained on, or the file that it is."""
        block = self.project.tokenizer(tokenizer)
        if block.path is not ABSENT:
            return [str(Path(block.path).expanduser())]
        return [self.corpus_manifest(corpus) for corpus in block.trained_on]

    def tokenizer_manifest(self, tokenizer: str) -> str:
        """Manifest of a tokenizer."""
        return f"results/tokenizers/{tokenizer}/manifest.json"

    def published_sizes(self) -> str:
        """The sizes of corpora that papers print."""
        return "config/published/corpora/sizes.csv"

    def sweep_corpus(self, sweep: str) -> str:
        """Manifest of the corpus that a sweep of tokenizers is trained and measured on."""
        return self.corpus_manifest(self.project.tokenizer_sweep(sweep).corpus)

    def sweep_morphemes(self, sweep: str) -> list[str]:
        """Source manifest of the user's list of morphemes, if a sweep names one."""
        return self.data_sources(self.project.tokenizer_sweep(sweep).morphemes_data)

    def sweep_references(self, sweep: str) -> dict[str, str]:
        """Source manifests of the reference tokenizers of a sweep by type."""
        named = {name: entry.reference for name, entry in self.project.tokenizer_sweep(sweep).types.items()}
        return {name: source_manifest(data) for name, data in named.items() if data is not None}

    def sweep_published(self, sweep: str) -> list[str]:
        """The table of published values of a sweep, if it names one."""
        name = self.project.tokenizer_sweep(sweep).published
        return [] if name is None else [f"config/published/tokenizers/{name}.csv"]


def vocabulary_manifest(name: str) -> str:
    """Manifest of a vocabulary."""
    return f"results/vocabularies/{name}/manifest.json"


def tokens_manifest(corpus: str, tokenizer: str) -> str:
    """Manifest of the token shards of a corpus."""
    return f"results/tokens/{corpus}/{tokenizer}/manifest.json"


def sweep_manifest(sweep: str) -> str:
    """Manifest of a sweep of tokenizers."""
    return f"results/tokenizer_sweeps/{sweep}/manifest.json"


def selection_manifest(selection: str) -> str:
    """Manifest of a selection."""
    return f"results/selections/{selection}/manifest.json"
