"""Splitting of paragraphs into sentences by Punkt, with a model of English that comes with Hatchery.

The papers use NLTK's English Punkt (docs/papers/elc-bert.md, "Sentences"; docs/papers/reduced-vocabulary.md, "Selection
of text"). Hatchery does not contain NLTK's published parameters. Hatchery's own parameters, in `punkt_english/`, are
learned by `scripts/train_sentence_splitter.py`. If NLTK's parameters are the source of `sentence_model`, the sentence
boundaries equal the boundaries of the papers; NLTK's parameters for other languages can also be used.

`as_published` returns NLTK's sentences. NLTK also splits where there is no white space: before the last punctuation
mark of `Stop!!` at the end of a text, or in `"No."And`. `corrected` (the default) splits only at white space, so no
word is split, and joining the sentences by single spaces yields the paragraph.
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
# Digest of the model's four files; a test fails if the files change. After a change of the model, increase the versions
# of the stages that split sentences, so that their results are computed again.
MODEL_DIGEST = "c1003c087ee3f54102d3b131e705a82fea53849de1fa4a762302f6459f19f7d9"


# A text without a match of this pattern contains no candidate for a sentence end, so Punkt need not process the text.
_POSSIBLE_END = re.compile(r"[.?!][^\w.]")
_WORD = re.compile(r"\S+")
_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")


@dataclass(frozen=True)
class PunktModel:
    """Punkt parameters in plain Python types. NLTK is loaded only when the parameters are first used, because not every
    reader splits sentences.
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    starters: frozenset[str]
    contexts: dict[str, int]
    """Flags of the orthographic contexts of each word type."""

    def parameters(self) -> "PunktParameters":
        """Return these parameters as NLTK's `PunktParameters`."""
        from hatchery.corpora.punkt import PunktParameters

        parameters = PunktParameters()
        parameters.abbrev_types = set(self.abbreviations)
        parameters.collocations = set(self.collocations)
        parameters.sent_starters = set(self.starters)
        parameters.ortho_context.update(self.contexts)
        return parameters


class SentenceSplitter:
    """Splits paragraphs into sentences with one Punkt model; can be pickled."""

    def __init__(self, model: PunktModel, reading: ReadingName = "corrected") -> None:
        self.model = model
        self.reading = reading

    def __reduce__(self) -> tuple[Any, ...]:
        return SentenceSplitter, (self.model, self.reading)

    @cached_property
    def punkt(self) -> "SentenceSpans":
        """Return the Punkt algorithm, created at first use."""
        from hatchery.corpora.punkt import SentenceSpans, untimed_tokenizer

        return SentenceSpans(untimed_tokenizer(self.model.parameters()))

    def split(self, text: str) -> list[str]:
        """Return the non-empty sentences of one paragraph in order, with white space collapsed.

        With `reading: corrected`, joining the sentences by single spaces yields the paragraph with its white space
        collapsed, and splitting a sentence again returns this sentence. Time grows linearly with the text, for any
        content.
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
    """Return the sentences with the original white space between their words. `sentences` are the sentences of `text`
    from a splitter that collapsed this white space.

    Two sentences with a no-break space between them are joined, because the author of the text excluded a line break
    there.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    sentences_in_text: list[str] = []
    begin = first = 0
    for sentence in sentences:
        following = first + len(sentence.split())
        end = words[following - 1][1]
        if following == len(words) or not _NO_BREAK.search(text, end, words[following][0]):
            sentences_in_text.append(text[words[begin][0] : end])
            begin = following
        first = following
    return sentences_in_text


def split_sentences(text: str) -> list[str]:
    """Return the sentences of one paragraph, split by Hatchery's own model; see `SentenceSplitter.split`."""
    return pinned_splitter().split(text)


@cache
def pinned_splitter(reading: ReadingName = "corrected") -> SentenceSplitter:
    """Return the splitter with Hatchery's own model, loaded once per process."""
    return folder_splitter(MODEL_FOLDER, reading)


