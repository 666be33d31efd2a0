"""Sizes of the models' training text: selected texts by corpus and level (sentence or span), and sequences by split.

Source: "Honey, I Shrunk the Language" (the reduced-vocabulary study), Section 3.2 and Table 1. If `published` names the
corpus of a paper, the sizes printed in this paper are shown next to the sizes of our corpora.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import (
    Analysis,
    AnalysisSettings,
    Findings,
    Numbers,
    PartsOfStudy,
    Study,
)
from hatchery.analysis.analyses.needs import CORPUS, TOKENS, corpora
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Column, Group, Row, Table
from hatchery.units import count

if TYPE_CHECKING:
    from hatchery.analysis.corpus_statistics import PublishedSize, SizeTable

SIZES_FILE = "corpora/sizes"
PRINTED = "printed"
SELECTED = {"texts": "sentences or spans", "tokens": "tokens"}
GROUPED = {"documents": "sequences", "tokens": "tokens"}
"""Measures in the table of sequences, with the column heading of each measure."""
SizeKey = tuple[str, str]
"""Key of a size: (source, level) or (source, split). `(all)` in place of a source, level or split marks the sum."""


@dataclass(frozen=True, kw_only=True)
class CorpusSizesSettings(AnalysisSettings):
    """Settings of the analysis: the experiments whose corpora are shown, and the published sizes for comparison."""

    experiments: PartsOfStudy = ()
    """Experiments of the study whose corpora are shown; an empty list means all."""
    published: str = ""
    """Name of the corpus in the table of published sizes, config/published/corpora/sizes.csv; if empty, no published
    sizes are shown.
    """


def analyse(settings: CorpusSizesSettings, study: Study) -> Findings:
    """Return the sizes of the selected texts and of the sequences of every corpus. If `published` names the corpus of a
    paper, the sizes printed in this paper precede the sizes of our corpora. Raises ManifestError for an altered file,
    and EvaluationError for an invalid file.
    """
    from hatchery.analysis.corpus_statistics import ALL, read_published_sizes
    from hatchery.corpora.documents import SPLITS

    rows = read_published_sizes(study.files[SIZES_FILE]) if settings.published else []
    printed = [row for row in rows if row.corpus == settings.published and row.value is not None]
    selected, grouped = _ours(settings, study)
    if settings.published:
        selected = {PRINTED: _printed(printed, selected=True), **selected}
        grouped = {PRINTED: _printed(printed, selected=False), **grouped}
    places = [place for sizes in selected.values() for place in sizes]
    by_source = [place for place in dict.fromkeys(places) if ALL not in place]
    totals = [place for place in dict.fromkeys(places) if place[0] == ALL and place[1] != ALL] + [(ALL, ALL)]
    splits = [(ALL, split) for split in (*SPLITS, ALL) if any((ALL, split) in sizes for sizes in grouped.values())]
    tables = [
        _table("Selected texts by corpus and level", ("corpus", "level"), SELECTED, selected, [by_source, totals]),
        _table("Sequences by split", ("split",), GROUPED, grouped, [splits]),
    ]
    numbers = [*_rows("selected", SELECTED, selected), *_rows("sequences", GROUPED, grouped)]
    return Findings(numbers, tables if places else tables[1:], _notes(settings, printed))


def _ours(settings: CorpusSizesSettings, study: Study) -> tuple[dict[str, "SizeTable"], dict[str, "SizeTable"]]:
    """Return two mappings from experiments to sizes. The first mapping contains the sizes of selected texts by source
    and level (sentence or span). The second mapping contains the sizes of sequences by split, summed over sources.
    """
    from hatchery.analysis.corpus_statistics import (
        ALL,
        read_selections,
        read_statistics,
        read_token_statistics,
        selection_sizes,
        size_table,
    )
    from hatchery.artifacts.manifests import read_manifest

    selected, grouped = {}, {}
    tokens = study.manifests(TOKENS)
    for experiment, path in study.manifests(CORPUS).items():
        if experiment not in (settings.experiments or study.manifests(CORPUS)):
            continue
        corpus = read_manifest(path)
        subwords = read_token_statistics(read_manifest(tokens[experiment]), corpus)
        sizes = size_table(read_statistics(corpus), subwords)
        grouped[experiment] = {
            key: {"documents": row["documents"], "tokens": row["subwords"]}
            for key, row in sizes.items()
            if key[0] == ALL
        }
        selected[experiment] = selection_sizes(read_selections(corpus), sizes)
    return selected, grouped


def _printed(rows: Sequence["PublishedSize"], selected: bool) -> "SizeTable":
    """Return those sizes in the rows `rows` of a paper's tables that belong to selected texts, by source and level
    (sentence or span). If `selected` is false, return the sizes of sequences, by split and summed over sources.
    Sources, levels and measures are named as in Hatchery.
    """
    from hatchery.analysis.corpus_statistics import ALL, place_of
    from hatchery.corpora.documents import SPLITS

    found: SizeTable = {}
    for row in rows:
        source, place = place_of(row)
        of_split = source == ALL and place in (*SPLITS, ALL) and row.measure == "documents"
        measure = "texts" if row.measure in ("sentences", "spans", "sentences_or_spans") else row.measure
        if of_split != selected and measure in (SELECTED if selected else GROUPED) and row.size is not None:
            found.setdefault((source, place), {})[measure] = round(row.size)
    return found


def _rows(kind: str, measures: Mapping[str, str], sizes: Mapping[str, "SizeTable"]) -> list[Numbers]:
    return [
        {"kind": kind, "of": of, "source": source, "place": place, "measure": measure, "number": row[measure]}
        for of, table in sizes.items()
        for (source, place), row in table.items()
        for measure in measures
        if measure in row
    ]


def _table(
    caption: str,
    header: Sequence[str],
    measures: Mapping[str, str],
    sizes: Mapping[str, "SizeTable"],
    groups: Sequence[Sequence[SizeKey]],
) -> Table:
    """Return a table with a row for each key in `groups`, and a column for each combination of measure and origin (the
    paper or an experiment).

    The last elements of a row's key are its labels, one for each column of `header`.
    """
    shown = [(measure, of) for measure in measures for of in sizes]
    columns = [Column(text, words=True) for text in header]
    columns += [Column(f"{measures[measure]}, {of}") for measure, of in shown]

    def cells(place: SizeKey) -> Row:
        numbers = [sizes[of].get(place, {}).get(measure) for measure, of in shown]
        names = [_name(part) for part in place[-len(header) :]]
        return Row([*names, *(count(number) or "-" for number in numbers)])

    return Table(columns, [Group([cells(place) for place in group]) for group in groups if group], caption)


def _name(part: str) -> str:
    from hatchery.analysis.corpus_statistics import ALL

    return "all" if part == ALL else readable(part)


def _notes(settings: CorpusSizesSettings, printed: Sequence["PublishedSize"]) -> list[str]:
    notes = [
        "Tokens are counted with each experiment's tokenizer, in the sequences made from the texts. A dash "
        "marks a number that the paper does not print, or an unknown number: if texts of several sources "
        "were selected together, the number for one source is unknown.",
    ]
    if settings.published and not printed:
        notes.append(f"The table of published sizes contains no sizes of the corpus {settings.published!r}.")
    if printed:
        notes.append("Printed sizes are shown with all digits, although the paper mostly rounds to millions.")
    return notes


ANALYSIS = Analysis(
    title="Text that the models were trained on",
    version=1,
    settings=CorpusSizesSettings,
    run=analyse,
    needs=(corpora,),
    published=lambda settings: [SIZES_FILE] if settings.published else [],
)
