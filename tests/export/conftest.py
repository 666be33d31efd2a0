"""Small pretrained models in the format of pretraining, and `transformers` without network, with a temporary cache."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from hatchery.artifacts.manifests import stage_run
from hatchery.export.stages.export_model import export_model
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, build_language_model, initialise_
from hatchery.modeling.store import load_language_model, save_model
from hatchery.runner import run_stage
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.trainer import train
from hatchery.tokenization.trainer_settings import TokenizerSettings

LTG: dict[str, Any] = {
    "vocab_size": 340,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 64,
    "position_bucket_size": 8,
}
ROBERTA: dict[str, Any] = {**{k: v for k, v in LTG.items() if k != "position_bucket_size"}, "family": "roberta"}
GPT_BERT: dict[str, Any] = {**LTG, "family": "gpt_bert"}
MODERN: dict[str, Any] = {**ROBERTA, "family": "modern"}
SWITCHES: dict[str, Any] = {**MODERN, "value_residual": True, "head_gate": True, "unet_skips": True}
VARIANTS: dict[str, dict[str, Any]] = {
    "ltg": LTG,
    "bnc_layout_with_pair_head": {**LTG, "position_head_layout": "bnc", "sentence_pair_head": True},
    "elc_biased": {**LTG, "layer_weighting": "biased"},
    "elc_zero": {**LTG, "layer_weighting": "zero"},
    "elc_normalized": {**LTG, "layer_weighting": "normalized"},
    "elc_unit_vector": {**LTG, "layer_weighting": "normalized_unit_vector"},
    "elc_weighted_output": {**LTG, "layer_weighting": "weighted_output"},
    "untied_without_bias": {**LTG, "tie_word_embeddings": False, "vocabulary_bias": False},
    "absolute_post_norm_gelu": {
        **LTG,
        "position_embedding": "absolute",
        "normalisation": "post_norm",
        "feed_forward_activation": "gelu",
        "feed_forward_bias": True,
    },
    "scaled_heads_and_residuals": {**LTG, "head_scaling": True, "residual_scaling": True},
    "gpt_bert": GPT_BERT,
    "gpt_bert_without_gate": {**GPT_BERT, "attention_gate": False, "layer_weighting": "none"},
    "modern": MODERN,
    "modern_with_switches": {**SWITCHES, "output_transform": True, "normalisation": "layer_norm"},
    "roberta_tied": ROBERTA,
    "roberta_untied_projected": {
        **ROBERTA,
        "embedding_size": 10,
        "tie_word_embeddings": False,
        "extra_vocabulary_rows": 3,
    },
}
CAUSAL: dict[str, dict[str, Any]] = {
    "causal_ltg": LTG,
    "causal_absolute": {**LTG, "position_embedding": "absolute"},
    "causal_elc": {**LTG, "layer_weighting": "weighted_output"},
    "causal_gpt_bert": GPT_BERT,
    "causal_modern": SWITCHES,
    "causal_roberta": {**ROBERTA, "tie_word_embeddings": False},
}
HYBRID: dict[str, dict[str, Any]] = {
    "hybrid_ltg": LTG,
    "hybrid_gpt_bert": GPT_BERT,
    "hybrid_of_blocks": GPT_BERT,
    "hybrid_modern": MODERN,
    "hybrid_roberta": ROBERTA,
}
LARGE: dict[str, dict[str, Any]] = {"weights_larger_than_code": {**LTG, "num_hidden_layers": 12}}
"""A model whose weights are the largest file of its export, also if the docstrings in its code grow."""
TRANSLATION: dict[str, dict[str, Any]] = {
    name: {
        "vocab_size": 52,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "family": "encoder_decoder",
        **changes,
    }
    for name, changes in {
        "translation": {},
        "translation_post_norm_tied": {"normalisation": "post_norm", "tie_word_embeddings": True},
        "translation_deeper_decoder": {"num_decoder_layers": 3, "vocabulary_bias": False},
    }.items()
}
TRANSLATION_SETTINGS: dict[str, Any] = {
    "stage": "pretrain",
    "stage_version": 1,
    "objective": {"task": "translation"},
    "model": {},
    "optimizer": {"name": "adamw", "learning_rate": 0.01, "weight_decay": 0.0},
    "steps": 5,
    "batch_size": 200,
    "sequence_length": 30,
    "seed": 7,
}
SENTENCES = ("The old dogs near the house sleep.", "A cat chases the dogs.", "She likes old houses, and sleeps.")
EXPORT_SETTINGS: dict[str, Any] = {
    "stage": "export_model",
    "stage_version": 2,
    "experiment": "tiny",
    "description": "A tiny experiment",
    "run": {"name": "elc-s7", "model": "elc", "seed": 7},
    "seeds": [7, 8],
    "model": "elc_tiny",
    "model_description": "Narrow and shallow.",
    "corpus": "tales",
    "corpus_description": "Tales, retold.",
    "sources": [{"name": "tales", "licence": "CC BY 4.0", "terms": "any use | with attribution", "dataset": "a/tales"}],
}


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """`transformers` without network access, with its copies of modelling files in a temporary folder."""
    transformers = pytest.importorskip("transformers")
    from huggingface_hub import constants
    from transformers import dynamic_module_utils

    cache = tmp_path_factory.mktemp("modules")
    imports: dict[bytes, list[str]] = {}

    def get_imports(filename: str) -> list[str]:
        # `transformers` parses the modelling file in each call of `from_pretrained`, which takes most of the call.
        code = Path(filename).read_bytes()
        if code not in imports:
            imports[code] = parse_imports(filename)
        return imports[code]

    parse_imports = dynamic_module_utils.get_imports
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        patch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(cache))
        patch.setattr(dynamic_module_utils, "get_imports", get_imports)
        patch.setattr(sys, "path", [*sys.path])
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        yield transformers


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the path of a tokenizer.json for each family."""
    folder = tmp_path_factory.mktemp("tokenizers")
    paths: dict[str, Path] = {}
    byte_bpe = {"kind": "byte_bpe", "vocabulary_size": 320, "min_frequency": 2}
    joint = {"kind": "bpe", "vocabulary_size": 52, "normalizer": "nmt_nfkc", "pre_tokenizer": "metaspace"}
    kinds = {
        "ltg": {**byte_bpe, "special_tokens": "babylm"},
        "roberta": {**byte_bpe, "special_tokens": "roberta"},
        "encoder_decoder": {**joint, "special_tokens": "roberta"},
    }
    for family, kind in kinds.items():
        settings = TokenizerSettings(**kind)
        paths[family] = folder / f"{family}.json"
        train(iter([*SENTENCES] * 20), settings).save(str(paths[family]))
    return {**paths, "gpt_bert": paths["ltg"], "modern": paths["ltg"]}


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory, tokenizers: dict[str, Path]) -> Callable[[str], Path]:
    """Return a function that writes a model of VARIANTS, or of another dictionary above, and returns its manifest.

    Noise is added to the parameters, so that no parameter is 0 or 1. The files are those of pretraining.
    """
    made: dict[str, Path] = {}

    def make(variant: str) -> Path:
        if variant not in made:
            folder = tmp_path_factory.mktemp(variant)
            config = model_config({**VARIANTS, **CAUSAL, **HYBRID, **LARGE, **TRANSLATION}[variant])
            model = build_language_model(config, causal=variant in CAUSAL)
            initialise_(model, seed=3)
            generator = torch.Generator().manual_seed(5)
            for parameter in model.parameters():
                parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
            tokenizer = tokenizers[model.config.family]
            (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
            settings = {"stage": "pretrain", "stage_version": 1, "steps": 5, "objective": {"kind": "span"}, "seed": 7}
            if variant in CAUSAL or variant in HYBRID:
                settings["objective"] = {"task": "causal" if variant in CAUSAL else "hybrid"}
            if variant == "hybrid_of_blocks":
                settings["objective"]["segments"] = "blocks"
            if variant in TRANSLATION:
                settings = TRANSLATION_SETTINGS
            with stage_run(folder / "manifest.json", settings, {"tokenizer": tokenizer}) as run:
                for path in [*save_model(folder, model), folder / "tokenizer.json"]:
                    run.add_output(path)
                run.measures.update(steps=5, tokens=12345)
            made[variant] = folder / "manifest.json"
        return made[variant]

    return make


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, pretrained: Callable[[str], Path]) -> Callable[[str], Path]:
    """Return a function that exports a model of VARIANTS and returns the folder."""
    made: dict[str, Path] = {}

    def make(variant: str) -> Path:
        if variant not in made:
            folder = tmp_path_factory.mktemp(f"exported_{variant}")
            run_stage(export_model, EXPORT_SETTINGS, folder / "manifest.json", pretraining=pretrained(variant))
            made[variant] = folder
        return made[variant]

    return make


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    """The name of each variant in turn."""
    return str(request.param)


