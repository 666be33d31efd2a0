"""The family "encoder_decoder": translation models."""

from collections.abc import Sequence

from hatchery.modeling.encoder_decoder.config import EncoderDecoderConfig, EncoderDecoderFile
from hatchery.modeling.family import Exported, Family, Modules
from hatchery.modeling.flops import PassShape, decoder_flops, encoder_flops, kaplan_flops


def _modules() -> Modules:
    from hatchery.modeling.encoder_decoder.decoding import OutputLayer, SourceEncoder
    from hatchery.modeling.encoder_decoder.model import TranslationModel, initialise_encoder_decoder_

    return Modules(TranslationModel, SourceEncoder, OutputLayer, initialise_encoder_decoder_)


def _forward_flops(config: EncoderDecoderConfig, shape: PassShape) -> dict[str, float]:
    parts = encoder_flops(config, shape)
    # This family's head is only a product with the output matrix, so the part "head" has no FLOPs.
    return {**parts, "head": 0.0, "decoder": decoder_flops(config, shape, config.decoder_layers)}


def _paper_flops(config: EncoderDecoderConfig, parameters: int, work: Sequence[tuple[int, int]]) -> float:
    embedding = config.vocabulary_rows * config.hidden_size
    return kaplan_flops(parameters - embedding, sum(sequences * length for sequences, length in work))


FAMILY = Family(
    file=EncoderDecoderFile,
    configuration=EncoderDecoderConfig,
    modules=_modules,
    forward_flops=_forward_flops,
    paper_flops=_paper_flops,
    exported=Exported("modeling_encoder_decoder", "HatcheryEncoderDecoder", further=(), bare=False),
    token_ids=("pad", "cls", "sep"),
)
