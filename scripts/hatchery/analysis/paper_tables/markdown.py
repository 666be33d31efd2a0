"""A table as Markdown: a heading, the caption, a table, and the notes as a list."""

from hatchery.analysis.paper_tables.grid import Line, Table, Value
from hatchery.analysis.published_values import PAPERS

NOT_COMPARABLE = "†"


def markdown_table(table: Table, level: int = 1) -> str:
    """The table with a heading of that level; ends in a newline."""
    header = [table.label_heading, "numbers", "n", *table.headings]
    rule = [":--", ":--", *["--:"] * (len(header) - 2)]
    body = []
    for block in table.blocks:
        if block.heading:
            body.append([f"**{escaped(block.heading)}**", *[""] * (len(header) - 1)])
        body += _lines(block.lines)
    rows = [[escaped(text) for text in header], rule, *body]
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    blocks = [f"{'#' * level} {PAPERS[table.paper]}, Table {table.number}", escaped(table.caption), lines]
    if table.notes:
        blocks.append("\n".join(f"- {escaped(note)}" for note in table.notes))
    return "\n\n".join(blocks) + "\n"


def _lines(lines: tuple[Line, ...]) -> list[list[str]]:
    rows, previous = [], ""
    for line in lines:
        # A label stands once, above the lines of ours that repeat it.
        label, previous = ("" if line.label == previous else line.label), line.label
        source = f"{line.source}: {line.model}" if line.model and line.model != line.label else line.source
        rows.append([escaped(label), escaped(source), line.runs, *(cell(value) for value in line.values)])
    return rows


def cell(value: Value | None) -> str:
    """The text of one value; a dash where there is none."""
    if value is None:
        return "-"
    mean = f"**{value.mean_text}**" if value.bold else value.mean_text
    parts = [mean, f"± {value.deviation_text}" if value.deviation_text else ""]
    parts.append(f"({value.failures_text})" if value.failures_text else "")
    return " ".join(filter(None, parts)) + ("" if value.comparable else NOT_COMPARABLE)


def escaped(text: str) -> str:
    """Text without what Markdown would read as markup."""
    for character in ("\\", "|", "*", "<", "`"):
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())
