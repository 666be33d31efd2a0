"""The stage `register_source`: names, sizes and checksums of the files of a raw input, fetched first if it is pinned.

Then it is read as suites and tasks will read it, so that mistakes in it are known before the first training.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.raw.obtain import FETCHED, register_settings
from hatchery.runner import Place, stage


@stage()
def register_source(
    settings: Mapping[str, Any],
    output: Path,
    about: Mapping[str, Any] | None = None,
    readings: Mapping[str, Any] | None = None,
    fetched: Place = FETCHED,
) -> None:
    """Register one source and look through what is evaluated of it.

    `about` says how it is obtained, its licence and its terms, `readings` the settings of the suites and tasks that
    read it; `fetched` is the folder for what is downloaded or unpacked.
    """
    print(register_settings({**settings, **(about or {})}, output, fetched))
    if readings:
        from hatchery.evaluation.first_rows import check_registered

        check_registered(output, readings)
