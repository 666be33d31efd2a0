"""The tables of the papers: every printed number in its table, the bold face of the paper, and the same in LaTeX."""

import csv
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.published_values import OVER
from hatchery.views.paper_tables.layout import ScoreLayout, read_layout
from hatchery.views.paper_tables.views import latex_table, markdown_table
from hatchery.views.score_table import OURS, PUBLISHED, PaperTable

# As transcribed, Table 7 leaves four best values of STRICT-SMALL plain, and 73.5 is bold though a baseline has 74.5.
NOT_BOLD_IN_PRINT = {
    "7": Counter(
        {("strict", Decimal("74.5")): 1}
        | {("strict_small", Decimal(value)): 1 for value in ("79.4", "87.4", "89.5", "93.4")}
    )
}
BOLD_THOUGH_NOT_BEST = {"7": Counter({("strict", Decimal("73.5")): 1})}
STRICT = ("elc_bert", "strict")
WRITTEN = {
    ("elc_bert", "strict"): ["1", "2", "3", "7", "8", "9", "10", "11", "12"],
    # Table 1 is of the submitted model there, of which the paper prints no cells that the toy could have.
    ("elc_bert", "strict_small"): ["2", "7", "8", "9", "10"],
    ("ltg_bert", ""): ["1", "2", "3", "4", "5", "6", "7", "8"],
}


def cells_of(markdown: str, source: str) -> list[list[str]]:
    """The cells behind `source` in the lines of a table, with label and number of runs."""
    lines = [line[2:-2].split(" | ") for line in markdown.splitlines() if line.startswith("| ")]
    return [line for line in lines if len(line) > 2 and line[1].startswith(source)]


def parsed(cell: str) -> tuple[Decimal, Decimal | None]:
    mean, _, deviation = cell.replace("*", "").replace("†", "").replace(",", "").partition(" ± ")
    return Decimal(mean), Decimal(deviation) if deviation else None


def printed_in(paper: str, repository: Path, table: str) -> Counter[tuple[Decimal, Decimal | None]]:
    """The numbers of a printed table, in its units, from the text of the published values."""
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


Drawn = Mapping[tuple[str, str], Mapping[str, PaperTable]]


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


# LTG-BERT, captions of Tables 2 and 3: all within one standard deviation of the best. From the transcription of the
# paper, which has lost most bold face, these are known to be bold: in Table 2, 95.3; in Table 3, MNLI 85.1 (span) and
# both 85.2, SST-2 92.3, the average 89.2, and two of 95.3.
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
        # The best is from the literature and has no deviation.
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
    assert any("Bold: all within one standard deviation of the best" in note for note in table.notes)


def test_latex_has_the_numbers_of_markdown_and_only_known_commands(drawn: Drawn, track: tuple[str, str]) -> None:
    known = (
        "begin end centering caption label scriptsize tiny setlength tabcolsep toprule midrule bottomrule multicolumn"
        " textit textbf pm par smallskip linewidth textsuperscript dag varepsilon times ldots"
        " usepackage resizebox ifdim width else fi shortstack textbar belowcaptionskip"
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
