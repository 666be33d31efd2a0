"""Which tables of a paper an experiment has: those of its own `published`, or those of the experiment it is a twin of.

A twin is a miniature on other data: it takes the published rows of its original, calls its suites, tasks and corpus as
the original does, and says in every table why no number of its own is comparable with a printed one.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hatchery.config.schema import nearest
from hatchery.config.yaml_files import read_yaml
from hatchery.errors import ConfigError

if TYPE_CHECKING:
    from hatchery.config.project import Project

LAYOUTS = "paper_tables"


def check_paper_tables(name: str, experiment: Mapping[str, Any], where: str, project: "Project") -> None:
    """Raise ConfigError where `paper_tables` of the experiment `name` names no experiment with published rows."""
    chosen = experiment["paper_tables"]
    if chosen is None:
        return
    if experiment["published"] is not None:
        raise ConfigError(f"{where}: paper_tables: expected null in an experiment with rows of its own in `published`")
    of = chosen["of"]
    project.require("experiment", of, f"{where}: paper_tables.of")
    # The file is read as it stands: loading the other experiment could lead back to this one.
    original = read_yaml(project.folder / "experiments" / f"{of}.yaml")
    if of == name or not original.get("published"):
        raise ConfigError(f"{where}: paper_tables.of: got {of!r}, expected an experiment with `published`")
    rows = original["published"].get("rows") or {}
    if not rows.keys() & experiment["runs"].keys():
        raise ConfigError(f"{where}: paper_tables.of: none of the runs of {of!r} is a run here: {', '.join(rows)}")


def check_published_rows(experiment: Mapping[str, Any], where: str, project: "Project") -> None:
    """Raise ConfigError for a published row of something that is neither a run nor a baseline of the experiment."""
    known = [*experiment["runs"], *experiment["baselines"]]
    kind = "run or baseline" if experiment["baselines"] else "run"
    for model in (experiment["published"] or {"rows": {}})["rows"]:
        if model not in known:
            raise ConfigError(
                f"{where}: published.rows: got {model!r}, no such {kind}; there are: {', '.join(known)}"
                f"{nearest(model, known)}"
            )


def paper_tables(project: "Project", experiment: str) -> dict[str, Any] | None:
    """What an experiment's tables are filled with, as `PaperTablesSettings` calls it; None where it repeats no paper.

    `published` has the rows of the models that the experiment has. `prefix` and `suites` say how suites and tasks are
    called in the paper's tables, `corpora` whose place a corpus has there, `caveat` why nothing is comparable.
    """
    block = project.experiment(experiment)
    chosen = block["paper_tables"]
    if chosen is None:
        own = block["published"]
        return None if own is None else {"published": own, "prefix": "", "suites": {}, "corpora": {}, "caveat": ""}
    original = project.experiment(chosen["of"])
    published = original["published"]
    models = {*block["runs"], *block["baselines"]}
    return {
        "published": {**published, "rows": {run: row for run, row in published["rows"].items() if run in models}},
        "prefix": chosen["prefix"],
        "suites": chosen["suites"],
        "corpora": {block["corpus"]: original["corpus"]},
        "caveat": chosen["caveat"],
    }


def paper_of_tables(project: "Project", experiment: str) -> str | None:
    """The paper whose tables an experiment has: the one that it repeats, if there is a layout of its tables."""
    chosen = paper_tables(project, experiment)
    if chosen is None:
        return None
    paper = str(chosen["published"]["paper"])
    return paper if (project.folder / LAYOUTS / f"{paper}.yaml").is_file() else None
