"""What the class of a block cannot say: that it fits what lies here, and the other blocks that it names."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.config.block_bodies import task_body
from hatchery.config.continuation import check_continuation
from hatchery.config.corpus_checks import check_circle, check_encodings
from hatchery.config.experiment_checks import check_experiment
from hatchery.config.paper_tables import check_paper_tables
from hatchery.config.problems import Problems
from hatchery.errors import ConfigError
from hatchery.typed import build

if TYPE_CHECKING:
    from hatchery.config.project import Project

Block = Mapping[str, Any]


def check_block(kind: str, name: str, block: dict[str, Any], where: str, project: "Project") -> None:
    """Raise ConfigError for values of a block that do not fit each other; the blocks that it names exist."""
    if kind in _CHECKS:
        _CHECKS[kind](name, block, where, project)


def _experiment(name: str, block: dict[str, Any], where: str, project: "Project") -> None:
    problems = Problems()
    with problems.collecting():
        check_experiment(block, where, project)
    with problems.collecting():
        check_continuation(name, block, where, project)
    with problems.collecting():
        check_paper_tables(name, block, where, project)
    problems.raise_any()


def _corpus(name: str, block: Block, where: str, project: "Project") -> None:
    check_circle(name, project, where)
    if "sources" in block:
        check_encodings(block, where)


def _tokenizer(name: str, block: Block, where: str, project: "Project") -> None:
    if "path" in block and not Path(block["path"]).expanduser().is_file():
        raise ConfigError(f"{where}: path: got {block['path']!r}, there is no such file; expected a tokenizer.json")


def _task(name: str, block: Block, where: str, project: "Project") -> None:
    from hatchery.evaluation.tasks.checks import check_task
    from hatchery.evaluation.tasks.settings import TaskSettings

    with _said_in(where, f"task {name!r}: "):
        check_task(build(TaskSettings, task_body(name, block)))
    for task in block["transfer_tasks"]:
        if project.block("task", task)["transfer"] is None:
            raise ConfigError(f"{where}: transfer_tasks: the task {task!r} says nothing under `transfer`")


@contextmanager
def _said_in(where: str, prefix: str = "") -> Iterator[None]:
    """What a stage says about its settings, with the file in front instead of the stage's own `prefix`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {str(error).removeprefix(prefix)}") from None


_CHECKS: dict[str, Callable[[str, dict[str, Any], str, "Project"], None]] = {
    "experiment": _experiment,
    "corpus": _corpus,
    "tokenizer": _tokenizer,
    "task": _task,
}
