"""Escaping of text for Markdown, HTML and LaTeX.

Words, samples and names come from texts and files of third parties ("foreign text"). None of their characters may be
interpreted as markup.
"""

import re
import unicodedata
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
    # Older LaTeX font encodings print other characters for a bar and for angle brackets, so use commands.
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
# LaTeX commands for combining accents.
_LATEX_MARKS = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030c": r"\v",
    "\u0327": r"\c",
}


def html_text(text: str) -> Markup:
    """Return text escaped for an HTML element or a quoted attribute; `Markup` is returned unchanged."""
    return text if isinstance(text, Markup) else escape(visible(text))


def readable(name: str) -> str:
    """Return a name from the configuration, with underscores replaced by spaces."""
    return name.replace("_", " ")


def listed(names: Iterable[str]) -> str:
    """Return the names as one phrase: `a`, `a and b`, or `a, b and c`. If a name contains a comma, semicolons separate
    the names.
    """
    *first, last = names
    separator = "; " if any(", " in name for name in (*first, last)) else ", "
    return f"{separator.join(first)} and {last}" if first else last


def breakable(text: str) -> Markup:
    """Return text, escaped as by `html_text`, that a browser may also wrap after underscores.

    Use this function for names in narrow columns.
    """
    return Markup(re.sub(r"(?<=[^_]_)(?=[^_])", "<wbr>", html_text(text)))


def markdown_text(text: str, foreign: bool = True) -> str:
    """Return text on one line, escaped so that Markdown does not interpret it as markup, inside or outside of a table.

    Names from the configuration are not foreign text: with `foreign` false, only the necessary characters are escaped,
    so that the file is readable.
    """
    escaped = _FOREIGN_MARKDOWN if foreign else _OWN_MARKDOWN
    return escaped.sub(r"\\\1", " ".join(visible(text).split()))


def markdown_paragraph(text: str) -> str:
    """Return text of third parties, escaped as by `markdown_text`, for the beginning of a line.

    At this position, unescaped text might begin a heading or a list.
    """
    return _BLOCK.sub(r"\1\\\2", markdown_text(text))


def latex_text(text: str) -> str:
    """Return text as ASCII in which LaTeX interprets no character as a command.

    Raises ConfigError for a non-ASCII character without a known LaTeX command.
    """
    written = "".join(map(_latex_character, " ".join(visible(text).split())))
    if not written.isascii():
        strange = sorted({character for character in written if not character.isascii()})
        raise ConfigError(
            f"LaTeX: {text!r} contains {', '.join(strange)}, for which no LaTeX command is known; use ASCII"
        )
    return written


def _latex_character(character: str) -> str:
    """Return the LaTeX command for a character or an accented letter; the character itself if it has no command."""
    if character in _LATEX:
        return _LATEX[character]
    letter, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and letter.isascii() and letter.isalpha() and marks[0] in _LATEX_MARKS:
        return f"{{{_LATEX_MARKS[marks[0]]}{{{letter}}}}}"
    return character
