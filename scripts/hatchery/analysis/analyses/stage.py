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
from hatchery.analysis.settings import PublishedChoice, SeededRun
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.settings.base import Settings
from hatchery.typed import build, stage_body


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


def analyse(settings: Mapping[str, Any], tables: Mapping[str, Path], files: Mapping[str, Path], output: Path) -> None:
    """Run an analysis on the tables of a study and published `files`, and write what it finds beside `output`.

    Tables of an earlier run that are not written again are removed.

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault; then nothing is written.
    """
    chosen = build(AnalyseSettings, stage_body(settings))
    study = Study(chosen.experiment, chosen.runs, chosen.sets, chosen.published, tables, files)
    found = analysis_called(chosen.analysis).run(settings_of(chosen.analysis, chosen.settings), study)
    texts = {NUMBERS_FILE: numbers_csv(found, chosen.analysis), FINDINGS_FILE: findings_json(chosen.title, found)}
    texts |= tables_as_files(found, chosen.title, output.parent.name, chosen.experiment)
    with stage_run(output, settings, {**tables, **files}) as stage:
        for old in sorted({*output.parent.glob("*.tex"), *output.parent.glob("*.md")}):
            if old.name not in texts:
                old.unlink()
        for name, text in texts.items():
            write_text(output.with_name(name), text)
            stage.add_output(output.with_name(name))
