"""Reader of the BabyLM corpora: raw file, normaliser, documents, sentences.

Source: docs/papers/elc-bert.md, "Layouts of the raw files" to "Sentences". An empty line of a normaliser's output ends
a document, a line is a paragraph and is split into sentences.

In both readings two things differ from the published joined text on purpose. Files keep their boundaries, where
`all.txt` lets the last document of a corpus run into the first of the next. And corpora without boundaries
(AO-CHILDES, books) are cut into documents of `lines_per_document` lines, so that they can be split, shuffled and read
in flat memory; null cuts nothing.

A source is the folder of one track (`aochildes.train`, ...), the whole release (`babylm_data/babylm_100M/...`), or a
zip of either ("Release of BabyLM 2023"): two tracks for training share one development and one test set.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.babylm import Treatment, speech, writing
from hatchery.corpora.documents import RawDocument, Reader, ReaderContext, SourceKeys, Split, cut, document_text
from hatchery.corpora.raw_files import matching_names
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import Count, ReadingName, Settings

Track = Literal["10M", "100M", "dev", "test"]
SPLIT_OF_SUFFIX: dict[str, Split] = {".train": "train", ".dev": "dev", ".test": "test"}
_FOLDERS: dict[str, Track] = {"babylm_10M": "10M", "babylm_100M": "100M", "babylm_dev": "dev", "babylm_test": "test"}


def corpus_files(source: RawSource, corpus: str, track: Track | None, patterns: Sequence[str]) -> list[str]:
    """The names of the files of a corpus in a source: training, development and test, as far as they are there.

    A track for training brings the development and test files that lie in the same source; the tracks `dev` and `test`
    bring these alone. `patterns`, if any, pick files instead. Raises SourceError when nothing is found, when the track
    misses its own file, and when several files claim the same split.
    """
    if patterns:
        return _checked(source, matching_names(source, tuple(patterns)), corpus, "`files` picks them")
    names = [name for suffix in SPLIT_OF_SUFFIX for name in source.names(f"{corpus}{suffix}")]
    found = {name: _track_of(source, name) for name in names}
    if track is not None:
        names = [name for name, own in found.items() if own in _tracks_to_read(track, name)]
        if not any(PurePosixPath(name).suffix == _own_suffix(track) for name in names):
            raise SourceError(
                f"{source.root}: there is no file babylm_{track}/{corpus}{_own_suffix(track)} of the track {track}"
                f"{_but_has(found)}"
            )
    if not names:
        raise SourceError(f"{source.root}: no file matches {corpus}.train, {corpus}.dev, {corpus}.test")
    return _checked(source, names, corpus, "say which one by the option `track`")


def _track_of(source: RawSource, name: str) -> Track | None:
    """The track by the name of the folder, or of the source where the file lies at its top; None for other names."""
    parents = PurePosixPath(name).parts[:-1]
    return _FOLDERS.get(parents[-1] if parents else source.root.stem)


def _own_suffix(track: Track) -> str:
    return f".{track}" if track in ("dev", "test") else ".train"


def _tracks_to_read(track: Track, name: str) -> tuple[Track | None, ...]:
    suffix = PurePosixPath(name).suffix
    if track in ("dev", "test"):
        return (track, None) if suffix == _own_suffix(track) else ()
    return (track, None) if suffix == ".train" else ("dev", "test", track, None)


def _but_has(found: dict[str, Track | None]) -> str:
    return f"; it has {', '.join(sorted(found))}" if found else ""


def _checked(source: RawSource, names: list[str], corpus: str, advice: str) -> list[str]:
    by_last_part: dict[str, str] = {}
    for name in names:
        other = by_last_part.setdefault(PurePosixPath(name).name, name)
        if other != name:
            raise SourceError(f"{source.root}: both {other} and {name} are files of {corpus}; {advice}")
    return names


BabylmCorpus = Literal[
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


@dataclass(frozen=True)
class BabylmOptions(Settings):
    """Which corpus of the BabyLM release is read, in which reading, and how it is cut."""

    corpus: BabylmCorpus
    """The corpus; its files are <corpus>.train, .dev and .test, which also name the splits."""
    track: Track | None = None
    """Which part of a whole release is read; a track for training brings development and test text of the same source.
    null takes what there is."""
    reading: ReadingName = "corrected"
    """as_published repeats the published scripts, corrected mends what they lose and garble."""
    files: tuple[str, ...] = ()
    """Shell patterns of files instead of <corpus>.train and so on."""
    lines_per_document: Count | None = 200
    """A document ends after this many lines at the latest; null leaves it to the boundaries of the text."""


@dataclass(frozen=True, kw_only=True)
class BabylmSource(SourceKeys):
    """A source from the release of BabyLM 2023."""

    reader: Literal["babylm"]
    """Reads the release of BabyLM 2023."""
    options: BabylmOptions
    """How it is read."""


Normaliser = Callable[[Iterable[str], Treatment], Iterator[str]]
NORMALISERS: dict[BabylmCorpus, Normaliser] = {
    "aochildes": speech.aochildes,
    "bnc_spoken": speech.bnc_spoken,
    "cbt": writing.cbt,
    "children_stories": writing.children_stories,
    "gutenberg": writing.gutenberg,
    "open_subtitles": speech.open_subtitles,
    "qed": speech.qed,
    "simple_wikipedia": writing.simple_wikipedia,
    "switchboard": speech.switchboard,
    "wikipedia": writing.wikipedia,
}


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


def output_lines(corpus: BabylmCorpus, lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """What the normaliser of a corpus writes for the raw lines of one file, line by line."""
    for line in NORMALISERS[corpus](lines, treatment):
        # As published, the cleaning can bring a newline into a line; the next script then reads two.
        yield from line.split("\n")


READER = Reader(BabylmSource, files, read)
