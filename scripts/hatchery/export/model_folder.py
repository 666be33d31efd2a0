"""Write a folder that `transformers` can load: configuration, weights, tokenizer, and the modelling file of the model
family (such as LTG-BERT).

The weights are bit-identical to the pretrained weights. Their names are the parameter names of the classes in the
modelling file. The tokenizer is the tokenizer of pretraining, with two changes: it adds special tokens, and it
recognises the mask token within texts.

The modelling file merges a root module and all code that it needs. The root module defines the family's classes, which
derive from classes that all families share. For a family that is an encoder with a head, this module generates the text
of the root module from the family's `Family` object. The root modules of other families are files of the package
`hatchery.export`.
"""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend

from hatchery.artifacts.atomic import atomic_path, write_json, write_text
from hatchery.errors import ModelError
from hatchery.export.bundle import SOURCES, bundle
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import family_of
from hatchery.modeling.family import Family
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import CONFIG_FILE, WEIGHTS_FILE
from hatchery.tokenization.definitions import post_processor
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.tokenizer_file import TOKENIZER_CLASS, load_tokenizer, special_tokens_map, tokenizer_config
from hatchery.training.objective import ModelKind

ROOT = '''"""{title} for `transformers`.

Load these models with `trust_remote_code=True` through AutoModel, AutoModelForMaskedLM (causal models:
AutoModelForCausalLM), or, with a newly initialised head:
{further}.
"""

from typing import Any, ClassVar

from transformers import GenerationMixin

from hatchery.export.transformers_causal import HatcheryForCausalLM
from hatchery.export.transformers_classes import HatcheryConfig, HatcheryForMaskedLM, HatcheryModel
from hatchery.export.transformers_tasks import {heads}
{imports}


class {classes}Config(HatcheryConfig):
    """Configuration; the defaults are those of {base_size}."""

    model_type = "{model_type}"
    architecture_class = {configuration}

    def __init__(self, **values: Any) -> None:
        sizes = {{
{sizes}
        }}
        super().__init__(**{{**sizes, **values}})


class {classes}Model(HatcheryModel):
    """The encoder: `last_hidden_state`, `hidden_states` and `attentions`."""

    config_class = {classes}Config
    encoder_class: ClassVar[Any] = {encoder}


class {classes}ForMaskedLM(HatcheryForMaskedLM):
    """The masked language model."""

    config_class = {classes}Config
    base_class: ClassVar[Any] = {classes}Model
    head_class: ClassVar[Any] = {head}


# GenerationMixin must be a direct base, because `transformers` otherwise derives a class that cannot be pickled.
class {classes}ForCausalLM(HatcheryForCausalLM, GenerationMixin):
    """The causal language model."""

    config_class = {classes}Config
    base_class: ClassVar[Any] = {classes}Model
    head_class: ClassVar[Any] = {head}
'''
WITH_FRESH_HEAD = '''

class {classes}{head}(Hatchery{head}):
    """The encoder with a newly initialised head."""

    config_class = {classes}Config
    base_class: ClassVar[Any] = {classes}Model
'''


def modelling_file(family: Family) -> str:
    """Return the text of the family's modelling file, with all code that the family's classes need.

    Raises the ModelErrors of `bundle`.
    """
    exported, modules = family.exported, family.modules()
    root = f"hatchery.export.{exported.module}"
    if SOURCES.joinpath(*root.split(".")).with_suffix(".py").is_file():
        return bundle(root)
    named: dict[str, Any] = {"configuration": family.configuration, "encoder": modules.encoder, "head": modules.head}
    names = {role: part.__name__ for role, part in named.items()}
    imports = sorted(f"from {part.__module__} import {part.__name__}" for part in named.values())
    sizes = "\n".join(f'            "{key}": {size},' for key, size in exported.sizes.items())
    text = ROOT.format(
        title=exported.title,
        base_size=exported.base_size,
        classes=exported.classes,
        model_type=exported.model_type,
        imports="\n".join(imports),
        sizes=sizes,
        further=",\n".join(f"AutoModel{head}" for head in exported.further),
        heads=", ".join(f"Hatchery{head}" for head in exported.further),
        **names,
    )
    text += "".join(WITH_FRESH_HEAD.format(classes=exported.classes, head=head) for head in exported.further)
    return bundle(root, text=text)


GENERATION_FILE = "generation_config.json"
GENERATION_IDS = ("bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id")
LANGUAGE_MODELS: dict[ModelKind, str] = {
    "masked": "ForMaskedLM",
    "causal": "ForCausalLM",
    "translation": "ForSeq2SeqLM",
}
"""Suffix of the class name of a language model, by kind of model: ForMaskedLM in AutoModelForMaskedLM."""


