"""Results of finished fine-tuning seeds, kept until all seeds of a stage are done.

A killed job finds them again under the digest of everything that determines them, and trains only the rest. Each
result is one JSON file that appears whole or not at all; one that cannot be read counts as absent.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from hatchery.evaluation.metrics.classification import Failure
from hatchery.storage.atomic import write_json


@dataclass(frozen=True)
class SeedResult:
    """One seed: metric values (fractions), the kept epoch, predicted label indices in the order of the test rows.

    A run that diverged has `failed` "nan", no values and no predictions. `n_development` and `n_train` count rows.
    """

    seed: int
    values: dict[str, float | None]
    best_epoch: int | None
    development_value: float | None
    failed: Failure
    predictions: list[int] | None
    n_train: int
    n_development: int


class SeedStore:
    """The finished seeds of one stage: `<checkpoints>/<digest>/seed_<n>.json`."""

    def __init__(self, checkpoints: Path, identity: str) -> None:
        self.folder = checkpoints / identity

    def path(self, seed: int) -> Path:
        """Where the result of `seed` lies."""
        return self.folder / f"seed_{seed}.json"

    def save(self, result: SeedResult) -> None:
        """Keep one finished seed."""
        write_json(self.path(result.seed), asdict(result))

    def load(self, seeds: Sequence[int]) -> dict[int, SeedResult]:
        """The kept results among `seeds`."""
        found = {seed: self._load(seed) for seed in seeds}
        return {seed: result for seed, result in found.items() if result is not None}

    def _load(self, seed: int) -> SeedResult | None:
        try:
            result = SeedResult(**json.loads(self.path(seed).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        usable = result.seed == seed and result.failed in get_args(Failure)
        return result if usable else None

    def remove(self) -> None:
        """Forget all seeds; called once the stage's outputs are written."""
        shutil.rmtree(self.folder, ignore_errors=True)
