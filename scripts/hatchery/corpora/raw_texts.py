"""Unprocessed texts of large corpora in any format, streamed one file at a time.

The vocabulary filter and the reader `raw_text` use this module. A format is a function that yields the texts in the
lines of a file; `field` names the field or column of the texts. No format cleans, lower-cases, splits or silently drops
texts. With `by_suffix`, the suffix of a file determines its format, because some corpora are distributed both as
Parquet (on the hub) and in the format of their authors.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotated_types import MinLen

from hatchery.corpora.raw_files import Piece, matching_names, uncompressed_suffix, where_in
from hatchery.corpora.rows import json_lines as json_lines_of
from hatchery.corpora.rows import json_rows
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import Settings

BY_SUFFIX = "by_suffix"
# The empty suffix is WikiExtractor's, whose files are named wiki_00. The suffix .txt is not in this table, because a
# .txt file may contain one text, sentences or books.
_SUFFIXES = {".json": "json_lines", ".jsonl": "json_lines", ".parquet": "parquet", "": "wikiextractor"}
# The allowed values are `by_suffix` and the names of FORMATS.
RawFormat = Literal["cbt", "json_lines", "parquet", "sentences", "text", "wikiextractor", "by_suffix"]
Patterns = Annotated[tuple[str, ...], MinLen(1)]


class RawText(NamedTuple):
    """One unprocessed text (a web page, an article, a book, a sentence) of a file."""

    key: str
    """Number or identifier, different for every text of the file; empty if the whole file is one text."""
    text: str
    """The text without cleaning; it may be empty."""
    title: str = ""
    """Title of the text, if the format stores titles separately."""


def index_key(index: int) -> str:
    """Return the key of the text with this index, for a file whose texts have no identifiers; the alphabetical order of
    the keys is the order of the indices.
    """
    return f"{index:08d}"


@dataclass(frozen=True)
class RawTextOptions(Settings):
    """Options of a large corpus: format and names of its files."""

    format: RawFormat
    """Format of the files. `by_suffix` determines the format of each file from its suffix: .json and .jsonl are JSON
    lines, .parquet is Parquet, and files without a suffix are WikiExtractor's.
    """
    files: Patterns = ("*",)
    """Shell patterns that select the files of the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files to skip."""
    field: str = "text"
    """Field or column that contains the text, for the formats `json_lines` and `parquet`, and for JSON objects in
    `wikiextractor`. In `parquet`, `translation.en` is a field of an object.
    """
    encoding: str = "utf-8"
    """Encoding of the files; Parquet is always UTF-8."""


def raw_text_files(source: RawSource, options: RawTextOptions) -> list[str]:
    """Return the sorted names of the files to read. Raises SourceError if no file matches."""
    return matching_names(source, options.files, options.exclude)


def raw_texts(source: RawSource, file: str, options: RawTextOptions) -> Iterator[RawText]:
    """Yield the texts of one file in their order, streamed.

    Raises SourceError, with file and position, for damaged input and for a file whose suffix does not determine its
    format.
    """
    return texts_in(raw_lines(source, file, options), options)


def texts_in(lines: Lines, options: RawTextOptions) -> Iterator[RawText]:
    """Yield the texts in the lines that `raw_lines` returned."""
    return FORMATS[format_of(lines.source, lines.name, options)](lines, options.field)


def raw_lines(source: RawSource, file: str, options: RawTextOptions, piece: Piece | None = None) -> Lines:
    """Return the lines of a file or, if `piece` is given, of this piece, as the input of a format function."""
    is_json = format_of(source, file, options) == "json_lines"
    return (json_lines_of if is_json else Lines)(source, file, options.encoding, piece)


def format_of(source: RawSource, file: str, options: RawTextOptions) -> str:
    """Return the name of a file's format. Raises SourceError if the format is `by_suffix` and the suffix is unknown."""
    name: str = options.format
    if name == BY_SUFFIX:
        suffix = uncompressed_suffix(file)
        if suffix not in _SUFFIXES:
            raise SourceError(
                f"{where_in(source, file)}: the suffix of the file name does not determine the format; set the option "
                "`format`"
            )
        name = _SUFFIXES[suffix]
    return name


