"""Sentences of a paragraph by Punkt, with a model of English that comes with Hatchery.

The papers use NLTK's English Punkt (docs/papers/elc-bert.md, "Sentences"; docs/papers/reduced-vocabulary.md, "Selection
of text"). Its published parameters cannot be shipped; ours, in `punkt_english/`, are learned by
`scripts/train_sentence_splitter.py`. Whoever has NLTK's names it as the source of `sentence_model` and gets the papers'
boundaries, and those of the other languages that it has.

`as_published` gives the pieces as NLTK cuts them. It also cuts where there is no white space: before the last mark of
`Stop!!` at the end of a text, or in `"No."And`. `corrected` (the default) cuts at white space only, so no word is torn
and the sentences, joined by single spaces, are the paragraph.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.checksums import digest, sha256_file
from hatchery.corpora.raw_files import where_in
from hatchery.corpora.settings import ENGLISH
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName

if TYPE_CHECKING:
    from hatchery.corpora.punkt import PunktParameters, SentenceSpans

MODEL_FOLDER = Path(__file__).with_name("punkt_english")
COLLOCATIONS, STARTERS, ABBREVIATIONS, ORTHOGRAPHY = PARAMETER_FILES = (
    "collocations.tab",
    "sent_starters.txt",
    "abbrev_types.txt",
    "ortho_context.tab",
)
# Digest of the four files: another model is another version of the stages that cut sentences.
MODEL_DIGEST = "c1003c087ee3f54102d3b131e705a82fea53849de1fa4a762302f6459f19f7d9"


# Without this there is nothing that Punkt takes for a possible end, so the text need not be handed to it.
_POSSIBLE_END = re.compile(r"[.?!][^\w.]")
_WORD = re.compile(r"\S+")
_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")


@dataclass(frozen=True)
class PunktModel:
    """Punkt parameters, free of NLTK until they are used: not every reader splits."""

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    starters: frozenset[str]
    contexts: dict[str, int]
    """Word type to the flags of its orthographic contexts."""

    def parameters(self) -> "PunktParameters":
        """The same as NLTK's object."""
        from hatchery.corpora.punkt import PunktParameters

        parameters = PunktParameters()
        parameters.abbrev_types = set(self.abbreviations)
        parameters.collocations = set(self.collocations)
        parameters.sent_starters = set(self.starters)
        parameters.ortho_context.update(self.contexts)
        return parameters


class SentenceSplitter:
    """Splits paragraphs by one Punkt model; can be pickled."""

    def __init__(self, model: PunktModel, reading: ReadingName = "corrected") -> None:
        self.model = model
        self.reading = reading

    def __reduce__(self) -> tuple[Any, ...]:
        return SentenceSplitter, (self.model, self.reading)

    @cached_property
    def punkt(self) -> "SentenceSpans":
        """What decides as NLTK does, made at the first use."""
        from hatchery.corpora.punkt import SentenceSpans, untimed_tokenizer

        return SentenceSpans(untimed_tokenizer(self.model.parameters()))

    def split(self, text: str) -> list[str]:
        """The sentences of one paragraph in order, without empty ones, white space collapsed.

        Under `corrected`, joined by single spaces they are the paragraph with its white space collapsed, and
        splitting a sentence again gives the sentence. Time grows linearly with the text, whatever it holds.
        """
        collapsed = " ".join(text.split())
        if not collapsed:
            return []
        published = self.reading == "as_published"
        if not _POSSIBLE_END.search(text if published else collapsed):
            return [collapsed]
        if published:
            pieces = (" ".join(piece.split()) for piece in self.punkt.sentences(text))
            return [piece for piece in pieces if piece]
        sentences = []
        begin = 0
        for start, _ in self.punkt.spans(collapsed):
            if start > begin and collapsed[start - 1] == " ":
                sentences.append(collapsed[begin : start - 1])
                begin = start
        sentences.append(collapsed[begin:])
        return sentences


