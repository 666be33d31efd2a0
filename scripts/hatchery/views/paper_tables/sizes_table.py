"""Sizes of corpora: LTG-BERT Table 1, ELC-BERT Table 6, from the cards of our corpora and the published sizes."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.analysis.corpus_statistics import ALL, read_published_sizes
from hatchery.analysis.published_values import PAPERS
from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.records import read_rows
from hatchery.errors import ConfigError
from hatchery.views.paper_tables.layout import SizeColumn, SizeRow, SizesLayout
from hatchery.views.paper_tables.notes import common_notes
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score

CARD_KEY = ("source", "split")
MEASURES = ("documents", "sentences", "words", "pre_tokens", "subwords")
Size = tuple[str, str, str, str]


def sizes_printed_in(path: Path, paper: str, number: str) -> dict[Size, tuple[float, str]]:
    """The printed sizes of one table, multiplied out, with their remarks; by (corpus, source, split, measure)."""
    return {
        (row.corpus, row.source, row.split, row.measure): (row.size, row.note)
        for row in read_published_sizes(path)
        if (row.paper, row.table) == (PAPERS[paper], f"Table {number}") and row.size is not None
    }


def read_card_sizes(cards: Mapping[str, Path], corpora: Mapping[str, str]) -> dict[Size, float]:
    """Our sizes from the `statistics.csv` of the cards of corpora by name, under what `corpora` calls them.

    A measure that a card lacks (subwords without a tokenizer) is no error. Raises ManifestError for a table that is not
    what the card's manifest says.
    """
    sizes: dict[Size, float] = {}
    for corpus, path in cards.items():
        for _, row in read_rows(read_manifest(path.with_name("manifest.json")).file(path.name), CARD_KEY, CARD_KEY):
            source = "total" if row["source"] == ALL else row["source"]
            for measure in (name for name in MEASURES if row.get(name)):
                sizes[corpora.get(corpus, corpus), source, row["split"], measure] = int(row[measure])
    return sizes


def sizes_table(
    number: str,
    layout: SizesLayout,
    settings: PaperTablesSettings,
    published: Mapping[Size, tuple[float, str]],
    ours: Mapping[Size, float],
) -> PaperTable:
    """The printed sizes and ours. Raises ConfigError for a printed size that has no place, or would lose digits."""
    where = f"{settings.published.paper}, table {number}"
    places = {_place(row, column) for row in layout.rows for column in layout.columns}
    if missing := sorted(set(published) - places):
        raise ConfigError(f"{where}: the layout has no place for {', '.join(missing[0])}")
    lines = []
    for row in layout.rows:
        printed = tuple(_printed(published, row, column, bool(settings.caveat), where) for column in layout.columns)
        if not any(printed):
            raise ConfigError(f"{where}: the row {row.source}, {row.split} is not printed")
        lines.append(Line(row.heading, PUBLISHED, printed))
        own = [ours.get(_place(row, column)) for column in layout.columns]
        lines.append(
            Line(
                row.heading,
                OURS,
                tuple(
                    None if size is None else Score(size, _digits(column))
                    for size, column in zip(own, layout.columns, strict=True)
                ),
            )
        )
    headings = tuple(column.heading for column in layout.columns)
    notes = common_notes(settings, lines, headings, layout.remark)
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(layout.caption, "part", headings, blocks, tuple(notes), paper=paper, number=number)


def _printed(
    published: Mapping[Size, tuple[float, str]], row: SizeRow, column: SizeColumn, caveat: bool, where: str
) -> Score | None:
    found = published.get(_place(row, column))
    if found is None:
        return None
    size, note = found
    value = Score(size, _digits(column), comparable=not caveat, note=note)
    if abs(float(value.mean_text.replace(",", "")) * column.unit - size) > 1e-6 * column.unit:
        raise ConfigError(f"{where}: decimals: {row.heading}, {column.heading} is printed as {size / column.unit:g}")
    return value


def _place(row: SizeRow, column: SizeColumn) -> Size:
    return column.corpus, row.source, row.split, column.measure


def _digits(column: SizeColumn) -> Digits:
    return Digits(column.decimals, column.decimals, scale=1 / column.unit, grouped=column.unit == 1)
