"""Text made harmless for the form in which it is shown: Markdown, HTML and LaTeX.

Words, samples and names come from texts that anybody may have written: nothing of them reaches a page as markup.
"""

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from hatchery.errors import ConfigError
from hatchery.sanitize import visible

_OWN_MARKDOWN = re.compile(r"([\\|*`]|<(?=[A-Za-z/!?]))")
_FOREIGN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~$@]|:(?=//)|(?<=www)\.)")
_BLOCK = re.compile(r"^(\d*)([-#+=.)])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # Bare, the older font encodings show a bar and angles as other characters.
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "²": r"\textsuperscript{2}",
    "ε": r"$\varepsilon$",
    "†": r"\dag{}",
    "–": "--",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
}


def html_text(text: str) -> Markup:
    """The text for an HTML element or a quoted attribute; what is markup already stays as it is."""
    return text if isinstance(text, Markup) else escape(visible(text))


def readable(name: str) -> str:
    """A name of the configuration as words."""
    return name.replace("_", " ")


def listed(names: Iterable[str]) -> str:
    """Return the names as a phrase: `a`, `a and b`, `a, b and c`; semicolons separate names that contain commas."""
    *first, last = names
    separator = "; " if any(", " in name for name in (*first, last)) else ", "
    return f"{separator.join(first)} and {last}" if first else last


def breakable(text: str) -> Markup:
    """Like `html_text`, for names in narrow columns: lines may break behind an underscore."""
    return Markup(re.sub(r"(?<=[^_]_)(?=[^_])", "<wbr>", html_text(text)))


def markdown_text(text: str, foreign: bool = True) -> str:
    """The text on one line of Markdown, without meaning as Markdown or HTML, also inside a table.

    Of text that is not `foreign`, names and notes of our own, only what it may contain is escaped, so that it can be
    read in the file as well.
    """
    escaped = _FOREIGN_MARKDOWN if foreign else _OWN_MARKDOWN
    return escaped.sub(r"\\\1", " ".join(visible(text).split()))


def markdown_paragraph(text: str) -> str:
    """Like `markdown_text`, for foreign text that begins a line, where it must not begin a heading or a list."""
    return _BLOCK.sub(r"\1\\\2", markdown_text(text))


def latex_text(text: str) -> str:
    """Text in ASCII without what LaTeX would read as commands. Raises ConfigError for a character without a command."""
    written = "".join(_LATEX.get(character, character) for character in " ".join(visible(text).split()))
    if not written.isascii():
        strange = sorted({character for character in written if not character.isascii()})
        raise ConfigError(f"LaTeX: {text!r} has {', '.join(strange)}, which no command is known for; use ASCII")
    return written
