"""Write a corpus card, and next to it CSV files with the corpus's sizes and their comparison with published sizes."""

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
from hatchery.rendering.hub_metadata import front_matter, licence_entries, size_category
from hatchery.rendering.templates import card_html, card_markdown
from hatchery.sanitize import csv_text
from hatchery.views.cards import content
from hatchery.views.cards.measure_corpus import SourceMeasurement, facts_of_lengths, measure_corpus
from hatchery.views.cards.settings import CardSettings
from hatchery.views.cards.vocabulary import VocabularyFacts, facts_of


def write_card(
    settings: CardSettings, corpus: Manifest, published: Path | None, tokens: Manifest | None, run: StageRun
) -> None:
    """Write the card of a corpus; the stage `describe_corpus` calls this function."""
    statistics = corpus_statistics.read_statistics(corpus)
    subwords = None if tokens is None else corpus_statistics.read_token_statistics(tokens, corpus)
    rejected, rejected_texts = (
        corpus_statistics.read_rejected(corpus),
        corpus_statistics.read_rejected_texts(corpus),
    )
    assumed = corpus_statistics.read_assumed(corpus)
    licensed = corpus_statistics.read_licences(corpus)
    repeated = corpus_statistics.read_repeated(corpus)
    selections = corpus_statistics.read_selections(corpus)
    measured = measure_corpus(corpus, settings, statistics)

    sizes = size_table({(s, split): measured[s].counts[split] for s, split in statistics}, subwords)
    sources = sources_of(sizes)
    published_name = settings.published_as or settings.corpus
    compared = None
    if published is not None:
        compared = compare_sizes(published, published_name, sizes, selection_sizes(selections, sizes))
    lengths = {
        (source, kind): facts_of_lengths(counted)
        for source in sources
        for kind, counted in (
            ("sentences", measured[source].sentence_lengths),
            ("documents", measured[source].document_lengths),
        )
    }
    words_by_rule = {
        (source, split): number for source in sources for split, number in measured[source].words_by_rule.items()
    }
    comparison = content.comparison_section(compared, published_name)
    sections = [
        content.sources_section(settings),
        *([content.licence_section(licensed)] if licensed else []),
        content.size_section(sizes),
        *([content.rule_section(settings.counting, words_by_rule)] if words_by_rule else []),
        *([content.selection_section(selections)] if selections else []),
        *([comparison] if compared else []),
        content.length_section(sources, lengths),
        content.vocabulary_section(_vocabularies(sources, measured, settings.top_words)),
        *([content.assumed_section(assumed)] if assumed else []),
        *([content.repeated_section(repeated, str(corpus.settings.get("duplicates", "keep")))] if repeated else []),
        content.rejection_section(settings, rejected, rejected_texts),
        content.samples_section({source: measured[source].samples.chosen() for source in sources}),
        content.provenance_section(_digests(corpus, tokens)),
    ]
    title = f"Corpus card: {settings.corpus}"
    texts = {
        "statistics.csv": statistics_csv(sizes),
        "comparison.csv": comparison_csv(compared or []),
        "card.md": card_markdown(title, settings.description, sections, _front_matter(settings, sizes)),
        "card.html": card_html(title, settings.description, sections),
    }
    for name, text in texts.items():
        write_text(run.folder / name, text)
        run.add_output(run.folder / name)
    if words_by_rule:
        run.measures["word_count"] = settings.counting.word_count
        run.measures["words_by_rule"] = {
            split: sum(number for (_, of), number in words_by_rule.items() if of == split)
            for split in dict.fromkeys(split for _, split in words_by_rule)
        }
    run.measures.update({split: row for (source, split), row in sizes.items() if source == ALL and split != ALL})


def _front_matter(settings: CardSettings, sizes: SizeTable) -> list[str]:
    """Return the metadata of the data set as lines of YAML, with keys and values of the Hugging Face hub."""
    return front_matter(
        {
            "language": list(settings.languages),
            **licence_entries(source.licence for source in settings.sources),
            "pretty_name": settings.corpus,
            "size_categories": [size_category(int(sizes[ALL, ALL]["documents"]))],
            "task_categories": ["text-generation", "fill-mask"],
            "tags": ["hatchery"],
        }
    )


def _vocabularies(
    sources: Sequence[str], measured: Mapping[str, SourceMeasurement], top: int
) -> dict[str, VocabularyFacts]:
    """Return vocabulary statistics of each source and, if there are several sources, of all sources together."""
    found = {source: facts_of([measured[source].vocabulary], top) for source in sources}
    return found if len(sources) < 2 else {**found, "all": facts_of([measured[s].vocabulary for s in sources], top)}


def _digests(manifest: Manifest, tokens: Manifest | None) -> list[tuple[str, str]]:
    made_from = [(f"input {name!r} of the corpus", digest) for name, digest in sorted(manifest.inputs.items())]
    made_with = [] if tokens is None else [("manifest of the tokens", tokens.digest)]
    return [("manifest of the corpus", manifest.digest), *made_with, *made_from]


def statistics_csv(sizes: SizeTable) -> str:
    """Return the sizes of the corpus by source and split as CSV; `(all)` names the sum over sources or splits."""
    measures = next(iter(sizes.values()))
    return csv_text(("source", "split", *measures), ((*key, *row.values()) for key, row in sizes.items()))


def comparison_csv(compared: Sequence[ComparedSize]) -> str:
    """Return the published sizes of a corpus, and its sizes as counted by Hatchery, as CSV. A missing number is an
    empty field.
    """
    rows = (
        (c.table, c.source, c.split, c.measure, _number(c.ours), _number(c.published), c.difference_percent, c.note)
        for c in compared
    )
    header = ("table", "source", "split", "measure", "ours", "published", "difference_percent", "note")
    return csv_text(header, rows)


def _number(value: float | None) -> int | float | None:
    return int(value) if value is not None and float(value).is_integer() else value
