"""Settings of power laws over compute-optimal models."""

from dataclasses import dataclass, field
from typing import Annotated

from hatchery.analysis.analyses.analysis import FrontierSettings, PartsOfStudy
from hatchery.settings.base import Natural, Positive, Range, Settings


@dataclass(frozen=True, kw_only=True)
class RegionSettings(Settings):
    """Range of FLOPs with its own power law."""

    above: Positive | None = None
    """Lower bound in FLOPs, excluded from the range; null sets no bound."""
    up_to: Positive | None = None
    """Upper bound in FLOPs, included in the range; null sets no bound."""

    def holds(self, flops: float) -> bool:
        """Return True if this number of FLOPs is within the region."""
        return (self.above is None or flops > self.above) and (self.up_to is None or flops <= self.up_to)


@dataclass(frozen=True, kw_only=True)
class PowerLawsSettings(FrontierSettings):
    """Settings of the analysis: the selection of compute-optimal points, and the fit of power laws."""

    experiments: PartsOfStudy = ()
    """Experiments of the study whose runs are pooled; an empty list means all."""
    regions: dict[str, RegionSettings] = field(default_factory=dict)
    """Ranges of FLOPs by name, each with its own power law."""
    draws: Annotated[int, Range(ge=2)] = 1000
    """Number of random draws of the models for the intervals."""
    confidence: Annotated[float, Range(gt=0, lt=1)] = 0.95
    """Share of the draws inside an interval."""
    seed: Natural = 0
    """Random seed of the draws."""
    paper: str = ""
    """Paper whose published curves and values are analysed in the same way: tables in config/published/; empty analyses
    no published values."""
