"""The configuration as it was when the workflow was started, for its jobs.

A job of a cluster reads the configuration when it starts, hours after it was sent, and it has to compute what was asked
for then. The main process keeps a copy, named after its content, and tells its jobs by their surroundings, which every
executor of one cluster hands on; a job that is not told reads what lies there.
"""

import os
import shutil
from hashlib import sha256
from pathlib import Path

VARIABLE = "HATCHERY_CONFIGURATION"
COPIES = Path(".snakemake/configurations")


def frozen_configuration(folder: str | Path, is_main_process: bool, is_real_run: bool = True) -> Path:
    """The folder to read the configuration from: `folder` itself in the main process, its copy in a job.

    A call that runs nothing has no jobs, and makes no copy.
    """
    if not is_main_process:
        told = os.environ.get(VARIABLE, "")
        return Path(told) if told and Path(told).is_dir() else Path(folder)
    if not is_real_run:
        return Path(folder)
    files = {path.relative_to(folder): path.read_bytes() for path in sorted(Path(folder).rglob("*.yaml"))}
    content = sha256(b"".join(f"{path} {len(text)}\n".encode() + text for path, text in files.items())).hexdigest()
    copy = COPIES / content[:16]
    if not copy.is_dir():
        unfinished = COPIES / f"{content[:16]}.{os.getpid()}.partial"
        for path, text in files.items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / path).write_bytes(text)
        try:
            unfinished.rename(copy)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    os.environ[VARIABLE] = str(copy.resolve())
    return Path(folder)
