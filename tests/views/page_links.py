"""Check the links of written pages: each address must be an existing file, each fragment an id in this file."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Ids, links, tags with their attributes, and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if attributes.get("id") is not None:
            self.ids.append(str(attributes["id"]))
        for name in ("href", "xlink:href", "src"):
            if attributes.get(name) is not None:
                self.links.append(str(attributes[name]))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "wbr" and self.words:
            # A line-break opportunity (`wbr`) is not a space.
            self.words[-1] += data
        elif self.tags and self.tags[-1][0] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All words of the page, single spaces between them."""
        return " ".join(" ".join(self.words).split())

    def levels(self) -> list[int]:
        """The levels of the headings in their order."""
        return [int(tag[1]) for tag, _ in self.tags if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit()]


def read_page(path: Path) -> Page:
    """The page at `path`."""
    return Page(path.read_text(encoding="utf-8"))


def link_problems(start: Path) -> tuple[list[str], set[Path]]:
    """Return the problems of links and ids of `start` and all pages reachable from it, and these pages."""
    read: dict[Path, Page] = {}

    def page_at(path: Path) -> Page:
        if path not in read:
            read[path] = read_page(path)
        return read[path]

    problems: set[str] = set()
    seen: set[Path] = set()
    waiting = [start.resolve()]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        page = page_at(path)
        problems |= {
            f"{path.name}: the id {name!r} is given {n} times" for name, n in Counter(page.ids).items() if n > 1
        }
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or parts.netloc:
                problems.add(f"{path.name}: {link!r} leads elsewhere")
            elif not target.is_file():
                problems.add(f"{path.name}: {link!r} is not there")
            elif target.suffix == ".html":
                waiting.append(target)
                if parts.fragment and unquote(parts.fragment) not in page_at(target).ids:
                    problems.add(f"{path.name}: {link!r}: there is no such place")
    return sorted(problems), seen
