"""Everything that is known to be wrong with a plan before its first job, all at once.

Starting from what is asked for, every block that it leads to is checked, and the files of every suite and task whose
data lies here. A broken block does not keep the others from being looked at.
"""

from collections.abc import Iterable
from typing import Any

from hatchery.experiment.block_bodies import suite_body, task_body
from hatchery.experiment.kinds import FILES
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import usable_path
from hatchery.settings.fields import DATA
from hatchery.settings.problems import Problems
from hatchery.settings.walk import references

Asked = tuple[str, str]
"""Kind and name of a block."""


def collect_problems(project: Project, asked: Iterable[Asked], problems: Problems) -> None:
    """Add the mistakes of these blocks, and of all blocks that they lead to, to `problems`."""
    waiting, seen = list(asked), set(asked)
    while waiting:
        kind, name = waiting.pop(0)
        block = _block(project, kind, name, problems)
        if block is None:
            continue
        if kind in _BODIES:
            _check_first_rows(project, kind, name, block, problems)
        for named in references(FILES[kind], block):
            other = (named.kind, named.name)
            if named.kind == DATA or named.inherited or other in seen:
                continue
            seen.add(other)
            # What does not exist is told once, where it is named.
            if project.has(named.kind, named.name):
                waiting.append(other)


def _block(project: Project, kind: str, name: str, problems: Problems) -> dict[str, Any] | None:
    """The block, also one whose values do not fit each other; None where not even its keys are right."""
    with problems.collecting():
        return project.block(kind, name)
    with problems.collecting():
        return project.validated(kind, name)
    return None


_BODIES = {"suite": suite_body, "task": task_body}


def _check_first_rows(project: Project, kind: str, name: str, block: dict[str, Any], problems: Problems) -> None:
    root = usable_path(project, block["data"]) if "data" in block else None
    if root is None:
        return
    # Reading rows takes long to import, and many experiments have no task of this machine's data.
    from hatchery.evaluation.first_rows import first_problem

    file = project.place(kind, name)
    problem = first_problem(kind, _BODIES[kind](name, block), root)
    if problem is not None:
        problems.add("\n".join(f"{file}: {line}" for line in problem.splitlines()))