@pytest.fixture
def ours(pretrained: Callable[[str], Path], variant: str) -> LanguageModel:
    """The variant's model, loaded by this library."""
    return load_language_model(pretrained(variant).parent).eval()


@pytest.fixture
def load(hub: ModuleType, exported: Callable[[str], Path], variant: str) -> Callable[..., Any]:
    """Return a function that loads an exported folder, by default that of the variant, as `transformers`
    class `name`."""

    def from_pretrained(name: str, folder: Path | None = None, **options: Any) -> Any:
        return getattr(hub, name).from_pretrained(folder or exported(variant), trust_remote_code=True, **options)

    return from_pretrained


@pytest.fixture(scope="session")
def padded_batch() -> Callable[[LanguageModel], tuple[torch.Tensor, torch.Tensor]]:
    """Ids [3, 12] and mask of sequences of 12, 9 and 5 tokens, padded as by the model's tokenizer."""

    def make(model: LanguageModel) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(11)
        ids = torch.randint(7, 320, (3, 12), generator=generator)
        mask = torch.arange(12) < torch.tensor([12, 9, 5])[:, None]
        special = SPECIAL_SETS["roberta" if model.config.family == "roberta" else "babylm"]
        return ids.where(mask, special.ids[special.pad]), mask

    return make


@pytest.fixture(scope="session")
def exported_files() -> set[str]:
    """Names of the files of an exported LTG-BERT."""
    tokenizer = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    return {"README.md", "config.json", "model.safetensors", "modeling_ltg_bert.py", *tokenizer}


@pytest.fixture(scope="session")
def export_settings() -> dict[str, Any]:
    """Settings of the stage that exports a model."""
    return EXPORT_SETTINGS
