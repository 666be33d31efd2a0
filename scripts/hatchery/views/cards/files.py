"""The CSV files beside a card: every number that the card shows, in columns for programs."""

from collections.abc import Mapping, Sequence

from hatchery.analysis.corpus_statistics import ComparedSize, SizeTable
from hatchery.rendering.cards import Section
from hatchery.sanitize import csv_text
from hatchery.views.cards.lengths import Bin, LengthFacts
from hatchery.views.cards.vocabulary import VocabularyFacts

LengthsOfSources = Mapping[tuple[str, str], tuple[list[Bin], LengthFacts | None]]
"""Bins and facts by (source, `sentences` or `documents`)."""


def statistics_csv(sizes: SizeTable) -> str:
    """Counts by source and split; `(all)` stands for the sum over either."""
    measures = next(iter(sizes.values()))
    return csv_text(("source", "split", *measures), ((*key, *row.values()) for key, row in sizes.items()))


def comparison_csv(compared: Sequence[ComparedSize]) -> str:
    """Published sizes beside ours; an empty field is a number that there is not."""
    rows = (
        (c.table, c.source, c.split, c.measure, _number(c.ours), _number(c.published), c.difference_percent, c.note)
        for c in compared
    )
    header = ("table", "source", "split", "measure", "ours", "published", "difference_percent", "note")
    return csv_text(header, rows)


def comparison_markdown(section: Section) -> str:
    """The section of the comparison on its own."""
    return "\n\n".join([*section.prose, *(table.captioned_markdown() for table in section.tables)]) + "\n"


def lengths_csv(lengths: LengthsOfSources) -> str:
    """The bins of the histograms; the ends of a bin are included."""
    rows = (
        (source, kind, item.low, item.high, item.count, f"{item.count / facts.number:.6f}")
        for (source, kind), (bins, facts) in lengths.items()
        if facts is not None
        for item in bins
    )
    return csv_text(("source", "of", "from_words", "to_words", "count", "share"), rows)


def length_facts_csv(lengths: LengthsOfSources) -> str:
    """Mean and quantiles of the lengths in words."""
    rows = (
        (*key, facts.number, f"{facts.mean:.4f}", facts.median, facts.percentile_95, facts.longest)
        for key, (_, facts) in lengths.items()
        if facts is not None
    )
    return csv_text(("source", "of", "number", "mean", "median", "percentile_95", "longest"), rows)


def growth_csv(facts: Mapping[str, VocabularyFacts]) -> str:
    """The points of the growth curves; the types of `(all)` are expected ones."""
    rows = ((name, words, _number(types)) for name, found in facts.items() for words, types in found.points)
    return csv_text(("source", "running_words", "types"), rows)


def vocabulary_csv(facts: Mapping[str, VocabularyFacts]) -> str:
    """The numbers of every vocabulary; `complete` is `no` where measuring stopped before the end of the source."""
    rows = []
    for name, found in facts.items():
        exponent = found.growth_exponent()
        rows.append(
            (
                name,
                found.running_words,
                found.types,
                found.hapaxes,
                f"{found.hapaxes / found.types:.6f}" if found.types else "",
                "" if exponent is None else f"{exponent:.4f}",
                "yes" if found.complete else "no",
            )
        )
    header = ("source", "running_words", "types", "hapaxes", "hapax_share", "growth_exponent", "complete")
    return csv_text(header, rows)


def top_words_csv(facts: Mapping[str, VocabularyFacts]) -> str:
    """The most frequent words of every source."""
    rows = (
        (name, rank, word, number)
        for name, found in facts.items()
        for rank, (word, number) in enumerate(found.top, start=1)
    )
    return csv_text(("source", "rank", "word", "count"), rows)


def _number(value: float | None) -> int | float | None:
    return int(value) if value is not None and float(value).is_integer() else value
