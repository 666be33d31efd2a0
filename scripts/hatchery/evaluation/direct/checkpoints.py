"""The checkpoints of one run by the number of words seen, for evaluations over the course of training.

Checkpoints are opened one at a time, so only one model is in memory.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from torch import nn

from hatchery.artifacts.manifests import MANIFEST, Manifest, read_manifest
from hatchery.errors import ConfigError
from hatchery.evaluation.opening import Named, open_model
from hatchery.evaluation.pretrained import Pretrained
from hatchery.evaluation.runtime import open_trained
from hatchery.training.milestones import mark_name, milestone_place, step_name, words_of_mark
from hatchery.training.telemetry import METRICS_FILE

EXPECTED = (
    "expected a mapping whose keys are numbers of words seen and whose values are the models of these checkpoints, or "
    "the folder of a Hatchery training with `milestones` or `checkpoints_at`"
)


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run, in the order of `words`.

    `words` maps each checkpoint's name to the number of words that the checkpoint has seen; `open` receives the name of
    a checkpoint and loads its model.
    """

    where: str
    words: Mapping[str, int]
    open: Callable[[str], Pretrained]

    def __iter__(self) -> Iterator[tuple[str, Pretrained]]:
        """Yield the name and the model of each checkpoint in turn."""
        return ((name, self.open(name)) for name in self.words)


def checkpoints_of(model: Any, tokenizer: Any, architecture: Named | None) -> Checkpoints:
    """Return the checkpoints of a run.

    `model` is the folder of a Hatchery run, or a mapping from numbers of words to models. `open_model` opens these
    models, all with the same `tokenizer` and `architecture`. Raises ConfigError for any other `model`, for a run that
    stored no checkpoint with a recorded number of words, and for a run whose model is a module of the user.
    """
    if isinstance(model, Mapping):
        return _given(model, tokenizer, architecture)
    if isinstance(model, nn.Module) or not isinstance(model, str | PathLike):
        raise ConfigError(f"model: got {type(model).__name__}, {EXPECTED}")
    path = Path(model).expanduser()
    path = path if path.name == MANIFEST else path / MANIFEST
    if not path.is_file():
        raise ConfigError(f"model: got {str(model)!r}, which contains no {MANIFEST}, {EXPECTED}")
    made = read_manifest(path)
    made.verify()
    if "module" in made.settings.get("model", {}):
        raise ConfigError(
            f"{path}: the models of this training are modules of your own code, expected a mapping from numbers of "
            "words to modules"
        )
    words = _words_at_checkpoints(made)
    if not words:
        raise ConfigError(f"{path}: this training stored no checkpoints with a recorded number of words, {EXPECTED}")

    def opened(name: str) -> Pretrained:
        # For the checkpoint's folder, use the run's manifest, which contains the training settings and the digests of
        # all files.
        return open_trained(replace(made, path=made.folder / milestone_place(name) / MANIFEST))

    return Checkpoints(str(path), words, opened)


def _given(model: Mapping[Any, Any], tokenizer: Any, architecture: Named | None) -> Checkpoints:
    for words in model:
        if not isinstance(words, int) or isinstance(words, bool) or words < 0:
            raise ConfigError(f"model: got the key {words!r}, expected the number of words seen")
    if not model:
        raise ConfigError(f"model: got an empty mapping, {EXPECTED}")
    names = {mark_name(words): words for words in sorted(model)}
    return Checkpoints("checkpoints", names, lambda name: open_model(model[names[name]], tokenizer, architecture))


def _words_at_checkpoints(made: Manifest) -> dict[str, int]:
    """Map each checkpoint's name to the number of words that it has seen.

    If the run has word milestones (`checkpoints_at`), only the checkpoints at these milestones are included. Otherwise,
    the checkpoints that are named after a step are included. The mapping is empty for a run that has no word milestones
    and starts from an initial model.
    """
    marks = made.measures.get("marks", {})
    folders = {output.path.parent for output in made.outputs}
    # As in the workflow, read the number of words from the checkpoint's name. The training may have read up to one
    # batch more or less.
    words = {name: words_of_mark(name) for name in marks}
    metrics = made.folder / METRICS_FILE
    # If a run continues an earlier run, its metrics file lacks the words that the earlier run read, so skip this file.
    if not words and metrics.is_file() and "initial_model" not in made.measures:
        rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
        words = {step_name(row["step"]): row["words"] for row in rows if row.get("words") is not None}
    words = {name: words for name, words in words.items() if made.folder / milestone_place(name) in folders}
    return dict(sorted(words.items(), key=lambda item: item[1]))
