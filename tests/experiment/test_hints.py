"""What config.yaml says about getting a raw input agrees with what is read of it."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from hatchery.experiment.project import Project
from hatchery.settings.fields import ABSENT


def patterns(files: Any) -> Iterator[str]:
    """All patterns of files, however deep they stand."""
    if isinstance(files, str):
        yield files
    else:
        for item in files.values() if isinstance(files, dict) else files:
            yield from patterns(item)


def folders_read(project: Project) -> Iterator[tuple[str, str, str]]:
    """Raw input, folder inside it and file of the configuration, for all suites and tasks of all experiments."""
    for experiment in project.names("experiment"):
        block = project.experiment(experiment)
        named = [("suite", name) for name in block.minimal_pairs]
        named += [("task", name) for name in block.finetuning.tasks]
        for kind, name in named:
            reader = project.block(kind, name)
            for pattern in patterns(reader.files) if reader.data is not ABSENT else ():
                for folder in PurePosixPath(pattern).parts[:-1]:
                    yield reader.data, folder.strip("*"), f"{kind} {name}"


def test_every_folder_that_suites_and_tasks_read_is_named_where_the_data_is_asked_for(repository: Path) -> None:
    project = Project(repository / "config")
    read = set(folders_read(project))
    assert {"glue_filtered", "blimp_filtered"} <= {folder for _, folder, _ in read}

    hints = {name: data.obtain for name, data in project.config.data.items()}
    missing = sorted(entry for entry in read if not re.search(rf"\b{re.escape(entry[1])}\b", hints[entry[0]]))

    assert not missing, "data.<name>.obtain in config.yaml does not name " + ", ".join(map(str, missing))
