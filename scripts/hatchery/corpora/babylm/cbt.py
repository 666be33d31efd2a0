"""Children's Book Test: books in Penn Treebank tokens, one sentence per line.

Source: ELC-BERT's reference, section 1.6. Corrected: a `_BOOK_TITLE_` line is a boundary and not text; ’ inside a word
is an apostrophe.
"""

from collections.abc import Iterable, Iterator

from hatchery.corpora.cleaning import BABYLM_RULES, clean

_BRACKETS = {"-LRB-": "(", "-LCB-": "{", "-LSB-": "[", "-RRB-": ")", "-RCB-": "}", "-RSB-": "]"}


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """Brackets and quotes as they are printed, full cleaning, books apart."""
    for line in map(str.strip, lines):
        if line.startswith("_BOOK_TITLE_"):
            yield ""
            continue
        for token, bracket in _BRACKETS.items():
            line = line.replace(token, bracket)
        line = line.replace("`` ", '"').replace("``", '"').replace(" ''", '"').replace("''", '"')
        yield clean(line, BABYLM_RULES)
