"""The family "ltg": LTG-BERT with its ablations, and ELC-BERT."""

from hatchery.modeling.family import Exported, Family, Modules
from hatchery.modeling.flops import PassShape, encoder_flops
from hatchery.modeling.ltg.config import LtgBertConfig, LtgBertFile
from hatchery.modeling.position_buckets import reached_rows


def _modules() -> Modules:
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.modeling.ltg.encoder import LtgEncoder, LtgHead, initialise_ltg_

    return Modules(LanguageModel, LtgEncoder, LtgHead, initialise_ltg_)


def _forward_flops(config: LtgBertConfig, shape: PassShape) -> dict[str, float]:
    rows = 0
    if config.position_embedding == "relative":
        rows = reached_rows(shape.length, config.position_bucket_size, config.max_position_embeddings)
    gated = config.feed_forward_activation == "geglu"
    return encoder_flops(config, shape, position_rows=rows, feed_forward_matrices=3 if gated else 2)


FAMILY = Family(
    file=LtgBertFile,
    configuration=LtgBertConfig,
    modules=_modules,
    forward_flops=_forward_flops,
    exported=Exported(
        "modeling_ltg_bert",
        "HatcheryLtgBert",
        title="LTG-BERT and ELC-BERT",
        base_size="LTG-BERT's base size",
        sizes={
            "vocab_size": 16384,
            "hidden_size": 768,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
        },
    ),
)
