"""What a corpus and its readers may be told: sources and their options, splits, samples.

A reader's options are those of `sources.<n>.options` in a corpus's file, whatever reads them; all else is the settings
of the stages that convert and sample.
"""

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from hatchery.settings.base import Count, Natural, Range, ReadingName, RefusedError, Settings
from hatchery.settings.fields import Text, Unique

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
RawFormat = Literal["cbt", "json_lines", "parquet", "sentences", "text", "wikiextractor", "by_suffix"]
SplitName = Literal["train", "dev", "test"]
Splits = Annotated[tuple[SplitName, ...], MinLen(1), Unique()]
Patterns = Annotated[tuple[str, ...], MinLen(1)]
ENGLISH = "english"
"""The language of the sentence model that comes with Hatchery."""
SentencesName = Annotated[
    str, Text("^(line|none|punkt:[a-z]+)$", "line, none, or punkt: and a language, such as punkt:english")
]
Delimiter = Annotated[str, Text('^[^"\r\n]$', 'one character, such as ";" or "\\t"')]


@dataclass(frozen=True)
class BncOptions(Settings):
    """Which texts of the BNC are read, and how."""

    reading: ReadingName = "corrected"
    """as_published repeats the published converter, corrected mends what it damages."""
    files: str = "*.xml"
    """Shell pattern of the texts inside the source; only those below a folder `Texts` count where there is one."""


@dataclass(frozen=True)
class BabylmOptions(Settings):
    """Which corpus of the BabyLM release is read, in which reading, and how it is cut."""

    corpus: BabylmCorpus
    """The corpus; its files are <corpus>.train, .dev and .test, which also name the splits."""
    track: Literal["10M", "100M", "dev", "test"] | None = None
    """Which part of a whole release is read; a track for training brings development and test text of the same source.
    null takes what there is."""
    reading: ReadingName = "corrected"
    """as_published repeats the published scripts, corrected mends what they lose and garble."""
    files: tuple[str, ...] = ()
    """Shell patterns of files instead of <corpus>.train and so on."""
    lines_per_document: Count | None = 200
    """A document ends after this many lines at the latest; null leaves it to the boundaries of the text."""


@dataclass(frozen=True)
class ProseOptions(Settings):
    """How running text becomes documents."""

    paragraphs: Literal["blank_line", "line"] = "blank_line"
    """What ends a paragraph: a blank line (lines are wrapped) or every line."""
    capitalise: bool = False
    """Begin each paragraph with an upper-case letter, for transcripts that have none."""
    cleaning: Literal["none", "encoding", "minimal", "full"] = "minimal"
    """encoding undoes wrong decodings and changes nothing else; minimal also makes quotes straight and ligatures,
    widths, accents and entities uniform, as the papers do, full also the spaces and quotes of words written apart."""
    lines_per_document: Count | None = None
    """Cut documents after so many paragraphs, rows, or lines that are kept; null leaves it to the text, or to
    `cut_files`."""
    minimum_words: Natural = 1
    """Documents with fewer words are left out and counted."""


@dataclass(frozen=True)
class PlainTextOptions(ProseOptions):
    """How files of one's own are read. Only `files` matters for plain text; tables need `column`."""

    cleaning: Literal["none", "encoding", "minimal", "full"] = "encoding"
    """encoding undoes wrong decodings and changes nothing else; minimal also makes quotes straight and ligatures,
    widths, accents and entities uniform, as the papers do, full also the spaces and quotes of words written apart."""
    sentences: SentencesName | None = None
    """What becomes the sentences of the corpus: line keeps every line as it is; none joins the lines of a paragraph,
    punkt:<language> cuts it into sentences, too. null looks at each file: wrapped lines are joined, all others kept;
    paragraphs are cut as English where `languages` of the corpus says en alone."""
    files: str | Patterns = ("*.txt", "*.md", "*.markdown", "*.csv", "*.tsv", "*.jsonl", "*.json")
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files that are left out."""
    format: Literal["text", "csv", "jsonl"] | None = None
    """Format of all files; null takes it from the suffix, also before .gz and the like."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    cut_files: Literal["auto", "always", "never"] = "auto"
    """Whether text files are cut into documents, at blank lines or else at line ends, where `lines_per_document` does
    not say how; auto cuts files of more than 1 MiB, and every file where there are fewer than 20."""
    delimiter: Delimiter | None = None
    """What separates the columns of a table, such as ";" or "\\t"; null is a tab for .tsv files, otherwise a comma."""
    column: str = "text"
    """Column or field with the text."""
    document_column: str | None = None
    """Rows of a file with the same value here form one document; null makes each row one."""
    keep: dict[str, Patterns] = dataclasses.field(default_factory=dict)
    """Only rows with one of these values in each of these columns."""
    tagged: bool = False
    """Text written as word/TAG, one sentence per line, as in the Brown corpus."""
    punctuation_column: str | None = None
    """Column that decides the final mark of a row without one, for transcripts."""
    punctuation: dict[str, str] = dataclasses.field(default_factory=lambda: {"question": "?"})
    """Final mark by the value of that column; a full stop for other values."""

    @property
    def punkt_language(self) -> str | None:
        """The language whose sentences the options say to cut at, if any."""
        return self.sentences.removeprefix("punkt:") if self.sentences and ":" in self.sentences else None

    def __post_init__(self) -> None:
        if self.sentences is not None and self.tagged:
            raise RefusedError("sentences", "cannot be set beside `tagged`, whose lines are sentences")
        if self.punctuation_column and self.tagged:
            raise RefusedError("punctuation_column", "cannot be set beside `tagged`, whose text has marks of its own")


