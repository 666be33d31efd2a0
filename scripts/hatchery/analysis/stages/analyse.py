"""The stage `analyse`: compute one analysis of a study, and write its numbers as CSV and its tables for the study's
page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.analysis import analysis_called
from hatchery.analysis.settings import PublishedChoice, under_names_of_study
from hatchery.analysis.studies import analysis_entry
from hatchery.artifacts.manifests import StageRun
from hatchery.experiment.paper_tables import paper_tables
from hatchery.experiment.seeded_run import SeededRun
from hatchery.job_spec import Paths
from hatchery.settings.base import Settings
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Published
    from hatchery.experiment.project import Project
    from hatchery.workflow.result_paths import ResultPaths


@dataclass(frozen=True, kw_only=True)
class AnalyseSettings(Settings):
    """Settings of one analysis of a study or an experiment. `analysis` and `version` are the name and the version of
    the analysis.

    `settings` are the analysis's own settings: for a study, the keys of an entry under `analyses`. `runs` are all runs
    of the study or experiment. `published` names the rows of papers' tables that the study's models replicate; it is
    empty for an experiment.
    """

    experiment: str
    analysis: str
    version: int
    title: str
    settings: dict[str, Any]
    runs: tuple[SeededRun, ...]
    sets: dict[str, str] = field(default_factory=dict)
    published: tuple[PublishedChoice, ...] = field(default_factory=tuple)


def analyse_settings(project: "Project", experiment: str, analysis: str) -> dict[str, object]:
    """Return the stage's settings for one analysis of a study or an experiment. Raises ConfigError for an unknown
    analysis."""
    entry = analysis_entry(project, experiment, analysis)
    declared = analysis_called(entry.analysis)
    return {
        "experiment": experiment,
        "analysis": entry.analysis,
        "version": declared.version,
        "title": entry.title or declared.title,
        "settings": entry,
        "runs": project.shown_runs(experiment),
        # Outside a study, an analysis needs neither the sets of a grid nor published rows.
        "sets": project.sets_of(project.members(experiment)) if project.is_study(experiment) else {},
        "published": _repeated(project, experiment) if project.is_study(experiment) else [],
    }


def _repeated(project: "Project", study: str) -> list["Published"]:
    """Return the rows of papers' tables that the study's models replicate. A miniature (a small copy of an experiment)
    uses the rows of the experiment that it copies.
    """
    chosen = {part: paper_tables(project, part) for part in project.members(study)}
    return under_names_of_study({part: tables and tables["published"] for part, tables in chosen.items()})


def analyse_inputs(results: "ResultPaths", experiment: str, analysis: str) -> dict[str, Paths]:
    """Return the paths of an analysis's inputs. `tables` are the results that the analysis reads, by name of the input.
    `files` are published tables, by their path below `config/published/` without suffix.

    Raises ConfigError if the study or experiment does not have the analysis.
    """
    entry, tables = analysis_entry(results.project, experiment, analysis), dict[str, str]()
    declared = analysis_called(entry.analysis)
    for need in declared.needs:
        tables |= need(results, experiment, entry)
    return {"tables": tables, "files": {name: f"config/published/{name}.csv" for name in declared.published(entry)}}


@Stage(
    # Version of the code that all analyses share. Each analysis has an additional version of its own code.
    version=1,
    settings=analyse_settings,
    inputs=analyse_inputs,
    outputs={"output": "results/{experiment}/analyses/{analysis}/manifest.json"},
    environment="analysis",
    runs_on="local",
    memory_mb=4000,
    minutes=60,
)
def analyse(settings: AnalyseSettings, tables: Mapping[str, Path], files: Mapping[str, Path], run: StageRun) -> None:
    """Run an analysis on the tables of a study and on the published tables `files`, and write its findings.

    Table files of an earlier call are removed if they are not written again. Raises ConfigError, ManifestError or
    EvaluationError, naming the faulty input, before anything is written.
    """
    from hatchery.analysis.analyses.analysis import (
        FINDINGS_FILE,
        NUMBERS_FILE,
        Study,
        findings_json,
        numbers_csv,
        settings_of,
        tables_as_files,
    )
    from hatchery.artifacts.atomic import write_text

    study = Study(settings.experiment, settings.runs, settings.sets, settings.published, tables, files)
    found = analysis_called(settings.analysis).run(settings_of(settings.analysis, settings.settings), study)
    texts = {NUMBERS_FILE: numbers_csv(found, settings.analysis), FINDINGS_FILE: findings_json(settings.title, found)}
    texts |= tables_as_files(found, settings.title, run.folder.name, settings.experiment)
    for old in sorted({*run.folder.glob("*.tex"), *run.folder.glob("*.md")}):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        write_text(run.add_output(run.folder / name), text)
