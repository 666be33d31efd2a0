"""Settings of power laws over compute-optimal models."""

from dataclasses import dataclass, field
from typing import Annotated

from hatchery.analysis.analyses.analysis import FrontierSettings, PartsOfStudy
from hatchery.settings.base import Natural, Positive, Range, Settings


@dataclass(frozen=True, kw_only=True)
class RegionSettings(Settings):
    """A part of the axis of FLOPs with a law of its own."""

    above: Positive | None = None
    """Points with more FLOPs belong to it; null is no bound."""
    up_to: Positive | None = None
    """Points with at most so many FLOPs belong to it; null is no bound."""

    def holds(self, flops: float) -> bool:
        """Return True if a point with this number of FLOPs is in the region."""
        return (self.above is None or flops > self.above) and (self.up_to is None or flops <= self.up_to)


@dataclass(frozen=True, kw_only=True)
class PowerLawsSettings(FrontierSettings):
    """How compute-optimal points are found and fitted."""

    experiments: PartsOfStudy = ()
    """The experiments of the study whose runs count together; none names all."""
    regions: dict[str, RegionSettings] = field(default_factory=dict)
    """Parts of the axis of FLOPs with laws of their own, by name."""
    draws: Annotated[int, Range(ge=2)] = 1000
    """How often models are drawn anew for the intervals."""
    confidence: Annotated[float, Range(gt=0, lt=1)] = 0.95
    """Share of the draws within an interval."""
    seed: Natural = 0
    """Random seed of the draws."""
    paper: str = ""
    """Published curves and values to go through the same: tables below config/published/; empty: none."""
