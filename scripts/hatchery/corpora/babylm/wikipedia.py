"""English Wikipedia: articles under `= = = Title = = =` lines, with links, citations, file and category lines.

Source: ELC-BERT's reference, section 1.6.

Corrected:
- a link leaves the text that readers see, not its target. As published, a target runs to the first `|` or `]` and may
  hold `[`, which cuts a link around a link open: `[[nested [[inner|shown]] tail]]` is `nested [[inner tail]]`, and
  `nested shown tail` when corrected. That a shown text may hold `[`, too, is inferred;
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
# What looks like a link and does not end in `]]` is matched, too, and stays: no link begins inside it. Without that,
# and if it were not possessive, hostile brackets would take quadratic time.
_PUBLISHED_LINK = re.compile(r"\[\[([^|\]]*+)(?:\|[^\]]*+)?+(\]\])?+")
# Links within links are rare and shallow; without a limit, hostile brackets would take quadratic time.
_DEEPEST_LINK = 3
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
        text = without_citations(text)
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
