"""The file `sentences.json` of the stage `fill_sentences`: what each sentence lacks and what a model wrote there."""

from collections.abc import Sequence
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
class _Sentences(Record):
    sentences: tuple[FilledSentence, ...]
    continued: tuple[ContinuedSentence, ...] = ()


def write_sentences(
    path: Path, sentences: Sequence[FilledSentence], continued: Sequence[ContinuedSentence] = ()
) -> None:
    """Write the file: sentences that a masked model filled in, or that a causal one continued."""
    more = {"continued": [asdict(sentence) for sentence in continued]} if continued else {}
    write_json(path, {"sentences": [asdict(sentence) for sentence in sentences], **more})


def text_of_sentences(manifest: Path) -> str:
    """Which text the sentences behind a manifest are of, in words. Raises ManifestError for a damaged manifest."""
    split = read_manifest(manifest).measures.get("split")
    return {"dev": "development text", "train": "training text (it has no development text)"}.get(str(split), "text")


def read_filled_sentences(manifest: Path) -> list[FilledSentence]:
    """The sentences behind a manifest of the stage. Raises ManifestError or EvaluationError naming a damaged file."""
    return list(json_record(read_manifest(manifest).file(SENTENCES_FILE), _Sentences).sentences)


def read_continued_sentences(manifest: Path) -> list[ContinuedSentence]:
    """Those that a causal model continued; none of a masked one. Raises like `read_filled_sentences`."""
    return list(json_record(read_manifest(manifest).file(SENTENCES_FILE), _Sentences).continued)
