"""Write all paper tables for which the experiment has numbers, as Markdown to read and as LaTeX to include in a paper.

Each table is one `.md` and one `.tex` file. `tables.md` and `tables.html` contain all tables, and `tables.tex` is a
LaTeX document that includes them (with the packages `booktabs`, `graphicx` and `geometry`). The experiment's page reads
`tables.json`. Tables without our numbers are not written; `tables.md` lists them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hatchery.analysis.published_values import PAPERS, PublishedNumber, read_numbers
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import ConfigError
from hatchery.rendering.escaping import markdown_text
from hatchery.rendering.table import Table, as_json, from_json, latex_of_files
from hatchery.rendering.templates import render
from hatchery.settings.base import dumped_values
from hatchery.views.paper_tables.fact_tables import (
    layers_table,
    read_card_sizes,
    read_shares,
    read_task_sizes,
    sizes_printed_in,
    sizes_table,
    tasks_table,
)
from hatchery.views.paper_tables.layout import (
    LayersLayout,
    OrderLayout,
    PaperLayout,
    ScoreLayout,
    SizesLayout,
    TableLayout,
    TasksLayout,
    read_layout,
)
from hatchery.views.paper_tables.order_table import lists_of_models, order_table, read_runs, tasks_of_average
from hatchery.views.paper_tables.printed import PrintedTable, check_rows
from hatchery.views.paper_tables.scored_table import Scores, score_table, scores_of_models
from hatchery.views.paper_tables.settings import PaperTablesSettings, TableInputs
from hatchery.views.score_table import PaperTable

TABLES_FILE, VIEWS_FILE = "tables.md", "tables.json"


@dataclass(frozen=True)
class PaperTableView:
    """A table of a paper for display: its heading, and the table with caption and notes.

    `with_times` is True if the paper's table prints training times.
    """

    heading: str
    table: Table
    with_times: bool = False

    @property
    def shown(self) -> Table:
        """Return the table without caption and notes, for a page that shows caption and notes separately."""
        return Table(self.table.columns, self.table.groups, label=self.heading)


def view(table: PaperTable) -> PaperTableView:
    """Return the table for display."""
    return PaperTableView(f"{PAPERS[table.paper]}, Table {table.number}", table.shown(), table.with_times)


def markdown_table(table: PaperTable, level: int = 1) -> str:
    """Return the table as Markdown: a heading of `level`, the caption, the table, and the notes as a list.

    The text ends in a newline.
    """
    shown = view(table)
    caption = markdown_text(table.caption, foreign=False)
    blocks = [f"{'#' * level} {shown.heading}", caption, shown.table.markdown()]
    if table.notes:
        blocks.append("\n".join(f"- {markdown_text(note, foreign=False)}" for note in table.notes))
    return "\n\n".join(blocks) + "\n"


def latex_table(table: PaperTable) -> str:
    """Return the table as a LaTeX `table` environment with caption, label and notes; the text ends in a newline."""
    shown = view(table)
    return shown.table.latex(shown.heading, table.name.replace("_", "-"))


def latex_document(tables: Sequence[PaperTable]) -> str:
    """Return a LaTeX document that includes the tables' files. Each table has the same number as in the paper."""
    return latex_of_files((table.name, int(table.number)) for table in tables)


def views_json(views: Sequence[PaperTableView]) -> str:
    """Return the tables as JSON, for tables.json."""
    written = [{**dumped_values(shown), "table": as_json(shown.table)} for shown in views]
    return json.dumps(written, ensure_ascii=False, indent=1) + "\n"


def read_views(text: str) -> list[PaperTableView]:
    """Return the tables in `text`, the output of `views_json`."""
    return [
        PaperTableView(shown["heading"], from_json(shown["table"]), shown.get("with_times", False))
        for shown in json.loads(text)
    ]


