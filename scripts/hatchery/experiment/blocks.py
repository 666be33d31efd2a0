"""What a check may ask of the configuration: other blocks, by kind and name. `Project` answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Blocks(Protocol):
    """The blocks of a configuration, and what follows from several of them; see `Project` for each."""

    folder: Path

    @property
    def config(self) -> dict[str, Any]:
        """The main configuration."""

    def require(self, kind: str, name: str, where: str) -> None:
        """Raise ConfigError unless there is a block of this kind and name."""

    def block(self, kind: str, name: str) -> dict[str, Any]:
        """A block, validated and checked."""

    def written_experiment(self, name: str) -> dict[str, Any]:
        """An experiment before it is compared with other files, for what could lead back to this one."""

    def swept(self, experiment: str) -> Mapping[str, str]:
        """The runs that sweeps made, each with the run of the file that it comes from."""

    def model_of_run(self, run: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The architecture of a run's entry in an experiment."""
