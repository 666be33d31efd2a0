"""Normaliser of the six corpora of BabyLM since 2024, which the organisers distribute as prepared text.

Source: the organisers' preparation scripts of 2024. Their file layouts are also used in later years: each line is an
utterance or paragraph, and a header line `= = = name = = =` precedes each original file, book or article. As in the
minimal cleaning of the corpora of 2023, each run of white space becomes one space, mojibake is repaired, and quotes,
accents and ligatures are made uniform. There is no further cleaning, so the number of words outside headers equals the
number that the BabyLM challenge states. A header begins a new document. The header of an article contains the article's
title, which stays in the text as the first line; headers that name a file are left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hatchery.corpora.babylm import Treatment, collapse

_HEADER = re.compile("= = = (.*) = = =")
# This pattern matches speaker labels: `*MOT:` in CHILDES, and `A:` in Switchboard.
_SPEAKER = re.compile(r"(?:\*[A-Z0-9]{1,7}|[A-Z]): ")


def prepared(
    lines: Iterable[str],
    treatment: Treatment,
    titles: bool = False,
    blank_lines_end: bool = True,
    speakers: bool = True,
) -> Iterator[str]:
    """Yield the lines of a prepared file, with an empty line between two documents.

    Headers are left out; only if `titles` is True, the title in a header becomes a line of the text. If
    `blank_lines_end` is True, a blank line ends a document. If `speakers` is False, the speaker label is removed from
    each line.
    """
    for line in map(collapse, lines):
        header = _HEADER.fullmatch(line)
        if header is not None:
            yield ""
            if not titles:
                treatment.leave_out("header with the name of a file", line)
                continue
            line = header[1]
        if not line:
            if blank_lines_end:
                yield ""
            continue
        text = treatment.minimal(line if speakers else _SPEAKER.sub("", line, count=1))
        if treatment.keeps(text, line):
            yield text


PREPARED: dict[str, Callable[..., Iterator[str]]] = {
    "bnc_spoken": prepared,
    "childes": prepared,
    # In this corpus, each line is a paragraph, and a blank line does not end a book.
    "gutenberg": partial(prepared, blank_lines_end=False),
    "open_subtitles": prepared,
    "simple_wiki": partial(prepared, titles=True),
    "switchboard": prepared,
}
"""Functions that normalise the lines of a file, by name of the corpus."""
WITH_SPEAKERS = ("childes", "switchboard")
