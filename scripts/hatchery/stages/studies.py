"""Stages of studies alone: joining the tables of several experiments, and analyses of them."""

from typing import Any

from hatchery.analysis.analyses.analysis import TIDY_TABLES
from hatchery.analysis.analyses.registry import analysis_called
from hatchery.config.project import Project
from hatchery.config.study_file import study_entry
from hatchery.stages.analysis import published_of, runs_of
from hatchery.stages.record import Stage


def join_settings(project: Project, experiment: str) -> dict[str, Any]:
    """Which experiments are joined."""
    return {"experiment": experiment, "experiments": list(project.block("study", experiment)["experiments"])}


def analyse_settings(project: Project, experiment: str, analysis: str) -> dict[str, Any]:
    """One entry of a study's analyses. Raises ConfigError for one that it does not have."""
    entry = study_entry(project, experiment, analysis)
    declared = analysis_called(entry["analysis"])
    return {
        "experiment": experiment,
        "analysis": entry["analysis"],
        "version": declared.version,
        "title": entry["title"] or declared.title,
        "settings": entry,
        "runs": runs_of(project, experiment),
        "sets": {
            f"{part}/{run}": name for part in project.parts(experiment) for run, name in project.sets(part).items()
        },
        "published": published_of(project, experiment),
    }


STAGES = (
    Stage(
        name="join_experiments",
        version=1,
        settings=join_settings,
        arguments=lambda layout, experiment: {table: layout.joined(experiment, table) for table in TIDY_TABLES},
        environment="analysis",
        sort="local",
        memory_mb=2000,
        minutes=30,
    ),
    Stage(
        name="analyse",
        # What all analyses share; each has a version of its own, in its file.
        version=1,
        settings=analyse_settings,
        arguments=lambda layout, experiment, analysis: {
            "tables": layout.analysis_tables(experiment, analysis),
            "files": layout.analysis_files(experiment, analysis),
        },
        environment="analysis",
        sort="local",
        memory_mb=4000,
        minutes=60,
    ),
)