def write_all(settings: PaperTablesSettings, inputs: TableInputs, run: StageRun) -> None:
    """Write the tables, and remove tables of an earlier run that are not written again."""
    tables, without = all_tables(settings, inputs)
    texts = _index(settings, tables, without) | {"tables.tex": latex_document(tables)}
    for table in tables:
        texts[f"{table.name}.md"] = markdown_table(table)
        texts[f"{table.name}.tex"] = latex_table(table)
    for old in sorted(run.folder.glob("*_table_[0-9][0-9].*")):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        write_text(run.add_output(run.folder / name), text)


def all_tables(settings: PaperTablesSettings, inputs: TableInputs) -> tuple[list[PaperTable], list[str]]:
    """Return the tables of the paper for which we have numbers, in the order of the file `inputs.layout`, and the table
    numbers (such as 3) of all other tables in this file.
    """
    layout = read_layout(inputs.layout)
    numbers = read_numbers(inputs.published)
    check_papers(settings, layout, numbers)
    check_rows(settings, numbers)
    scores = scores_of_models(inputs.summary, settings)
    runs = read_runs(settings, inputs.measurements)
    made = {
        number: _table(number, entry, settings, numbers, scores, runs, inputs)
        for number, entry in layout.tables.items()
    }
    tables = [table for table in made.values() if table.has_ours]
    written = {table.number for table in tables}
    return tables, [number for number in made if number not in written]


def check_papers(settings: PaperTablesSettings, layout: PaperLayout, numbers: Sequence[PublishedNumber]) -> None:
    """Raise ConfigError if settings, layout and published values do not all belong to one paper."""
    for name, paper in (("the layout", layout.paper), ("the published values", numbers[0].paper)):
        if paper != settings.published.paper:
            raise ConfigError(f"{name}: got the paper {paper}, expected {settings.published.paper} (published.paper)")


def _table(
    number: str,
    layout: TableLayout,
    settings: PaperTablesSettings,
    numbers: Sequence[PublishedNumber],
    scores: Scores,
    runs: pl.DataFrame,
    inputs: TableInputs,
) -> PaperTable:
    """Return the table `number` of the replicated paper, with our numbers if there are any."""
    paper = settings.published.paper
    printed = PrintedTable(numbers, paper, number, settings.caveat)
    match layout:
        case ScoreLayout():
            return score_table(number, layout, settings, printed, scores)
        case OrderLayout():
            lists, left_out = lists_of_models(runs, settings, tasks_of_average(layout.suite, layout.average))
            return order_table(number, layout, settings, printed, lists, left_out)
        case LayersLayout():
            return layers_table(number, layout, settings, printed, read_shares(inputs.layers, settings))
        case SizesLayout():
            published = sizes_printed_in(inputs.sizes, paper, number)
            ours = read_card_sizes(inputs.cards, settings.corpora)
            return sizes_table(number, layout, settings, published, ours)
        case TasksLayout():
            return tasks_table(number, layout, settings, printed, read_task_sizes(inputs.tasks, layout, settings))


def _index(settings: PaperTablesSettings, tables: Sequence[PaperTable], without: Sequence[str]) -> dict[str, str]:
    """Return the contents of `tables.md`, `tables.json` and `tables.html`, by file name. `tables` are the written
    tables, and `without` are the table numbers of the other tables.
    """
    paper = PAPERS[settings.published.paper]
    heading = f"The tables of the {paper} paper, with the numbers of {settings.experiment} next to the printed numbers"

    missing = f"Tables that were not written, because the experiment has no numbers for them: {', '.join(without)}."
    blocks = [f"# {heading}", *(markdown_table(table, 2).rstrip("\n") for table in tables)]
    views = [view(table) for table in tables]
    title = f"Tables of {settings.experiment}"
    page = render(
        "paper_tables.html.j2", title=title, heading=heading, tables=views, without=missing if without else ""
    )
    text = "\n\n".join([*blocks, *([missing] if without else [])]) + "\n"
    return {TABLES_FILE: text, VIEWS_FILE: views_json(views), "tables.html": page}
