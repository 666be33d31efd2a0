"""What a check may ask of the configuration: other blocks, by kind and name. `Project` answers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from hatchery.settings.walk import Named


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

    def has(self, kind: str, name: str) -> bool:
        """Whether there is a block of this kind and name."""

    def place(self, kind: str, name: str) -> str:
        """Where a block is written, for messages."""

    def references_of(self, kind: str, name: str) -> Iterator[Named]:
        """What a block names, as it is written; nothing where it does not exist."""

    def raw_input(self, name: str) -> dict[str, Any] | None:
        """A raw input, of config.yaml or of a corpus."""

    def written_experiment(self, name: str) -> dict[str, Any]:
        """An experiment before it is compared with other files, for what could lead back to this one."""

    def analyses(self, name: str) -> dict[str, dict[str, Any]]:
        """The entries of the analyses of a study or an experiment."""

    def swept(self, experiment: str) -> Mapping[str, str]:
        """The runs that sweeps made, each with the run of the file that it comes from."""

    def model_of_run(self, run: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The architecture of a run's entry in an experiment."""