def write_model_folder(
    folder: Path,
    model: LanguageModel,
    kinds: Sequence[ModelKind],
    tokenizer: Path,
    generation: Mapping[str, Any] | None = None,
    appends_end_token: bool = True,
) -> list[Path]:
    """Write all files except for the model card; return the paths of the files.

    `kinds` are the tasks of the model (such as masked or causal language modelling), `tokenizer` is the path of a
    tokenizer.json, and `generation` contains the defaults of `generate`. If the training texts had no end token,
    `appends_end_token` is false, and the tokenizer adds no end token. Raises TokenizationError if the tokenizer is
    unusable. Raises ModelError if the tokenizer has ids for which the model has no embedding, or a padding id other
    than the model's.
    """
    names, special = _write_tokenizer(folder, model.config, kinds, tokenizer, appends_end_token)
    family = family_of(model.config)
    exported = family.exported
    config = exported_config(model.config, kinds, special)
    write_json(folder / CONFIG_FILE, config)
    write_text(folder / f"{exported.module}.py", modelling_file(family))
    if generation is not None:
        write_json(folder / GENERATION_FILE, {**{key: config[key] for key in GENERATION_IDS}, **generation})
        names.append(GENERATION_FILE)
    # If a class without a head (`bare`) is also exported, the language model contains this class as `model`, so
    # the names of the encoder's parameters begin with `model.`.
    inside = "model." if exported.bare else ""
    tensors = {
        f"{inside}{name}" if name.startswith("encoder.") else name: tensor.detach().cpu().contiguous()
        for name, tensor in model.state_dict().items()
    }
    with atomic_path(folder / WEIGHTS_FILE) as partial:
        save_file(dict(sorted(tensors.items())), partial, metadata={"format": "pt"})
    return [folder / name for name in (CONFIG_FILE, WEIGHTS_FILE, f"{exported.module}.py", *names)]


def exported_config(config: ModelConfig, kinds: Sequence[ModelKind], special: SpecialTokens) -> dict[str, object]:
    """Return the content of config.json: the model's configuration, the names of the model classes, and the ids of
    special tokens.
    """
    kind, language_models = kinds[0], [LANGUAGE_MODELS[kind] for kind in kinds]
    exported = family_of(config).exported
    ids = {f"{role}_token_id": special.ids[getattr(special, role)] for role in ("cls", "sep", "pad", "mask")}
    role: dict[str, object] = {}
    if tuple(kinds) != ("masked",):
        # `generate` reads these keys: the ids of the tokens that begin and end a text.
        ids |= {"bos_token_id": ids["cls_token_id"], "eos_token_id": ids["sep_token_id"]}
    if kind == "causal":
        role = {"is_decoder": True}
    elif kind == "translation":
        role = {"is_encoder_decoder": True, "decoder_start_token_id": ids["bos_token_id"]}
    return {
        **config.to_dict(),
        **ids,
        **role,
        "architectures": [f"{exported.classes}{language_model}" for language_model in language_models],
        "auto_map": {
            auto: f"{exported.module}.{exported.classes}{name}"
            for auto, name in exported.auto_classes(language_models).items()
        },
        "dtype": "float32",
        "tokenizer_class": TOKENIZER_CLASS,
        "model_type": exported.model_type,
    }


