"""Everything that is known to be wrong with a plan before its first job, all at once.

Starting from what is asked for, every block that it leads to is checked, and the files of every suite and task whose
data lies here. A broken block does not keep the others from being looked at.
"""

from collections.abc import Iterable

from hatchery.analysis.studies import check_published, check_study
from hatchery.errors import ConfigError
from hatchery.evaluation.minimal_pairs.settings import ScoringSettings
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import usable_path
from hatchery.settings.fields import ABSENT, DATA
from hatchery.settings.problems import Problems
from hatchery.settings.walk import references
from hatchery.typed import build

Asked = tuple[str, str]
"""Kind and name of a block."""


def collect_problems(project: Project, asked: Iterable[Asked], problems: Problems) -> None:
    """Add the mistakes of these blocks, and of all blocks that they lead to, to `problems`."""
    waiting, seen = list(asked), set(asked)
    while waiting:
        kind, name = waiting.pop(0)
        with problems.collecting():
            project.check(kind, name)
            if kind == "study":
                check_study(project, name)
        try:
            block = project.block(kind, name)
        except ConfigError:
            continue  # told already: not even its keys are right
        if kind == "experiment":
            with problems.collecting():
                check_published(project, name)
        if kind == "suite":
            _check_first_rows(project, kind, name, block.data, build(ScoringSettings, block.scored(name)), problems)
        if kind == "task":
            _check_first_rows(project, kind, name, block.data, block.settings(name), problems)
        for named in references(block):
            other = (named.kind, named.name)
            if named.kind == DATA or named.inherited or other in seen:
                continue
            seen.add(other)
            # What does not exist is told once, where it is named.
            if project.has(named.kind, named.name):
                waiting.append(other)


def _check_first_rows(
    project: Project, kind: str, name: str, data: str, settings: ScoringSettings | TaskSettings, problems: Problems
) -> None:
    root = None if data is ABSENT else usable_path(project, data)
    if root is None:
        return
    # Reading rows takes long to import, and many experiments have no task of this machine's data.
    from hatchery.evaluation.first_rows import first_problem

    file = project.place(kind, name)
    if problem := first_problem(settings, root):
        problems.add("\n".join(f"{file}: {line}" for line in problem.splitlines()))
