"""The frame of every static page: one file without scripts that loads nothing, for screens of any width and for paper.

Colours come from the reader's own scheme, light or dark; what tells something by colour says it in words as well.
"""

from collections.abc import Sequence

from hatchery.analysis.cards.tables import html_text

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; }
nav ul { columns: 18rem; list-style: none; padding: 0; }
a:focus-visible, summary:focus-visible, .table:focus-visible, .drawing:focus-visible
{ outline: 3px solid #0072b2; outline-offset: 2px; }
.table { margin: 1rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #9996; padding: .3rem .7rem; text-align: left; }
td { white-space: nowrap; }
thead th { border-bottom: 2px solid #999; vertical-align: bottom; }
tbody + tbody { border-top: 2px solid #999; }
table.counts :is(td, thead th:not(:first-child)) { text-align: right; }
figure { margin: 2rem 0; }
figure .drawing { background: #fff; border: 1px solid #9996; box-sizing: border-box; overflow-x: auto; padding: .5rem; }
figure svg { display: block; height: auto; width: 100%; }
figure svg.narrow { display: none; }
figcaption { margin-top: .5rem; max-width: 50rem; }
@media (max-width: 40rem) {
body { margin: 1rem auto; }
table { font-size: .875rem; }
th, td { padding: .3rem; }
table.counts, table.counts :is(caption, tbody, tr, tbody th) { display: block; }
table.counts thead { display: none; }
table.counts tbody :is(td, th) { border: 0; padding: .1rem 0; }
table.counts tbody td { display: flex; gap: 1rem; justify-content: space-between; }
table.counts td::before { content: attr(data-label); opacity: .8; }
table.counts tr { border-bottom: 1px solid #9996; padding: .4rem 0; }
figure .drawing { padding: .2rem; }
figure svg.wide { display: none; }
figure svg.narrow { display: block; }
}
@media print {
body { font-size: 10pt; margin: 0; max-width: none; }
nav { display: none; }
.table, figure .drawing { overflow: visible; }
figure svg.wide { display: block; }
figure svg.narrow { display: none; }
td { white-space: normal; }
figure, tr { break-inside: avoid; }
h2, h3 { break-after: avoid; }
}
"""


def html_document(title: str, body: str, style: str = "") -> str:
    """A whole page around `body`, which is HTML; `title` is text."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{html_text(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def scrolling_table(
    label: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: bool = True,
    counts: bool = False,
    first: int = 0,
) -> str:
    """A table that scrolls by itself where it is too wide; cells are HTML, the first of each row heads it.

    `label` is text: the table's caption, or with `caption` false only what a screen reader calls it. Columns of
    `counts` are flush right; on a phone such a table has a line for each cell. The `first` rows are a group of their
    own.
    """
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    lines = [
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(
            f'<td data-label="{label}">{cell}</td>' if counts else f"<td>{cell}</td>"
            for label, cell in zip(header[1:], row[1:], strict=True)
        )
        + "</tr>"
        for row in rows
    ]
    groups = [group for group in (lines[:first], lines[first:]) if group]
    body = "\n".join("<tbody>\n" + "\n".join(group) + "\n</tbody>" for group in groups)
    name = html_text(label)
    shown = f"<caption>{name}</caption>\n" if caption else ""
    kind = ' class="counts"' if counts else ""
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{name}"><table{kind}>\n{shown}'
        f"<thead><tr>{head}</tr></thead>\n{body}</table></div>"
    )
