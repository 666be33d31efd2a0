"""The family "gpt_bert": GPT-BERT and its ablations."""

from hatchery.modeling.family import Exported, Family, Modules
from hatchery.modeling.flops import PassShape, encoder_flops
from hatchery.modeling.gpt_bert.config import GptBertConfig, GptBertFile
from hatchery.modeling.position_buckets import reached_rows


def _modules() -> Modules:
    from hatchery.modeling.gpt_bert.encoder import GptBertEncoder
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.modeling.ltg.encoder import LtgHead, initialise_ltg_

    return Modules(LanguageModel, GptBertEncoder, LtgHead, initialise_ltg_)


def _forward_flops(config: GptBertConfig, shape: PassShape) -> dict[str, float]:
    rows = reached_rows(shape.length, config.position_bucket_size, config.max_position_embeddings)
    parts = encoder_flops(config, shape, position_rows=rows, feed_forward_matrices=3)
    if config.attention_gate:
        # Queries, keys, values and output need four products of size hidden_size x hidden_size; the gate needs a fifth
        # product of this size.
        parts["attention_projections"] *= 5 / 4
    return parts


FAMILY = Family(
    file=GptBertFile,
    configuration=GptBertConfig,
    modules=_modules,
    forward_flops=_forward_flops,
    exported=Exported(
        "modeling_gpt_bert",
        "HatcheryGptBert",
        title="GPT-BERT",
        base_size="GPT-BERT's base size",
        sizes={
            "vocab_size": 16384,
            "hidden_size": 768,
            "intermediate_size": 2560,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
        },
    ),
)
