"""The `summarise` stage: read all outputs of an experiment, write its summary in up to four forms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.analysis.published_values import for_experiment, read_numbers
from hatchery.analysis.read_measurements import read_measurements
from hatchery.analysis.settings import SummarySettings
from hatchery.analysis.summary import summarise
from hatchery.analysis.summary_markdown import markdown_summary
from hatchery.analysis.summary_notes import notes_json, notes_of
from hatchery.analysis.summary_tables import write_csv, write_parquet
from hatchery.analysis.summary_text import text_summary
from hatchery.errors import ConfigError
from hatchery.storage.atomic import write_text
from hatchery.storage.verified import write_checksums
from hatchery.typed import build, stage_body


def write_summary(
    settings: Mapping[str, Any],
    pretraining: Mapping[str, Path],
    minimal_pairs: Mapping[str, Path],
    finetuning: Mapping[str, Path],
    published: Path | None,
    output: Path,
    parquet: Path | None = None,
    markdown: Path | None = None,
    text: Path | None = None,
    perplexity: Mapping[str, Path] | None = None,
    notes: Path | None = None,
) -> None:
    """Summarise the experiment of `settings` into `output` (CSV) and, where given, the other forms.

    Their checksums, with which every reader compares them, lie beside them in a file that ends in `.sha256`.

    The mappings name manifests by `CELL` (pretraining, perplexity), `CELL:SUITE` or `BASELINE:SUITE`, and `CELL:TASK`.
    Nothing is written unless all inputs are sound. Raises ConfigError, ManifestError or EvaluationError naming the file
    at fault.
    """
    summary_settings = build(SummarySettings, stage_body(settings))
    chosen = summary_settings.published
    if (chosen is None) != (published is None):
        raise ConfigError(f"--published is {published}, but the settings say published: {chosen}")
    values = {}
    if chosen is not None and published is not None:
        values = for_experiment(read_numbers(published), chosen.paper, chosen.track, chosen.rows)
    measurements = read_measurements(summary_settings, pretraining, minimal_pairs, finetuning, perplexity)
    summary = summarise(summary_settings, measurements, values)
    if parquet is not None:
        write_parquet(parquet, summary.rows)
    if markdown is not None:
        write_text(markdown, markdown_summary(summary))
    if text is not None:
        write_text(text, text_summary(summary))
    if notes is not None:
        write_text(notes, notes_json(notes_of(summary)))
        write_checksums([notes])
    write_csv(output, summary.rows)
    write_checksums([output, *(path for path in (parquet, markdown, text) if path is not None)])
