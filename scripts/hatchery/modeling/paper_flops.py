"""How the papers count operations: the reduced-vocabulary study (its Appendix A) and Kaplan et al. (2020).

Their tables rest on these numbers; our own count, from the matrix products, is that of `modeling.flops`.
"""

from typing import Literal

from hatchery.modeling.flops import BACKWARD_FACTOR

STUDY_VOCABULARY_ROWS = 19_010
STUDY_SEQUENCE_LENGTH = 128
STUDY_BATCH_SIZE = 256
STUDY_SEQUENCES = 35_475 * STUDY_BATCH_SIZE
"""9,081,600: what the final tables of the reduced-vocabulary study multiply with."""

StudyFormula = Literal["code", "code_without_projection", "printed", "complete"]


def reduced_vocabulary_flops(
    embedding_size: int,
    hidden_size: int,
    intermediate_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    formula: StudyFormula = "code",
    vocabulary_rows: int = STUDY_VOCABULARY_ROWS,
    sequence_length: int = STUDY_SEQUENCE_LENGTH,
) -> float:
    """Operations per sequence, forward and backward, as the reduced-vocabulary study counts them.

    "code" gave the published totals: neither attention's output projection nor its weighted sum of values, the
    vocabulary at every position, the embedding lookup as a product. "code_without_projection" drops the projection
    from E to H as well (Table 2 and parts of Tables 3 and 4); "printed" is Appendix A to the letter, without the
    sequence length in the feed-forward block; "complete" is Appendix A with it. `num_attention_heads` is the nominal
    number, though all untied models have 8. Source: docs/papers/reduced-vocabulary.md, "FLOPs".
    """
    length, size, inner = sequence_length, hidden_size, intermediate_size
    lookup = vocabulary_rows * embedding_size
    if formula != "code_without_projection":
        lookup += embedding_size * size
    layer = 6 * length * size**2 + 2 * length**2 * size + 3 * length**2 * num_attention_heads
    feed_forward = 2 * (size * inner + inner * size)
    layer += feed_forward if formula == "printed" else length * feed_forward
    if formula in ("printed", "complete"):
        layer += 2 * length**2 * size + 2 * length * size**2
    forward = 2 * length * lookup + num_hidden_layers * layer + 2 * length * size * vocabulary_rows
    return (1 + BACKWARD_FACTOR) * forward


def kaplan_flops(parameters: int, tokens: float) -> float:
    """6 N per token: forward and backward of a model with N parameters, the embeddings not counted.

    Source: Kaplan et al. (2020), "Scaling Laws for Neural Language Models", Section 2.1. The study logged it too.
    """
    return 6.0 * parameters * tokens
