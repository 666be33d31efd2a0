"""The `summarise` stage: the tidy table of measurements as a summary, in up to four forms."""

from collections.abc import Sequence
from pathlib import Path

from hatchery.analysis.published_values import chosen_values
from hatchery.analysis.settings import SummarySettings, baseline_runs
from hatchery.analysis.summary import SUMMARISED_LEVELS, summarised
from hatchery.analysis.summary_rows import write_csv, write_parquet
from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.runner import Place, stage
from hatchery.views.summary_markdown import markdown_summary
from hatchery.views.summary_notes import notes_json, notes_of
from hatchery.views.summary_text import text_summary


@stage()
def summarise(
    settings: SummarySettings,
    measurements: Path,
    published: Sequence[Path],
    output: Path,
    parquet: Place | None = None,
    markdown: Place | None = None,
    text: Place | None = None,
    notes: Place | None = None,
) -> None:
    """Summarise the experiment or study of `settings` into `output` (CSV) and, where given, the other forms.

    Their checksums, with which every reader compares them, lie beside them in a file that ends in `.sha256`. Nothing is
    written unless the table `measurements` is sound. Raises ConfigError, ManifestError or EvaluationError naming the
    file at fault.
    """
    values = chosen_values(settings.published, published, "--published")
    runs = (*settings.runs, *baseline_runs(settings.baselines, settings.runs))
    measured = read_frame(measurements, MEASUREMENTS, run=[run.name for run in runs], level=SUMMARISED_LEVELS)
    summary = summarised(settings, measured, values)
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
