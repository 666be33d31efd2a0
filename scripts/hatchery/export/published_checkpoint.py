"""Convert a checkpoint of the published LTG-BERT, ELC-BERT or GPT-BERT code to a folder like the folder of a
pretraining.

The tensors determine some properties, which are detected and checked: the family, the attention gate, the layer
weights, the sentence-pair head, the position tables, and the output matrix. The output matrix must equal the word
embedding.

The user must state all other properties. For example, LTG-BERT's BNC code and BabyLM code have tensors with equal names
and shapes, but compute different results (docs/papers/ltg-bert.md, "Attention"). The same is true of three variants of
ELC-BERT.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import torch
from torch import Tensor

from hatchery.artifacts.atomic import write_bytes
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import ConfigError, ModelError
from hatchery.export.published_weights import SIZES, read_config, read_weights
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.gpt_bert import published_names as gpt_bert_names
from hatchery.modeling.gpt_bert.config import GptBertConfig
from hatchery.modeling.language_model import LanguageModel, build_language_model
from hatchery.modeling.ltg import published_names as ltg_names
from hatchery.modeling.ltg.config import LtgBertConfig, PositionHeadLayout
from hatchery.modeling.relative_positions import RelativePositions
from hatchery.modeling.store import check_tensors, save_model
from hatchery.settings.base import shortened
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.typed import build

OPTIONAL = (
    "max_position_embeddings",
    "position_bucket_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "layer_norm_eps",
)
CHOICES = ("family", "layer_weighting", "position_head_layout", "attention_gate")
"""Keys of the model's configuration that are stored in the manifest, because they state how the checkpoint was
interpreted.
"""
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
    """Write the model as `config.json`, `model.safetensors` and `tokenizer.json` next to the manifest `output`.

    `weights` is a file with a state dict that has the parameter names of the published LTG-BERT, ELC-BERT or GPT-BERT
    code (see `read_weights`). `config` is the published model's configuration in JSON. Raises ModelError in three
    cases: a file is unusable; `layer_weighting` or `position_head_layout` contradicts the weights; or neither the
    weights nor the user determine one of these two options. Raises TokenizationError for an unusable tokenizer.
    """
    state = under_training_names(read_weights(weights))
    chosen = checkpoint_config(state, read_config(config), str(weights), layer_weighting, position_head_layout)
    model = load_published(state, chosen, str(weights))
    n_tokens = load_tokenizer(tokenizer).vocabulary_size
    if n_tokens > chosen.vocab_size:
        raise ModelError(
            f"{tokenizer}: has {n_tokens} entries, but the model of {weights} only has {chosen.vocab_size} embeddings"
        )
    settings = {
        "stage": "import_checkpoint",
        "stage_version": 1,
        **{key: value for key in CHOICES if (value := getattr(chosen, key, None)) is not None},
    }
    with stage_run(output, settings, {"weights": weights, "config": config, "tokenizer": tokenizer}) as run:
        for path in save_model(output.parent, model):
            run.add_output(path)
        write_bytes(output.parent / "tokenizer.json", tokenizer.read_bytes())
        run.add_output(output.parent / "tokenizer.json")
        run.measures["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        run.measures["sentence_pair_head"] = chosen.sentence_pair_head


def under_training_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a published checkpoint, under the names of the published training code (LTG-BERT, ELC-BERT
    or GPT-BERT). Names change only if the file was saved from GPT-BERT's `transformers` wrapper, which renames tensors.
    """
    trained = {gpt_bert_names.in_training(name): tensor for name, tensor in state.items()}
    return trained if _is_gpt_bert(trained) else dict(state)


def checkpoint_config(
    state: Mapping[str, Tensor],
    published: Mapping[str, object],
    where: str,
    layer_weighting: str | None = None,
    position_head_layout: str | None = None,
) -> ModelConfig:
    """Return Hatchery's configuration of a published model; `where` is the file's name in messages.

    Only the keys `SIZES` and `OPTIONAL` of `published` are read. Raises ModelError in three cases: a value is invalid;
    `layer_weighting` or `position_head_layout` is unknown or contradicts the weights; or neither the weights nor the
    user determine one of these two options.
    """
    values: dict[str, Any] = {key: published[key] for key in (*SIZES, *OPTIONAL) if key in published}
    configuration: type[ModelConfig] = GptBertConfig if _is_gpt_bert(state) else LtgBertConfig
    weighting = _weighting(state, where, layer_weighting)
    layout = _layout(state, weighting, where, position_head_layout)
    if configuration is GptBertConfig:
        values |= {"layer_weighting": weighting, "attention_gate": any(gpt_bert_names.GATE in name for name in state)}
    else:
        values |= {
            "layer_weighting": weighting,
            "position_head_layout": layout,
            # The BNC code applies dropout before the second norm of the head, and all later code applies it after this
            # norm (docs/papers/ltg-bert.md, "Model").
            "head_dropout": "before_norm" if layout == "bnc" else "after_norm",
            "sentence_pair_head": any(name.startswith("pair_head.") for name in ltg_names.from_published(state)),
        }
    try:
        return build(configuration, values, "model")
    except ConfigError as error:
        raise ModelError(f"{where}: {error}") from error


