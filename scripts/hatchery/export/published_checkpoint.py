"""A checkpoint of the published LTG-BERT or ELC-BERT code as a folder that evaluation reads like a pretraining result.

Files of others are read without running anything they hold. What they can tell is detected and checked: the family
(from the layer weights), the sentence-pair head, the position tables and the output matrix, which repeats the word
embedding. What they cannot tell has to be said: LTG-BERT's BNC and BabyLM code have the same tensors and give other
results (docs/papers/ltg-bert.md, "Attention"), and so have three variants of ELC-BERT.
"""

import argparse
import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from hatchery.artifacts.atomic import json_value, write_bytes
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError, ModelError
from hatchery.modeling.language_model import LanguageModel, build_language_model
from hatchery.modeling.ltg.family import LtgBertConfig, PositionHeadLayout
from hatchery.modeling.ltg.published_names import (
    OUTPUT_MATRIX,
    OUTPUT_MIXTURE,
    POSITION_TABLE,
    WORD_EMBEDDING,
    count_layers,
    from_published,
    published_name,
)
from hatchery.modeling.relative_positions import RelativePositions
from hatchery.modeling.store import check_tensors, save_model
from hatchery.settings.base import shortened
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build

STATE_PREFIX = "state."
"""Before every parameter in our golden npz files, which hold inputs and outputs besides."""
PARALLEL_PREFIX = "module."
"""Before every parameter where the weights were saved from inside DistributedDataParallel."""
TORCH_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")
UNREADABLE = (
    *(OSError, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, SafetensorError),
)
"""What the readers raise at damaged files."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """The state dict in `path`, told by its ending: .bin, .pt, .pth or .ckpt (torch), .safetensors, .npz.

    A torch file may hold it under the key "model", as the authors' checkpoints do. Raises ModelError naming the file
    when it is missing, damaged, holds code, or holds no state dict.
    """
    if not path.is_file():
        raise ModelError(f"{path}: the file with the weights is missing")
    readers: dict[str, Callable[[Path], dict[str, Tensor]]] = {
        **dict.fromkeys(TORCH_ENDINGS, _from_torch),
        ".safetensors": load_file,
        ".npz": _from_npz,
    }
    if path.suffix not in readers:
        raise ModelError(f"{path}: got a file that ends in {path.suffix!r}, expected one of {', '.join(readers)}")
    try:
        state = readers[path.suffix](path)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, pickle.UnpicklingError) and ("weights only" in reason.lower() or "GLOBAL" in reason):
            raise ModelError(f"{path}: holds more than tensors, and nothing else is loaded from it") from error
        kind = {".safetensors": "safetensors file", ".npz": "npz file of numbers"}.get(path.suffix, "torch file")
        raise ModelError(f"{path}: not a readable {kind}: {reason}") from error
    if state and all(name.startswith(PARALLEL_PREFIX) for name in state):
        state = {name.removeprefix(PARALLEL_PREFIX): tensor for name, tensor in state.items()}
    if not state:
        raise ModelError(f"{path}: holds no tensors")
    return state


def _from_torch(path: Path) -> dict[str, Tensor]:
    # The authors' checkpoints hold their command line, which is data, too.
    with torch.serialization.safe_globals([argparse.Namespace]):
        content = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(content, Mapping) and isinstance(content.get("model"), Mapping):
        content = content["model"]
    if not isinstance(content, Mapping):
        raise ModelError(
            f"{path}: holds a {type(content).__name__}, expected a state dict or one under the key 'model'"
        )
    for name, tensor in content.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ModelError(f"{path}: {name!r} is a {type(tensor).__name__}, expected a state dict of tensors")
    return dict(content)


def _from_npz(path: Path) -> dict[str, Tensor]:
    with np.load(path, allow_pickle=False) as archive:
        marked = [name for name in archive.files if name.startswith(STATE_PREFIX)]
        arrays = {name.removeprefix(STATE_PREFIX): archive[name] for name in marked or archive.files}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
OPTIONAL = (
    "max_position_embeddings",
    "position_bucket_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
)
UNDISTINGUISHED = ("biased", "zero", "normalized")
LAYOUTS: tuple[str, ...] = get_args(PositionHeadLayout)


def import_checkpoint(
    weights: Path,
    config: Path,
    tokenizer: Path,
    output: Path,
    layer_weighting: str | None = None,
    position_head_layout: str | None = None,
) -> None:
    """Write the model as `config.json`, `model.safetensors` and `tokenizer.json` beside the manifest `output`.

    `weights` is a state dict under the authors' names (see `read_weights`), `config` their JSON configuration. Raises
    ModelError for unusable files and for a choice that is missing or contradicts the weights, TokenizationError for an
    unusable tokenizer.
    """
    state = read_weights(weights)
    chosen = checkpoint_config(state, read_config(config), str(weights), layer_weighting, position_head_layout)
    model = load_published(state, chosen, str(weights))
    n_tokens = load_tokenizer(tokenizer).vocabulary_size
    if n_tokens > chosen.vocab_size:
        raise ModelError(f"{tokenizer}: has {n_tokens} entries, the model of {weights} only {chosen.vocab_size}")
    settings = {
        "stage": "import_checkpoint",
        "stage_version": 1,
        "layer_weighting": chosen.layer_weighting,
        "position_head_layout": chosen.position_head_layout,
    }
    with stage_run(output, settings, {"weights": weights, "config": config, "tokenizer": tokenizer}) as run:
        for path in save_model(output.parent, model):
            run.add_output(path)
        write_bytes(output.parent / "tokenizer.json", tokenizer.read_bytes())
        run.add_output(output.parent / "tokenizer.json")
        run.measures["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        run.measures["sentence_pair_head"] = chosen.sentence_pair_head


def read_config(path: Path) -> dict[str, object]:
    """The authors' configuration. Raises ModelError naming the file when it is missing, damaged, or lacks a size."""
    try:
        values = json_value(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the configuration is missing") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a readable JSON file: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: holds a {type(values).__name__}, expected an object with the sizes of the model")
    if missing := [key for key in SIZES if key not in values]:
        raise ModelError(f"{path}: lacks {', '.join(missing)}")
    return values


