r"""A table as LaTeX with booktabs: a `table` that a paper can take in, and a document that shows all of them.

Only `booktabs` is needed. All text is escaped to ASCII, so that any engine compiles it.
"""

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
# Landscape with narrow margins, by lengths alone: the widest table has thirteen columns of numbers.
_PREAMBLE = r"""\documentclass[10pt,a4paper,landscape]{article}
\usepackage{booktabs}
\setlength{\textwidth}{26cm}
\setlength{\textheight}{17cm}
\setlength{\oddsidemargin}{-0.8cm}
\setlength{\topmargin}{-1.5cm}
\setlength{\paperwidth}{29.7cm}
\setlength{\paperheight}{21cm}
\begin{document}
"""


def latex_table(table: Table) -> str:
    """The table as a `table` environment with caption, label and notes; ends in a newline."""
    width = 3 + len(table.headings)
    lines = [
        r"\begin{table}[p]",
        r"\centering",
        rf"\caption{{{escaped(f'{PAPERS[table.paper]}, Table {table.number}. {table.caption}')}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        r"\scriptsize",
        r"\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{ll{'r' * (width - 2)}}}",
        r"\toprule",
        _row([escaped(text) for text in (table.label_heading, "numbers", "n", *table.headings)]),
    ]
    for block in table.blocks:
        lines.append(r"\midrule")
        if block.heading:
            lines += [rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escaped(block.heading)}}}}} \\", r"\midrule"]
        lines += _lines(block.lines)
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        notes = " ".join(escaped(note if note.endswith(".") else f"{note}.") for note in table.notes)
        # In a box of its own, because a caption is as wide as the page and the notes are long.
        lines += [r"\par\smallskip", rf"\begin{{minipage}}{{\linewidth}}\tiny {notes}\end{{minipage}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_document(tables: Sequence[Table]) -> str:
    """A document that reads the files of the tables, which lie beside it."""
    inputs = "".join(f"\\input{{{table.name}.tex}}\n\\clearpage\n" for table in tables)
    return f"{_PREAMBLE}{inputs}\\end{{document}}\n"


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
