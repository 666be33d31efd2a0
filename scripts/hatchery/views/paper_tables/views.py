r"""The tables of a paper as files: Markdown to read, LaTeX with booktabs to take into a paper, JSON for the page.

The LaTeX document that shows all of them needs `geometry`, too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hatchery.analysis.published_values import PAPERS
from hatchery.rendering.escaping import markdown_text
from hatchery.rendering.table import Table, as_json, from_json, latex_of_files
from hatchery.views.score_table import PaperTable

TABLES_FILE, VIEWS_FILE = "tables.md", "tables.json"


@dataclass(frozen=True)
class PaperTableView:
    """A table of a paper as it is shown: its heading, and the table with caption and notes."""

    heading: str
    table: Table
    with_times: bool = False

    @property
    def shown(self) -> Table:
        """The table for a place that shows heading, caption and notes around it."""
        return Table(self.table.columns, self.table.groups, label=self.heading)


def view(table: PaperTable) -> PaperTableView:
    """The table as it is shown."""
    return PaperTableView(f"{PAPERS[table.paper]}, Table {table.number}", table.shown(), table.with_times)


def markdown_table(table: PaperTable, level: int = 1) -> str:
    """The table with a heading of that level, its caption, and its notes as a list; ends in a newline."""
    shown = view(table)
    caption = markdown_text(table.caption, foreign=False)
    blocks = [f"{'#' * level} {shown.heading}", caption, shown.table.markdown()]
    if table.notes:
        blocks.append("\n".join(f"- {markdown_text(note, foreign=False)}" for note in table.notes))
    return "\n\n".join(blocks) + "\n"


def latex_table(table: PaperTable) -> str:
    """The table as a `table` environment with caption, label and notes; ends in a newline."""
    shown = view(table)
    return shown.table.latex(shown.heading, table.name.replace("_", "-"))


def latex_document(tables: Sequence[PaperTable]) -> str:
    """A document that reads the files of the tables, which lie beside it, and numbers them as the paper does."""
    return latex_of_files((table.name, int(table.number)) for table in tables)


def views_json(views: Sequence[PaperTableView]) -> str:
    """The text of tables.json."""
    written = [
        {"heading": shown.heading, "table": as_json(shown.table), **({"with_times": True} if shown.with_times else {})}
        for shown in views
    ]
    return json.dumps(written, ensure_ascii=False, indent=1) + "\n"


def read_views(text: str) -> list[PaperTableView]:
    """What `views_json` wrote."""
    return [
        PaperTableView(shown["heading"], from_json(shown["table"]), shown.get("with_times", False))
        for shown in json.loads(text)
    ]