def parquet(lines: Lines, field: str) -> Iterator[RawText]:
    """Yield one text per row of a Parquet file, from one column. Data sets of the Hugging Face hub are stored in this
    way.
    """
    # Import pyarrow's module here, because planning imports this module and does not need pyarrow.
    from hatchery.corpora.parquet_files import texts_of_column

    return (RawText(index_key(row), text) for row, text in texts_of_column(lines, field))


def text(lines: Lines, field: str) -> Iterator[RawText]:
    """Yield the whole file as one text with an empty `RawText.key`. The replicated BookCorpus (`books1`) has a file per
    book.
    """
    yield RawText("", "\n".join(lines))


def sentences(lines: Lines, field: str) -> Iterator[RawText]:
    """Yield each line that is not blank as a text; the key is the index of the line, counted from 0.

    Source: BookCorpus on the hub, one tokenised lower-case sentence per row, saved as text.
    """
    return (RawText(index_key(lines.line - 1), line) for line in lines if line and not line.isspace())


def json_lines(lines: Lines, field: str) -> Iterator[RawText]:
    """Yield one text per JSON line: a field of an object, as in C4 and most web corpora, or a line that is a JSON
    string (GPT-BERT's corpora).

    A null is an empty text.

    Raises SourceError for a damaged line, a missing field, or a field that is not text.
    """
    for index, (place, row) in enumerate(json_rows(lines, text_field=field), lines.first):
        if field not in row:
            raise SourceError(f"{place}: there is no field {field!r}; there are: {', '.join(sorted(row))}")
        text = row[field]
        if text is None:
            text = ""
        elif not isinstance(text, str):
            raise SourceError(f"{place}: field {field!r}: expected text, got {type(text).__name__}")
        yield RawText(index_key(index), text)


_BOOK_TITLE = "_BOOK_TITLE_"


def cbt(lines: Lines, field: str) -> Iterator[RawText]:
    """Yield the books of the Children's Book Test: a line `_BOOK_TITLE_ : Title.txt` begins a book, followed by one
    sentence per line.

    Source: `cbt_train.txt`, `cbt_valid.txt` and `cbt_test.txt` of the CBTest release (98, 5 and 5 books); the
    configuration `raw` on the Hugging Face hub contains the same files. A book is a text with a title; its key is the
    index of the book. Raises SourceError naming file and line for text before the first title.
    """
    title: str | None = None
    book: list[str] = []
    index = lines.first
    for line in lines:
        if line.startswith(_BOOK_TITLE):
            if title is not None:
                with lines.put_back():
                    yield RawText(index_key(index), "\n".join(book), title)
                index += 1
            title = line.removeprefix(_BOOK_TITLE).lstrip(" :").strip().removesuffix(".txt").replace("_", " ")
            book = []
        elif title is not None:
            book.append(line)
        elif line.strip():
            raise SourceError(f"{lines.place}: expected a line {_BOOK_TITLE} before the text, got {line[:80]!r}")
    if title is not None:
        yield RawText(index_key(index), "\n".join(book), title)


