"""Reader of the BabyLM corpora of all years: a normaliser cleans a raw file, and the normaliser's output becomes
documents.

Source: docs/papers/elc-bert.md, "Layouts of the raw files" to "Sentences". An empty line of a normaliser's output ends
a document. Every other line is a paragraph, which is split into sentences.

Both versions of the cleaning (`as_published`, `corrected`) differ on purpose in two properties from `all.txt`, the
joined text that ELC-BERT's scripts write. First, a document ends at the end of its file, whereas in `all.txt` the last
document of a corpus continues in the first document of the next corpus. Second, corpora without document boundaries
(AO-CHILDES, books) are divided into documents of `lines_per_document` lines, so that the documents can be split,
shuffled and read in constant memory. If `lines_per_document` is `null`, a file is one document.

A source is the folder of one track (`aochildes.train`, ...), the whole release (`babylm_data/babylm_100M/...`), or a
zip archive of one of these. In a complete release, two training tracks share one development set and one test set
("Release of BabyLM 2023"). Since 2024 the folders are called `train_10M`, `dev` and so on, and there are six corpora;
two of the six are new. Since 2026 the files end in `.train.txt`, and there are no development files. In the Parquet
files on the Hugging Face hub, each row has the column `text` with one line.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.babylm import Treatment, speech, writing
from hatchery.corpora.babylm.prepared import PREPARED, WITH_SPEAKERS
from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext, Split, cut, document_text
from hatchery.corpora.raw_files import matching_names
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import Count, ReadingName, Settings, require

Track = Literal["10M", "50M", "100M", "dev", "test"]
SPLIT_OF_SUFFIX: dict[str, Split] = {".train": "train", ".dev": "dev", ".test": "test"}
# Suffixes that may follow the suffix of the split: no suffix before 2026, `.txt` since 2026, and `.parquet` on the hub.
_ENDINGS = ("", ".txt", ".parquet")
_FOLDERS: dict[str, Track] = {
    "babylm_10M": "10M",
    "babylm_100M": "100M",
    "babylm_dev": "dev",
    "babylm_test": "test",
    "train_10M": "10M",
    "train_50M": "50M",
    "train_100M": "100M",
    "dev": "dev",
    "test": "test",
}


def _suffix(name: str) -> str:
    """Return the part of a file's name that determines its split: `.train` of `childes.train.txt`."""
    path = PurePosixPath(name)
    return PurePosixPath(path.stem).suffix if path.suffix in _ENDINGS else path.suffix


def corpus_files(source: RawSource, corpus: str, track: Track | None, patterns: Sequence[str]) -> list[str]:
    """Return the existing files of a corpus in a source, in the order training, development, test.

    A training track includes the development and test files of the same source; the tracks `dev` and `test` include
    only their own files. If there are `patterns`, they select the files instead, sorted by name. Raises SourceError if
    no file is found, if the track's own file is missing, and if two files in different folders have the same name.
    """
    if patterns:
        return _checked(source, matching_names(source, tuple(patterns)), corpus, "the option `files` selects both")
    names = [
        name for suffix in SPLIT_OF_SUFFIX for ending in _ENDINGS for name in source.names(f"{corpus}{suffix}{ending}")
    ]
    tracks = {name: _track_of(source, name) for name in names}
    if track is not None:
        names = [name for name, own in tracks.items() if own in _tracks_to_read(track, name)]
        if not any(_suffix(name) == _own_suffix(track) for name in names):
            raise SourceError(
                f"{source.root}: there is no file babylm_{track}/{corpus}{_own_suffix(track)} of the track {track}"
                f"{_but_has(tracks)}"
            )
    if not names:
        raise SourceError(f"{source.root}: no file matches {corpus}.train, {corpus}.dev, {corpus}.test")
    return _checked(source, names, corpus, "select one of these files with the option `track`")


def _track_of(source: RawSource, name: str) -> Track | None:
    """Return the track of a file, from the name of its folder. For a file at the top level, the name of the source is
    used. Returns None if this name does not belong to a track.
    """
    parents = PurePosixPath(name).parts[:-1]
    return _FOLDERS.get(parents[-1] if parents else source.root.stem)


def _own_suffix(track: Track) -> str:
    return f".{track}" if track in ("dev", "test") else ".train"


def _tracks_to_read(track: Track, name: str) -> tuple[Track | None, ...]:
    suffix = _suffix(name)
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
    "childes",
    "children_stories",
    "gutenberg",
    "open_subtitles",
    "qed",
    "simple_wiki",
    "simple_wikipedia",
    "switchboard",
    "wikipedia",
]


