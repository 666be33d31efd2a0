"""The candidate tokenizers of a sweep and the selected tokenizer, in the layout of Table 6 of the reduced-vocabulary
study.

Published values are shown next to ours. Only the columns of Table 6 are shown; the sweep's own tables show all
measures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Study
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.fields import Reference

if TYPE_CHECKING:
    from hatchery.workflow.result_paths import ResultPaths

SWEEP = "tokenizer_sweep"


@dataclass(frozen=True, kw_only=True)
class TokenizerSweepSettings(AnalysisSettings):
    """Settings of the analysis: the tokenizer sweep."""

    sweep: Annotated[str, Reference("tokenizer_sweep")]
    """Name of the tokenizer sweep, a file in config/tokenizer_sweeps/."""


MEASURES = {
    "word_split_ratio": ("word-split ratio", 2),
    "esms_published_code": ("ESMS", 4),
    "esms_definition": ("ESMS by definition", 4),
}
"""Columns of `selection.csv` that the table shows, with the heading and the number of decimals of each column."""
PRINTED = {"word_split_ratio": "published_word_split_ratio", "esms_published_code": "published_esms"}
FLAGS = ("selected_within_type", "final_choice")


def manifest_of_sweep(results: "ResultPaths", name: str, settings: TokenizerSweepSettings) -> dict[str, str]:
    """Return the manifest of the sweep."""
    return {f"{SWEEP}/{settings.sweep}": results.of("select_tokenizer", sweep=settings.sweep)}


def analyse(settings: TokenizerSweepSettings, study: Study) -> Findings:
    """Return a row for each candidate tokenizer of the sweep. Raises ManifestError for an altered file, and
    EvaluationError for an invalid file."""
    from hatchery.artifacts.manifests import read_manifest
    from hatchery.artifacts.records import read_rows

    manifest = read_manifest(study.tables[f"{SWEEP}/{settings.sweep}"])
    columns = ("type", "size", "vocabulary_size", *MEASURES, *PRINTED.values(), *FLAGS)
    found = [
        {column: texts[column] for column in columns}
        for _, texts in read_rows(manifest.file("selection.csv"), columns, columns[:2])
    ]
    any_printed = any(row[column] for row in found for column in PRINTED.values())
    groups = {
        kind: [_cells(row, any_printed) for row in found if row["type"] == kind]
        for kind in dict.fromkeys(row["type"] for row in found)
    }
    header = [Column("tokenizer", words=True), Column("entries")]
    for measure, (heading, _) in MEASURES.items():
        header += [Column(heading)]
        header += [Column(f"{heading}, printed")] if any_printed and measure in PRINTED else []
    table = Table(header, [Group(rows) for rows in groups.values()], "Tokenizers by type and vocabulary size")
    return Findings(found, [table], _notes(found, any_printed))


def _cells(row: Mapping[str, str], any_printed: bool) -> list[Content]:
    chosen = row["selected_within_type"] == "1"
    entries = f"{int(row['size']):,}" if row["size"].isdigit() else "pre-trained"
    cells: list[Content] = [Cell(readable(row["type"]), bold=chosen), Cell(entries, bold=chosen)]
    for measure, (_, decimals) in MEASURES.items():
        cells.append(f"{float(row[measure]):.{decimals}f}" if row[measure] else "-")
        if any_printed and measure in PRINTED:
            cells.append(row[PRINTED[measure]] or "-")
    return cells


def _notes(rows: list[dict[str, str]], any_printed: bool) -> list[str]:
    final = [row for row in rows if row["final_choice"] == "1"]
    notes = [
        "Bold: the selected size of each tokenizer type. At this size, the word-split ratio is closest to "
        f"the ratio of the type's reference tokenizer. The selected tokenizer: {readable(row['type'])} with "
        f"{int(row['size']):,} entries."
        for row in final
    ]
    notes.append(
        "ESMS is counted as in the study's code. The paper defines ESMS differently (words whose tokens are "
        "exactly the morphemes); the numbers by this definition are in a separate column."
    )
    if any_printed:
        notes.append("Printed values are from the paper, measured on the paper's corpus and list of morphemes.")
    return notes


ANALYSIS = Analysis(
    title="Choice of the tokenizer",
    version=1,
    settings=TokenizerSweepSettings,
    run=analyse,
    needs=(manifest_of_sweep,),
)
