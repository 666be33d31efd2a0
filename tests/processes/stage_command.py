"""The command of a stage, as a rule's shell runs it."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "scripts/run.py"


def stage_command(stage: str, settings: Mapping[str, Any], output: str | Path, **given: Any) -> list[str]:
    """Return a stage's command; `given` are paths (also in lists or mappings) and other arguments of its function."""
    return [sys.executable, str(SCRIPT), stage, given_json({"settings": settings, "output": output, **given})]


def given_json(given: Mapping[str, Any]) -> str:
    """Return a stage's arguments as JSON, with paths as text."""
    return json.dumps(given, default=str)
