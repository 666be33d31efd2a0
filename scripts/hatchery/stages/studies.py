"""Joining the tables of the experiments of a study, and analyses of these and of single experiments."""

from hatchery.analysis.analyses.registry import analysis_called
from hatchery.analysis.studies import analysis_entry
from hatchery.experiment.experiment_file import Published
from hatchery.experiment.paper_tables import paper_tables
from hatchery.experiment.project import Project
from hatchery.stages.analysis import runs_of, under_names_of_study
from hatchery.stages.record import Stage


def join_settings(project: Project, experiment: str) -> dict[str, object]:
    """Which experiments are joined."""
    return {"experiment": experiment, "experiments": project.study(experiment).experiments}


def analyse_settings(project: Project, experiment: str, analysis: str) -> dict[str, object]:
    """One entry of the analyses of a study or an experiment. Raises ConfigError for one that it does not have."""
    entry = analysis_entry(project, experiment, analysis)
    declared = analysis_called(entry.analysis)
    return {
        "experiment": experiment,
        "analysis": entry.analysis,
        "version": declared.version,
        "title": entry.title or declared.title,
        "settings": entry,
        "runs": runs_of(project, experiment),
        # What an experiment has by itself asks for neither.
        "sets": project.sets_of(project.parts(experiment)) if project.is_study(experiment) else {},
        "published": _repeated(project, experiment) if project.is_study(experiment) else [],
    }


def _repeated(project: Project, study: str) -> list[Published]:
    """The published rows that models repeat; those of a miniature stand in the place of its original's."""
    chosen = {part: paper_tables(project, part) or {} for part in project.parts(study)}
    return under_names_of_study({part: tables.get("published") for part, tables in chosen.items()})


STAGES = (
    Stage(
        name="join_experiments",
        version=1,
        settings=join_settings,
        inputs=lambda results, experiment: results.joined(experiment),
        environment="analysis",
        sort="local",
        memory_mb=2000,
        minutes=30,
    ),
    Stage(
        name="analyse",
        # What all analyses share; each has a version of its own, in its file.
        version=3,
        settings=analyse_settings,
        inputs=lambda results, experiment, analysis: {
            "tables": results.analysis_tables(experiment, analysis),
            "files": results.analysis_files(experiment, analysis),
        },
        environment="analysis",
        sort="local",
        memory_mb=4000,
        minutes=60,
    ),
)
