"""Whether what a stage would make lies there already, of the same settings and inputs; then it is taken as it is."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_bytes
from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import FINISHED, read_manifest
from hatchery.errors import ManifestError

FORCED = "HATCHERY_FORCED"
"""Set in the surroundings of jobs where the user forces them to run: then finished work is not taken."""


def is_made_from(path: str | Path, settings: Mapping[str, Any], inputs: Mapping[str, str | Path]) -> bool:
    """Whether the manifest at `path` is there, holds, and is of these settings and the present content of the inputs.

    `inputs` are files by the names that the manifest gives them.
    """
    try:
        found = read_manifest(path)
        found.verify()
    except ManifestError:
        return False
    return found.settings == dict(settings) and found.inputs == {
        name: sha256_file(Path(file)) for name, file in inputs.items()
    }


def is_forced() -> bool:
    """Whether the user forces jobs to run, so that nothing that is finished is taken."""
    return bool(os.environ.get(FORCED))


def take_finished(output: str | Path, settings: Mapping[str, Any], inputs: Mapping[str, str | Path]) -> bool:
    """Whether all that the stage would make lies beside `output` already; then the manifest is put back in its place.

    True only where the copy of the manifest that `stage_run(keep=True)` left vouches for these settings, the present
    content of the inputs, and the checksums of all outputs.
    """
    output = Path(output)
    finished = output.with_name(FINISHED)
    if is_forced() or not finished.is_file() or not is_made_from(finished, settings, inputs):
        return False
    write_bytes(output, finished.read_bytes())
    print(f"{output}: finished before, its checksums hold: taken as it is", file=sys.stderr, flush=True)
    return True
