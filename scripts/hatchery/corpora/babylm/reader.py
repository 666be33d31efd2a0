"""Reader of the BabyLM corpora: raw file, normaliser, documents, sentences.

Source: ELC-BERT's reference, sections 1.4-1.7, in a corrected reading (each normaliser says what it corrects). An empty
line ends a document, a line is a paragraph and is split into sentences. Corpora without boundaries, and books, are cut
into documents of `lines_per_document` lines, so that they can be split and shuffled.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.babylm import (
    aochildes,
    bnc_spoken,
    cbt,
    children_stories,
    gutenberg,
    open_subtitles,
    qed,
    simple_wikipedia,
    switchboard,
    wikipedia,
)
from hatchery.corpora.documents import RawDocument, Rejections, Split, cut, document_text
from hatchery.corpora.sentences import split_sentences
from hatchery.corpora.text_files import matching_names, read_text
from hatchery.errors import ConfigError
from hatchery.storage.sources import RawSource

Normaliser = Callable[[Iterable[str]], Iterator[str]]
CorpusName = Literal[
    "aochildes",
    "bnc_spoken",
    "cbt",
    "children_stories",
    "gutenberg",
    "open_subtitles",
    "qed",
    "simple_wikipedia",
    "switchboard",
    "wikipedia",
]
NORMALISERS: dict[str, Normaliser] = {
    "aochildes": aochildes.normalise,
    "bnc_spoken": bnc_spoken.normalise,
    "cbt": cbt.normalise,
    "children_stories": children_stories.normalise,
    "gutenberg": gutenberg.normalise,
    "open_subtitles": open_subtitles.normalise,
    "qed": qed.normalise,
    "simple_wikipedia": simple_wikipedia.normalise,
    "switchboard": switchboard.normalise,
    "wikipedia": wikipedia.normalise,
}
_SPLITS: dict[str, Split] = {".train": "train", ".dev": "dev", ".test": "test"}


@dataclass(frozen=True)
class BabylmOptions:
    """Which corpus of the release is read, and how it is cut."""

    corpus: CorpusName
    """The corpus; its files are `<corpus>.train`, `.dev` and `.test`, which also name the splits."""
    files: tuple[str, ...] = ()
    """Shell patterns instead of `<corpus>.*`, to pick one folder of the release (`babylm_10M/aochildes.train`)."""
    lines_per_document: int = 200
    """A document ends after this many lines at the latest."""

    def __post_init__(self) -> None:
        if self.lines_per_document < 1:
            raise ConfigError(f"lines_per_document: got {self.lines_per_document}, expected 1 or more")


def read(source: RawSource, name: str, options: BabylmOptions, rejections: Rejections) -> Iterator[RawDocument]:
    """The documents of one corpus, in file order. `name` is the source's name in the corpus.

    Raises SourceError when no file matches or a file is not UTF-8.
    """
    normalise = NORMALISERS[options.corpus]
    for file in matching_names(source, options.files or (f"{options.corpus}.*",)):
        lines = read_text(source, file).removesuffix("\n").split("\n")
        split = _SPLITS.get(PurePosixPath(file).suffix)
        for index, document in enumerate(cut(normalise(lines), options.lines_per_document)):
            text = document_text(map(split_sentences, document))
            if text:
                yield RawDocument(f"{name}/{file}/{index:06d}", name, text, split)
            else:
                rejections.count("empty document")