def _write_tokenizer(
    folder: Path, config: ModelConfig, kinds: Sequence[ModelKind], path: Path, appends_end_token: bool
) -> tuple[list[str], SpecialTokens]:
    tokenizer, kind = load_tokenizer(path) if appends_end_token else load_tokenizer(path).without_end(), kinds[0]
    backend, special = tokenizer.backend, tokenizer.special
    if tokenizer.vocabulary_size > config.vocab_size:
        raise ModelError(
            f"{path}: the tokenizer has {tokenizer.vocabulary_size} entries, but the model has only "
            f"{config.vocab_size} embeddings; expected the tokenizer of this model"
        )
    pad = getattr(config, "pad_token_id", tokenizer.pad_id)
    if pad != tokenizer.pad_id:
        raise ModelError(f"{path}: the tokenizer's padding id is {tokenizer.pad_id}, the model expects {pad}")
    # Published tokenizers add no special tokens, because the authors' programs add the ids. The exported tokenizer
    # needs a post-processor that adds the special tokens.
    if kind != "masked":
        backend.post_processor = post_processor(special, "begun" if kind == "causal" else "ended")
    elif backend.encode("").ids != [tokenizer.cls_id, *tokenizer.end_ids]:
        backend.post_processor = post_processor(special)
    if kind != "translation":
        backend = Backend.from_str(json.dumps(with_mask_in_text(json.loads(backend.to_str()), special.mask)))
    with atomic_path(folder / "tokenizer.json") as partial:
        backend.save(str(partial), pretty=True)
    settings, roles = tokenizer_config(backend, special), special_tokens_map(special)
    if tuple(kinds) != ("masked",):
        # Programs that score texts read the names of these tokens from the tokenizer's files. config.json lists the ids
        # of these tokens.
        ends = {"bos_token": special.cls, "eos_token": special.sep}
        settings, roles = {**settings, **ends}, {**roles, **ends}
    if kind == "causal":
        # Pad on the left, because `generate` appends tokens on the right of each prompt in a batch.
        settings["padding_side"] = "left"
    limit = config.position_limit
    if limit is not None:
        settings["model_max_length"] = limit
    write_json(folder / "tokenizer_config.json", settings)
    write_json(folder / "special_tokens_map.json", roles)
    return ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"], special


SPACE = " "


def with_mask_in_text(definition: dict[str, Any], mask: str) -> dict[str, Any]:
    """Return the content of tokenizer.json, changed so that texts with the token `mask` are tokenised as in training.
    The argument `definition`, the original content, is not modified.

    In pretraining, a sentence is tokenised and then masked: `dogs sleep.` becomes `Ġdogs Ġsleep .` and then `Ġdogs
    [MASK] .`. In a text with a mask, `dogs [MASK].`, the library tokenises the parts before and after the mask
    separately. Without changes, two errors follow. The space before the mask becomes a token that the model has never
    seen. The full stop gets the space that the tokenizer adds at the beginning of a text.

    In the returned definition, the mask token includes the white space before it. If the pre-tokenizer inserts a space
    before each text (byte-level with `add_prefix_space`, Metaspace), the normaliser inserts this space instead, and the
    mask is matched in the normalised text. As in pretraining, a space is then inserted at the beginning of a text and
    after other special tokens, but not after the mask. Texts without a mask have the same ids as in pretraining.
    """
    changed = copy.deepcopy(definition)
    token = next(token for token in changed["added_tokens"] if token["content"] == mask)
    token["lstrip"] = True
    steps = _prefix_moved(changed)
    if steps:
        token["normalized"] = True
        # The library also applies the normaliser to the spelling of the mask token. Remove the space that the
        # normaliser would thus insert before the mask.
        steps += [
            {"type": "Prepend", "prepend": SPACE},
            {"type": "Replace", "pattern": {"Regex": rf"\A{SPACE}(?={SPACE}|{re.escape(mask)})"}, "content": ""},
        ]
        before = [] if changed["normalizer"] is None else [changed["normalizer"]]
        changed["normalizer"] = {"type": "Sequence", "normalizers": before + [step for step in steps if step]}
    return changed


def _prefix_moved(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Disable the space that the pre-tokenizer inserts before a text. Return the steps that the normaliser must apply
    before it inserts this space.

    If the pre-tokenizer inserts no space, the list is empty. If the normaliser must insert the space without any
    earlier step, the list contains one empty mapping.
    """
    parts = _parts(definition)
    kinds = [part["type"] for part in parts]
    if kinds[:1] == ["ByteLevel"] and parts[0]["add_prefix_space"]:
        parts[0]["add_prefix_space"] = False
        return [{}]
    always = [part["type"] == "Metaspace" and part.get("prepend_scheme", "always") == "always" for part in parts]
    if always[:1] == [True]:
        parts[0]["prepend_scheme"] = "never"
        return [{}]
    if kinds[:1] == ["WhitespaceSplit"] and always[1:2] == [True]:
        # Metaspace marks the beginning of a word by one space before the word. Replace each run of white space by one
        # space.
        definition["pre_tokenizer"]["pretokenizers"].pop(0)
        parts[1].update(prepend_scheme="never", split=True)
        return [
            {"type": "Replace", "pattern": {"Regex": r"\s+\z"}, "content": ""},
            {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": SPACE},
        ]
    return []


def _parts(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a sequence of pre-tokenizers, or a list with the single pre-tokenizer; nested sequences are
    not resolved.
    """
    whole = definition["pre_tokenizer"]
    if whole is None:
        return []
    return list(whole["pretokenizers"]) if whole["type"] == "Sequence" else [whole]