_HEADER = re.compile(r"<doc\s(.*)>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def wikiextractor(lines: Lines, field: str) -> Iterator[RawText]:
    """Yield articles in WikiExtractor's format: `<doc id=... url=... title=...>` blocks, or one JSON object per line.

    Source: WikiExtractor 3 on a pages-articles dump (files AA/wiki_00, AA/wiki_01, ..., possibly compressed), as for
    Wikipedia in LTG-BERT, Appendix F, and for Simple Wikipedia in the reduced-vocabulary paper.

    The key of an article (`RawText.key`) is the id of its page. The title is stored separately from the text; redirects
    have no text. The escapes `&lt;`, `&gt;` and `&amp;` are decoded. After an empty page of the dump, WikiExtractor
    copies markup to the beginning of the next article; this markup is left out. Outside of blocks, a line that begins
    with a brace is a JSON object, whose text is in `field`. Raises SourceError naming file and line for a block that is
    not closed, text outside of blocks, or a damaged line.
    """
    article: list[str] | None = None
    key = title = ""
    opened = 0
    for line in lines:
        if article is None:
            if line.startswith("{"):
                yield _json_article(line, field, lines.place)
            elif line.strip():
                key, title = _header(line, lines.place)
                article, opened = [], lines.line
        elif line.rstrip() == "</doc>":
            yield RawText(key, _body(article, title), title)
            article = None
        elif line.startswith("<doc "):
            raise SourceError(f"{lines.place}: <doc> of line {opened} is not closed before the next <doc>")
        else:
            article.append(line)
    if article is not None:
        raise SourceError(f"{lines.where}: line {opened}: <doc> is not closed before the end of the file")


def _header(line: str, place: str) -> tuple[str, str]:
    header = _HEADER.fullmatch(line.strip())
    attributes = dict(_ATTRIBUTE.findall(header.group(1))) if header else {}
    if header is None or "id" not in attributes:
        raise SourceError(f'{place}: expected <doc id="..." url="..." title="...">, got {line[:80]!r}')
    return attributes["id"], _title(header.group(1))


def _title(attributes: str) -> str:
    # Match up to the last quotation mark, because WikiExtractor does not escape the quotation marks in titles such as
    # "Heroes".
    match = re.search(r'title="(.*)"\s*$', attributes)
    return html.unescape(match.group(1)).strip() if match else ""


def _body(lines: list[str], title: str) -> str:
    text = _unescaped("\n".join(lines)).strip("\n")
    first, _, rest = text.partition("\n")
    return _without_leak(rest.strip("\n") if title and html.unescape(first).strip() == title else text)


_SHORT = "ns|id|parentid|timestamp|username|ip|comment|origin|model|format|sha1|minor|redirect|restrictions|title"
# The pattern matches a line that is a start tag, an end tag, or one complete XML element. WikiExtractor may have
# changed the content of the element.
_LEAKED = re.compile(
    rf"\s*(?:<(?P<name>{_SHORT})\b[^>]*(?:/>|>.*</(?P=name)>)|</?(?:page|revision|contributor)\b[^>]*>)\s*"
)


def _without_leak(text: str) -> str:
    """Return `text` without the lines at its beginning that are markup of a dump.

    After an empty page (`<text bytes="0" />`), WikiExtractor searches for an end tag of the text, and reads the `<ns>`,
    `<revision>` and so on of the next page as text. Articles about this markup are not changed, because they do not
    begin with a line such as `<ns>0</ns>`.
    """
    if not text.lstrip().startswith(("<ns>", "<revision>", "<page>", "<sha1>", "</revision>", "</page>")):
        return text
    lines = text.split("\n")
    n_leaked = next((index for index, line in enumerate(lines) if line.strip() and not _LEAKED.fullmatch(line)), None)
    return "" if n_leaked is None else "\n".join(lines[n_leaked:])


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text


def _json_article(line: str, field: str, place: str) -> RawText:
    try:
        article = json.loads(line)
        text = _without_leak(_unescaped(article[field]))
        return RawText(str(article["id"]), text, html.unescape(article["title"]).strip())
    except KeyError as error:
        raise SourceError(f"{place}: there is no field {error}; there are: {', '.join(sorted(article))}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(f"{place}: not a WikiExtractor article: {error}") from error


FORMATS: dict[str, Callable[[Lines, str], Iterator[RawText]]] = {
    "cbt": cbt,
    "json_lines": json_lines,
    "parquet": parquet,
    "sentences": sentences,
    "text": text,
    "wikiextractor": wikiextractor,
}