def as_they_stand(sentences: list[str], text: str) -> list[str]:
    """The sentences of a splitter with the white space that they have in `text`, whose only cuts they are.

    A no-break space cuts nothing: who wrote it said so.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    found: list[str] = []
    begin = first = 0
    for sentence in sentences:
        following = first + len(sentence.split())
        end = words[following - 1][1]
        if following == len(words) or not _NO_BREAK.search(text, end, words[following][0]):
            found.append(text[words[begin][0] : end])
            begin = following
        first = following
    return found


def split_sentences(text: str) -> list[str]:
    """The sentences of one paragraph by the model that comes with Hatchery; see `SentenceSplitter.split`."""
    return pinned_splitter().split(text)


@cache
def pinned_splitter(reading: ReadingName = "corrected") -> SentenceSplitter:
    """The splitter with the model that comes with Hatchery, loaded once per process."""
    return folder_splitter(MODEL_FOLDER, reading)


def open_splitter(
    source: RawSource | None, reading: ReadingName = "corrected", language: str = ENGLISH
) -> SentenceSplitter:
    """The splitter with the Punkt parameters of a language in `source` (NLTK's `punkt_tab` or its `english`).

    None takes the model that comes with Hatchery, of English. Raises SourceError when the four files are missing, or
    naming file and line when one is damaged.
    """
    if source is None:
        if language != ENGLISH:
            raise SourceError(f"punkt:{language}: only the model of English comes with Hatchery; set `sentence_model`")
        return pinned_splitter(reading)
    names = {name: _member(source, name, language) for name in PARAMETER_FILES}
    return SentenceSplitter(
        parse_model(lambda name: "\n".join(Lines(source, names[name])), lambda name: where_in(source, names[name])),
        reading,
    )


def folder_splitter(folder: Path, reading: ReadingName = "corrected") -> SentenceSplitter:
    """The splitter with the four parameter files of a folder. Raises SourceError naming a missing or damaged one."""

    def text_of(name: str) -> str:
        try:
            return (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{folder / name}: the sentence model cannot be read: {error}") from error

    return SentenceSplitter(parse_model(text_of, lambda name: str(folder / name)), reading)


def parameter_files(source: RawSource) -> list[str]:
    """The parameter files in a source, of all languages."""
    return [path for name in PARAMETER_FILES for path in source.names(name)]


def _member(source: RawSource, name: str, language: str) -> str:
    found = source.names(name)
    exact = [path for path in found if path == f"{language}/{name}" or path.endswith(f"/{language}/{name}")]
    # A single model is that of English, whatever its folder is called; of another language it must say so.
    for choice in (exact, found if language == ENGLISH else []):
        if len(choice) == 1:
            return choice[0]
    alone = f"{len(found)} files are called {name}, none alone in a folder `{language}`"
    problem = alone if found else f"no file {name}"
    raise SourceError(f"{source.root}: {problem}; expected the Punkt parameters {', '.join(PARAMETER_FILES)}")


def parse_model(text_of: Callable[[str], str], where: Callable[[str], str]) -> PunktModel:
    """The model from the texts of the four files, in NLTK's format; `where` says what messages call a file.

    Raises SourceError naming file and line for a line with another number of fields, or a context that is no number.
    """

    def rows(name: str, fields: int) -> Iterable[list[str]]:
        for number, line in enumerate(text_of(name).split("\n"), 1):
            if not line:
                continue
            row = line.split("\t")
            if len(row) != fields or not all(row):
                raise SourceError(f"{where(name)}: line {number}: expected {fields} fields, got {line[:80]!r}")
            if name == ORTHOGRAPHY and not (row[1].isascii() and row[1].isdigit() and len(row[1]) <= 3):
                raise SourceError(f"{where(name)}: line {number}: {row[1][:80]!r} is no orthographic context")
            yield row

    return PunktModel(
        collocations=frozenset((first, second) for first, second in rows(COLLOCATIONS, 2)),
        starters=frozenset(row[0] for row in rows(STARTERS, 1)),
        abbreviations=frozenset(row[0] for row in rows(ABBREVIATIONS, 1)),
        contexts={word_type: int(flags) for word_type, flags in rows(ORTHOGRAPHY, 2)},
    )


def model_digest(folder: Path) -> str:
    """Digest of the four parameter files of a folder."""
    return digest({name: sha256_file(folder / name) for name in PARAMETER_FILES})
