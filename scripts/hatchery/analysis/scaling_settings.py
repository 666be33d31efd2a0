"""Settings of power laws over compute-optimal models."""

from dataclasses import dataclass, field
from typing import Annotated

from hatchery.analysis.analyses.analysis import FrontierSettings, PartsOfStudy
from hatchery.settings.base import Natural, Positive, Range, Settings


@dataclass(frozen=True, kw_only=True)
class RegionSettings(Settings):
    """A range of FLOPs with its own power law."""

    above: Positive | None = None
    """Lower bound in FLOPs, excluded from the range. If `null`, the range has no lower bound."""
    up_to: Positive | None = None
    """Upper bound in FLOPs, included in the range. If `null`, the range has no upper bound."""

    def holds(self, flops: float) -> bool:
        """Return True if the number `flops` is more than `above` and at most `up_to`."""
        return (self.above is None or flops > self.above) and (self.up_to is None or flops <= self.up_to)


@dataclass(frozen=True, kw_only=True)
class PowerLawsSettings(FrontierSettings):
    """Settings of the analysis: how compute-optimal points are found, and how power laws are fitted to them."""

    experiments: PartsOfStudy = ()
    """Experiments of the study whose runs are pooled; an empty list means all."""
    regions: dict[str, RegionSettings] = field(default_factory=dict)
    """Ranges of FLOPs by name, each with its own power law."""
    draws: Annotated[int, Range(ge=2)] = 1000
    """Number of bootstrap draws for the intervals; each draw resamples the models."""
    confidence: Annotated[float, Range(gt=0, lt=1)] = 0.95
    """Share of the bootstrap draws that an interval contains."""
    seed: Natural = 0
    """Random seed of the bootstrap draws."""
    paper: str = ""
    """Name of the paper whose published curves and values (tables in config/published/) are analysed in the same way.
    If empty, no published values are analysed.
    """
