"""The stage `describe_corpus`: the card of a corpus, with the tables that it shows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.errors import ConfigError
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.job_spec import Paths
from hatchery.settings.base import Settings
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs

PUBLISHED_SIZES = "config/published/corpora/sizes.csv"
"""The sizes of corpora that papers print."""


@dataclass(frozen=True)
class SourceTerms(Settings):
    """What a reader of the card must know before using a raw input."""

    name: str
    """Name of the raw input in the configuration; several sources of a corpus may come from one."""
    licence: str = ""
    """Name of the licence, empty where none is known."""
    terms: str = ""
    """What the source may be used for."""
    obtain: str = ""
    """Where the source comes from."""


@dataclass(frozen=True)
class CardSettings(Settings):
    """Settings of one card."""

    corpus: str
    """Name of the corpus."""
    description: str = ""
    """One or two sentences about the corpus, as in its configuration."""
    languages: tuple[str, ...] = ()
    """ISO 639 codes of the languages of the corpus; empty where nobody said them."""
    sources: tuple[SourceTerms, ...] = ()
    """Licence and origin of the raw inputs, in the order in which the card lists them."""
    published_as: str = ""
    """Name of the corpus in the table of published sizes; empty where it is the corpus's own name."""
    samples_per_source: int = 3
    """Accepted texts shown per source, and rejected texts per source and reason."""
    sample_characters: int = 500
    """Length at which a shown text is cut."""
    top_words: int = 20
    """Most frequent words listed per source."""
    max_types: int = 3_000_000
    """Distinct words held in memory, shared evenly by the sources; the vocabulary of a source that reaches its part is
    measured on the words before that."""

    def __post_init__(self) -> None:
        for name, low in (("samples_per_source", 0), ("sample_characters", 20), ("top_words", 0), ("max_types", 1)):
            value = getattr(self, name)
            if value < low:
                raise ConfigError(f"{name}: expected at least {low}, got {value}")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise ConfigError(f"sources: a name occurs twice among {', '.join(names)}")


def card_settings(project: "Project", corpus: str) -> dict[str, object]:
    """What a corpus's card says of where the corpus comes from."""
    block = project.corpus(corpus)
    sources = {source["name"]: source for source in raw_inputs(project, corpus)}
    return {
        "corpus": corpus,
        "description": block.description,
        "languages": block.languages,
        "sources": [sources[name] for name in sorted(sources)],
    }


def card_inputs(of: "Outputs", corpus: str) -> dict[str, Paths]:
    """Documents, published sizes and, if the corpus names a tokenizer, its token shards."""
    tokenizer = of.project.corpus(corpus).card_tokenizer
    tokens = [] if tokenizer is None else [of("encode_corpus", tokenizer=tokenizer)]
    return {"corpus": of.corpus(corpus), "published": PUBLISHED_SIZES, "tokens": tokens}


@Stage(
    version=1,
    settings=card_settings,
    inputs=card_inputs,
    outputs={
        "manifest": "results/cards/{corpus}/manifest.json",
        "card": "results/cards/{corpus}/card.html",
        "statistics": "results/cards/{corpus}/statistics.csv",
    },
    environment="analysis",
    runs_on="cpu",
    memory_mb=4000,
    minutes=120,
)
def describe_corpus(
    settings: CardSettings, corpus: Manifest, published: Path | None, tokens: Manifest | None, run: StageRun
) -> None:
    """Write the card of a corpus.

    `published` is a table of published sizes, `tokens` the manifest of the corpus's token shards. Raises ConfigError,
    ManifestError, CorpusError or EvaluationError naming the input at fault; then no file is written.
    """
    from hatchery.views.cards.write_card import write_card

    write_card(settings, corpus, published, tokens, run)
