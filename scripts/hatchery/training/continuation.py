"""Start a pretraining from another model: check this model against the settings, load its weights, and record its
training.

The initial model is given by its manifest, which Hatchery's pretraining or `scripts/import_checkpoint.py` has written.
A mismatch is reported before training.
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
# Folder of the last checkpoint, next to the exported model, if `keep_training_state` is set.
STATE_FOLDER = "training_state"
# Folder of the weights after the last step, if averaged weights are exported and `keep_raw_weights` is set.
RAW_WEIGHTS_FOLDER = "raw_weights"


def check_initial_model(settings: PretrainSettings, initial: Path | None, tokenizer: Path) -> None:
    """Check that the initial model has the run's vocabulary and the milestone that the settings name. If the run
    continues the initial model's training, also check that the model has a usable training state.

    `initial` and `tokenizer` are manifests. Raises ConfigError for a mismatch, ManifestError for a damaged model, and
    CheckpointError for an unreadable training state.
    """
    chosen = settings.initialise_from
    if (chosen is None) != (initial is None):
        raise ConfigError(
            f"initial_model is {initial}, but pretraining.initialise_from is {'not ' if chosen is None else ''}set; "
            "expected both or neither"
        )
    if chosen is None or initial is None:
        return
    made = read_manifest(initial)
    check_vocabulary(made, read_manifest(tokenizer), "initial model")
    if chosen.step and not milestone_folder(initial.parent, step_name(chosen.step)).is_dir():
        raise ConfigError(
            f"pretraining.initialise_from.step: got {chosen.step}, but {initial.parent}, trained for "
            f"{made.measures.get('steps')} steps, has no milestone of this step; expected the step of "
            "a milestone of this model"
        )
    if chosen.take == "training":
        done = initial_position(initial).step
        # Without a budget, `steps` includes the `done` steps of the initial model. A budget counts only later steps.
        if settings.budget is None and done >= settings.steps:
            raise ConfigError(
                f"pretraining.steps: got {settings.steps}, expected more than {done}, the number of finished steps "
                f"in the training state of {initial}: with `take: training`, `steps` includes these steps"
            )


def check_initial_config(config: ModelConfig, causal: bool, initial: Path) -> None:
    """Raise ConfigError, naming the first different key, unless the initial model has the run's configuration: `config`
    and `causal`. The dropout probabilities may differ.
    """
    # Add `causal: False` before the comparison, because the description of a model that is not causal omits the key
    # `causal`.
    theirs, ours = (
        {"causal": False, **described}
        for described in (description(*load_config(initial.parent)), description(config, causal))
    )
    for key in sorted(theirs.keys() | ours.keys()):
        if key not in FREE_KEYS and theirs.get(key) != ours.get(key):
            raise ConfigError(
                f"{initial}: the initial model has {key} {_shown(theirs.get(key))}, this run has {key} "
                f"{_shown(ours.get(key))}; training continues only with equal configurations: change the model of "
                "this run, or start from another model"
            )


def load_initial_(model: LanguageModel, initial: Path, step: int | None = None) -> None:
    """Load the weights of the initial model, or of its milestone after `step` steps, into `model` (on the CPU).

    `initial` is the initial model's manifest. Raises ModelError if the weights cannot be loaded.
    """
    folder = initial.parent if step is None else milestone_folder(initial.parent, step_name(step))
    model.load_state_dict(load_language_model(folder).state_dict())


def milestone_folder(model: Path, name: str) -> Path:
    """Return the folder of the milestone (intermediate checkpoint) `name` of a model; `model` is the folder of the
    finished model.
    """
    return model / milestone_place(name)


def initial_checkpoint(initial: Path) -> Path:
    """Return the folder of the training state that is stored next to the manifest of a model. Raises ConfigError if
    there is no training state.
    """
    folders = checkpoint_folders(initial.parent / STATE_FOLDER)
    if not folders:
        raise ConfigError(
            f"{initial}: the optimiser of this model was not kept; set `keep_training_state: true` in the run that "
            "made this model (this run is then trained again), or start from the weights of this model with `take: "
            "weights`"
        )
    return folders[0]


def initial_position(initial: Path) -> Position:
    """Return the position (finished steps, tokens and words) of the initial model's training state.

    Raises ConfigError if there is no training state, and CheckpointError if the training state cannot be read.
    """
    return read_position(initial_checkpoint(initial))


def keep_training_state(run_folder: Path, step: int, folder: Path) -> list[Path]:
    """Copy the checkpoint after `step` steps into `folder`, next to the exported model; return the copied files.

    Raises CheckpointError if the checkpoint is damaged.
    """
    source = checkpoint_folder(run_folder, step)
    verify_checkpoint(source)
    target = folder / STATE_FOLDER
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target / source.name)
    return sorted(path for path in (target / source.name).iterdir() if path.is_file())


def initial_measures(settings: PretrainSettings, initial: Path) -> dict[str, Any]:
    """Return the manifest's entry for the initial model's training; counts are null if this model was imported.

    With `take: training`, the run's own counts include the steps and tokens of the initial model's training. With
    `take: weights`, the run's own counts exclude these steps and tokens. `left_out_steps` and `left_out_tokens` are the
    steps and tokens of trainings before the initial model's training; the initial model's own counts exclude these
    trainings.
    """
    assert settings.initialise_from is not None
    take, manifest = settings.initialise_from.take, read_manifest(initial)
    measures = manifest.measures
    before = measures.get("initial_model") or {}
    # Numbers of steps and tokens of trainings before the initial model's own training. The counts in the initial
    # model's manifest exclude them.
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
    """Return the number of words that the initial model has seen and that the run's own count excludes; None if
    unknown.

    If the run continues the initial model's training, the run's own count includes the words of this training. In this
    case, return only the number of words in the trainings before this training.
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


def check_vocabulary(model: Manifest, tokenizer: Manifest, role: str) -> None:
    """Raise ConfigError, naming a token with different ids, unless a model's tokenizer has the vocabulary of
    `tokenizer`.

    `role` names the model in the message.
    """
    theirs, ours = (manifest.file(TOKENIZER_FILE) for manifest in (model, tokenizer))
    if theirs.read_bytes() == ours.read_bytes():
        return
    first, second = _ids(theirs), _ids(ours)
    if first != second:
        token = min(token for token in first.keys() | second.keys() if first.get(token) != second.get(token))
        raise ConfigError(
            f"{model.path}: the {role} has another vocabulary than {tokenizer.path}: {token!r} {_id(first, token)} "
            f"in the {role} and {_id(second, token)} in {tokenizer.path}; use the tokenizer of the {role}"
        )


def _ids(path: Path) -> dict[str, int]:
    document = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = document["model"]["vocab"]
    ids = vocabulary if isinstance(vocabulary, Mapping) else {piece: i for i, (piece, _) in enumerate(vocabulary)}
    return {**ids, **{entry["content"]: entry["id"] for entry in document.get("added_tokens", ())}}


def _id(ids: Mapping[str, int], token: str) -> str:
    return f"has id {ids[token]}" if token in ids else "is missing"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
