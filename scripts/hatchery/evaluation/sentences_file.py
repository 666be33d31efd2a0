"""The file `sentences.json` of the stage `fill_sentences`. It contains sentences of a corpus and the texts that a model
predicted: words for gaps in the sentences, continuations, or translations.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.records import Record, json_record

SENTENCES_FILE = "sentences.json"
GAP = "____"


@dataclass(frozen=True)
class Answer(Record):
    """A text that a model predicted and, if known, the text's probability in percent with one decimal.

    If the text is a subword that does not begin a word, an ellipsis precedes it.
    """

    text: str
    percent: float | None = None


@dataclass(frozen=True)
class FilledSentence(Record):
    """The input of a model (`given`), the corpus's own text, and the model's answers.

    The input is a sentence with GAP in place of a word, the beginning of a sentence, or a sentence to translate.
    `original` is the missing word, the continuation or the translation in the corpus. The answers for a gap are sorted,
    most probable first. There are two continuations: the first has the most probable token at each step, and the tokens
    of the second are drawn at random from the model's distribution.
    """

    given: str
    original: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Wording:
    """Texts on the results page that introduce and label the examples of one task. In `introduction`, `{}` is replaced
    by the kind of text that contains the examples, such as "development text".
    """

    introduction: str
    given: str
    original: str
    answers: tuple[str, ...]


WORDINGS = {
    "fill": Wording(
        "Some short sentences of the corpus's {} with one word left out, and the most probable subwords at its "
        "position.",
        "sentence",
        "left out",
        ("most probable", "second", "third"),
    ),
    "continue": Wording(
        "Beginnings of some short sentences of the corpus's {}, and the model's continuations until a paragraph ends: "
        "one continuation of the most probable tokens, and one of tokens drawn with a fixed seed.",
        "beginning",
        "continuation in the corpus",
        ("most probable", "drawn"),
    ),
    "translate": Wording(
        "Some short sentences of the corpus's {}, with their translations in the corpus and by the model.",
        "sentence",
        "the corpus",
        ("the model",),
    ),
}


@dataclass(frozen=True)
class FilledSentences(Record):
    """Answers of one model: a masked model fills gaps, a causal model continues sentences, a translation model
    translates."""

    task: Literal["fill", "continue", "translate"]
    examples: tuple[FilledSentence, ...]

    @property
    def wording(self) -> Wording:
        """The texts on the results page that introduce and label the examples."""
        return WORDINGS[self.task]


def text_of_sentences(manifest: Path) -> str:
    """Return a phrase such as "development text" for the part of the corpus whose sentences the model received.
    `manifest` is a manifest of the stage `fill_sentences`. Raises ManifestError for a damaged manifest.
    """
    measures = read_manifest(manifest).measures
    texts = {"dev": "development text", "train": "training text (there is no development text)"}
    text = texts.get(str(measures.get("split")), "text")
    return f"{text} (the beginnings of longer sentences)" if measures.get("beginnings") else text


def read_examples(manifest: Path) -> FilledSentences:
    """Return the content of the file `sentences.json` next to a manifest of the stage `fill_sentences`. Raises
    ManifestError or EvaluationError naming a damaged file.
    """
    return json_record(read_manifest(manifest).file(SENTENCES_FILE), FilledSentences)
