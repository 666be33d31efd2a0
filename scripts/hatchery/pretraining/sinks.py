"""Where metrics can go besides the plain files: TensorBoard and trackio, both off unless the configuration asks.

Neither package is needed otherwise, so each is imported only when its sink is opened. A sink is a convenience: one
that fails while training runs is given up with a message, and the run goes on.
"""

import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hatchery.errors import ConfigError


class Sink(Protocol):
    """Takes numbers by name, step by step."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Note the values of one step; steps ascend."""
        ...

    def close(self) -> None:
        """Write what is still held back."""
        ...


class TensorBoardSink:
    """Event files of TensorBoard in a folder."""

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Write below `folder`; what earlier attempts wrote for steps after `after_step` is hidden by TensorBoard."""
        make_writer = _imported("tensorboard", "torch.utils.tensorboard:SummaryWriter")
        self._writer = make_writer(log_dir=str(folder / run), purge_step=after_step + 1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """One scalar for each value."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write and close the event file."""
        self._writer.close()


class TrackioSink:
    """A run of trackio's project "hatchery", in trackio's own folder or in `folder`."""

    def __init__(self, folder: Path, run: str, after_step: int) -> None:
        """Go on with the run of this name if there is one; its steps after `after_step` appear again."""
        # Read when the package is imported; whoever set it wants the runs elsewhere.
        os.environ.setdefault("TRACKIO_DIR", str(folder))
        self._trackio = _imported("trackio", "trackio:")
        self._trackio.init(project="hatchery", name=run, resume="allow")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """All values in one row."""
        self._trackio.log(dict(values), step=step)

    def close(self) -> None:
        """End the run."""
        self._trackio.finish()


SINKS: dict[str, type[TensorBoardSink] | type[TrackioSink]] = {"tensorboard": TensorBoardSink, "trackio": TrackioSink}


class Sinks:
    """All sinks of a run; none by default."""

    def __init__(self, sinks: Mapping[str, Sink] | None = None) -> None:
        self._sinks = dict(sinks or {})

    def log(self, step: int, values: Mapping[str, Any]) -> None:
        """Hand the numbers among `values` to every sink; what is not a number (an unknown MFU) is left out."""
        numbers = {name: value for name, value in values.items() if isinstance(value, int | float) and name != "step"}
        for name, sink in list(self._sinks.items()):
            try:
                sink.log(step, numbers)
            except Exception as error:
                # Whatever a dashboard stumbles over must not end days of training.
                self._give_up(name, error)

    def close(self) -> None:
        """Close every sink."""
        for name, sink in list(self._sinks.items()):
            try:
                sink.close()
            except Exception as error:
                self._give_up(name, error)
        self._sinks.clear()

    def _give_up(self, name: str, error: Exception) -> None:
        del self._sinks[name]
        reason = (str(error).splitlines() or [""])[0]
        print(f"warning: {name} takes no more metrics: {type(error).__name__}: {reason}", file=sys.stderr, flush=True)


def open_sinks(names: Iterable[str], folder: Path, run: str, after_step: int = 0) -> Sinks:
    """The sinks called `names` (keys of `SINKS`) for the run called `run`, which goes on after step `after_step`.

    Each keeps its data below `folder` / its name. Raises ConfigError for an unknown name and for a missing package.
    """
    opened: dict[str, Sink] = {}
    for name in names:
        if name not in SINKS:
            raise ConfigError(f"compute.sinks: got {name!r}, allowed are: {', '.join(SINKS)}")
        opened[name] = SINKS[name](folder / name, run, after_step)
    return Sinks(opened)


def _imported(package: str, name: str) -> Any:
    """What `name` ("module:" or "module:object") stands for.

    By name and not by a statement: what statements import, every environment must hold (`environments.imports`).
    """
    try:
        return pkgutil.resolve_name(name)
    except ImportError as error:
        raise ConfigError(
            f"compute.sinks: {package!r} needs the package {package}, which is not installed here; "
            f"install it, or leave {package!r} out"
        ) from error
