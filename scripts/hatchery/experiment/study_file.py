"""What stands in the file of a study, and what it asks of its experiments and of the published tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import MinLen

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.registry import analysis_called, kind_of
from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Experiment
from hatchery.rendering.style import Style
from hatchery.settings.base import Settings
from hatchery.settings.fields import BlockName, Reference, Unique
from hatchery.settings.problems import Problems, nearest, offered
from hatchery.settings.walk import references
from hatchery.typed import validated

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

PUBLISHED = "published"
"""Folder of published tables, below the configuration."""
PAIR_TESTS = "minimal_pair_tests"
"""The analysis that experiments have by themselves."""


@dataclass(frozen=True, kw_only=True)
class StudyFile(Settings):
    """Several experiments read together; `results/<name>/summary.csv` exists because the file exists."""

    base: Annotated[str, Reference("study", inherited=True)] | None = None
    """A study whose keys, analyses included, are the defaults of this one; only what differs is stated."""
    description: str = ""
    """What it is, for people."""
    experiments: Annotated[tuple[Annotated[str, Reference("experiment")], ...], MinLen(1), Unique()]
    """The experiments, files of config/experiments/, in the order of tables and pages."""
    analyses: dict[BlockName, dict[str, Any]] = field(default_factory=dict)
    """What is computed from their results: settings by names of your choice. `analysis` names the analysis, where the
    entry is not called like it."""
    figures: Style = field(default_factory=Style)
    """Look of the figures."""


def with_analyses(document: Mapping[str, Any], where: str) -> StudyFile:
    """The study in the keys of a file, with the entries of its analyses of their classes. Raises ConfigError."""
    problems, made = Problems(), dict[str, Any]()
    with problems.collecting():
        study = validated(StudyFile, document, where)
    entries = document.get("analyses")
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        if not isinstance(entry, Mapping):
            continue  # told already
        place = f"{where}: analyses.{name}"
        with problems.collecting():
            kind = kind_of(name, entry, place)
            made[name] = validated(analysis_called(kind).settings, {**entry, "analysis": kind}, place)
    problems.raise_any()
    return replace(study, analyses=made)


def check_study(name: str, study: StudyFile, where: str, project: "Project") -> None:
    """Raise ConfigError for an analysis that does not fit the study or its experiments, or that reads no table."""
    problems = Problems()
    shown = Study(name, tuple(project.shown_runs(name)), project.sets_of(study.experiments))
    translates = any(project.experiment(part).translation.tests for part in study.experiments)
    for key, entry in project.analyses(name).items():
        place, declared = f"{where}: analyses.{key}", analysis_called(entry.analysis)
        if declared.of_translations and not translates:
            problems.add(
                f"{place}: {entry.analysis} compares translations, but no experiment of this study has "
                "translation.tests; leave it out"
            )
            continue
        with problems.collecting(place):
            declared.check(entry, shown)
        for named in references(entry):
            if named.kind == "experiment" and named.name not in study.experiments:
                problems.add(
                    f"{place}.{named.key}: got {named.name!r}, no experiment of this study"
                    f"{offered(named.name, study.experiments)}"
                )
        with problems.collecting():
            _check_published(declared.published(entry), place, project)
    problems.raise_any()


def own_analyses(experiment: Experiment) -> dict[str, Any]:
    """The entries that an experiment has without a study: the test between models that judge the same minimal pairs."""
    models = [*experiment.runs, *experiment.baselines]
    if len(models) < 2 or not experiment.minimal_pairs:
        return {}
    return {PAIR_TESTS: analysis_called(PAIR_TESTS).settings(analysis=PAIR_TESTS)}


def analysis_entry(project: "Project", name: str, analysis: str) -> Any:
    """An entry of the analyses of a study or an experiment. Raises ConfigError with the nearest where there is none."""
    entries = project.analyses(name)
    if analysis not in entries:
        raise ConfigError(f"{name!r} has no analysis {analysis!r}{offered(analysis, entries)}")
    return entries[analysis]


def _check_published(tables: Iterable[str], where: str, project: "Project") -> None:
    folder = project.folder / PUBLISHED
    known = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.csv"))]
    for name in tables:
        if name not in known:
            raise ConfigError(f"{where}: there is no {folder / name}.csv with published numbers{nearest(name, known)}")
