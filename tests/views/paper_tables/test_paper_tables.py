"""The papers' tables: all printed numbers, the paper's bold face, and equal numbers in LaTeX."""

import csv
import re
import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from paper_table_cases import STRICT, Drawn
from summary_text import cells_of

from hatchery.analysis.published_values import OVER
from hatchery.views.paper_tables.layout import ScoreLayout, read_layout
from hatchery.views.paper_tables.write_all import latex_document, latex_table, markdown_table
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score

# As transcribed, four best values of STRICT-SMALL in Table 7 are not bold; 73.5 is, although a baseline has 74.5.
NOT_BOLD_IN_PRINT = {
    "7": Counter(
        {("strict", Decimal("74.5")): 1}
        | {("strict_small", Decimal(value)): 1 for value in ("79.4", "87.4", "89.5", "93.4")}
    )
}
BOLD_THOUGH_NOT_BEST = {"7": Counter({("strict", Decimal("73.5")): 1})}
WRITTEN = {
    ("elc_bert", "strict"): ["1", "2", "3", "7", "8", "9", "10", "11", "12"],
    # In this track, Table 1 has the submitted model, for which the paper prints no scores of tasks or files.
    ("elc_bert", "strict_small"): ["2", "7", "8", "9", "10"],
    # Table 2 belongs to a study.
    **{("gpt_bert", track): ["1", "3", "4", "5", "6", "7", "8"] for track in ("strict", "strict_small")},
    ("ltg_bert", ""): ["1", "2", "3", "4", "5", "6", "7", "8"],
}


def parsed(cell: str) -> tuple[Decimal, Decimal | None]:
    mean, _, deviation = cell.replace("*", "").replace("†", "").replace(",", "").partition(" ± ")
    return Decimal(mean), Decimal(deviation) if deviation else None


