"""The stage `describe_corpus`: write the card of a corpus, with its tables."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.job_spec import Paths
from hatchery.stage import Stage
from hatchery.typed import keys_of
from hatchery.views.cards.settings import CardSettings

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.workflow.outputs import Outputs

PUBLISHED_SIZES = "config/published/corpora/sizes.csv"
"""Table of corpus sizes that papers print."""


def card_settings(project: "Project", corpus: str) -> dict[str, object]:
    """Return the settings of a corpus card: description, languages, and origin and licence of the sources."""
    block = project.corpus(corpus)
    sources = {source["name"]: source for source in raw_inputs(project, corpus)}
    return {
        "corpus": corpus,
        "description": block.description,
        "languages": block.languages,
        "sources": [sources[name] for name in sorted(sources)],
        **({"counting": counting} if (counting := keys_of(block.word_counting)) else {}),
    }


def card_inputs(of: "Outputs", corpus: str) -> dict[str, Paths]:
    """Return the inputs of a corpus card: document shards, published sizes and, if the corpus names a tokenizer, token
    shards.
    """
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
    reported={"card": ("Corpora", "{corpus}")},
    environment="analysis",
    runs_on="cpu",
    memory_mb=4000,
    minutes=120,
)
def describe_corpus(
    settings: CardSettings, corpus: Manifest, published: Path | None, tokens: Manifest | None, run: StageRun
) -> None:
    """Write the card of a corpus.

    `published` is a table of published sizes, and `tokens` is the manifest of the corpus's token shards. Raises
    ConfigError, ManifestError, CorpusError or EvaluationError, which names the faulty input, before a file is written.
    """
    from hatchery.views.cards.write_card import write_card

    write_card(settings, corpus, published, tokens, run)
