"""Several mistakes of a configuration in one error: whoever mends one should not meet the next a minute later."""

from collections.abc import Iterator
from contextlib import contextmanager

from hatchery.errors import ConfigError, HatcheryError


class Problems:
    """Lines of errors in the order in which they were found, each once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def collecting(self, place: str = "") -> Iterator[None]:
        """Keep the error of the block, with `place` in front of its lines, and go on behind it."""
        try:
            yield
        except HatcheryError as error:
            for line in str(error).splitlines():
                self.add(f"{place}: {line}" if place else line)

    def add(self, line: str) -> None:
        """Add a line unless it is there."""
        if line not in self.lines:
            self.lines.append(line)

    def raise_any(self) -> None:
        """Raise ConfigError with all lines, if there are any."""
        if self.lines:
            raise ConfigError("\n".join(self.lines))
