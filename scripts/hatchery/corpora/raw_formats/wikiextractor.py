"""Articles as WikiExtractor writes them: `<doc id=... url=... title=...>` blocks, or one JSON object per line.

Source: WikiExtractor 3 on a pages-articles dump (files AA/wiki_00, AA/wiki_01, ..., perhaps compressed), used for the
Wikipedia part of LTG-BERT, Appendix F, and for Simple Wikipedia in the reduced-vocabulary paper. The title is kept
apart from the text; `&lt;`, `&gt;` and `&amp;`, which the tool writes so that no text can look like a mark, are undone.
"""

import html
import json
import re
from collections.abc import Iterator

from hatchery.corpora.raw_texts import RawText
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError

_HEADER = re.compile(r"<doc\s(.*)>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def read(lines: Lines, field: str) -> Iterator[RawText]:
    """The articles of a file by their page numbers; redirects and the like have an empty text.

    A line outside of blocks that begins with a brace is an article in JSON, its text in `field`. Raises SourceError
    naming file and line for a block that is not closed, text outside of blocks, or a damaged line.
    """
    article: list[str] | None = None
    key = title = ""
    opened = 0
    for line in lines:
        if article is None:
            if line.startswith("{"):
                yield _json_article(line, field, f"{lines.where}: line {lines.line}")
            elif line.strip():
                key, title = _header(line, f"{lines.where}: line {lines.line}")
                article, opened = [], lines.line
        elif line.rstrip() == "</doc>":
            yield RawText(key, _body(article, title), title)
            article = None
        elif line.startswith("<doc "):
            raise SourceError(
                f"{lines.where}: line {lines.line}: <doc> of line {opened} is not closed before the next one"
            )
        else:
            article.append(line)
    if article is not None:
        raise SourceError(f"{lines.where}: line {opened}: <doc> is not closed before the end of the file")


def _header(line: str, place: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(line.strip())
    attributes = dict(_ATTRIBUTE.findall(found.group(1))) if found else {}
    if found is None or "id" not in attributes:
        raise SourceError(f'{place}: expected <doc id="..." url="..." title="...">, got {line[:80]!r}')
    return attributes["id"], _title(found.group(1))


def _title(attributes: str) -> str:
    # Titles such as "Heroes" are written with their quotation marks unescaped.
    found = re.search(r'title="(.*)"\s*$', attributes)
    return html.unescape(found.group(1)).strip() if found else ""


def _body(lines: list[str], title: str) -> str:
    text = _unescaped("\n".join(lines)).strip("\n")
    first, _, rest = text.partition("\n")
    return rest.strip("\n") if title and html.unescape(first).strip() == title else text


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") if "&" in text else text


def _json_article(line: str, field: str, place: str) -> RawText:
    try:
        article = json.loads(line)
        return RawText(str(article["id"]), _unescaped(article[field]), html.unescape(article["title"]).strip())
    except KeyError as error:
        raise SourceError(f"{place}: there is no field {error}; there are: {', '.join(sorted(article))}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SourceError(f"{place}: not a WikiExtractor article: {error}") from error
