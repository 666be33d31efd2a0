"""The shipped configuration, and copies of it in which something stands otherwise."""

from pathlib import Path
from typing import Any

import yaml

from hatchery.experiment.project import Project
from hatchery.settings.problems import Problems
from hatchery.workflow.plan_checks import collect_problems

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = Project(REPOSITORY / "config")
DEMO = "experiments/demo.yaml"


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Write something else in a file."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{name} no longer holds {old!r}: mend this test"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def written(folder: Path, blocks: dict[str, Any]) -> Project:
    """The project with these blocks in files such as `experiments/mine`."""
    for name, block in blocks.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(block, sort_keys=False), encoding="utf-8")
    return Project(folder)


def changed(folder: Path, *changes: tuple[str, Any], of: str = "demo") -> Project:
    """The project with an experiment in which keys (`runs.ltg_bert.seeds`) have other values."""
    document = yaml.safe_load((folder / f"experiments/{of}.yaml").read_text(encoding="utf-8"))
    for key, value in changes:
        holder = document
        *parents, last = key.split(".")
        for parent in parents:
            holder = holder.setdefault(parent, {})
        holder[last] = value
    return written(folder, {f"experiments/{of}": document})


def add(configuration: Path, experiment: str = "demo", /, **runs: Any) -> Project:
    """The project with further runs, or runs with other values, in an experiment."""
    entries = ((f"runs.{name}", {"model": "ltg_demo_small", **run}) for name, run in runs.items())
    return changed(configuration, *entries, of=experiment)


def load_everything(folder: Path) -> None:
    """Raise ConfigError with every mistake in the files of a folder."""
    project, problems = Project(folder), Problems()
    kinds = ("corpus", "tokenizer", "model", "suite", "task", "experiment", "study")
    collect_problems(project, [(kind, name) for kind in kinds for name in project.names(kind)], problems)
    problems.raise_any()


def trained(project: Project, experiment: str, chosen: str = "") -> list[str]:
    """The runs that are trained, of all sets or of one."""
    runs, sets = project.experiment(experiment).runs, project.expansion(experiment).sets()
    steps = {run: project.experiment(experiment).runs[run].pretraining.steps for run in runs}
    return [run for run in runs if steps[run] and chosen in ("", sets[run])]
