"""Reader of the BabyLM corpora: raw file, normaliser, documents, sentences.

Source: ELC-BERT's reference, sections 1.4-1.7. An empty line of a normaliser's output ends a document, a line is a
paragraph and is split into sentences.

In both readings two things differ from the published joined text on purpose. Files keep their boundaries, where
`all.txt` lets the last document of a corpus run into the first of the next. And corpora without boundaries
(AO-CHILDES, books) are cut into documents of `lines_per_document` lines, so that they can be split, shuffled and read
in flat memory; null cuts nothing.
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
from hatchery.corpora.babylm.release import SPLIT_OF_SUFFIX, Track, corpus_files
from hatchery.corpora.babylm.treatment import ReadingName, Treatment
from hatchery.corpora.documents import RawDocument, ReaderContext, Split, cut, document_text
from hatchery.corpora.text_files import Lines
from hatchery.errors import ConfigError
from hatchery.storage.sources import RawSource

Normaliser = Callable[[Iterable[str], Treatment], Iterator[str]]
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
NORMALISERS: dict[CorpusName, Normaliser] = {
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


@dataclass(frozen=True)
class BabylmOptions:
    """Which corpus of the release is read, in which reading, and how it is cut."""

    corpus: CorpusName
    """The corpus; its files are `<corpus>.train`, `.dev` and `.test`, which also name the splits."""
    track: Track | None = None
    """Which part of a whole release is read; a track for training brings development and test text of the same source.
    Null takes what there is, for a source with one track only."""
    reading: ReadingName = "corrected"
    """`as_published` repeats the published scripts, `corrected` mends their losses."""
    files: tuple[str, ...] = ()
    """Shell patterns of files instead of `<corpus>.train` and so on."""
    lines_per_document: int | None = 200
    """A document ends after this many lines at the latest; null leaves it to the boundaries of the text."""

    def __post_init__(self) -> None:
        if self.lines_per_document is not None and self.lines_per_document < 1:
            raise ConfigError(f"lines_per_document: got {self.lines_per_document}, expected 1 or more, or null")


def files(source: RawSource, options: BabylmOptions) -> list[str]:
    """The files of the corpus, training before development before test. Raises SourceError when there is none."""
    return corpus_files(source, options.corpus, options.track, options.files)


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """The documents of one file, in its order.

    Training text is for training alone where development text is read from the source too; otherwise its documents
    have no split, and the corpus draws some of them for development. The names of documents do not depend on where in
    the release the file lies. Raises SourceError, naming the byte, when the file is not UTF-8.
    """
    options: BabylmOptions = context.options
    path = PurePosixPath(file)
    split: Split | None = SPLIT_OF_SUFFIX.get(path.suffix)
    if split == "train" and not any(PurePosixPath(name).suffix == ".dev" for name in files(source, options)):
        split = None
    treatment = Treatment(options.reading == "corrected", context.rejections)
    lines = output_lines(options.corpus, Lines(source, file), treatment)
    for index, document in enumerate(cut(lines, options.lines_per_document)):
        text = document_text(map(context.split_sentences, document))
        if text:
            yield RawDocument(f"{context.name}/{path.name}/{index:06d}", context.name, text, split)
        else:
            context.rejections.count("document without a sentence", sample="\n".join(document))


def output_lines(corpus: CorpusName, lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """What the normaliser of a corpus writes for the raw lines of one file, line by line."""
    for line in NORMALISERS[corpus](lines, treatment):
        # As published, the cleaning can bring a newline into a line; the next script then reads two.
        yield from line.split("\n")