@dataclass(frozen=True)
class BabylmOptions(Settings):
    """Options of the reader `babylm`: corpus of a BabyLM release, version of its cleaning, and division into
    documents."""

    corpus: BabylmCorpus
    """Corpus of the release. Its files are <corpus>.train, <corpus>.dev and <corpus>.test, whose endings also name the
    splits."""
    track: Track | None = None
    """Part to read if the raw input is a whole release. A training part (`10M`, `50M`, `100M`) also includes the
    development and test text of the release. `null` reads all available text.
    """
    reading: ReadingName = "corrected"
    """Version of the cleaning. `as_published` reproduces the published scripts; `corrected` fixes the errors of these
    scripts that lose or garble text.
    """
    files: tuple[str, ...] = ()
    """Shell patterns of the files, instead of <corpus>.train, <corpus>.dev and <corpus>.test."""
    lines_per_document: Count | None = 200
    """Maximum number of lines in a document; `null` uses only the document boundaries of the text."""
    edition: Literal[2023, 2024] = 2023
    """Year of the BabyLM release. `2023` has ten corpora in their original form; `2024` means 2024 and all later years,
    which have six prepared corpora.
    """
    speakers: bool = True
    """Keep the speaker labels of lines (`*MOT:`, `A:`) in the text. `false` is allowed only for `childes` and
    `switchboard` of releases since 2024.
    """

    def __post_init__(self) -> None:
        corpora = PREPARED if self.edition == 2024 else NORMALISERS
        require(
            self.corpus in corpora, "corpus", self.corpus, f"a corpus of edition {self.edition}: {', '.join(corpora)}"
        )
        is_read = self.edition == 2023 or self.reading == "corrected"
        require(is_read, "reading", self.reading, "corrected, because edition 2024 has no published preparation")
        named = self.speakers or (self.edition == 2024 and self.corpus in WITH_SPEAKERS)
        require(
            named,
            "speakers",
            self.speakers,
            f"true; false is only for the corpora {' and '.join(WITH_SPEAKERS)} of edition 2024",
        )


@dataclass(frozen=True, kw_only=True)
class BabylmSource(CorpusSourceKeys):
    """Source from a release of BabyLM."""

    reader: Literal["babylm"]
    """Reader of BabyLM's releases."""
    options: BabylmOptions
    """Options of the reader."""


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
    """Return the files of the corpus, in the order training, development, test; files that the option `files` selects
    are sorted by name.

    Raises SourceError if no file is found, if the file of the option `track` is missing, or if two files in different
    folders have the same name.
    """
    return corpus_files(source, options.corpus, options.track, options.files)


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the documents of one file, in the order of the file.

    If the source has development text, all training text is in the training split. If the source has no development
    text, training documents have no split, and the conversion draws some of these documents for development. The names
    of documents do not depend on the file's folder in the release. Raises SourceError, naming the position of the first
    invalid byte, if the file is not UTF-8.
    """
    options: BabylmOptions = context.options
    path = PurePosixPath(file)
    split: Split | None = SPLIT_OF_SUFFIX.get(_suffix(file))
    if split == "train" and not any(_suffix(name) == ".dev" for name in files(source, options)):
        split = None
    treatment = Treatment(options.reading == "corrected", context.rejections)
    raw: Iterable[str] = Lines(source, file)
    if path.suffix == ".parquet":
        # Import pyarrow's module here, because planning imports this module and does not need pyarrow.
        from hatchery.corpora.parquet_files import texts_of_column

        raw = (text for _, text in texts_of_column(Lines(source, file), "text"))
    if options.edition == 2024:
        lines = PREPARED[options.corpus](raw, treatment, speakers=options.speakers)
    else:
        lines = output_lines(options.corpus, raw, treatment)
    for index, document in enumerate(cut(lines, options.lines_per_document)):
        text = document_text(map(context.split_sentences, document))
        if text:
            yield RawDocument(f"{context.name}/{path.name}/{index:06d}", context.name, text, split)
        else:
            context.rejections.count("document without a sentence", sample="\n".join(document))


def output_lines(corpus: BabylmCorpus, lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normaliser's output for the raw lines of one file, line by line."""
    for line in NORMALISERS[corpus](lines, treatment):
        # The published cleaning can insert a newline into a line, which the next script reads as two lines.
        yield from line.split("\n")


READER = Reader(BabylmSource, files, read)
