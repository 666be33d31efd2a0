"""The configuration that Hatchery ships: `config/` of a checkout, or the copy of `config/` in an installed package."""

from pathlib import Path

_LIBRARY = Path(__file__).parent


def shipped_config() -> Path:
    """Return the folder with the configuration files that Hatchery ships: suites, tasks, models and so on."""
    installed = _LIBRARY / "config"
    return installed if installed.is_dir() else _LIBRARY.parents[1] / "config"
