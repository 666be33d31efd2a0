"""The file `sentences.json` of the stage `fill_sentences`: what each sentence lacks and what a model guessed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hatchery.errors import EvaluationError
from hatchery.settings.base import Settings
from hatchery.storage.atomic import write_json
from hatchery.storage.manifests import read_manifest
from hatchery.typed import build

SENTENCES_FILE = "sentences.json"


@dataclass(frozen=True)
class Guess(Settings):
    """One subword and how probable the model finds it, in percent with one decimal.

    A subword that does not begin a word is written with an ellipsis before it.
    """

    text: str
    percent: float


@dataclass(frozen=True)
class FilledSentence(Settings):
    """A sentence without one word: what stands `before` it, the `word` itself, what stands `after` it."""

    before: str
    word: str
    after: str
    guesses: tuple[Guess, ...] = ()
    """The most probable subwords, the best first."""

    def with_gap(self, gap: str) -> str:
        """The sentence with `gap` in the place of the word."""
        return f"{self.before}{gap}{self.after}"


def write_sentences(path: Path, sentences: Sequence[FilledSentence]) -> None:
    """Write the file."""
    write_json(path, {"sentences": [asdict(sentence) for sentence in sentences]})


def text_of_sentences(manifest: Path) -> str:
    """Which text the sentences behind a manifest are of, in words. Raises ManifestError for a damaged manifest."""
    split = read_manifest(manifest).measures.get("split")
    return {"dev": "development text", "train": "training text (it has no development text)"}.get(str(split), "text")


def read_filled_sentences(manifest: Path) -> list[FilledSentence]:
    """The sentences behind a manifest of the stage. Raises ManifestError or EvaluationError naming a damaged file."""
    path = read_manifest(manifest).file(SENTENCES_FILE)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["sentences"]
        return [build(FilledSentence, row, f"{path}: sentences.{index}") for index, row in enumerate(rows)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: the sentences cannot be read: {error}") from error
