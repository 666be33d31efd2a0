"""Stage `analyse`: one analysis of a study, as numbers for programs and tables for its page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.findings import (
    FINDINGS_FILE,
    NUMBERS_FILE,
    findings_json,
    numbers_csv,
    tables_as_files,
)
from hatchery.analysis.analyses.registry import analysis_called, settings_of
from hatchery.analysis.settings import PublishedChoice
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.experiment.seeded_run import SeededRun
from hatchery.runner import stage
from hatchery.settings.base import Settings


@dataclass(frozen=True, kw_only=True)
class AnalyseSettings(Settings):
    """One entry under the `analyses` of a study: `analysis` and `version` are those of the registry.

    `settings` are the entry's own, `runs` and `published` those of all experiments of the study.
    """

    experiment: str
    analysis: str
    version: int
    title: str
    settings: dict[str, Any]
    runs: tuple[SeededRun, ...]
    sets: dict[str, str] = field(default_factory=dict)
    published: tuple[PublishedChoice, ...] = field(default_factory=tuple)


@stage()
def analyse(settings: AnalyseSettings, tables: Mapping[str, Path], files: Mapping[str, Path], run: StageRun) -> None:
    """Run an analysis on the tables of a study and published `files`, and write what it finds.

    Tables of an earlier run that are not written again are removed.

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault; then nothing is written.
    """
    study = Study(settings.experiment, settings.runs, settings.sets, settings.published, tables, files)
    found = analysis_called(settings.analysis).run(settings_of(settings.analysis, settings.settings), study)
    texts = {NUMBERS_FILE: numbers_csv(found, settings.analysis), FINDINGS_FILE: findings_json(settings.title, found)}
    texts |= tables_as_files(found, settings.title, run.folder.name, settings.experiment)
    for old in sorted({*run.folder.glob("*.tex"), *run.folder.glob("*.md")}):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        write_text(run.add_output(run.folder / name), text)
