"""Split texts into words, and assign tokens to words."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Words:
    """A text, and the range of characters [start, end) of each of its words."""

    text: str
    spans: tuple[tuple[int, int], ...]

    def of_tokens(self, offsets: Sequence[tuple[int, int]]) -> list[int]:
        """Return for each token the index of its word: the word with the token's first character that is not white
        space.

        White space in front of a word thus belongs to this word, as in tokens that begin with a space. White space at
        the end of a text belongs to the last word.
        """
        ends = [end for _, end in self.spans]
        found = []
        for start, end in offsets:
            while start < end and self.text[start].isspace():
                start += 1
            found.append(min(bisect_right(ends, start), len(ends) - 1))
        return found

    def with_blanks(self) -> Iterable[str]:
        """Yield each word together with the characters between the previous word and this word."""
        begin = 0
        for _, end in self.spans:
            yield self.text[begin:end]
            begin = end


def split_words(text: str, separator: str | None = None) -> Words:
    """Return a text split into words, either at white space, which remains in the text, or at `separator`, which is
    removed.

    A separator does not replace the spaces of the text: `the| black| cat` contains separators and spaces, `黒|猫`
    contains only a separator.
    """
    if separator is None:
        return Words(text, tuple(match.span() for match in _WORD.finditer(text)))
    return joined_words(text.split(separator))


def joined_words(parts: Sequence[str], joined_by: str = "") -> Words:
    """Return the text in which `joined_by` joins the `parts`. Each part with a visible character is one word, inner
    white space included.
    """
    ends = accumulate(len(part) + len(joined_by) * (index > 0) for index, part in enumerate(parts))
    spans = (
        (end - len(part.lstrip()), end - len(part) + len(part.rstrip()))
        for part, end in zip(parts, ends, strict=True)
        if part.strip()
    )
    return Words(joined_by.join(parts), tuple(spans))
