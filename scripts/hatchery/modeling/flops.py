"""Floating-point operations (FLOPs) of a model. They are counted from its matrix products, or computed by published
formulas.

The count covers the matrix products of the modules; a multiplication and an addition are two operations. Norms,
activations and softmax are not counted. Tests compare the count with torch's counter. The published formulas are from
"Honey, I Shrunk the Language: Language Model Behavior at Reduced Scale" (the reduced-vocabulary study), Appendix A, and
from Kaplan et al. (2020).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hatchery.modeling.configuration import ModelConfig

FlopsPerSequence = Callable[[int, float], float]
"""Function that returns the FLOPs of training on one sequence, given the sequence's length and the fraction of its
positions that are labelled.
"""

BACKWARD_FACTOR = 2
"""Ratio of the FLOPs of the backward pass to the FLOPs of the forward pass.

For every product y = x w, the backward pass computes two products: the gradients of x and of w.
"""


@dataclass(frozen=True)
class PassShape:
    """One forward pass: `sequences` inputs of `length` tokens, including padding, with `labelled` labels in total.
    `tokens` is the number of positions that projections and feed-forward blocks compute; None means all positions,
    including padding. If `pairs` is true, the sentence-pair head classifies each input. `target_length` is the number
    of tokens of a decoder's input; None means `length`.
    """

    sequences: float
    length: int
    labelled: float
    # Number of positions that the layers compute outside of attention. None means all positions, as on a GPU, where
    # padding is computed, too.
    tokens: float | None = None
    # True if the inputs are sentence pairs, which a model with a sentence-pair head classifies.
    pairs: bool = False
    # Number of tokens of a target, including padding, that a decoder reads; None means `length`.
    target_length: int | None = None


def encoder_flops(
    config: ModelConfig,
    shape: PassShape,
    *,
    projected_width: int = 0,
    position_rows: int = 0,
    feed_forward_matrices: int = 2,
) -> dict[str, float]:
    """Return the FLOPs of one forward pass of an encoder and its heads, by part of the model.

    Embeddings of width `projected_width` are projected to the hidden size (0: no projection). Attention uses
    `position_rows` rows of relative positions (0: none). The part `position_table` is the projection of the relative
    positions, which all sequences of a pass share; `head` includes the sentence-pair head; `vocabulary` is the product
    with the output matrix.
    """
    length, size, layers = shape.length, config.hidden_size, config.num_hidden_layers
    tokens = shape.sequences * length if shape.tokens is None else shape.tokens
    pairs = shape.sequences if shape.pairs and config.sentence_pair_head else 0
    return {
        # The embedding is computed for all positions, because packing removes padding only after the embedding.
        "embedding_projection": _product(shape.sequences * length, projected_width, size) if projected_width else 0.0,
        # Four products of size hidden_size x hidden_size: queries, keys, values and output.
        "attention_projections": layers * 4 * _product(tokens, size, size),
        "position_table": layers * _product(position_rows, size, 2 * size),
        "position_scores": layers * 2 * shape.sequences * _product(length, size, position_rows),
        "attention": layers * 2 * shape.sequences * _product(length, size, length),
        "feed_forward": layers * feed_forward_matrices * _product(tokens, size, config.intermediate_size),
        "head": _product(shape.labelled + pairs, size, size) + _product(pairs, size, 1),
        "vocabulary": _product(shape.labelled, size, config.vocabulary_rows),
    }


def decoder_flops(config: ModelConfig, shape: PassShape, layers: int) -> float:
    """Return the FLOPs of one forward pass of `layers` decoder layers, each with self-attention and cross-attention."""
    size, inner, source = config.hidden_size, config.intermediate_size, shape.length
    target = source if shape.target_length is None else shape.target_length
    # Products with the target's states: four projections of self-attention, two projections of cross-attention (queries
    # and output), and two matrices of the feed-forward block. The source's states are projected to keys and values of
    # cross-attention.
    per_sequence = (
        6 * _product(target, size, size)
        + 2 * _product(source, size, size)
        + 2 * _product(target, size, target)
        + 2 * _product(target, size, source)
        + 2 * _product(target, size, inner)
    )
    return layers * shape.sequences * per_sequence


def _product(rows: float, inner: float, columns: float) -> float:
    """Return the FLOPs of [rows, inner] @ [inner, columns]."""
    return 2 * rows * inner * columns


STUDY_VOCABULARY_ROWS = 19_010
STUDY_SEQUENCE_LENGTH = 128
STUDY_BATCH_SIZE = 256
STUDY_SEQUENCES = 35_475 * STUDY_BATCH_SIZE
"""Number of training sequences, 9,081,600, for which the final tables of the reduced-vocabulary study print total
FLOPs.
"""

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
    """Return the FLOPs per training sequence, forward and backward, by a formula of the reduced-vocabulary study.

    The formula "code" reproduces the published totals. It omits the output projection of attention and the weighted sum
    of values, counts the output layer at every position, and counts the embedding lookup as a matrix product. The
    formula "code_without_projection" (Table 2 and parts of Tables 3 and 4) also omits the projection from the embedding
    size to the hidden size. The formula "printed" is printed in Appendix A; its feed-forward term lacks the sequence
    length. The formula "complete" adds this factor. `num_attention_heads` is the number in the study's tables, with
    which the published totals were computed; the trained untied models in fact all have 8 heads. Source:
    docs/papers/reduced-vocabulary.md, "FLOPs".
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
    """Return the FLOPs of forward and backward passes on `tokens` tokens: 6 N per token, for N `parameters`.

    Kaplan et al. exclude embeddings from N. Source: Kaplan et al. (2020), "Scaling Laws for Neural Language Models",
    Section 2.1. The study "Honey, I Shrunk the Language: Language Model Behavior at Reduced Scale" also logged the
    result of this formula.
    """
    return 6.0 * parameters * tokens
