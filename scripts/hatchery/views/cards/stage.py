"""Stage `describe_corpus`: from the folder of a corpus to its card, with the tables and figures that the card shows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchery.analysis import corpus_statistics
from hatchery.analysis.corpus_size_table import ALL, compare_sizes, selection_sizes, size_table, sources_of
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, StageRun, read_manifest, stage_run
from hatchery.rendering.cards import card_html, card_markdown
from hatchery.typed import build, stage_body
from hatchery.views.cards import content, files, lengths, vocabulary
from hatchery.views.cards.measure_corpus import SourceMeasurement, measure_corpus
from hatchery.views.cards.settings import CardSettings
from hatchery.views.cards.vocabulary import VocabularyFacts
from hatchery.views.figures.corpus_growth import plot_vocabulary_growth
from hatchery.views.figures.corpus_lengths import plot_lengths

GROWTH_FIGURE = "vocabulary_growth.svg"
LENGTH_FIGURE = "length_distribution.svg"


def describe_corpus(
    settings: Mapping[str, Any], corpus: Path, output: Path, published: Path | None = None, tokens: Path | None = None
) -> None:
    """Write the card of the corpus of the manifest `corpus` beside the manifest at `output`.

    `published` is a table of published sizes, `tokens` the manifest of the corpus's token shards. Raises ConfigError,
    ManifestError, CorpusError or EvaluationError naming the input at fault; then no file is written.
    """
    card = build(CardSettings, stage_body(settings))
    given = {"corpus": corpus, "published": published, "tokens": tokens}
    with stage_run(output, settings, {name: path for name, path in given.items() if path is not None}) as run:
        manifest = _verified(corpus)
        token_manifest = None if tokens is None else _verified(tokens)
        statistics = corpus_statistics.read_statistics(manifest)
        subwords = None if token_manifest is None else corpus_statistics.read_token_statistics(token_manifest, manifest)
        rejected, rejected_texts = (
            corpus_statistics.read_rejected(manifest),
            corpus_statistics.read_rejected_texts(manifest),
        )
        assumed = corpus_statistics.read_assumed(manifest)
        selections = corpus_statistics.read_selections(manifest)
        measured = measure_corpus(manifest, card, statistics)

        sizes = size_table({(s, split): measured[s].counts[split] for s, split in statistics}, subwords)
        sources = sources_of(sizes)
        published_name = card.published_as or card.corpus
        compared = None
        if published is not None:
            compared = compare_sizes(published, published_name, sizes, selection_sizes(selections, sizes))
        length_facts = _lengths(sources, measured)
        words, together = _vocabularies(sources, measured, card.top_words)

        plot_vocabulary_growth(card.corpus, words, together, card.style, run.folder / GROWTH_FIGURE)
        plot_lengths(card.corpus, sources, length_facts, card.style, run.folder / LENGTH_FIGURE)
        comparison = content.comparison_section(compared, published_name)
        sections = [
            content.sources_section(card),
            content.size_section(sizes),
            *([content.selection_section(selections)] if selections else []),
            *([comparison] if compared else []),
            content.length_section(
                sources, {key: facts for key, (_, facts) in length_facts.items()}, run.folder / LENGTH_FIGURE
            ),
            content.vocabulary_section(words, together, run.folder / GROWTH_FIGURE),
            *([content.assumed_section(assumed)] if assumed else []),
            content.rejection_section(card, rejected, rejected_texts),
            content.samples_section({source: measured[source].samples.chosen() for source in sources}),
            content.provenance_section(_digests(manifest, token_manifest)),
        ]
        title = f"Corpus card: {card.corpus}"
        all_words = {**words, **({} if together is None else {ALL: together})}
        texts = {
            "statistics.csv": files.statistics_csv(sizes),
            "comparison.csv": files.comparison_csv(compared or []),
            "comparison.md": files.comparison_markdown(comparison),
            "lengths.csv": files.lengths_csv(length_facts),
            "length_facts.csv": files.length_facts_csv(length_facts),
            "growth.csv": files.growth_csv(all_words),
            "vocabulary.csv": files.vocabulary_csv(all_words),
            "top_words.csv": files.top_words_csv(all_words),
            "card.md": card_markdown(title, card.description, sections),
            "card.html": card_html(title, card.description, sections),
        }
        _write(run, texts)
        run.measures.update({split: row for (source, split), row in sizes.items() if source == ALL and split != ALL})


def _verified(path: Path) -> Manifest:
    manifest = read_manifest(path)
    manifest.verify()
    return manifest


def _lengths(sources: Sequence[str], measured: Mapping[str, SourceMeasurement]) -> files.LengthsOfSources:
    found = {}
    for source in sources:
        for kind, counted in (
            ("sentences", measured[source].sentence_lengths),
            ("documents", measured[source].document_lengths),
        ):
            found[source, kind] = lengths.bins_of(counted), lengths.facts_of(counted)
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
