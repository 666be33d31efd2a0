"""The family "roberta": the tied and untied models of the reduced-vocabulary study ("Honey, I Shrunk the Language")."""

from collections.abc import Sequence

from hatchery.modeling.family import Exported, Family, Modules
from hatchery.modeling.flops import PassShape, encoder_flops, reduced_vocabulary_flops
from hatchery.modeling.roberta.config import RobertaConfig, RobertaFile
from hatchery.sums import plain_sum


def _modules() -> Modules:
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.modeling.roberta.encoder import RobertaEncoder, RobertaHead, initialise_roberta_

    return Modules(LanguageModel, RobertaEncoder, RobertaHead, initialise_roberta_)


def _forward_flops(config: RobertaConfig, shape: PassShape) -> dict[str, float]:
    return encoder_flops(config, shape, projected_width=config.embedding_size or 0)


def _paper_flops(config: RobertaConfig, parameters: int, work: Sequence[tuple[int, int]]) -> float:
    sizes = (config.embedding_width, config.hidden_size, config.intermediate_size)
    depth = (config.num_hidden_layers, config.num_attention_heads)
    rows = config.vocabulary_rows
    return plain_sum(
        sequences * reduced_vocabulary_flops(*sizes, *depth, vocabulary_rows=rows, sequence_length=length)
        for sequences, length in work
    )


FAMILY = Family(
    file=RobertaFile,
    configuration=RobertaConfig,
    modules=_modules,
    forward_flops=_forward_flops,
    paper_flops=_paper_flops,
    paper_formula="study",
    exported=Exported(
        "modeling_roberta",
        "HatcheryRoberta",
        title="The RoBERTa-like models of the reduced-vocabulary study",
        base_size="roberta-base",
        sizes={
            "vocab_size": 50265,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
        },
    ),
    # The model needs the id of the padding token, because its absolute positions do not count padding.
    token_ids=("pad",),
)
