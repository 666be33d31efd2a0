"""Children's Book Test: books in Penn Treebank tokens, one sentence per line.

Source: ELC-BERT's reference, section 1.6.

Corrected:
- a `_BOOK_TITLE_` line is a boundary; as published it is text (a file name) in the middle of a document;
- ’ inside or before a word is an apostrophe, not a closing quote;
- `U.S.A.`, `....` and entities stay whole (not `U. S. A.`, `... .`, `&eacute; s`);
- a line with nothing left after cleaning vanishes; as published it is a boundary (inferred).
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.treatment import Treatment

_BRACKETS = {"-LRB-": "(", "-LCB-": "{", "-LSB-": "[", "-RRB-": ")", "-RCB-": "}", "-RSB-": "]"}
_QUOTES = ("`` ", "``", " ''", "''")


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """Brackets and quotes as they are printed, full cleaning; corrected, also the books apart."""
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
