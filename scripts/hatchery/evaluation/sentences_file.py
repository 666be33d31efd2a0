"""The file `sentences.json` of the stage `fill_sentences`: sentences of a corpus, and what a model made of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.records import Record, json_record

SENTENCES_FILE = "sentences.json"
GAP = "____"


@dataclass(frozen=True)
class Answer(Record):
    """What a model wrote, and how probable it finds it, in percent with one decimal, where that was asked.

    A subword that does not begin a word is written with an ellipsis before it.
    """

    text: str
    percent: float | None = None


@dataclass(frozen=True)
class FilledSentence(Record):
    """What a model was given, what stands there in the corpus, and the model's answers, the first one first.

    What it was given is a sentence with GAP in the place of a word, the beginning of one, or one to translate.
    """

    given: str
    original: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Wording:
    """How examples of one task are introduced: in `introduction`, `{}` is the text that they are of."""

    introduction: str
    given: str
    original: str
    answers: tuple[str, ...]


WORDINGS = {
    "fill": Wording(
        "Some short sentences of the corpus's {}, without one word, and the most probable subwords there.",
        "sentence",
        "left out",
        ("most probable", "second", "third"),
    ),
    "continue": Wording(
        "Beginnings of some short sentences of the corpus's {}, and how the model goes on until a paragraph ends: with "
        "the most probable token each time, and with tokens drawn once with a fixed seed.",
        "beginning",
        "the corpus goes on",
        ("most probable", "drawn"),
    ),
    "translate": Wording(
        "Some short sentences of the corpus's {}, and their translations there and by the model.",
        "sentence",
        "the corpus",
        ("the model",),
    ),
}


@dataclass(frozen=True)
class FilledSentences(Record):
    """What one model wrote: a masked one fills words in, a causal one continues sentences, others translate them."""

    task: Literal["fill", "continue", "translate"]
    examples: tuple[FilledSentence, ...]

    @property
    def wording(self) -> Wording:
        """How they are introduced."""
        return WORDINGS[self.task]


def text_of_sentences(manifest: Path) -> str:
    """Which text the sentences behind a manifest are of, in words. Raises ManifestError for a damaged manifest."""
    measures = read_manifest(manifest).measures
    texts = {"dev": "development text", "train": "training text (it has no development text)"}
    text = texts.get(str(measures.get("split")), "text")
    return f"{text} (the beginnings of longer ones)" if measures.get("beginnings") else text


def read_examples(manifest: Path) -> FilledSentences:
    """The sentences behind a manifest of the stage. Raises ManifestError or EvaluationError naming a damaged file."""
    return json_record(read_manifest(manifest).file(SENTENCES_FILE), FilledSentences)
