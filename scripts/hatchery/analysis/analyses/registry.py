"""Analyses by their names, each imported when a study names it, and the settings of an entry of a study."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings
from hatchery.errors import ConfigError
from hatchery.settings.base import shown
from hatchery.settings.problems import offered
from hatchery.typed import build

_BEGINNING = "\nANALYSIS = Analysis("


@cache
def analysis_names() -> tuple[str, ...]:
    """The files of this folder that hold an analysis. Whoever plans knows them without running a file."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(path.stem for path in files if _BEGINNING in path.read_text(encoding="utf-8"))


def analysis_called(name: str) -> Analysis:
    """The analysis of a name in `analysis_names`."""
    found: Analysis = import_module(f"hatchery.analysis.analyses.{name}").ANALYSIS
    return found


def kind_of(name: str, entry: Mapping[str, Any], where: str) -> str:
    """Which analysis the entry `name` is. Raises ConfigError with the nearest for one that there is not."""
    kind, names = entry.get("analysis") or name, analysis_names()
    if kind in names:
        return str(kind)
    there = offered(str(kind), names)
    if "analysis" in entry:
        raise ConfigError(f"{where}.analysis: got {shown(kind)}, no such analysis{there}")
    raise ConfigError(f"{where}: no analysis is called {kind!r}, so the key `analysis` must name one{there}")


def settings_of(kind: str, entry: Mapping[str, Any]) -> AnalysisSettings:
    """The settings of an entry as the class of its analysis. Raises ConfigError."""
    return build(analysis_called(kind).settings, entry)
