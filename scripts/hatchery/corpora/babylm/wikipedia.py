"""English Wikipedia: articles under `= = = Title = = =` lines, with links, citations, file and category lines.

Source: ELC-BERT's reference, section 1.6.

Corrected:
- a link leaves the text that readers see, not its target;
- a file or category link goes, with its caption, but not the text around it; as published a line that begins with one
  is lost, and one in the middle leaves its target;
- a heading with more or other equals signs starts no document, a title that holds an equals sign does, and loses its
  marks;
- a line with nothing left after cleaning vanishes; as published it is a boundary.
"""

import re
from collections.abc import Iterable, Iterator

from hatchery.corpora.babylm.shared import collapse, without_citations
from hatchery.corpora.babylm.treatment import Treatment

_FILE_OR_CATEGORY_MARK = ("[[Category:", "[[File:")
# Captions hold links, which hold no further ones. Possessive, so that hostile brackets take linear time.
_FILE_OR_CATEGORY = re.compile(r"\[\[(?:File|Category):[^\[\]]*+(?:\[\[[^\[\]]*+\]\][^\[\]]*+)*+\]\]")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_TITLE = re.compile(r"^= = = (?!=)(.*)(?<!=) = = =$")
_PUBLISHED_TITLE_MARK = "= = = "
_PUBLISHED_TITLE = re.compile(r"= = = ([^=]*) = = =")


def normalise(lines: Iterable[str], treatment: Treatment) -> Iterator[str]:
    """One paragraph per line, a boundary before each title, links as text."""
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
        text = _LINK.sub(_shown if corrected else _target, without_citations(text))
        text = collapse(_TITLE.sub(r"\1", text)) if corrected else _PUBLISHED_TITLE.sub(r"\1", text)
        if treatment.keeps(text, line):
            yield text


def _target(link: re.Match[str]) -> str:
    return link[1].split("|")[0]


def _shown(link: re.Match[str]) -> str:
    parts = link[1].split("|")
    return parts[-1] or parts[0]
