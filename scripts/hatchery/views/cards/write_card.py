"""From the folder of a corpus to its card, with tables, figures and CSV files beside it.

The CSV files hold every number that the card shows, in columns for programs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hatchery.analysis import corpus_statistics
from hatchery.analysis.corpus_statistics import (
    ALL,
    ComparedSize,
    SizeTable,
    compare_sizes,
    selection_sizes,
    size_table,
    sources_of,
)
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.rendering.templates import Section, card_html, card_markdown
from hatchery.sanitize import csv_text
from hatchery.views.cards import content, vocabulary
from hatchery.views.cards.measure_corpus import (
    Bin,
    LengthFacts,
    SourceMeasurement,
    bins_of,
    facts_of_lengths,
    measure_corpus,
)
from hatchery.views.cards.vocabulary import VocabularyFacts
from hatchery.views.figures.corpus_growth import plot_vocabulary_growth
from hatchery.views.figures.corpus_lengths import plot_lengths
from hatchery.views.stages.describe_corpus import CardSettings

GROWTH_FIGURE = "vocabulary_growth.svg"
LENGTH_FIGURE = "length_distribution.svg"
LengthsOfSources = Mapping[tuple[str, str], tuple[list[Bin], LengthFacts | None]]
"""Bins and facts by (source, `sentences` or `documents`)."""


def write_card(
    settings: CardSettings, corpus: Manifest, published: Path | None, tokens: Manifest | None, run: StageRun
) -> None:
    """Write the card of a corpus; see the stage `describe_corpus`."""
    statistics = corpus_statistics.read_statistics(corpus)
    subwords = None if tokens is None else corpus_statistics.read_token_statistics(tokens, corpus)
    rejected, rejected_texts = (
        corpus_statistics.read_rejected(corpus),
        corpus_statistics.read_rejected_texts(corpus),
    )
    assumed = corpus_statistics.read_assumed(corpus)
    repeated = corpus_statistics.read_repeated(corpus)
    selections = corpus_statistics.read_selections(corpus)
    measured = measure_corpus(corpus, settings, statistics)

    sizes = size_table({(s, split): measured[s].counts[split] for s, split in statistics}, subwords)
    sources = sources_of(sizes)
    published_name = settings.published_as or settings.corpus
    compared = None
    if published is not None:
        compared = compare_sizes(published, published_name, sizes, selection_sizes(selections, sizes))
    length_facts = _lengths(sources, measured)
    words, together = _vocabularies(sources, measured, settings.top_words)

    plot_vocabulary_growth(settings.corpus, words, together, settings.style, run.folder / GROWTH_FIGURE)
    plot_lengths(settings.corpus, sources, length_facts, settings.style, run.folder / LENGTH_FIGURE)
    comparison = content.comparison_section(compared, published_name)
    sections = [
        content.sources_section(settings),
        content.size_section(sizes),
        *([content.selection_section(selections)] if selections else []),
        *([comparison] if compared else []),
        content.length_section(
            sources, {key: facts for key, (_, facts) in length_facts.items()}, run.folder / LENGTH_FIGURE
        ),
        content.vocabulary_section(words, together, run.folder / GROWTH_FIGURE),
        *([content.assumed_section(assumed)] if assumed else []),
        *([content.repeated_section(repeated, str(corpus.settings.get("duplicates", "keep")))] if repeated else []),
        content.rejection_section(settings, rejected, rejected_texts),
        content.samples_section({source: measured[source].samples.chosen() for source in sources}),
        content.provenance_section(_digests(corpus, tokens)),
    ]
    title = f"Corpus card: {settings.corpus}"
    all_words = {**words, **({} if together is None else {ALL: together})}
    texts = {
        "statistics.csv": statistics_csv(sizes),
        "comparison.csv": comparison_csv(compared or []),
        "comparison.md": comparison_markdown(comparison),
        "lengths.csv": lengths_csv(length_facts),
        "length_facts.csv": length_facts_csv(length_facts),
        "growth.csv": growth_csv(all_words),
        "vocabulary.csv": vocabulary_csv(all_words),
        "top_words.csv": top_words_csv(all_words),
        "card.md": card_markdown(title, settings.description, sections),
        "card.html": card_html(title, settings.description, sections),
    }
    _write(run, texts)
    run.measures.update({split: row for (source, split), row in sizes.items() if source == ALL and split != ALL})


def _lengths(sources: Sequence[str], measured: Mapping[str, SourceMeasurement]) -> LengthsOfSources:
    found = {}
    for source in sources:
        for kind, counted in (
            ("sentences", measured[source].sentence_lengths),
            ("documents", measured[source].document_lengths),
        ):
            found[source, kind] = bins_of(counted), facts_of_lengths(counted)
    return found


def _vocabularies(
    sources: Sequence[str], measured: Mapping[str, SourceMeasurement], top: int
) -> tuple[dict[str, VocabularyFacts], VocabularyFacts | None]:
    """The facts of every source, and of all together where there are several; the words themselves are let go."""
    words = {source: vocabulary.facts_of(measured[source].vocabulary, top) for source in sources}
    if len(sources) < 2:
        return words, None
    return words, vocabulary.facts_of_all([measured[source].vocabulary for source in sources], top)


def _digests(manifest: Manifest, tokens: Manifest | None) -> list[tuple[str, str]]:
    made_from = [(f"input {name!r} of the corpus", digest) for name, digest in sorted(manifest.inputs.items())]
    made_with = [] if tokens is None else [("manifest of the tokens", tokens.digest)]
    return [("manifest of the corpus", manifest.digest), *made_with, *made_from]


def _write(run: StageRun, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        write_text(run.folder / name, text)
        run.add_output(run.folder / name)
    for name in (GROWTH_FIGURE, LENGTH_FIGURE):
        run.add_output(run.folder / name)


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
