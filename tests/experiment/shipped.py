"""The shipped configuration, and copies of it in which something stands otherwise."""

from pathlib import Path

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
