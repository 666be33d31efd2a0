"""Tasks of tests/golden/babylm_2026: their settings, sources and items."""

from pathlib import Path
from typing import Any

from hatchery.evaluation.minimal_pairs.items import Item
from hatchery.evaluation.minimal_pairs.pairs import read_minimal_pairs
from hatchery.evaluation.settings import ScoringSettings
from hatchery.raw.registration import RawSource, unregistered

TASKS: dict[str, dict[str, Any]] = {
    "blimp/blimp_filtered": {},
    "blimp/supplement_filtered": {},
    "ewok/ewok_filtered": {"format": "ewok"},
    "entity_tracking/entity_tracking": {"format": "entity_tracking"},
    "entity_tracking/no_space_option": {"format": "entity_tracking"},
    "comps/comps": {"format": "comps"},
    "global_piqa_parallel/global_piqa_parallel": {"format": "global_piqa", "per_token": True},
    "global_piqa_nonparallel/global_piqa_nonparallel": {"format": "global_piqa", "per_token": True},
    "blimp/one_token": {},
    "entity_tracking/empty_option": {"format": "entity_tracking"},
    "blimp/blimp_fast": {},
    "blimp/supplement_fast": {},
    "ewok/ewok_fast": {"format": "ewok"},
    "entity_tracking/entity_tracking_fast": {"format": "entity_tracking"},
}
EDGE = ("no_space_option", "one_token", "empty_option")


def settings_of(task: str, edition: int = 2026, **more: Any) -> ScoringSettings:
    return ScoringSettings(**{"suite": task, "edition": edition, **TASKS[task], **more})


def source_of(golden: Path, settings: ScoringSettings) -> RawSource:
    name = settings.suite.partition("/")[2]
    kind = "edge" if name in EDGE else "fast" if name.endswith("_fast") else "full"
    found = unregistered(golden / "babylm_2026" / "data" / kind / name, 100)
    assert found is not None
    return found


def items_of(golden: Path, settings: ScoringSettings) -> list[Item]:
    return read_minimal_pairs(source_of(golden, settings), settings)
