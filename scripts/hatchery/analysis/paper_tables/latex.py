r"""A table as LaTeX with booktabs: a `table` that a paper can take in, and a document that shows all of them.

A table needs `booktabs`, and `graphicx` to shrink what is wider than the line; the document needs `geometry`, too. All
text is escaped to ASCII, so that any engine compiles it.
"""

import textwrap
from collections.abc import Sequence

from hatchery.analysis.paper_tables.grid import Line, Table, Value
from hatchery.analysis.published_values import PAPERS
from hatchery.errors import ConfigError

_ESCAPES = {
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
    "ε": r"$\varepsilon$",
    "†": r"\dag{}",
    "–": "--",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
}
# Landscape with narrow margins: the widest table has thirteen columns of numbers.
_PREAMBLE = r"""% Shows all tables, whose files lie beside this one.
\documentclass[10pt]{article}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage[a4paper,landscape,hmargin=1.5cm,top=0.8cm,bottom=1.1cm,footskip=0.6cm]{geometry}
\begin{document}
"""
_HEADING_CHARACTERS = 16
# Longer tables leave room only for small notes.
_LINES_WITH_NOTES = 40


def latex_table(table: Table) -> str:
    """The table as a `table` environment with caption, label and notes; ends in a newline."""
    width = 3 + len(table.headings)
    title = f"{PAPERS[table.paper]}, Table {table.number}"
    caption = table.caption.removesuffix(".")
    lines = [
        rf"% {title}, with our numbers. Needs \usepackage{{booktabs}} and \usepackage{{graphicx}}.",
        r"\begin{table}[p]",
        r"\centering",
        # The classes expect captions below, and leave no room under one above.
        r"\setlength{\belowcaptionskip}{4pt}",
        rf"\caption{{{escaped(f'{caption} ({title}).')}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        r"\scriptsize",
        r"\setlength{\tabcolsep}{3pt}",
        # No wider than the line, and no larger than it is.
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{ll{'r' * (width - 2)}}}",
        r"\toprule",
        _row([escaped(table.label_heading), "numbers", "n", *(_heading(text) for text in table.headings)]),
    ]
    for block in table.blocks:
        lines.append(r"\midrule")
        if block.heading:
            lines += [rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escaped(block.heading)}}}}} \\", r"\midrule"]
        lines += _lines(block.lines)
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if table.notes:
        notes = " ".join(escaped(note if note.endswith(".") else f"{note}.") for note in table.notes)
        size = r"\scriptsize" if len(table.lines) <= _LINES_WITH_NOTES else r"\tiny"
        # In a box of its own, because a caption is as wide as the page and the notes are long.
        lines += [r"\par\smallskip", rf"\begin{{minipage}}{{\linewidth}}{size} {notes}\end{{minipage}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_document(tables: Sequence[Table]) -> str:
    """A document that reads the files of the tables, which lie beside it, and numbers them as the paper does."""
    inputs = "".join(
        f"\\setcounter{{table}}{{{int(table.number) - 1}}}\n\\input{{{table.name}.tex}}\n\\clearpage\n"
        for table in tables
    )
    return f"{_PREAMBLE}{inputs}\\end{{document}}\n"


def _heading(text: str) -> str:
    """The heading of a column of numbers, a long one in several lines."""
    parts = [
        escaped(part)
        for part in textwrap.wrap(text, _HEADING_CHARACTERS, break_long_words=False, break_on_hyphens=False)
    ]
    return parts[0] if len(parts) == 1 else r"\shortstack[r]{" + r" \\ ".join(parts) + "}"


def _lines(lines: tuple[Line, ...]) -> list[str]:
    rows, previous = [], ""
    for line in lines:
        label, previous = ("" if line.label == previous else line.label), line.label
        source = f"{line.source}: {line.model}" if line.model and line.model != line.label else line.source
        runs = line.runs.replace("-", "--")
        rows.append(_row([escaped(label), escaped(source), runs, *(cell(value) for value in line.values)]))
    return rows


def _row(cells: Sequence[str]) -> str:
    # A bracket at the beginning of a row would be read as the option of the line break before it.
    return " & ".join(f"{{{text}}}" if text.startswith("[") else text for text in cells) + r" \\"


def cell(value: Value | None) -> str:
    """The text of one value; a dash where there is none."""
    if value is None:
        return "--"
    mean = _number(value.mean_text) if value.mean is not None else "--"
    parts = [rf"\textbf{{{mean}}}" if value.bold else mean]
    if value.deviation_text:
        parts.append(rf"{{\tiny $\pm$ {_number(value.deviation_text)}}}")
    if value.failures_text:
        parts.append(rf"{{\tiny ({value.failures_text})}}")
    return " ".join(parts) + ("" if value.comparable else r"\textsuperscript{\dag}")


def _number(text: str) -> str:
    return text.replace("-", "$-$").replace("+", "$+$")


def escaped(text: str) -> str:
    """Text in ASCII without what LaTeX would read as commands. Raises ConfigError for a character without a command."""
    written = "".join(_ESCAPES.get(character, character) for character in " ".join(text.split()))
    if not written.isascii():
        strange = sorted({character for character in written if not character.isascii()})
        raise ConfigError(f"LaTeX: {text!r} has {', '.join(strange)}, which no command is known for; use ASCII")
    return written
