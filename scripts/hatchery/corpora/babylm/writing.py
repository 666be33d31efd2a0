"""The corpora of writing: books and encyclopaedias."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from hatchery.corpora.babylm import Treatment, collapse, unescape_once

_CITATION = re.compile(r"\[\d+\]")


def gutenberg(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Standardized Project Gutenberg: hard-wrapped books.

    Joins wrapped lines to paragraphs and sets a boundary at two blank lines after a paragraph of more than one line.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - the last paragraph of a file is kept although no blank line follows it; as published it is lost;
    - a line with nothing left after cleaning vanishes; as published it counts as a blank line (inferred).
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
    """Children's Stories Text Corpus: stories with a title line each and some indented lines.

    Marks indented lines with [TAB] and joins a block of one line (a title) to the next block.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". An indented line begins with the marker `[TAB] `, a
    special token of the tokenizers, in both readings.

    Corrected:
    - a line with nothing left after cleaning vanishes; as published it is a boundary, or a marker without text
      (inferred).
    """
    block = 0
    for raw in lines:
        line = collapse(raw)
        if not line:
            if block > 1:
                yield ""
            block = 0
            continue
        # Only four spaces at the start of the raw line are an indent. The published script cleans the line together
        # with its marker, and the result of cleaning white space depends on the characters before it.
        text = treatment.minimal(f"{_MARKER} {line}" if raw.startswith("    ") else line)
        if treatment.keeps(text.removeprefix(_MARKER), line):
            block += 1
            yield text


_BRACKETS = {"-LRB-": "(", "-LCB-": "{", "-LSB-": "[", "-RRB-": ")", "-RCB-": "}", "-RSB-": "]"}
_QUOTES = ("`` ", "``", " ''", "''")


def cbt(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Children's Book Test: books in Penn Treebank tokens, one sentence per line.

    Restores brackets and quotes as printed and cleans each line fully; `corrected` also separates the books.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - a `_BOOK_TITLE_` line is a boundary; as published it is text (a file name) in the middle of a document;
    - ’ inside or before a word is an apostrophe, not a closing quote;
    - `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
    - a line with nothing left after cleaning vanishes; as published it is a boundary (inferred).
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
# Captions contain links, but these links contain no further links. Possessive, so that hostile brackets take linear
# time.
_FILE_OR_CATEGORY = re.compile(r"\[\[(?:File|Category):[^\[\]]*+(?:\[\[[^\[\]]*+\]\][^\[\]]*+)*+\]\]")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
# Also matches a link without `]]` at its end, whose text is kept and contains no link. Without this match, or without
# the possessive quantifiers, hostile brackets would take quadratic time.
_PUBLISHED_LINK = re.compile(r"\[\[([^|\]]*+)(?:\|[^\]]*+)?+(\]\])?+")
# Links within links are rare and shallow; without a limit, hostile brackets would take quadratic time.
_DEEPEST_LINK = 3
_TITLE = re.compile(r"^= = = (?!=)(.*)(?<!=) = = =$")
_PUBLISHED_TITLE_MARK = "= = = "
_PUBLISHED_TITLE = re.compile(r"= = = ([^=]*) = = =")


def wikipedia(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """English Wikipedia: articles under `= = = Title = = =` lines, with links, citations, file and category lines.

    Writes one paragraph per line, a boundary before each title, and links as their text.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora".

    Corrected:
    - a link is replaced by the text that readers see, not by its target. As published, a target runs to the first `|`
      or `]` and may hold `[`, which splits a link that contains a link: `[[nested [[inner|shown]] tail]]` is `nested
      [[inner tail]]`, and `nested shown tail` when corrected. That a shown text may hold `[`, too, is inferred;
    - a file or category link is removed with its caption, but the text around it stays; as published a line that begins
      with one is lost, and one in the middle leaves its target;
    - a heading with more or other equals signs starts no document, a title that holds an equals sign does, and loses
      its marks;
    - a line with nothing left after cleaning vanishes; as published it is a boundary.
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
    """Simple English Wikipedia: articles of a title line and body lines, with blank lines between articles.

    Removes citations, decodes entities, and drops one-sentence articles about places with their titles.

    Source: docs/papers/elc-bert.md, "Treatment of the corpora". Articles of one sentence about a place are dropped: the
    sentence, and the title that waits above it.

    Corrected:
    - the last line of a file is kept; as published it is lost;
    - a stub sentence removes the title only when nothing else of the article is left; as published it removes the line
      above it, even the title or a line of a longer article;
    - an article that ends in a stub sentence still ends there; as published it fuses with the next one;
    - a line with nothing left after cleaning vanishes; as published it is a boundary (inferred);
    - entities are decoded to the last level, not to the second.
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