def open_splitter(
    source: RawSource | None, reading: ReadingName = "corrected", language: str = ENGLISH
) -> SentenceSplitter:
    """Return the splitter with the Punkt parameters of a language in `source` (NLTK's folder `punkt_tab` or its
    subfolder `english`).

    If `source` is None, the splitter has Hatchery's English model, and any other language raises SourceError. Also
    raises SourceError if one of the four parameter files is missing or damaged.
    """
    if source is None:
        if language != ENGLISH:
            raise SourceError(f"punkt:{language}: Hatchery contains an English model only; set `sentence_model`")
        return pinned_splitter(reading)
    names = {name: _member(source, name, language) for name in PARAMETER_FILES}
    return SentenceSplitter(
        parse_model(lambda name: "\n".join(Lines(source, names[name])), lambda name: where_in(source, names[name])),
        reading,
    )


def folder_splitter(folder: Path, reading: ReadingName = "corrected") -> SentenceSplitter:
    """Return the splitter with the four parameter files of a folder. Raises SourceError naming a missing or damaged
    file.
    """

    def text_of(name: str) -> str:
        try:
            return (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{folder / name}: the sentence model cannot be read: {error}") from error

    return SentenceSplitter(parse_model(text_of, lambda name: str(folder / name)), reading)


def parameter_files(source: RawSource) -> list[str]:
    """Return the paths of all files with Punkt parameters in a source, for any language."""
    return [path for name in PARAMETER_FILES for path in source.names(name)]


def _member(source: RawSource, name: str, language: str) -> str:
    members = source.names(name)
    exact = [path for path in members if path == f"{language}/{name}" or path.endswith(f"/{language}/{name}")]
    # Read the files in the folder named after the language. If there is no folder `english` and the source contains a
    # single model, this model counts as English, for any name of its folder.
    for choice in (exact, members if language == ENGLISH else []):
        if len(choice) == 1:
            return choice[0]
    alone = f"{len(members)} files are called {name}, but not exactly one of them is in a folder `{language}`"
    problem = alone if members else f"no file {name}"
    raise SourceError(f"{source.root}: {problem}; expected the Punkt parameters {', '.join(PARAMETER_FILES)}")


def parse_model(text_of: Callable[[str], str], where: Callable[[str], str]) -> PunktModel:
    """Return the model from the texts of the four parameter files (NLTK's format): `text_of` returns the text of a
    file, and `where` returns its name for messages.

    Raises SourceError naming file and line if a line has the wrong number of fields, or an orthographic context that is
    not a number.
    """

    def rows(name: str, fields: int) -> Iterable[list[str]]:
        for number, line in enumerate(text_of(name).split("\n"), 1):
            if not line:
                continue
            row = line.split("\t")
            if len(row) != fields or not all(row):
                raise SourceError(f"{where(name)}: line {number}: expected {fields} fields, got {line[:80]!r}")
            if name == ORTHOGRAPHY and not (row[1].isascii() and row[1].isdigit() and len(row[1]) <= 3):
                raise SourceError(
                    f"{where(name)}: line {number}: got {row[1][:80]!r}, expected an orthographic context, a number "
                    "of at most 3 digits"
                )
            yield row

    return PunktModel(
        collocations=frozenset((first, second) for first, second in rows(COLLOCATIONS, 2)),
        starters=frozenset(row[0] for row in rows(STARTERS, 1)),
        abbreviations=frozenset(row[0] for row in rows(ABBREVIATIONS, 1)),
        contexts={word_type: int(flags) for word_type, flags in rows(ORTHOGRAPHY, 2)},
    )


def model_digest(folder: Path) -> str:
    """Return the digest of a Punkt model: the four PARAMETER_FILES in a folder."""
    return digest({name: sha256_file(folder / name) for name in PARAMETER_FILES})
