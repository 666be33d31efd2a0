"""Which tables of a paper an experiment has: those of its own `published`, or those of the experiment that it repeats.

A miniature repeats an experiment on other data: it takes the published rows of its original, calls its suites, tasks
and corpus as the original does, and says in every table why no number of its own is comparable with a printed one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from hatchery.artifacts.records import read_rows
from hatchery.errors import ConfigError
from hatchery.settings.problems import alternatives

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment, Published
    from hatchery.experiment.project import Project

LAYOUTS = "paper_tables"
VALUES = "published/values"
"""Folder of the papers' numbers, below the configuration."""
STAR = "*"


def with_rows_by_name(experiment: "Experiment", where: str, folder: Path) -> "Experiment":
    """The experiment with the published rows of the runs that are called like such, if it asks for them with a star.

    `folder` is that of the configuration. Raises ConfigError for a pattern that fits no run.
    """
    published = experiment.published
    if published is None or STAR not in published.rows:
        return experiment
    named = {model: row for model, row in published.rows.items() if model != STAR}
    table, pattern = folder / VALUES / f"{published.paper}.csv", published.rows[STAR]
    # A paper that is not there is told later.
    rows = read_rows(table, ("row", "track")) if table.is_file() else []
    known = {texts["row"] for _, texts in rows if texts["track"] in ("", published.track)}
    found = {run: row for run in experiment.runs if (row := pattern.replace(STAR, run)) in known}
    if rows and not (found and STAR in pattern):
        raise ConfigError(
            f"{where}: published.rows.{STAR}: got {pattern!r}, which makes a row of {table.name} of no run; expected a"
            f" name with {STAR}, which stands for the name of a run"
        )
    return replace(experiment, published=replace(published, rows=found | named))


def check_paper_tables(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Raise ConfigError where `paper_tables` of the experiment `name` names no experiment with published rows."""
    chosen = experiment.paper_tables
    if chosen is None:
        return
    if experiment.published is not None:
        raise ConfigError(f"{where}: paper_tables: expected null in an experiment with rows of its own in `published`")
    original = project.experiment(chosen.of).published
    if chosen.of == name or original is None:
        raise ConfigError(f"{where}: paper_tables.of: got {chosen.of!r}, expected an experiment with `published`")
    if not _rows_of_miniature(original.rows, experiment.runs, project.expansion(name).swept()):
        raise ConfigError(
            f"{where}: paper_tables.of: none of the runs of {chosen.of!r} is a run here: {', '.join(original.rows)}"
        )


def check_published_rows(experiment: "Experiment", where: str) -> None:
    """Raise ConfigError for a published row, or a test against, what is neither a run nor a baseline."""
    known = [*experiment.runs, *experiment.baselines]
    kind = "run or baseline" if experiment.baselines else "run"
    named = [("published.rows", model) for model in (experiment.published.rows if experiment.published else ())]
    named += [] if experiment.tests_against is None else [("tests_against", experiment.tests_against)]
    for key, model in named:
        if model not in known:
            raise ConfigError(f"{where}: {key}: got {model!r}, no such {kind}{alternatives(model, known)}")


class Filled(TypedDict):
    """What an experiment's tables are filled with, as `PaperTablesSettings` calls it.

    `published` has the rows of the models that the experiment has. `prefix` and `suites` say how suites and tasks are
    called in the paper's tables, `corpora` whose place a corpus has there, `caveat` why nothing is comparable.
    """

    published: "Published"
    prefix: str
    suites: Mapping[str, str]
    corpora: Mapping[str, str]
    caveat: str


def paper_tables(project: "Project", experiment: str) -> Filled | None:
    """What an experiment's tables are filled with; None where it repeats no paper."""
    block = project.experiment(experiment)
    chosen = block.paper_tables
    if chosen is None:
        own = block.published
        return None if own is None else {"published": own, "prefix": "", "suites": {}, "corpora": {}, "caveat": ""}
    original = project.experiment(chosen.of)
    if original.published is None:
        raise ConfigError(f"{project.place('experiment', chosen.of)}: published: the key is missing")
    models = [*block.runs, *block.baselines]
    rows = _rows_of_miniature(original.published.rows, models, project.expansion(experiment).swept())
    return {
        "published": replace(original.published, rows=rows),
        "prefix": chosen.prefix,
        "suites": chosen.suites,
        "corpora": {block.corpus: original.corpus},
        "caveat": chosen.caveat,
    }


def _rows_of_miniature(rows: Mapping[str, str], models: Iterable[str], swept: Mapping[str, str]) -> dict[str, str]:
    """The rows of an original that models here fill, in the original's order; runs of a sweep fill their run's."""
    called = {model: model if model in rows else swept.get(model, model) for model in models}
    return {model: row for run, row in rows.items() for model, name in called.items() if name == run}


def published_files(project: "Project", name: str) -> list[str]:
    """The numbers of the papers that an experiment, or those of a study, repeat, if they name any."""
    chosen = [project.experiment(part).published for part in project.members(name)]
    papers = dict.fromkeys(block.paper for block in chosen if block is not None)
    return [f"config/{VALUES}/{paper}.csv" for paper in papers]


def paper_of_tables(project: "Project", experiment: str) -> str | None:
    """The paper whose tables an experiment has: the one that it repeats, if there is a layout of its tables."""
    chosen = paper_tables(project, experiment)
    if chosen is None:
        return None
    paper = str(chosen["published"].paper)
    return paper if (project.folder / LAYOUTS / f"{paper}.yaml").is_file() else None
