"""A checkpoint of the published LTG-BERT or ELC-BERT code as a folder that evaluation reads like a pretraining result.

What the file can tell is detected and checked: the family (from the layer weights), the sentence-pair head, the
position tables and the output matrix, which repeats the word embedding. What it cannot tell has to be said: LTG-BERT's
BNC and BabyLM code have the same tensors and give other results (docs/papers/ltg-bert.md, "Attention"), and so have
three variants of ELC-BERT.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor

from hatchery.artifacts.atomic import json_value, write_bytes
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError, ModelError
from hatchery.export.weight_files import read_weights
from hatchery.modeling.configuration import LayerWeightingName
from hatchery.modeling.language_model import LanguageModel, build_language_model
from hatchery.modeling.ltg.configuration import LtgBertConfig, PositionHeadLayout
from hatchery.modeling.ltg.published_names import (
    OUTPUT_MATRIX,
    OUTPUT_MIXTURE,
    POSITION_TABLE,
    WORD_EMBEDDING,
    count_layers,
    from_published,
    published_name,
)
from hatchery.modeling.ltg.relative_positions import RelativePositions
from hatchery.modeling.store import check_tensors, save_model
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build

SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
OPTIONAL = (
    "max_position_embeddings",
    "position_bucket_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
)
UNDISTINGUISHED: tuple[LayerWeightingName, ...] = ("biased", "zero", "normalized")
LAYOUTS: tuple[PositionHeadLayout, ...] = get_args(PositionHeadLayout)


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


def read_config(path: Path) -> dict[str, Any]:
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
    published: Mapping[str, Any],
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


def _weighting(state: Mapping[str, Tensor], where: str, chosen: str | None) -> LayerWeightingName:
    weighted_layers = [name for name in state if name.endswith(".prev_layer_weights") and name != OUTPUT_MIXTURE]
    found: LayerWeightingName | None = None
    if OUTPUT_MIXTURE in state:
        found = "weighted_output"
    elif not weighted_layers:
        found = "none"
    if found is None:
        for name in UNDISTINGUISHED:
            if chosen == name:
                return name
        raise ModelError(
            f"{where}: layer_weighting: got {chosen!r}, expected one of {', '.join(UNDISTINGUISHED)}: these variants "
            "of ELC-BERT have the same tensors, so the file cannot tell which one it is"
        )
    if chosen not in (None, found):
        raise ModelError(f"{where}: layer_weighting: got {chosen!r}, but the tensors are those of {found!r}")
    return found


def _layout(weighting: str, where: str, chosen: str | None) -> PositionHeadLayout:
    if weighting != "none":
        if chosen not in (None, "babylm"):
            raise ModelError(f"{where}: position_head_layout: got {chosen!r}, but ELC-BERT has only 'babylm'")
        return "babylm"
    for layout in LAYOUTS:
        if chosen == layout:
            return layout
    raise ModelError(
        f"{where}: position_head_layout: got {chosen!r}, expected one of {', '.join(LAYOUTS)}: the BNC and the BabyLM "
        "code of LTG-BERT have the same tensors but read them differently, so the file cannot tell which one it needs"
    )


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
