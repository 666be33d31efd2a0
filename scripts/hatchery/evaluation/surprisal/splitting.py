"""Where the words of a text are, and which word a token belongs to."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Words:
    """A text, and where its words begin and end in it, in characters."""

    text: str
    spans: tuple[tuple[int, int], ...]

    def of_tokens(self, offsets: Sequence[tuple[int, int]]) -> list[int]:
        """The word, from 0, that each token belongs to: that of its first character which is no white space.

        So white space in front of a word belongs to the word, as in tokens that begin with a blank, and white space at
        the end of a text to the last one.
        """
        ends = [end for _, end in self.spans]
        found = []
        for start, end in offsets:
            while start < end and self.text[start].isspace():
                start += 1
            found.append(min(bisect_right(ends, start), len(ends) - 1))
        return found

    def with_blanks(self) -> Iterable[str]:
        """Yield the words, each with the characters between the previous word and this one."""
        begin = 0
        for _, end in self.spans:
            yield self.text[begin:end]
            begin = end


def split_words(text: str, separator: str | None = None) -> Words:
    """The words of a text: what stands between white space, or between separators, which are then taken out.

    With a separator, blanks that stand in the text are written beside it: `the| black| cat`, but `黒|猫`.
    """
    if separator is None:
        return Words(text, tuple(match.span() for match in _WORD.finditer(text)))
    return joined_words(text.split(separator))


def joined_words(parts: Sequence[str], joined_by: str = "") -> Words:
    """The text of these parts, joined by `joined_by`; each part that is not blank is one word, white space inside it
    included."""
    ends = accumulate(len(part) + len(joined_by) * (index > 0) for index, part in enumerate(parts))
    spans = (
        (end - len(part.lstrip()), end - len(part) + len(part.rstrip()))
        for part, end in zip(parts, ends, strict=True)
        if part.strip()
    )
    return Words(joined_by.join(parts), tuple(spans))
