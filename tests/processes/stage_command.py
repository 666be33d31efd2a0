"""The command of a stage, as a rule gives it to the shell."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "scripts/run.py"


def stage_command(stage: str, settings: Mapping[str, Any], output: str | Path, **given: Any) -> list[str]:
    """`given` are paths, also in lists and by names, and what else the stage's function takes."""
    return [sys.executable, str(SCRIPT), stage, given_json({"settings": settings, "output": output, **given})]


def given_json(given: Mapping[str, Any]) -> str:
    """What a stage is given, with its paths, as JSON."""
    return json.dumps(given, default=str)