@dataclass(frozen=True)
class ParallelTextOptions(Settings):
    """Which files hold the pairs of sentences of each split, and how they are read."""

    files: Annotated[dict[Literal["train", "dev", "test", "any"], Annotated[tuple[str, ...], MinLen(1)]], MinLen(1)]
    """Shell patterns by split: two text files with a sentence per line, first language first, or one table (.tsv, .csv,
    .jsonl, .parquet). Of several files, those belong together for which the wildcards stand for the same: `a.de` and
    `a.en` with `*.de` and `*.en`. Pairs of `any` are held out as `split` says."""
    columns: Annotated[tuple[str, ...], MinLen(2), Unique()] | None = None
    """Of a table: the two columns or fields, first language first; `translation.de` is a field of an object. Numbers,
    such as ["1", "2"], are columns of a text with tabs and without a header. Text files have none."""
    encoding: str = "utf-8"
    """Encoding of all files; Parquet is UTF-8 always."""

    def __post_init__(self) -> None:
        for split, patterns in self.files.items():
            if len(patterns) > 2:
                raise RefusedError(f"files.{split}", f"got {len(patterns)} patterns, expected two files or one table")
        if self.columns is not None and len(self.columns) != 2:
            raise RefusedError("columns", f"got {len(self.columns)}, expected two, one for each language")
        for number in self.columns or ():
            if number.isdigit() and int(number) == 0:
                raise RefusedError("columns", f'got {number!r}, expected numbers from 1: the first column is "1"')
        for split, patterns in self.files.items():
            if self.columns is not None and len(patterns) == 2:
                raise RefusedError(
                    "columns", f"got columns, expected none beside the two text files of files.{split}, or one table"
                )


@dataclass(frozen=True)
class RawTextOptions(Settings):
    """Which files of a large corpus are read, and how."""

    format: RawFormat
    """Format of the files; by_suffix: .json and .jsonl, .parquet, or WikiExtractor without a suffix."""
    files: Patterns = ("*",)
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files that are left out."""
    field: str = "text"
    """Field or column with the text, for json_lines and parquet; in the latter, `translation.en` is a field of an
    object."""
    encoding: str = "utf-8"
    """Encoding of the files; Parquet is UTF-8 always."""


@dataclass(frozen=True)
class RawTextReaderOptions(ProseOptions, RawTextOptions):
    """Where the texts are, and how they become documents."""

    titles: bool = True
    """Begin documents with their title as a heading, where the format keeps one."""
    texts_are_sentences: bool = False
    """Every text is one sentence; lines_per_document of them form a document of one paragraph."""

    def __post_init__(self) -> None:
        if self.texts_are_sentences and self.lines_per_document is None:
            raise RefusedError("lines_per_document", "must be set where `texts_are_sentences` is")


@dataclass(frozen=True)
class SplitSettings(Settings):
    """Documents are drawn for development and test by a seeded hash, unless the source says the split."""

    development_fraction: Annotated[float, Range(ge=0, lt=1)] = 0.02
    """Share of the documents that is for development."""
    test_fraction: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Share of the documents that is for the test; the rest is for training."""
    seed: Natural = 0
    """Seed of the hash."""
    development_documents: Natural | None = None
    """Exactly so many development documents instead of a fraction; null takes the fraction."""

    def __post_init__(self) -> None:
        held_out = self.development_fraction + self.test_fraction
        if held_out >= 1:
            raise RefusedError("", f"development_fraction + test_fraction is {held_out:g}, expected less than 1")


@dataclass(frozen=True, kw_only=True)
class Sharded(Settings):
    """What all corpora say."""

    documents_per_shard: Count = 10_000
    """Documents of one Parquet file."""


@dataclass(frozen=True)
class SourceSettings(Settings):
    """One source of a corpus and how it is read."""

    name: str
    """Name of the source in the corpus; the command's `--source NAME=path` says where its manifest lies."""
    reader: str
    """Name of the reader."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Options of that reader."""


@dataclass(frozen=True, kw_only=True)
class ConversionKeys(Sharded):
    """How a corpus is made of sources, beside the sources themselves."""

    split: SplitSettings = dataclasses.field(default_factory=SplitSettings)
    """Documents are drawn for development and test by a seeded hash, unless the source says the split."""
    sentence_reading: ReadingName = "corrected"
    """as_published cuts sentences where NLTK's Punkt cuts, corrected only at white space."""


@dataclass(frozen=True, kw_only=True)
class ConvertSettings(ConversionKeys):
    """A corpus: its sources, how documents are split, and how large a shard is."""

    sources: Annotated[tuple[SourceSettings, ...], MinLen(1)]
    """The sources, in the order of the documents."""
    sentence_model: str | None = None
    """Name of a source with Punkt parameters; null takes the model that comes with Hatchery."""
    languages: tuple[str, ...] = ()
    """Languages of the text, where text of one's own is read; empty where they are not known."""

    def __post_init__(self) -> None:
        refuse_repeated_names(self.sources)


def refuse_repeated_names(sources: Any) -> None:
    """Refuse sources of which two have one name."""
    for name, count in Counter(source.name for source in sources).items():
        if count > 1:
            raise RefusedError("sources", f"the name {name!r} is given {count} times, expected once")


@dataclass(frozen=True, kw_only=True)
class SampleKeys(Settings):
    """How documents of another corpus are drawn, until their characters are enough."""

    size_of_splits: Splits = ("train", "dev", "test")
    """The splits of the corpus `size_of` that count."""
    seed: Natural = 0
    """Seed of the drawing."""


@dataclass(frozen=True, kw_only=True)
class SampleSettings(SampleKeys, Sharded):
    """How much is drawn, and what becomes of the splits."""

    characters: Count | None = None
    """Number of characters to reach; null takes that of the corpus `size_of`."""
    split: SplitSettings | None = None
    """New splits for the drawn documents; null keeps those that they have."""
