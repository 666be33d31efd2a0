"""What stands in the file of a study; what its analyses may say, `hatchery.analysis.studies` knows."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import MinLen

from hatchery.rendering.style import Style
from hatchery.settings.base import Settings
from hatchery.settings.fields import BlockName, Reference, Unique


@dataclass(frozen=True, kw_only=True)
class StudyFile(Settings):
    """Several experiments read together; `results/<name>/summary.csv` exists because the file exists."""

    base: Annotated[str, Reference("study", inherited=True)] | None = None
    """A study whose keys, analyses included, are the defaults of this one; only what differs is stated."""
    description: str = ""
    """What it is, for people."""
    experiments: Annotated[tuple[Annotated[str, Reference("experiment")], ...], MinLen(1), Unique()]
    """The experiments, files of config/experiments/, in the order of tables and pages."""
    analyses: dict[BlockName, dict[str, Any]] = field(default_factory=dict)
    """What is computed from their results: settings by names of your choice. `analysis` names the analysis, where the
    entry is not called like it."""
    figures: Style = field(default_factory=Style)
    """Look of the figures."""