def _is_gpt_bert(state: Mapping[str, Tensor]) -> bool:
    """Return True if the tensors belong to GPT-BERT, whose state dict has separate lists of attention layers and
    feed-forward layers.
    """
    return any(name.startswith("transformer.attention_layers.") for name in state)


def load_published(state: Mapping[str, Tensor], config: ModelConfig, where: str) -> LanguageModel:
    """Return a model with the weights of `state`, in fp32. Raises ModelError naming `where` and the unusable tensor."""
    assert isinstance(config, LtgBertConfig | GptBertConfig)
    names: ModuleType = ltg_names
    name_in_file = partial(ltg_names.published_name, n_layers=config.num_hidden_layers)
    if isinstance(config, GptBertConfig):
        names, name_in_file = gpt_bert_names, partial(gpt_bert_names.published_name, gated=config.attention_gate)
    _check_tables(state, config, where, names.POSITION_TABLE)
    _check_output_matrix(state, where)
    tensors: dict[str, Tensor] = names.from_published(state)
    model = build_language_model(config)
    check_tensors(model, tensors, where, name_in_file)
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{where}: tensor {name_in_file(name)} contains numbers that are not finite")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model


def _weighting(state: Mapping[str, Tensor], where: str, chosen: str | None) -> str:
    allowed: tuple[str, ...] = UNDISTINGUISHED
    if ltg_names.OUTPUT_MIXTURE in state:
        allowed = ("weighted_output",)
    elif any(gpt_bert_names.MIXING in name for name in state):
        allowed = ("unrestricted",)
    elif not any(name.endswith(".prev_layer_weights") for name in state):
        allowed = ("none",)
    return _choice(
        f"{where}: layer_weighting",
        chosen,
        allowed,
        f"the tensor names are those of {allowed[0]!r}",
        "these variants of ELC-BERT have equal tensor names, so the variant cannot be inferred from the file",
    )


def _layout(state: Mapping[str, Tensor], weighting: str, where: str, chosen: str | None) -> str:
    return _choice(
        f"{where}: position_head_layout",
        chosen,
        LAYOUTS if weighting == "none" and not _is_gpt_bert(state) else ("babylm",),
        "ELC-BERT and GPT-BERT only have the layout 'babylm'",
        "the BNC and the BabyLM code of LTG-BERT have equal tensor names but use the tensors differently, so the "
        "layout cannot be inferred from the file",
    )


def _choice(what: str, chosen: str | None, possible: Sequence[str], only: str, undecided: str) -> str:
    """Return the setting of the option `what`: the user's choice `chosen` or, without a choice, the only possible
    setting.

    `only` and `undecided` are reasons for messages: `only` says why there is only one possible setting, and `undecided`
    says why the weights do not determine the setting.
    """
    if chosen is not None and chosen in possible:
        return chosen
    if len(possible) > 1:
        raise ModelError(f"{what}: got {shortened(chosen)}, expected one of {', '.join(possible)}: {undecided}")
    if chosen is not None:
        raise ModelError(f"{what}: got {shortened(chosen)}, but {only}")
    return possible[0]


def _check_tables(
    state: Mapping[str, Tensor], config: LtgBertConfig | GptBertConfig, where: str, table_name: str
) -> None:
    ours = RelativePositions(config.position_bucket_size, config.max_position_embeddings)
    for name, table in state.items():
        if not name.endswith(f".{table_name}"):
            continue
        if table.ndim != 2 or not torch.equal(ours.rows(len(table)), table.long()):
            raise ModelError(
                f"{where}: tensor {name} differs from the position table for the configured "
                f"{config.position_bucket_size} buckets and {config.max_position_embeddings} positions"
            )


def _check_output_matrix(state: Mapping[str, Tensor], where: str) -> None:
    matrix, embedding = ltg_names.OUTPUT_MATRIX, ltg_names.WORD_EMBEDDING
    if matrix in state and embedding in state and not torch.equal(state[matrix], state[embedding]):
        raise ModelError(f"{where}: tensor {matrix} differs from {embedding}, expected equal values")
