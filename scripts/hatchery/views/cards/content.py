"""The content of a corpus card, section by section; `rendering` defines the layout.

CSV files next to the card contain the corpus's sizes and their comparison with published sizes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple

from hatchery.analysis.corpus_statistics import (
    ALL,
    Assumed,
    ComparedSize,
    Licensed,
    Rejected,
    RejectedText,
    Repeated,
    Selection,
    SizeTable,
    sources_of,
    splits_of,
)
from hatchery.corpora.duplicates import LONG_LINE
from hatchery.corpora.word_counting import WordCounting
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Table, table
from hatchery.rendering.templates import Section, Text
from hatchery.units import count
from hatchery.views.cards.measure_corpus import LengthFacts, Sample, shortened
from hatchery.views.cards.settings import CardSettings
from hatchery.views.cards.vocabulary import VocabularyFacts

SIZE_NOTE = (
    "Each non-empty line counts as a sentence, even a heading. Words are separated by white space. Characters are code "
    "points, including line ends. Pre-tokens are the pieces into which LTG-BERT's pre-tokenizer splits the text; "
    "punctuation marks, digits and clitics are separate pieces. Table 1 of the LTG-BERT paper calls pre-tokens “words”."
)
SUBWORD_NOTE = " Subwords are the tokens into which the tokenizer splits the text."
VOCABULARY_NOTE = (
    "A running word is a whitespace-separated word in lower case, without punctuation, symbols and control "
    "characters at its ends. Pieces of only these characters are not counted; neither "
    "are the markers [UNK] and [TAB]. Types are distinct words, and hapaxes are types that occur once. All splits are "
    "counted together."
)


def sources_section(settings: CardSettings) -> Section:
    """Return the section on the languages of the corpus, and on the licence, terms and origin of each raw input."""
    title = "Sources and terms"
    languages = f"Languages: {', '.join(settings.languages) or 'not stated'}."
    if not settings.sources:
        return Section(title, [languages, "The licence and the terms of the sources are not stated."])
    rows = [
        (source.name, *(fact or "not stated" for fact in (source.licence, source.terms, source.obtain)))
        for source in settings.sources
    ]
    return Section(title, [languages], tables=[_table(title, ("raw input", "licence", "terms", "from"), rows, words=4)])


def size_section(sizes: SizeTable) -> Section:
    """Return the section on sizes, with up to three tables: sizes by split (as in the LTG-BERT paper's Table 1), by
    source, and by source and split.
    """
    measures = list(sizes[ALL, ALL])
    splits, sources = splits_of(sizes), sources_of(sizes)

    def row(names: tuple[str, ...], key: tuple[str, str]) -> tuple[str, ...]:
        return (*names, *(count(sizes[key][measure]) for measure in measures))

    header = tuple(measure.replace("_", "-") for measure in measures)
    by_split = [row((split,), (ALL, split)) for split in splits]
    if len(splits) != 1:
        by_split.append(row(("all",), (ALL, ALL)))
    tables = [_table("Size by split", ("split", *header), by_split)]
    if len(sources) > 1:
        share = [f"{100 * sizes[source, ALL]['words'] / max(1, sizes[ALL, ALL]['words']):.1f}" for source in sources]
        by_source = [(*row((source,), (source, ALL)), part) for source, part in zip(sources, share, strict=True)]
        tables.append(_table("Size by source", ("source", *header, "% of words"), by_source))
        if len(splits) > 1:
            both = [
                row((source, split), (source, split))
                for source in sources
                for split in splits
                if (source, split) in sizes
            ]
            tables.append(_table("Size by source and split", ("source", "split", *header), both, words=2))
    note = SIZE_NOTE + (SUBWORD_NOTE if "subwords" in measures else "")
    return Section("Size", [note], tables=tables)


def selection_section(selections: Sequence[Selection]) -> Section:
    """Return the section on texts that were selected and then joined into the documents of this corpus. The section has
    the numbers of selected texts and words by source and level (sentence, or span of words).
    """
    rows = [
        (item.selection, item.source, item.level, count(item.texts), count(item.words), count(item.counted_words))
        for item in selections
    ]
    header = ("selection", "source", "level", "texts", "words", "counted words")
    note = (
        "The documents of this corpus are sequences that were joined from the texts below. Counted words are the words "
        "that the selection looked up in its vocabulary."
    )
    return Section("Selected texts", [note], tables=[_table("Selected texts", header, rows, words=3)])


def comparison_table(compared: Sequence[ComparedSize]) -> Table:
    """Return a table of published sizes of a corpus and the sizes that Hatchery counted."""
    rows = [
        (
            item.table,
            _shown(item.source),
            _shown(item.split),
            item.measure.replace("_", "-"),
            count(item.ours) or "not measured",
            count(item.published) or "not printed",
            "" if item.difference_percent is None else f"{item.difference_percent:+.1f}",
            item.note,
        )
        for item in compared
    ]
    header = ("table", "source", "split or level", "measure", "ours", "published", "difference %", "note")
    return _table("Comparison with published sizes", header, rows, words=(0, 1, 2, 3, -1))


def comparison_section(compared: Sequence[ComparedSize] | None, corpus: str) -> Section:
    """Return the section that compares published sizes of the corpus with the sizes that we counted, or states that no
    size of the corpus is published.

    `compared` is None if there is no table of published sizes.
    """
    title = "Comparison with published sizes"
    if not compared:
        given = "No table of published sizes was given." if compared is None else f"No size of {corpus!r} is published."
        return Section(title, [given])
    note = (
        "The difference is our number minus the published number, in percent of the published number. Papers print "
        "rounded numbers, so a small difference may result from rounding alone."
    )
    return Section(title, [note], tables=[comparison_table(compared)])


def length_section(sources: Sequence[str], facts: Mapping[tuple[str, str], LengthFacts | None]) -> Section:
    """Return the section on lengths of sentences and documents, in words; `facts` are length statistics by source and
    by "sentences" or "documents".
    """
    rows = []
    for source in sources:
        for kind in ("sentences", "documents"):
            found = facts[source, kind]
            numbers = (
                ("0", "", "", "", "")
                if found is None
                else (
                    count(found.number),
                    f"{found.mean:,.1f}",
                    count(found.median),
                    count(found.percentile_95),
                    count(found.longest),
                )
            )
            rows.append((source, kind, *numbers))
    header = ("source", "texts", "number of texts", "mean length", "median", "95th percentile", "longest")
    return Section("Lengths", tables=[_table("Lengths in words", header, rows, words=2)])


def vocabulary_section(facts: Mapping[str, VocabularyFacts]) -> Section:
    """Return the section on types, hapaxes and most frequent words of each source. If there are several sources, the
    section also describes all sources together.
    """
    rows = [
        (
            name if found.complete else f"{name} (stopped)",
            count(found.running_words),
            count(found.types),
            count(found.hapaxes),
            f"{100 * found.hapaxes / found.types:.1f}" if found.types else "",
        )
        for name, found in facts.items()
    ]
    header = ("source", "running words", "types", "hapaxes", "hapaxes, % of types")
    top = [(name, ", ".join(f"{word}\u00a0({n:,})" for word, n in found.top)) for name, found in facts.items()]
    stopped = (
        ""
        if all(found.complete for found in facts.values())
        else " “Stopped” sources have too many types, so only their first words are counted."
    )
    return Section(
        "Vocabulary",
        [VOCABULARY_NOTE + stopped],
        tables=[_table("Vocabulary", header, rows), _table("Most frequent words", ("source", "words"), top, words=2)],
    )


def assumed_section(assumed: Sequence[Assumed]) -> Section:
    """Return the section on the assumptions that corpus readers made about the text because no option was set."""
    title = "How the text was read"
    rows = [(item.source, item.assumption, count(item.count)) for item in assumed]
    note = (
        "If no option says whether each line of a file is a sentence, the reader decides this from the beginning of "
        "the file. The option “sentences” of a source, in the corpus's configuration file, sets the answer."
    )
    return Section(title, [note], tables=[_table(title, ("source", "read as", "number"), rows, words=2)])


RULES = {
    "adjusted": "Budgets, checkpoints and tracks count adjusted words: the number of bytes (UTF-8) divided by 5.43 "
    "times the byte premium of the language.",
    "jieba": "Budgets, checkpoints and tracks count words as split by jieba 0.42.1.",
}


def rule_section(counting: WordCounting, words: Mapping[tuple[str, str], int]) -> Section:
    """Return the section on the number of words by source and split, counted by the word-counting rule of the corpus.
    Word budgets of runs, and the limits of BabyLM's tracks, use the same rule.

    If the word-counting rule is `white_space`, a card does not have this section.
    """
    adjusted = counting.word_count == "adjusted"
    rows = [
        (source, split, *([f"{counting.premium(source)}"] if adjusted else []), count(number))
        for (source, split), number in words.items()
    ]
    header = ("source", "split", *(["byte premium"] if adjusted else []), "words")
    title = "Words of budgets and tracks"
    tables = [_table(title, header, rows, words=2)]
    return Section(title, [RULES[counting.word_count]], tables=tables)


def licence_section(licensed: Sequence[Licensed]) -> Section:
    """Return the section on the number of documents by licence, for sources that state the licence of each document."""
    rows = [
        (item.source, item.licence or "not stated", *map(count, (item.documents, item.words, item.characters)))
        for item in licensed
    ]
    note = (
        "The column “licence” of the corpus's shards gives the licence of each document, in the spelling of the source."
    )
    header = ("source", "licence", "documents", "words", "characters")
    title = "Licences of the documents"
    return Section(title, [note], tables=[_table(title, header, rows, words=2)])


def repeated_section(repeated: Sequence[Repeated], duplicates: str) -> Section:
    """Return the section on repeated text; `duplicates` is the corpus's setting: `keep`, `drop_documents` or
    `drop_lines`."""
    title = "Repeated text"
    rows = [(source, split, *map(count, counts)) for source, split, *counts in map(astuple, repeated)]
    header = (
        *("source", "split", "documents", "repeated documents", "documents in the training text"),
        *("long lines", "repeated long lines", "long lines in the training text"),
    )
    dropped = {
        "keep": "Repeated text was kept; the key “duplicates” of the corpus's configuration can exclude it.",
        "drop_documents": "Repeated documents were excluded.",
        "drop_lines": "Repeated documents and lines were excluded.",
    }
    note = (
        f"A long line has at least {LONG_LINE} characters. A document or long line is repeated if its text occurs "
        "earlier in the corpus. For held-out splits, the table also counts the documents and long lines whose text "
        "occurs in the training text. Documents with equal text are in the same split, unless their sources set the "
        f"split. {dropped[duplicates]}"
    )
    return Section(title, [note], tables=[_table(title, header, rows, words=2)])


def rejection_section(settings: CardSettings, rejected: Sequence[Rejected], texts: Sequence[RejectedText]) -> Section:
    """Return the section on excluded text, with reasons and examples."""
    if not rejected and not texts:
        return Section("Excluded text", ["No text was excluded."])
    shown: dict[tuple[str, str], list[RejectedText]] = {}
    for text in texts:
        shown.setdefault((text.source, text.reason), []).append(text)
    examples = [
        Text(f"{source}: {readable(reason)}", shortened(item.text, settings.sample_characters))
        for (source, reason), items in shown.items()
        for item in items[: settings.samples_per_source]
    ]
    rows = [(item.source, readable(item.reason), count(item.count)) for item in rejected]
    tables = [_table("Excluded text, by reason", ("source", "reason", "number"), rows, words=2)] if rows else []
    return Section("Excluded text", tables=tables, texts=examples)


def samples_section(samples: Mapping[str, Sequence[Sample]]) -> Section:
    """Return the section with sample texts of the corpus."""
    texts = [
        Text(f"{source}: {sample.doc_id} ({sample.split})", sample.text)
        for source, chosen in samples.items()
        for sample in chosen
    ]
    note = (
        "The samples of a source are the documents whose names have the smallest SHA-256. The same hash selects the "
        "paragraph at which a sample starts. Long texts are truncated."
    )
    return Section("Samples", [note if texts else "There are no samples."], texts=texts)


def provenance_section(digests: Sequence[tuple[str, str]]) -> Section:
    """Return the section with the checksums of the manifests from which the card was made."""
    note = (
        "SHA-256 of the manifests from which this card was made, and of the manifests from which the corpus was made."
    )
    return Section("Provenance", [note], tables=[_table("Provenance", ("what", "SHA-256"), list(digests), words=2)])


def _shown(place: str) -> str:
    return "all" if place == ALL else place


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], words: int | Sequence[int] = 1) -> Table:
    return table(header, rows, words=words, caption=caption, foreign=True)