def checkpoint_config(
    state: Mapping[str, Tensor],
    published: Mapping[str, object],
    where: str,
    layer_weighting: str | None = None,
    position_head_layout: str | None = None,
) -> LtgBertConfig:
    """Our configuration of a published model; `where` is the file that messages name.

    Keys of `published` that our configuration does not know (as a wrapper's configuration has them) are passed over.
    Raises ModelError when a choice is missing, unknown, or contradicts the weights.
    """
    weighting = _weighting(state, where, layer_weighting)
    layout = _layout(weighting, where, position_head_layout)
    values = {key: published[key] for key in (*SIZES, *OPTIONAL) if key in published}
    try:
        return build(
            LtgBertConfig,
            {
                **values,
                "layer_weighting": weighting,
                "position_head_layout": layout,
                # The BNC code drops before the head's second norm, all later code after it (docs/papers/ltg-bert.md,
                # "Model").
                "head_dropout": "before_norm" if layout == "bnc" else "after_norm",
                "sentence_pair_head": any(name.startswith("pair_head.") for name in from_published(state)),
            },
            "model",
        )
    except ConfigError as error:
        raise ModelError(f"{where}: {error}") from error


def load_published(state: Mapping[str, Tensor], config: LtgBertConfig, where: str) -> LanguageModel:
    """The model with the weights of `state`, in fp32. Raises ModelError naming `where` and the published tensor."""
    _check_tables(state, config, where)
    _check_output_matrix(state, where)
    tensors = from_published(state)
    model = build_language_model(config)
    name_in_file = partial(published_name, n_layers=config.num_hidden_layers)
    check_tensors(model, tensors, where, name_in_file)
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{where}: tensor {name_in_file(name)} holds numbers that are not finite")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model


def _weighting(state: Mapping[str, Tensor], where: str, chosen: str | None) -> str:
    allowed: tuple[str, ...] = UNDISTINGUISHED
    if OUTPUT_MIXTURE in state:
        allowed = ("weighted_output",)
    elif not any(name.endswith(".prev_layer_weights") for name in state):
        allowed = ("none",)
    return _choice(
        f"{where}: layer_weighting",
        chosen,
        allowed,
        f"the tensors are those of {allowed[0]!r}",
        "these variants of ELC-BERT have the same tensors, so the file cannot tell which one it is",
    )


def _layout(weighting: str, where: str, chosen: str | None) -> str:
    return _choice(
        f"{where}: position_head_layout",
        chosen,
        LAYOUTS if weighting == "none" else ("babylm",),
        "ELC-BERT has only 'babylm'",
        "the BNC and the BabyLM code of LTG-BERT have the same tensors but read them differently, so the file cannot "
        "tell which one it needs",
    )


def _choice(what: str, chosen: str | None, possible: Sequence[str], only: str, undecided: str) -> str:
    """What is chosen of what is possible; where that is one thing, `only` says so, and `undecided` else why not."""
    if chosen is not None and chosen in possible:
        return chosen
    if len(possible) > 1:
        raise ModelError(f"{what}: got {shortened(chosen)}, expected one of {', '.join(possible)}: {undecided}")
    if chosen is not None:
        raise ModelError(f"{what}: got {shortened(chosen)}, but {only}")
    return possible[0]


def _check_tables(state: Mapping[str, Tensor], config: LtgBertConfig, where: str) -> None:
    ours = RelativePositions(config.position_bucket_size, config.max_position_embeddings)
    for layer in range(count_layers(state)):
        name = f"transformer.layers.{layer}.{POSITION_TABLE}"
        if name not in state:
            continue
        table = state[name]
        if table.ndim != 2 or not torch.equal(ours.rows(len(table)), table.long()):
            raise ModelError(
                f"{where}: tensor {name} is not the table for {config.position_bucket_size} buckets and "
                f"{config.max_position_embeddings} positions of the configuration"
            )


def _check_output_matrix(state: Mapping[str, Tensor], where: str) -> None:
    if OUTPUT_MATRIX not in state or WORD_EMBEDDING not in state:
        return
    if not torch.equal(state[OUTPUT_MATRIX], state[WORD_EMBEDDING]):
        raise ModelError(f"{where}: tensor {OUTPUT_MATRIX} differs from {WORD_EMBEDDING}, which it has to repeat")
