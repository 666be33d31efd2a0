"""Incremental cost-effectiveness: how much perplexity the next larger value of one size of a model saves per FLOP.

Source: the reduced-vocabulary study, Equation 1 and Table 2; docs/papers/reduced-vocabulary.md, "Cost-effectiveness".
Positive is a reduction. The unit is 1e9 FLOPs per training sequence, counted without the projection from E to H, though
the text speaks of billions and of millions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

GIGA = 1e9


@dataclass(frozen=True)
class Option:
    """A model with its `sizes`, what it costs (FLOPs per training sequence) and what that bought (perplexity)."""

    name: str
    sizes: Mapping[str, int]
    flops: float
    perplexity: float


@dataclass(frozen=True)
class Step:
    """From one option to the next larger value of `size`; all other sizes are the same."""

    size: str
    smaller: Option
    larger: Option

    @property
    def ratio(self) -> float | None:
        """Perplexity saved per 1e9 FLOPs of a training sequence; None where the larger model costs no more."""
        cost = (self.larger.flops - self.smaller.flops) / GIGA
        return (self.smaller.perplexity - self.larger.perplexity) / cost if cost > 0 else None


def steps(options: Sequence[Option], sizes: Sequence[str]) -> list[Step]:
    """Every step between neighbours along one of `sizes`, in that order; models that share all sizes are one option.

    Of those the first counts. Where several rows of models vary the same size, they follow each other in the order of
    their first models.
    """
    distinct = {tuple(option.sizes.values()): option for option in reversed(options)}
    first = [option for option in options if distinct[tuple(option.sizes.values())] is option]
    found = []
    for size in sizes:
        rows: dict[tuple[int, ...], list[Option]] = {}
        for option in first:
            same = tuple(value for name, value in option.sizes.items() if name != size)
            rows.setdefault(same, []).append(option)
        for row in rows.values():
            ordered = sorted(row, key=lambda option: option.sizes[size])
            found += [Step(size, *pair) for pair in pairwise(ordered)]
    return found
