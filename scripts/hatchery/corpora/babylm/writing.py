"""The corpora of writing: books and encyclopaedias."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from hatchery.corpora.babylm import Treatment, collapse, unescape_once

_CITATION = re.compile(r"\[\d+\]")


def gutenberg(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the Standardized Project Gutenberg, which consists of hard-wrapped books.

    Joins wrapped lines to paragraphs, and writes a document boundary if two blank lines follow a paragraph of more than
    one line.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - the last paragraph of a file is kept even without a blank line at its end; the published script loses this
      paragraph;
    - a line that is empty after cleaning is dropped; in the published script, it counts as a blank line (inferred from
      the order of its steps).
    """
    paragraph: list[str] = []
    lines_of_last = 0
    blanks = 0
    for raw in lines:
        line = collapse(raw)
        text = treatment.minimal(line)
        if text:
            paragraph.append(text)
            blanks = 0
        elif not line or treatment.keeps(text, line):
            blanks += 1
            if paragraph:
                yield " ".join(paragraph)
                lines_of_last, paragraph = len(paragraph), []
            elif blanks == 2 and lines_of_last > 1:
                yield ""
    if treatment.corrected and paragraph:
        yield " ".join(paragraph)
    else:
        for line in paragraph:
            treatment.leave_out("last paragraph of the file", line)


_MARKER = "[TAB]"


