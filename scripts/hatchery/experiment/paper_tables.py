"""An experiment's results in the tables of the paper that the experiment replicates.

The key `published` names the paper. A miniature experiment repeats an original experiment on other data: it uses the
original's rows in the paper's tables, and the original's names of suites, tasks and corpus. Every table of a miniature
states why its numbers are not comparable with the printed numbers.
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
"""Folder of the tables with the papers' published values, in the configuration folder."""
STAR = "*"


def with_rows_by_name(experiment: "Experiment", where: str, folder: Path) -> "Experiment":
    """Return the experiment after applying the entry `*` under `published.rows` to its runs. The value of this entry is
    a pattern, such as `small_*`. In the pattern, the name of a run replaces `*`; if the paper's table has a row with
    the resulting name, this row becomes the published row of the run.

    Without this entry, the experiment is returned unchanged. `folder` is the configuration folder. Raises ConfigError
    for a pattern without `*`, and if the table has no row for any run.
    """
    published = experiment.published
    if published is None or STAR not in published.rows:
        return experiment
    named = {model: row for model, row in published.rows.items() if model != STAR}
    table, pattern = folder / VALUES / f"{published.paper}.csv", published.rows[STAR]
    # Another check reports a paper without a table.
    rows = read_rows(table, ("row", "track")) if table.is_file() else []
    known = {texts["row"] for _, texts in rows if texts["track"] in ("", published.track)}
    found = {run: row for run in experiment.runs if (row := pattern.replace(STAR, run)) in known}
    if rows and not (found and STAR in pattern):
        raise ConfigError(
            f"{where}: published.rows.{STAR}: got {pattern!r}, expected the name of a row with {STAR} in place of a "
            f"run's name, such as small_{STAR}; {table.name} must contain such a row for at least one run of the "
            "experiment"
        )
    return replace(experiment, published=replace(published, rows=found | named))


def check_paper_tables(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Check `paper_tables` of the experiment `name`. Raise ConfigError in three cases: the experiment also has the key
    `published`; the original experiment that `paper_tables` names has no key `published`, or is the experiment itself;
    or both experiments have no run in common.
    """
    chosen = experiment.paper_tables
    if chosen is None:
        return
    if experiment.published is not None:
        raise ConfigError(f"{where}: paper_tables: expected null, because this experiment has the key `published`")
    original = project.experiment(chosen.of).published
    if chosen.of == name or original is None:
        raise ConfigError(f"{where}: paper_tables.of: got {chosen.of!r}, expected an experiment with `published`")
    if not _rows_of_miniature(original.rows, experiment.runs, project.expansion(name).swept()):
        raise ConfigError(
            f"{where}: paper_tables.of: expected at least one run of {chosen.of!r} in this experiment: "
            f"{', '.join(original.rows)}"
        )


def check_published_rows(experiment: "Experiment", where: str) -> None:
    """Raise ConfigError if a name in `published.rows` or `tests_against` names neither a run nor a baseline."""
    known = [*experiment.runs, *experiment.baselines]
    kind = "run or baseline" if experiment.baselines else "run"
    named = [("published.rows", model) for model in (experiment.published.rows if experiment.published else ())]
    named += [] if experiment.tests_against is None else [("tests_against", experiment.tests_against)]
    for key, model in named:
        if model not in known:
            raise ConfigError(f"{where}: {key}: got {model!r}, expected a {kind}{alternatives(model, known)}")


class Filled(TypedDict):
    """Content of an experiment's paper tables; the keys are fields of `PaperTablesSettings`.

    `published` contains the row of the paper's tables for each model. `prefix` and `suites` map our names of suites and
    tasks to the names in the paper's tables. `corpora` maps our corpora to the paper's corpora. `caveat` states why the
    numbers are not comparable.
    """

    published: "Published"
    prefix: str
    suites: Mapping[str, str]
    corpora: Mapping[str, str]
    caveat: str


def paper_tables(project: "Project", experiment: str) -> Filled | None:
    """Return the content of an experiment's paper tables; None if the experiment has neither the key `published` nor
    the key `paper_tables`.
    """
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
    """Return the row of the paper's tables for each of the `models` of a miniature (a small copy of an experiment).
    `rows` maps the runs of the original experiment to these rows, and determines the order of the result.

    Runs generated by a sweep have the row of the run with the sweep.
    """
    called = {model: model if model in rows else swept.get(model, model) for model in models}
    return {model: row for run, row in rows.items() for model, name in called.items() if name == run}


def published_files(project: "Project", name: str) -> list[str]:
    """Return the paths of the tables of published values for the papers that an experiment, or the experiments of a
    study, replicate.
    """
    chosen = [project.experiment(part).published for part in project.members(name)]
    papers = dict.fromkeys(block.paper for block in chosen if block is not None)
    return [f"config/{VALUES}/{paper}.csv" for paper in papers]


def paper_of_tables(project: "Project", experiment: str) -> str | None:
    """Return the paper to whose tables an experiment adds results. Return None if the experiment has neither the key
    `published` nor the key `paper_tables`, or if config/ contains no layout of these tables.
    """
    chosen = paper_tables(project, experiment)
    if chosen is None:
        return None
    paper = str(chosen["published"].paper)
    return paper if (project.folder / LAYOUTS / f"{paper}.yaml").is_file() else None
