"""English Wikipedia: articles under `= = = Title = = =` lines, with links, citations, file and category lines.

Source: ELC-BERT's reference, section 1.6. Corrected: a link leaves the text that readers see, not its target; a heading
with more equals signs starts no document; a line reduced to nothing is no boundary.
"""

import re
from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, without_citations
from hatchery.corpora.cleaning import clean_minimal

_TITLE = re.compile(r"= = = (?!=)(.*) = = =")
_FILE_OR_CATEGORY = re.compile(r"\[\[(?:File|Category):[^\[\]]*\]\]")
_LINK = re.compile(r"\[\[(?:[^\[\]]*\|)?([^\[\]|]*)\]\]")


def normalise(lines: Iterable[str]) -> Iterator[str]:
    """One paragraph per line, a boundary before each title, links as their text."""
    for raw in lines:
        line = clean_minimal(collapse(raw))
        if title := _TITLE.fullmatch(line):
            yield ""
            line = title.group(1)
        elif line.startswith(("[[Category:", "[[File:")):
            continue
        line = _LINK.sub(r"\1", _FILE_OR_CATEGORY.sub("", without_citations(line)))
        if line := collapse(line):
            yield line
