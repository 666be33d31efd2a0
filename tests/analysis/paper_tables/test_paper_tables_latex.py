"""The LaTeX of the tables is valid: judged without TeX for every table, and compiled where pdflatex is there."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hatchery.errors import ConfigError
from hatchery.rendering.escaping import latex_text
from hatchery.views.paper_tables.views import latex_document, latex_table
from hatchery.views.score_table import OURS, Block, Digits, Line, PaperTable, Score

Drawn = Mapping[tuple[str, str], Mapping[str, PaperTable]]
HOSTILE = r"50% of a_b & {c} #1 $x^2$ ~ \d `q` <p> [s] – “é”"


def environments(text: str) -> list[str]:
    """The environments of a text in their order; fails where one ends that is not the innermost."""
    found, open_ones = [], []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_ones.append(name)
            found.append(name)
        else:
            assert open_ones and open_ones.pop() == name, f"{name} ends, but is not the innermost environment"
    assert not open_ones
    return found


def check_balanced(text: str) -> None:
    """Fail where a brace closes that none opened, or one stays open."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", re.sub(r"(?m)(?<!\\)%.*$", "", text.replace(r"\\", "  "))):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


def cells(row: str) -> int:
    """The number of columns that a row fills."""
    # Line breaks inside a heading end no row.
    row = re.sub(r"\\shortstack\[r\]\{[^{}]*\}", "X", row)
    wide = [int(width) for width in re.findall(r"\\multicolumn\{(\d+)\}", row)]
    return len(re.findall(r"(?<!\\)&", row)) + 1 + sum(wide) - len(wide)


def check_table(text: str) -> None:
    assert environments(text)[:2] == ["table", "tabular"]
    check_balanced(text)
    [columns] = re.findall(r"\\begin\{tabular\}\{(l*r*)\}", text)
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line and line != r"\midrule"]
    assert all(line.endswith(r" \\") for line in rows)
    assert {cells(row) for row in rows} == {len(columns)}
    assert body.count("$") % 2 == 0
    # Nothing but the comment of the first line is a comment, and no character of TeX stands bare in the text.
    lines = text.splitlines()
    assert lines[0].startswith("% ") and not any(re.search(r"(?<!\\)%(?!$)", line) for line in lines[1:])
    assert not re.search(r"(?<!\\)[#~^]|(?<!\\)_", re.sub(r"\$[^$]*\$", "", body))


def test_every_table_has_balanced_environments_and_rows_as_wide_as_its_columns(
    drawn: Drawn, track: tuple[str, str]
) -> None:
    for table in drawn[track].values():
        check_table(latex_table(table))


def test_the_head_of_a_table_names_its_paper_and_the_packages_that_it_needs(drawn: Drawn) -> None:
    first = latex_table(drawn["elc_bert", "strict"]["9"]).splitlines()[0]
    assert first == r"% ELC-BERT, Table 9, with our numbers. Needs \usepackage{booktabs} and \usepackage{graphicx}."


def hostile_table() -> PaperTable:
    values = (Score(-1.5, Digits(signed=True), 0.5, n=4, n_failed=1, comparable=False, best=True), None)
    line = Line(HOSTILE.replace("é", "e"), OURS, values, model="a_model")
    text = HOSTILE.replace("é", "e")
    blocks = (Block(text, (line,)),)
    return PaperTable(text, text, (text, f"{text} {text}"), blocks, (text,), paper="elc_bert", number="9")


def test_text_that_tex_would_read_as_commands_is_shown_as_it_is() -> None:
    check_table(latex_table(hostile_table()))
    assert latex_text("50% of a_b & {c}") == r"50\% of a\_b \& \{c\}"
    with pytest.raises(ConfigError, match="é, which no command is known for"):
        latex_text("é")


def test_a_row_that_begins_with_a_bracket_is_no_option_of_the_line_before_it() -> None:
    line = Line("[a]", OURS, (Score(1.0, Digits()),))
    text = latex_table(PaperTable("c", "l", ("h",), (Block("", (line,)),), paper="elc_bert", number="9"))
    assert "\n{[a]} & ours" in text


@pytest.mark.slow
def test_the_document_of_all_tables_compiles_with_one_table_on_a_page_and_nothing_beyond_its_margins(
    drawn: Drawn, track: tuple[str, str], tmp_path: Path
) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex with booktabs and geometry (texlive-latex-recommended on Debian)")
    tables = [drawn[track][number] for number in sorted(drawn[track], key=int)]
    if track == ("elc_bert", "strict"):
        tables.append(hostile_table())
    compile_tables(tables, tmp_path)


def compile_tables(tables: list[PaperTable], folder: Path) -> None:
    # The file of a table is called after its number, which the hostile one shares with another.
    names = [f"{index}_{table.name}" for index, table in enumerate(tables)]
    for name, table in zip(names, tables, strict=True):
        (folder / f"{name}.tex").write_text(latex_table(table), encoding="ascii")
    document = latex_document(tables)
    for name, table in zip(names, tables, strict=True):
        document = document.replace(f"\\input{{{table.name}.tex}}", f"\\input{{{name}.tex}}", 1)
    (folder / "tables.tex").write_text(document, encoding="ascii")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert not re.findall(r"Overfull.*|Float too large.*|.*undefined.*", done.stdout)
    assert f"({len(tables)} pages" in done.stdout