def children_stories(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the Children's Stories Text Corpus: stories with title lines, and with some
    indented lines.

    Marks indented lines with [TAB], and keeps a blank line only after at least two successive lines of text. The blank
    line after a title of one line is thus removed.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". The marker `[TAB] ` is a special token of the
    tokenizers.

    Corrected:
    - a line that is empty after cleaning is dropped; in the published script, this line becomes a document boundary, or
      a marker without text (inferred from the order of its steps).
    """
    block = 0
    for raw in lines:
        line = collapse(raw)
        if not line:
            if block > 1:
                yield ""
            block = 0
            continue
        # A line counts as indented only if the raw line begins with four spaces. As in the published script, clean the
        # line together with the marker "[TAB]" at its start, because the cleaning of white space depends on the
        # preceding characters.
        text = treatment.minimal(f"{_MARKER} {line}" if raw.startswith("    ") else line)
        if treatment.keeps(text.removeprefix(_MARKER), line):
            block += 1
            yield text


_BRACKETS = {"-LRB-": "(", "-LCB-": "{", "-LSB-": "[", "-RRB-": ")", "-RCB-": "}", "-RSB-": "]"}
_QUOTES = ("`` ", "``", " ''", "''")


def cbt(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the Children's Book Test: books in Penn Treebank tokens, one sentence per line.

    Replaces the Treebank's tokens for brackets and quotes by the printed characters, and cleans each line fully. With
    `reading: corrected`, an empty line separates the books.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - a `_BOOK_TITLE_` line is a document boundary; the published script keeps the line as text (a file name) in the
      middle of a document;
    - ’ inside or before a word is an apostrophe, not a closing quote;
    - `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
    - a line that is empty after cleaning is dropped; in the published script, it is a document boundary (inferred from
      the order of its steps).
    """
    for line in map(str.strip, lines):
        if treatment.corrected and line.startswith("_BOOK_TITLE_"):
            treatment.leave_out("line with the title of a book", line)
            yield ""
            continue
        text = treatment.full(_as_printed(line))
        if not line or treatment.keeps(text, line):
            yield text


def _as_printed(line: str) -> str:
    for token, bracket in _BRACKETS.items():
        line = line.replace(token, bracket)
    for marks in _QUOTES:
        line = line.replace(marks, '"')
    return line


_FILE_OR_CATEGORY_MARK = ("[[Category:", "[[File:")
# This pattern matches a file or category link, even if its caption contains links, but not if these links contain
# further links. With possessive quantifiers, the match takes linear time even for text with many brackets.
_FILE_OR_CATEGORY = re.compile(r"\[\[(?:File|Category):[^\[\]]*+(?:\[\[[^\[\]]*+\]\][^\[\]]*+)*+\]\]")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
# This pattern also matches a link without `]]` at its end; the text of this link is kept. If the pattern matched only
# complete links, or had no possessive quantifiers, text with many brackets would take quadratic time.
_PUBLISHED_LINK = re.compile(r"\[\[([^|\]]*+)(?:\|[^\]]*+)?+(\]\])?+")
# Maximum depth of nested links, which are rare. Without a maximum, text with many brackets would take quadratic time.
_DEEPEST_LINK = 3
_TITLE = re.compile(r"^= = = (?!=)(.*)(?<!=) = = =$")
_PUBLISHED_TITLE_MARK = "= = = "
_PUBLISHED_TITLE = re.compile(r"= = = ([^=]*) = = =")


def wikipedia(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the English Wikipedia: articles under `= = = Title = = =` lines, with links,
    citations, file and category lines.

    Writes one paragraph per line and a document boundary before each title, and replaces each link by a text.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - a link is replaced by its displayed text; the published script replaces a link by its target. In that script, a
      target ends at the first `|` or `]` and may contain `[`, so nested links are split. For example, `[[nested
      [[inner|shown]] tail]]` becomes `nested [[inner tail]]`, and with the correction `nested shown tail`. The rule
      that displayed text may contain `[` is inferred;
    - a file or category link is removed with its caption, and the surrounding text is kept; the published script drops
      a line that begins with a file or category link, and replaces a link inside a line by its target;
    - a heading with more or fewer equals signs than a title does not start a document; a title that contains an equals
      sign starts a document, and the equals signs at the ends of the title are removed;
    - a line that is empty without its citations and links is dropped; in the published script, it is a document
      boundary.
    """
    corrected = treatment.corrected
    for index, line in enumerate(map(collapse, lines)):
        text = treatment.minimal(line)
        if index > 0 and (_TITLE.match(text) if corrected else text.startswith(_PUBLISHED_TITLE_MARK)):
            yield ""
        if not text:
            if line:
                treatment.keeps(text, line)
            continue
        if corrected:
            text = collapse(_FILE_OR_CATEGORY.sub("", text))
        if not text or text.startswith(_FILE_OR_CATEGORY_MARK):
            treatment.leave_out("file or category line", line)
            continue
        text = _CITATION.sub("", text)
        if corrected:
            for _ in range(_DEEPEST_LINK):
                text = _LINK.sub(_shown, text)
            text = collapse(_TITLE.sub(r"\1", text))
        else:
            text = _PUBLISHED_TITLE.sub(r"\1", _PUBLISHED_LINK.sub(_target, text))
        if treatment.keeps(text, line):
            yield text


def _target(link: re.Match[str]) -> str:
    return link[1] if link[2] else link[0]


def _shown(link: re.Match[str]) -> str:
    parts = link[1].split("|")
    return parts[-1] or parts[0]


_STUBS = (
    "is a commune. It is",
    "is a commune found",
    "is a city in",
    "is a village in",
    "is a municipality in",
    "is a town in",
)


def simple_wikipedia(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Yield the normalised lines of the Simple English Wikipedia: articles of a title line and body lines, with blank
    lines between articles.

    Removes citations, decodes entities, and drops stubs: articles of a title and one sentence about a place.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - the last line of a file is kept; the published script loses this line;
    - the title above a stub's sentence is removed only if the article has no other text; the published script removes
      the line above the sentence, even if that line belongs to a longer article;
    - an article of several lines whose last line resembles a stub's sentence still ends at this line; the published
      script appends the next article to it;
    - a line that is empty after cleaning is dropped; in the published script, it is a document boundary (inferred from
      the order of its steps);
    - all levels of entities are decoded; the published script decodes two levels.
    """
    held: str | None = None
    stub_below = False
    begun = False
    for raw in chain(lines, [""] if treatment.corrected else []):
        line = collapse(raw)
        text = treatment.minimal(_CITATION.sub("", line))
        if not text:
            if line and not treatment.keeps(text, line):
                continue
            if held is not None and stub_below:
                treatment.leave_out("title of a stub", held)
            elif held is not None:
                yield held
            if (held is not None and not stub_below) or (begun and treatment.corrected):
                yield ""
            held, stub_below, begun = None, False, False
        elif _is_stub(text):
            treatment.leave_out("stub about a place", line)
            if treatment.corrected:
                stub_below = not begun
            elif held is not None:
                treatment.leave_out("line above a stub", held)
                held = None
        else:
            if held is not None:
                yield held
                begun = True
            held, stub_below = _unescaped(text, treatment.corrected), False
    if held is not None:
        treatment.leave_out("last line of the file", held)


def _is_stub(text: str) -> bool:
    return len(text) < 128 and any(stub in text for stub in _STUBS)


def _unescaped(text: str, to_the_last_level: bool) -> str:
    text = unescape_once(unescape_once(text))
    while to_the_last_level and (plain := unescape_once(text)) != text:
        text = plain
    return text
