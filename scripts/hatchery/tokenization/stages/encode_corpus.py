"""The stage `encode_corpus`, which encodes the documents of a corpus into token shards."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.corpora.word_counting import WordCounting
from hatchery.stage import Stage
from hatchery.tokenization.trainer_settings import EncodedUnit
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


@dataclass(frozen=True, kw_only=True)
class EncodingSettings(WordCounting):
    """Settings of an encoding, apart from its corpus and tokenizer."""

    units: EncodedUnit = "sentences"
    """Unit of text that the tokenizer encodes at a time: one sentence, or one complete document."""


def tokens_settings(project: "Project", corpus: str, tokenizer: str) -> dict[str, object]:
    """Return the unit of text that the tokenizer encodes at a time (`units`), and the word-counting rule of the corpus.
    Keys with default values are left out.
    """
    units = project.tokenizer(tokenizer).encoded_units
    return keys_of(project.corpus(corpus).word_counting) | ({} if units == "sentences" else {"units": units})


@Stage(
    version=1,
    settings=tokens_settings,
    inputs=lambda of, corpus, tokenizer: {"corpus": of.corpus(corpus), "tokenizer": of("train_tokenizer")},
    outputs={"output": "results/tokens/{corpus}/{tokenizer}/manifest.json"},
    environment="tokenization",
    runs_on="cpu",
    threads="tokenization",
    memory_mb=8000,
    minutes=120,
)
def encode_corpus(
    settings: EncodingSettings, corpus: Manifest, tokenizer: Manifest, run: StageRun, threads: int | None = None
) -> None:
    """Encode the documents of the manifest `corpus` with the tokenizer of the manifest `tokenizer`.

    Outputs are `{split}-{i}-of-{n}.arrow`, `statistics.csv` (by split and source) and `unigram.json` (count of each id
    in the train split). Measures: `vocabulary_size`, `id_type`, `splits` (counts, fertility and unknown rate of each
    split), `special_tokens` (names in order and ids by role), `text_words` and `text_bytes` (number of words and number
    of bytes of the text, by split), `word_count` (word-counting rule, with its byte premiums; absent if the rule is
    `white_space`), `token_bytes` (by split: number of bytes that ordinary tokens and each special token represent),
    `empty_documents` (number of documents without text), `train_frequency_at_95_percent` (see
    `frequency_at_95_percent`). `threads` does not affect the result. Raises ManifestError, TokenizationError or
    CorpusError for unusable inputs; a corpus without text raises CorpusError.
    """
    from hatchery.tokenization.encoder import encode

    encode(corpus, tokenizer, run, threads, settings.units, settings)
