"""Input and output of a direct evaluation (`hatchery.evaluate`), which runs on a model, data and settings without a
manifest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl
import torch

from hatchery.errors import ConfigError
from hatchery.evaluation.direct.checkpoints import Checkpoints
from hatchery.evaluation.direct.data import as_frame, source_at, source_of_frame
from hatchery.evaluation.pretrained import Pretrained
from hatchery.evaluation.scores import Scores
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.raw.registration import RawSource
from hatchery.typed import build

Built = TypeVar("Built")


@dataclass(frozen=True)
class Request:
    """The input of a direct evaluation (`hatchery.evaluate`): a model on `device` or the checkpoints of one run, data,
    and settings.

    `name` is the name of the suite or task in the result's rows; `settings` come from the file of the suite or task and
    from the caller. `data` is a path or a table in memory, or None if the caller passed no data. Files may be written
    into the folder `scratch`.
    """

    opened: Pretrained | Checkpoints
    device: torch.device
    name: str
    settings: Mapping[str, Any]
    data: Any
    scratch: Path
    runtime: EvaluationRuntime

    @property
    def model(self) -> Pretrained:
        """The model to evaluate. Raises AssertionError if the request is about checkpoints."""
        assert not isinstance(self.opened, Checkpoints), (
            "a kind of evaluation without `of_checkpoints` evaluates one model"
        )
        return self.opened

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints to evaluate. Raises AssertionError if the request is about one model."""
        assert isinstance(self.opened, Checkpoints)
        return self.opened

    def source(self) -> RawSource:
        """Return the data as files. Raises ConfigError for a request without data, and SourceError for an unusable
        path."""
        if self.data is None:
            raise ConfigError(f"data: got none, expected the file or folder with the data of {self.name!r}")
        if isinstance(self.data, str | Path):
            return source_at(self.data, self.scratch)
        return source_of_frame(as_frame(self.data), self.scratch)

    def with_frame(self, frame: pl.DataFrame, settings: Mapping[str, Any]) -> "Request":
        """Return a copy of the request whose data is the table `frame` and whose settings are `settings`."""
        return replace(self, data=frame, settings=settings)

    def built(self, cls: type[Built], **more: Any) -> Built:
        """Return the settings as an instance of `cls`. Raises ConfigError with a line for each invalid key."""
        return build(cls, {**more, **self.settings}, self.name)


class Answer(NamedTuple):
    """Output of a direct evaluation (`hatchery.evaluate`): its scores and the settings (a dataclass) used."""

    scores: Scores
    settings: Any
