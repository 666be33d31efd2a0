"""The text of `selection.md`: a sweep of tokenizers in the layout of Table 6 of the reduced-vocabulary study."""

from hatchery.rendering.table import Cell, Content, table
from hatchery.tokenization.selection.frequency_rule import SearchResult
from hatchery.tokenization.selection.settings import SweepSettings
from hatchery.tokenization.selection.sweep import Sweep
from hatchery.tokenization.selection.table import PRETRAINED, SelectionRow, printed_of


def selection_markdown(settings: SweepSettings, sweep: Sweep) -> str:
    """The table for people, and how to read it."""
    facts, search = sweep.facts, sweep.search
    header = (
        "type",
        "size",
        "word-split ratio",
        "published",
        "ESMS (published code)",
        "published",
        "ESMS (definition)",
        "ESMS (code, corrected)",
        "frequency at 95 %",
        "published",
        "fertility",
        "unknown, %",
    )
    shown = table(header, [_cells(row, printed_of(row, sweep.printed)) for row in sweep.rows])
    lines = [f"# Tokenizer selection: {settings.name}", "", shown.markdown()]
    final = sweep.final
    lines += [
        "",
        f"Bold: the size chosen of each type. **Final choice: {final.type}, {final.size:,}** (highest "
        f"`{settings.choose_by}` among them).",
        "",
        f"Word-split ratio, fertility and unknown tokens: {facts.sequences:,} sequences with {facts.sample_words:,} "
        f"space-separated words, drawn with seed {settings.seed}. ESMS: {facts.reference_words} words with "
        f"{facts.reference_morphemes} morphemes ({facts.morphemes}). The word-split ratio is measured on words in "
        "isolation, fertility in running text. Published values are those of the papers, on their corpora and lists.",
    ]
    if search is not None and settings.frequency_search is not None:
        lines += ["", *_search_lines(settings, search)]
    return "\n".join(lines) + "\n"


def _search_lines(settings: SweepSettings, search: SearchResult) -> list[str]:
    rule = settings.frequency_search
    assert rule is not None
    if search.largest_size is None:
        found = f"none from {rule.lowest:,} on"
    else:
        end = ", the end of the range" if search.largest_size == rule.highest else ""
        found = f"{search.largest_size:,}{end}"
    return [
        f"## Largest vocabulary of frequent types ({rule.type})",
        "",
        f"The largest size from {rule.lowest:,} to {rule.highest:,} in steps of {rule.step:,} of which 95 % of the "
        f"types occur at least {rule.least_frequency:,} times in the training text (Gowda and May, 2020): **{found}**. "
        "The search halves the range and assumes that the frequency falls while the size grows.",
        "",
        table(
            ("size", "frequency at 95 %"),
            [(f"{probe.size:,}", f"{probe.frequency_at_95_percent:,}") for probe in search.probes],
            words=0,
        ).markdown(),
    ]


def _cells(row: SelectionRow, printed: dict[str, str]) -> list[Content]:
    measures = row.measures
    chosen = row.selected_within_type
    return [
        Cell(row.type, bold=chosen),
        Cell(PRETRAINED if row.size is None else f"{row.size:,}", bold=chosen),
        f"{measures.word_split_ratio:.2f}",
        printed.get("word_split_ratio", ""),
        _shown(measures.esms_published_code, 4),
        printed.get("esms", ""),
        _shown(measures.esms_definition, 4),
        _shown(measures.esms_published_code_corrected, 4),
        "" if measures.frequency_at_95_percent is None else f"{measures.frequency_at_95_percent:,}",
        printed.get("frequency_at_95_percent", ""),
        _shown(measures.fertility, 2),
        "" if measures.unknown_rate is None else f"{100 * measures.unknown_rate:.2f}",
    ]


def _shown(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"
