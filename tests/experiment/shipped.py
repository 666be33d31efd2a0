"""The shipped configuration, and functions that change copies of it."""

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
    """Replace the first occurrence of `old` in a file with `new`."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{name} no longer holds {old!r}: mend this test"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def written(folder: Path, blocks: dict[str, Any]) -> Project:
    """Write blocks to files such as `experiments/mine`, and return the project."""
    for name, block in blocks.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(block, sort_keys=False), encoding="utf-8")
    return Project(folder)


def changed(folder: Path, *changes: tuple[str, Any], of: str = "demo") -> Project:
    """Change keys of an experiment, such as `runs.ltg_bert.seeds`, and return the project."""
    document = yaml.safe_load((folder / f"experiments/{of}.yaml").read_text(encoding="utf-8"))
    for key, value in changes:
        holder = document
        *parents, last = key.split(".")
        for parent in parents:
            holder = holder.setdefault(parent, {})
        holder[last] = value
    return written(folder, {f"experiments/{of}": document})


def add(configuration: Path, experiment: str = "demo", /, **runs: Any) -> Project:
    """Add runs to an experiment, or change its runs, and return the project."""
    entries = ((f"runs.{name}", {"model": "ltg_demo_small", **run}) for name, run in runs.items())
    return changed(configuration, *entries, of=experiment)


def load_everything(folder: Path) -> None:
    """Raise ConfigError with all mistakes in the files of a folder."""
    project, problems = Project(folder), Problems()
    kinds = ("corpus", "tokenizer", "model", "suite", "task", "experiment", "study")
    collect_problems(project, [(kind, name) for kind in kinds for name in project.names(kind)], problems)
    problems.raise_any()


def trained(project: Project, experiment: str, chosen: str = "") -> list[str]:
    """Return the runs with training steps, of all sets or of one set."""
    runs, sets = project.experiment(experiment).runs, project.expansion(experiment).sets()
    steps = {run: project.experiment(experiment).runs[run].pretraining.steps for run in runs}
    return [run for run in runs if steps[run] and chosen in ("", sets[run])]
