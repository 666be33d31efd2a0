"""The file `sentences.json` of the stage `fill_sentences`: sentences of a corpus, and what a model made of them."""

from dataclasses import asdict, dataclass
from pathlib import Path

from hatchery.storage.atomic import write_json
from hatchery.storage.manifests import read_manifest
from hatchery.storage.records import Record, json_record

SENTENCES_FILE = "sentences.json"


@dataclass(frozen=True)
class Guess(Record):
    """One subword and how probable the model finds it, in percent with one decimal.

    A subword that does not begin a word is written with an ellipsis before it.
    """

    text: str
    percent: float


@dataclass(frozen=True)
class FilledSentence(Record):
    """A sentence without one word: what stands `before` it, the `word` itself, what stands `after` it."""

    before: str
    word: str
    after: str
    guesses: tuple[Guess, ...] = ()
    """The most probable subwords, the best first."""

    def with_gap(self, gap: str) -> str:
        """The sentence with `gap` in the place of the word."""
        return f"{self.before}{gap}{self.after}"


@dataclass(frozen=True)
class ContinuedSentence(Record):
    """The beginning of a sentence, `before`, and how it goes on.

    In the corpus (`original`), by the most probable token each time (`greedy`), and by tokens drawn with a fixed seed
    (`sampled`).
    """

    before: str
    original: str
    greedy: str
    sampled: str


@dataclass(frozen=True)
class TranslatedSentence(Record):
    """A sentence of the corpus, its translation there (`reference`), and what the model makes of it."""

    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class Sentences(Record):
    """What one model wrote: a masked one filled sentences in, a causal one continued them, others translate."""

    sentences: tuple[FilledSentence, ...]
    continued: tuple[ContinuedSentence, ...] = ()
    translated: tuple[TranslatedSentence, ...] = ()


def write_sentences(path: Path, written: Sentences) -> None:
    """Write the file; what kinds of sentences it has none of is left out, but for those filled in."""
    content = {name: value for name, value in asdict(written).items() if value or name == "sentences"}
    write_json(path, content)


def text_of_sentences(manifest: Path) -> str:
    """Which text the sentences behind a manifest are of, in words. Raises ManifestError for a damaged manifest."""
    split = read_manifest(manifest).measures.get("split")
    return {"dev": "development text", "train": "training text (it has no development text)"}.get(str(split), "text")


def read_sentences(manifest: Path) -> Sentences:
    """The sentences behind a manifest of the stage. Raises ManifestError or EvaluationError naming a damaged file."""
    return json_record(read_manifest(manifest).file(SENTENCES_FILE), Sentences)
