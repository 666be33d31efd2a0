"""The analyses of a study or an experiment. Their settings are checked against the experiments and the published
tables.
"""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import AnalysisSettings, Study, analysis_called, analysis_names, kind_of
from hatchery.analysis.published_values import check_choice, read_numbers
from hatchery.errors import ConfigError
from hatchery.experiment.paper_tables import VALUES
from hatchery.settings.problems import ALLOWED, Problems, alternatives, nearest
from hatchery.typed import build, references, validated

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project

PUBLISHED = "published"
"""Folder of the published tables, inside the configuration folder."""


@lru_cache(maxsize=64)
def analyses_of(project: "Project", name: str) -> dict[str, AnalysisSettings]:
    """Return the settings of all analyses of a study, by name of the entry under `analyses`.

    For an experiment, return the settings of the analyses that do not need a study, by name of the analysis. Raises
    ConfigError with a line for each problem.
    """
    if not project.is_study(name):
        return _own_analyses(project.experiment(name))
    problems, made, where = Problems(), dict[str, AnalysisSettings](), project.place("study", name)
    for key, entry in project.study(name).analyses.items():
        place = f"{where}: analyses.{key}"
        with problems.collecting():
            kind = kind_of(key, entry, place)
            made[key] = validated(analysis_called(kind).settings, {**entry, "analysis": kind}, place)
    problems.raise_any()
    return made


def analysis_entry(project: "Project", name: str, analysis: str) -> AnalysisSettings:
    """Return the settings of one analysis of a study or an experiment.

    Raises ConfigError with the nearest name for an unknown analysis.
    """
    entries = analyses_of(project, name)
    if analysis not in entries:
        raise ConfigError(f"{name!r} has no analysis {analysis!r}{alternatives(analysis, entries)}")
    return entries[analysis]


def _own_analyses(experiment: "Experiment") -> dict[str, AnalysisSettings]:
    """Return the settings of an experiment's analyses that do not need a study, by name of the analysis, in the order
    of the experiment's page.
    """
    declared = {name: analysis_called(name) for name in analysis_names()}
    asked = {name: analysis.own(experiment) for name, analysis in declared.items()}
    return {
        name: build(declared[name].settings, {"analysis": name, **settings})
        for name, settings in sorted(asked.items(), key=lambda entry: declared[entry[0]].place)
        if settings is not None
    }


def check_study(project: "Project", name: str) -> None:
    """Raise ConfigError if an analysis does not fit the study, its experiments or the published tables."""
    study, where, problems = project.study(name), project.place("study", name), Problems()
    shown = Study(name, tuple(project.shown_runs(name)), project.sets_of(study.experiments))
    translates = any(project.experiment(part).translation.tests for part in study.experiments)
    for key, entry in analyses_of(project, name).items():
        place, declared = f"{where}: analyses.{key}", analysis_called(entry.analysis)
        if declared.of_translations and not translates:
            problems.add(
                f"{place}: {entry.analysis} compares translations, but no experiment of this study has "
                "translation.tests; remove this entry"
            )
            continue
        with problems.collecting(place):
            declared.check(entry, shown)
        for named in references(entry):
            with problems.collecting():
                project.require(named.kind, named.name, f"{place}.{named.key}")
                if named.kind == "experiment" and named.name not in study.experiments:
                    raise ConfigError(
                        f"{place}.{named.key}: got {named.name!r}, no experiment of this study"
                        f"{alternatives(named.name, study.experiments)}"
                    )
        with problems.collecting():
            _check_tables(declared.published(entry), place, project.folder / PUBLISHED)
    problems.raise_any()


def _check_tables(names: Iterable[str], where: str, folder: Path) -> None:
    known = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.glob("*/*.csv"))]
    for name in names:
        if name not in known:
            raise ConfigError(f"{where}: there is no {folder / name}.csv with published numbers{nearest(name, known)}")


def check_published(project: "Project", experiment: str) -> None:
    """Raise ConfigError, with one line per problem, if the experiment names a paper without a table of published
    numbers, or a track or row that the paper's table does not contain.
    """
    chosen, folder = project.experiment(experiment).published, project.folder / VALUES
    if chosen is None:
        return
    where, papers = project.place("experiment", experiment), sorted(path.stem for path in folder.glob("*.csv"))
    if chosen.paper not in papers:
        raise ConfigError(
            f"{where}: published.paper: got {chosen.paper!r}{alternatives(chosen.paper, papers, ALLOWED)}"
        )
    problems = Problems()
    with problems.collecting(where):
        check_choice(read_numbers(folder / f"{chosen.paper}.csv"), chosen.track, chosen.rows)
    problems.raise_any()
