"""Settings for the tests of tables of reading times."""

from typing import Any

from hatchery.evaluation.reading_times.settings import ReadingTableSettings
from hatchery.typed import build


def settings_of(**keys: Any) -> ReadingTableSettings:
    return build(ReadingTableSettings, keys)
