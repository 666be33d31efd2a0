"""The family "modern": plain pre-norm transformers with rotary positions, masked or causal."""

from dataclasses import replace

from hatchery.modeling.family import Exported, Family, Modules
from hatchery.modeling.flops import PassShape, encoder_flops
from hatchery.modeling.modern.config import ModernConfig, ModernFile


def _modules() -> Modules:
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.modeling.modern.encoder import ModernEncoder, ModernHead, initialise_modern_

    return Modules(LanguageModel, ModernEncoder, ModernHead, initialise_modern_)


def _forward_flops(config: ModernConfig, shape: PassShape) -> dict[str, float]:
    parts = encoder_flops(config, shape, feed_forward_matrices=3)
    if not config.output_transform:
        parts["head"] = encoder_flops(config, replace(shape, labelled=0))["head"]
    of_layers = parts["attention_projections"]
    if config.head_gate:
        # The gate projects to `num_attention_heads` outputs; the other four projections have `hidden_size` outputs
        # each.
        parts["attention_projections"] += of_layers * config.num_attention_heads / (4 * config.hidden_size)
    if config.value_residual:
        # The values of the first layer are computed twice: before all layers, and inside the first layer.
        parts["attention_projections"] += of_layers / (4 * config.num_hidden_layers)
    return parts


FAMILY = Family(
    file=ModernFile,
    configuration=ModernConfig,
    modules=_modules,
    forward_flops=_forward_flops,
    exported=Exported(
        "modeling_modern",
        "HatcheryModern",
        title="Plain modern transformers",
        base_size="a base size",
        sizes={
            "vocab_size": 16384,
            "hidden_size": 768,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
        },
    ),
)
