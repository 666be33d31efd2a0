"""The check of data during planning. Tests give only the settings; their class determines the kind of evaluation."""

from pathlib import Path

from hatchery.errors import HatcheryError
from hatchery.evaluation.first_rows import check_first_rows
from hatchery.evaluation.kinds import evaluations
from hatchery.settings.base import Settings


def notes_of(settings: Settings, root: str | Path) -> list[str]:
    """Return notes on the data below `root`; raises HatcheryError for a mistake in it."""
    (kind,) = (
        kind for kind, one in evaluations().items() if one.data is not None and one.data.settings is type(settings)
    )
    return list(check_first_rows(kind, settings, root))


def first_problem(settings: Settings, root: str | Path) -> str | None:
    """Return the message of the mistake in the data below `root`, or None."""
    try:
        notes_of(settings, root)
    except HatcheryError as error:
        return str(error)
    return None
