"""Floating-point operations of a model, counted from its matrix products.

The count follows the modules (a multiplication and an addition are two operations; norms, activations and softmax are
left out) and is tested against torch's counter. The papers' own formulas stand in `paper_flops`.
"""

from dataclasses import dataclass

from hatchery.modeling.configuration import ModelConfig

BACKWARD_FACTOR = 2
"""Every product y = x w is followed by two in the backward pass, for the gradients of x and of w."""


@dataclass(frozen=True)
class PassShape:
    """One forward pass: `sequences` inputs of `length` tokens, padding included, with `labelled` labels in all."""

    sequences: float
    length: int
    labelled: float
    # Positions that the layers compute outside of their attention; None is all (a GPU computes padding like text).
    tokens: float | None = None
    # Whether sentence pairs are judged, by a model that has a head for them.
    pairs: bool = False
    # Tokens of a target that a decoder reads, padding included; None: as many as `length`.
    target_length: int | None = None


def encoder_flops(
    config: ModelConfig,
    shape: PassShape,
    *,
    projected_width: int = 0,
    position_rows: int = 0,
    feed_forward_matrices: int = 2,
) -> dict[str, float]:
    """Operations of one forward pass of a stack of layers by part of the model; their sum is the cost of the pass.

    Embeddings of `projected_width` are projected to the hidden size (0: they are not); attention meets `position_rows`
    rows of relative positions (0: none). Parts: `embedding_projection`, `attention_projections`, `position_table` (its
    projection, which all sequences of a pass share), `position_scores`, `attention`, `feed_forward`, `head` (also the
    sentence-pair head), `vocabulary`.
    """
    length, size, layers = shape.length, config.hidden_size, config.num_hidden_layers
    tokens = shape.sequences * length if shape.tokens is None else shape.tokens
    pairs = shape.sequences if shape.pairs and config.sentence_pair_head else 0
    return {
        # Padding is left out only behind the embedding.
        "embedding_projection": _product(shape.sequences * length, projected_width, size) if projected_width else 0.0,
        # Query, key, value and output: each hidden_size x hidden_size, in one parameter or in several.
        "attention_projections": layers * 4 * _product(tokens, size, size),
        "position_table": layers * _product(position_rows, size, 2 * size),
        "position_scores": layers * 2 * shape.sequences * _product(length, size, position_rows),
        "attention": layers * 2 * shape.sequences * _product(length, size, length),
        "feed_forward": layers * feed_forward_matrices * _product(tokens, size, config.intermediate_size),
        "head": _product(shape.labelled + pairs, size, size) + _product(pairs, size, 1),
        "vocabulary": _product(shape.labelled, size, config.vocabulary_rows),
    }


def decoder_flops(config: ModelConfig, shape: PassShape, layers: int) -> float:
    """Operations of one forward pass of so many layers that attend to their own target and to the encoded source."""
    size, inner, source = config.hidden_size, config.intermediate_size, shape.length
    target = source if shape.target_length is None else shape.target_length
    # Of the target: four projections in its own attention, query and output in the other, whose keys and values are of
    # the source; two matrices in the feed-forward block.
    per_sequence = (
        6 * _product(target, size, size)
        + 2 * _product(source, size, size)
        + 2 * _product(target, size, target)
        + 2 * _product(target, size, source)
        + 2 * _product(target, size, inner)
    )
    return layers * shape.sequences * per_sequence


def _product(rows: float, inner: float, columns: float) -> float:
    """[rows, inner] @ [inner, columns]."""
    return 2 * rows * inner * columns