def printed_in(paper: str, repository: Path, table: str) -> Counter[tuple[Decimal, Decimal | None]]:
    """Return the numbers of a printed table in its units, read from the file of the published values."""
    if (paper, table) == ("ltg_bert", "1"):
        with (repository / "config/published/corpora/sizes.csv").open(encoding="utf-8", newline="") as file:
            sizes = [line for line in csv.DictReader(file) if (line["paper"], line["table"]) == ("LTG-BERT", "Table 1")]
        return Counter((Decimal(line["value"]), None) for line in sizes)
    found: Counter[tuple[Decimal, Decimal | None]] = Counter()
    with (repository / "config/published/values" / f"{paper}.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["table"] != table:
                continue
            scale = Decimal("0.01") if line["suite"] == "msgs" and OVER not in line["metric"] else Decimal(1)
            spread = Decimal(line["spread"]) * scale if line["spread"] else None
            found[Decimal(line["value"]) * scale, spread] += 1
    return found


def test_an_experiment_of_all_rows_gets_all_tables_of_its_track(drawn: Drawn, track: tuple[str, str]) -> None:
    assert sorted(drawn[track], key=int) == WRITTEN[track]


def test_every_printed_number_stands_in_its_table_once_and_nothing_else_is_called_published(
    drawn: Drawn, track: tuple[str, str], repository: Path
) -> None:
    for number, table in drawn[track].items():
        cells = [cell for line in cells_of(markdown_table(table), PUBLISHED) for cell in line[3:]]
        shown = Counter(parsed(cell) for cell in cells if cell != "-")
        assert shown == printed_in(track[0], repository, number), f"{track[0]} Table {number}"


def test_ours_stand_where_the_model_is_that_they_repeat(drawn: Drawn) -> None:
    lines = cells_of(markdown_table(drawn[STRICT]["9"]), "ours: our_elc_bert_base_zero")
    assert lines == [["", "ours: our_elc_bert_base_zero", "5", *zero_initialised_glue()]]


def zero_initialised_glue() -> list[str]:
    """Table 9 of the ELC-BERT paper, row "zero initialization", as printed."""
    best = {"92.4", "88.2", "84.4", "84.5", "90.5", "63.0", "72.6", "79.4"}
    means = ["82.0", "92.4", "88.8", "88.2", "84.4", "84.5", "90.5", "63.0", "72.6", "65.8", "61.4", "79.4"]
    deviations = ["0.7", "0.4", "1.5", "0.1", "0.3", "0.3", "0.5", "1.5", "1.0", "1.1", "0.0", "1.0"]
    pairs = zip(means, deviations, strict=True)
    return [f"**{mean}** ± {deviation}" if mean in best else f"{mean} ± {deviation}" for mean, deviation in pairs]


@pytest.mark.parametrize("number", ["1", "2", "3", "7", "8", "9", "10"])
def test_the_bold_face_of_the_printed_lines_is_that_of_the_paper(
    number: str, strict: Any, drawn: Drawn, golden_directory: Path
) -> None:
    path = golden_directory / "published" / f"elc_bert_table{number}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        bold = [line for line in csv.DictReader(file) if line["note"].startswith("bold")]
    expected = Counter((line["track"].replace("-", "_"), Decimal(line["mean"])) for line in bold)
    layout = read_layout(strict.layout).tables[number]
    assert isinstance(layout, ScoreLayout)
    tracks = [block.track for block in layout.blocks]
    shown: Counter[tuple[str, Decimal]] = Counter()
    for track, block in zip(tracks, drawn[STRICT][number].blocks, strict=True):
        for line in block.lines:
            for value in line.values:
                if line.source == PUBLISHED and value is not None and value.best:
                    shown[track, Decimal(value.mean_text)] += 1
    assert shown - NOT_BOLD_IN_PRINT.get(number, Counter()) == expected - BOLD_THOUGH_NOT_BEST.get(number, Counter())


# By the captions of LTG-BERT, Tables 2 and 3, all numbers within one standard deviation of the best are bold. The
# transcription lost most bold face. Known to be bold are, in Table 2, 95.3; in Table 3, MNLI 85.1 (span) and both 85.2,
# SST-2 92.3, the average 89.2, and two of 95.3.
BOLD_OF_LTG_BERT = {
    "2": {
        "MNLI": ["85.1"],
        "Edge probing": ["95.3", "0.0", "-0.1", "-0.1", "0.0", "0.0"],
        "BLiMP": ["+0.6"],
        "Training time (minutes)": ["-136"],
    },
    "3": {
        "MNLI": ["85.1", "84.9", "85.1", "85.2", "85.2"],
        "MRPC": ["86.7", "87.5"],
        "QNLI": ["91.5"],
        "SST-2": ["92.7", "92.7", "92.7", "92.8", "92.3", "92.8"],
        "GLUE": ["89.2"],
        # The best number is from the literature and has no deviation.
        "HANS": ["69.0"],
        "Edge probing": ["95.3", "95.3", "95.3", "95.2", "95.3", "95.3", "95.2"],
        "BLiMP": ["84.2", "84.2", "84.2"],
    },
}


@pytest.mark.parametrize("number", ["2", "3"])
def test_in_two_tables_of_ltg_bert_all_within_a_deviation_of_the_best_are_bold(number: str, drawn: Drawn) -> None:
    table = drawn["ltg_bert", ""][number]
    shown = {
        heading: [
            value.mean_text
            for line in table.lines
            if line.source == PUBLISHED and (value := line.values[column]) is not None and value.best
        ]
        for column, heading in enumerate(table.headings)
    }
    assert shown == BOLD_OF_LTG_BERT[number]
    assert any("Bold: all numbers within one standard deviation of the best" in note for note in table.notes)


def test_latex_has_the_numbers_of_markdown_and_only_known_commands(drawn: Drawn, track: tuple[str, str]) -> None:
    known = (
        "begin end centering caption label scriptsize tiny setlength tabcolsep toprule midrule bottomrule multicolumn"
        " textit textbf pm par smallskip linewidth textsuperscript dag varepsilon times ldots"
        " usepackage resizebox totalheight textheight ifdim width else fi shortstack textbar belowcaptionskip"
    )
    for table in drawn[track].values():
        text = latex_table(table)
        assert text.isascii()
        assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= set(known.split())
        assert text.count("{") == text.count("}") and text.count("$") % 2 == 0
        rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {2 + len(table.headings)}
        numbers = re.compile(r"\d+(?:\.\d+)?")
        markdown = [
            cell
            for source in (PUBLISHED, OURS)
            for line in cells_of(markdown_table(table), source)
            for cell in line[3:]
        ]
        latex = [cell for line in rows[1:] for cell in re.split(r"(?<!\\)&", line)[3:]]
        assert Counter(numbers.findall(" ".join(markdown))) == Counter(numbers.findall(" ".join(latex)))


HOSTILE = r"50% of a_b & {c} #1 $x^2$ ~ \d `q` <p> [s] – “é”"


def environments(text: str) -> list[str]:
    r"""Return the environments of a text in their order; fail if an \end does not match the innermost \begin."""
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
    """Fail on unbalanced braces."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", re.sub(r"(?m)(?<!\\)%.*$", "", text.replace(r"\\", "  "))):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


def cells(row: str) -> int:
    """The number of columns that a row fills."""
    # A line break inside a heading does not end a row.
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
    # Only the first line is a comment, and no special TeX character is unescaped.
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
    assert (
        first == r"% ELC-BERT, Table 9, with Hatchery's numbers. Needs \usepackage{booktabs} and \usepackage{graphicx}."
    )


def hostile_table() -> PaperTable:
    values = (Score(-1.5, Digits(signed=True), 0.5, n=4, n_failed=1, comparable=False, best=True), None)
    line = Line(HOSTILE.replace("é", "e"), OURS, values, model="a_model")
    text = HOSTILE.replace("é", "e")
    blocks = (Block(text, (line,)),)
    return PaperTable(text, text, (text, f"{text} {text}"), blocks, (text,), paper="elc_bert", number="9")


def test_text_that_tex_would_read_as_commands_is_shown_as_it_is() -> None:
    check_table(latex_table(hostile_table()))


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
    # The hostile table has the number of another table, so file names need an index.
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
