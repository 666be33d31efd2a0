"""Text escaped for the format in which it is shown: Markdown, HTML and LaTeX.

Words, samples and names come from texts of strangers, so no part of them may reach a page as markup.
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
    # Without commands, the older font encodings print other characters for the bar and the angle brackets.
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
# The commands of combining marks that LaTeX puts on a letter.
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
    """Escape text for an HTML element or a quoted attribute; `Markup` is unchanged."""
    return text if isinstance(text, Markup) else escape(visible(text))


def readable(name: str) -> str:
    """Convert a name of the configuration to words."""
    return name.replace("_", " ")


def listed(names: Iterable[str]) -> str:
    """Return the names as a phrase: `a`, `a and b`, `a, b and c`; semicolons separate names that contain commas."""
    *first, last = names
    separator = "; " if any(", " in name for name in (*first, last)) else ", "
    return f"{separator.join(first)} and {last}" if first else last


def breakable(text: str) -> Markup:
    """Escape like `html_text`, for names in narrow columns: lines may break after an underscore."""
    return Markup(re.sub(r"(?<=[^_]_)(?=[^_])", "<wbr>", html_text(text)))


def markdown_text(text: str, foreign: bool = True) -> str:
    """Escape text on one line of Markdown, also inside a table: it has no meaning as Markdown or HTML.

    Text that is not `foreign`, such as names and notes of our own, is escaped only as needed, so that the file itself
    stays readable.
    """
    escaped = _FOREIGN_MARKDOWN if foreign else _OWN_MARKDOWN
    return escaped.sub(r"\\\1", " ".join(visible(text).split()))


def markdown_paragraph(text: str) -> str:
    """Escape like `markdown_text` for foreign text at the beginning of a line, so that it begins no heading or list."""
    return _BLOCK.sub(r"\1\\\2", markdown_text(text))


def latex_text(text: str) -> str:
    """Convert text to ASCII without LaTeX commands. Raises ConfigError for a character without a command."""
    written = "".join(map(_latex_character, " ".join(visible(text).split())))
    if not written.isascii():
        strange = sorted({character for character in written if not character.isascii()})
        raise ConfigError(f"LaTeX: {text!r} has {', '.join(strange)}, characters without a known command; use ASCII")
    return written


def _latex_character(character: str) -> str:
    """Return the command of a character or of a letter with an accent; the character itself without a command."""
    if character in _LATEX:
        return _LATEX[character]
    letter, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and letter.isascii() and letter.isalpha() and marks[0] in _LATEX_MARKS:
        return f"{{{_LATEX_MARKS[marks[0]]}{{{letter}}}}}"
    return character
