"""Starting a pretraining from another model: that it fits, its weights, and what it had seen before.

The other model is known by its manifest, of a pretraining here or of `scripts/import_checkpoint.py`. Whatever does not
fit is refused before anything is trained, in one line.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.errors import ConfigError
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import description, load_config, load_language_model
from hatchery.training.checkpoints import (
    Position,
    checkpoint_folder,
    checkpoint_folders,
    read_position,
    verify_checkpoint,
)
from hatchery.training.milestones import milestone_place, step_name, words_seen
from hatchery.training.settings import PretrainSettings
from hatchery.training.start_settings import FREE_KEYS

TOKENIZER_FILE = "tokenizer.json"
# Beside the exported model, where `keep_training_state` asks for it.
STATE_FOLDER = "training_state"
# The weights of the last step, where an average of them is exported and they are to be kept.
RAW_WEIGHTS_FOLDER = "raw_weights"


def check_initial_model(settings: PretrainSettings, initial: Path | None, tokenizer: Path) -> None:
    """The files of the initial model are sound, and its vocabulary and training state fit the run.

    `initial` and `tokenizer` are manifests. Raises ConfigError for a mismatch, ManifestError for a damaged model.
    """
    chosen = settings.initialise_from
    if (chosen is None) != (initial is None):
        raise ConfigError(
            f"initial_model is {initial}, but pretrain.initialise_from is {'not ' if chosen is None else ''}set"
        )
    if chosen is None or initial is None:
        return
    made = read_manifest(initial)
    _check_vocabulary(made, read_manifest(tokenizer))
    if chosen.step and not milestone_folder(initial.parent, step_name(chosen.step)).is_dir():
        raise ConfigError(
            f"pretrain.initialise_from.step: got {chosen.step}, but {initial.parent} has no such milestone: it was "
            f"trained for {made.measures.get('steps')} steps; expected an earlier one"
        )
    if chosen.take == "training":
        done = initial_position(initial).step
        # A budget counts its steps from `done` on, so it is not compared.
        if settings.budget is None and done >= settings.steps:
            raise ConfigError(
                f"pretrain.steps: got {settings.steps}, expected more than the {done} steps that the training state of "
                f"{initial} has: with `take: training`, `steps` counts from the beginning of that run"
            )


def check_initial_config(config: ModelConfig, causal: bool, initial: Path) -> None:
    """Raise ConfigError, naming the first key that differs, unless the initial model is built and read like this."""
    theirs, ours = description(*load_config(initial.parent)), description(config, causal)
    for key in sorted(theirs.keys() | ours.keys()):
        if key not in FREE_KEYS and theirs.get(key) != ours.get(key):
            raise ConfigError(
                f"{initial}: the initial model has {key} {_shown(theirs.get(key))}, this run {_shown(ours.get(key))}; "
                "a model can go on only as it was built: change the run's model, or start from another one"
            )


def load_initial_(model: LanguageModel, initial: Path, step: int | None = None) -> None:
    """Give `model` (on the CPU) the weights of the model of the manifest `initial`, or those of its milestone `step`.

    Raises ModelError.
    """
    folder = initial.parent if step is None else milestone_folder(initial.parent, step_name(step))
    model.load_state_dict(load_language_model(folder).state_dict())


def milestone_folder(model: Path, name: str) -> Path:
    """Where a model of inside a training lies beside the finished one in `model`."""
    return model / milestone_place(name)


def initial_checkpoint(initial: Path) -> Path:
    """The kept training state beside the manifest of a model. Raises ConfigError where there is none."""
    folders = checkpoint_folders(initial.parent / STATE_FOLDER)
    if not folders:
        raise ConfigError(
            f"{initial}: the optimiser of this model was not kept; set `keep_training_state: true` in the run that "
            "made it (it is then trained anew), or start from its weights with `take: weights`"
        )
    return folders[0]


def initial_position(initial: Path) -> Position:
    """How far the run of a kept training state had come. Raises ConfigError, CheckpointError."""
    return read_position(initial_checkpoint(initial))


def keep_training_state(run_folder: Path, step: int, folder: Path) -> list[Path]:
    """Copy the checkpoint after `step` steps beside the exported model in `folder`; returns the files.

    Raises CheckpointError when the checkpoint is damaged.
    """
    source = checkpoint_folder(run_folder, step)
    verify_checkpoint(source)
    target = folder / STATE_FOLDER
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target / source.name)
    return sorted(path for path in (target / source.name).iterdir() if path.is_file())


def initial_measures(settings: PretrainSettings, initial: Path) -> dict[str, Any]:
    """What the manifest records of the training before: null where the initial model was imported.

    With `take: training` the earlier steps and tokens are part of the run's own counts, with `weights` they are not.
    `left_out_steps` and `left_out_tokens` are those that the counts of a training that goes on leave out.
    """
    assert settings.initialise_from is not None
    take, manifest = settings.initialise_from.take, read_manifest(initial)
    measures = manifest.measures
    before = measures.get("initial_model") or {}
    # Steps and tokens of earlier trainings whose weights that model took; its own counts leave them out.
    key = "earlier" if before.get("take") == "weights" else "left_out"
    left_out = {name: before.get(f"{key}_{name}", 0) for name in ("steps", "tokens")}
    if take == "training":
        position = initial_position(initial)
        more = {f"left_out_{name}": value for name, value in left_out.items()} if left_out["steps"] != 0 else {}
        return {"take": take, "earlier_steps": position.step, "earlier_tokens": position.tokens, **more}
    counts = {name: measures.get(name) for name in ("steps", "tokens")}
    if step := settings.initialise_from.step:
        counts = {"steps": step, "tokens": _seen_after(manifest, step, "tokens")}
    return {"take": take, **{f"earlier_{name}": _sum(value, left_out[name]) for name, value in counts.items()}}


def words_before(settings: PretrainSettings, initial: Path | None) -> int | None:
    """Words that the initial model of a run had seen which the run's own count leaves out; None if nobody knows.

    Where a training goes on, its count does, too: those that the model had seen before that training are left out.
    """
    chosen = settings.initialise_from
    if initial is None or chosen is None:
        return 0
    manifest = read_manifest(initial)
    own, seen = manifest.measures.get("words"), words_seen(manifest.measures)
    if own is None or seen is None:
        return None
    if chosen.take == "training":
        return seen - own
    if chosen.step is None:
        return seen
    return _sum(seen - own, _seen_after(manifest, chosen.step, "words"))


def _seen_after(initial: Manifest, step: int, what: str) -> int | None:
    rows = map(json.loads, initial.file("metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return next((int(row[what]) for row in rows if row["step"] == step and what in row), None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _check_vocabulary(initial: Manifest, tokenizer: Manifest) -> None:
    theirs, ours = (manifest.file(TOKENIZER_FILE) for manifest in (initial, tokenizer))
    if theirs.read_bytes() == ours.read_bytes():
        return
    first, second = _ids(theirs), _ids(ours)
    if first != second:
        token = min(token for token in first.keys() | second.keys() if first.get(token) != second.get(token))
        raise ConfigError(
            f"{initial.path}: the initial model has another vocabulary than {tokenizer.path}: {token!r} is "
            f"{_id(first, token)} there and {_id(second, token)} here; use the tokenizer of the initial model"
        )


def _ids(path: Path) -> dict[str, int]:
    document = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = document["model"]["vocab"]
    ids = vocabulary if isinstance(vocabulary, Mapping) else {piece: i for i, (piece, _) in enumerate(vocabulary)}
    return {**ids, **{entry["content"]: entry["id"] for entry in document.get("added_tokens", ())}}


def _id(ids: Mapping[str, int], token: str) -> str:
    return f"number {ids[token]}" if token in ids else "missing"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
