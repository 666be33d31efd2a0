"""Floating-point operations of a model, counted from its matrix products.

Our own count follows the modules of both families (a multiplication and an addition are two operations; norms,
activations and softmax are left out) and is tested against torch's counter. The papers' own formulas
stand in `costs.paper_formulas`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hatchery.errors import ModelError
from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.distance_buckets import bucket_of_distance
from hatchery.modeling.family_configuration import ModelConfig, model_config
from hatchery.modeling.roberta_configuration import RobertaConfig

if TYPE_CHECKING:
    pass

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


def forward_flops(config: ModelConfig, shape: PassShape) -> dict[str, float]:
    """Operations of one forward pass by part of the model; their sum is the cost of the pass.

    Parts: `embedding_projection`, `attention_projections`, `position_table` (its projection, which all sequences of a
    pass share), `position_scores`, `attention`, `feed_forward`, `head` (also the sentence-pair head), `vocabulary`.
    """
    length, size, layers = shape.length, config.hidden_size, config.num_hidden_layers
    tokens = shape.sequences * length if shape.tokens is None else shape.tokens
    pairs = shape.sequences if shape.pairs and config.sentence_pair_head else 0
    projected, position_rows, feed_forward_matrices = 0.0, 0, 2
    if isinstance(config, RobertaConfig):
        vocabulary_rows = config.vocabulary_rows
        if config.embedding_size is not None:
            # Padding is left out only behind the embedding.
            projected = _product(shape.sequences * length, config.embedding_size, size)
    else:
        vocabulary_rows = config.vocab_size
        if config.position_embedding == "relative":
            position_rows = _position_rows(config, length)
        if config.feed_forward_activation == "geglu":
            feed_forward_matrices = 3
    return {
        "embedding_projection": projected,
        # Query, key, value and output: each hidden_size x hidden_size, in one parameter or in several.
        "attention_projections": layers * 4 * _product(tokens, size, size),
        "position_table": layers * _product(position_rows, size, 2 * size),
        "position_scores": layers * 2 * shape.sequences * _product(length, size, position_rows),
        "attention": layers * 2 * shape.sequences * _product(length, size, length),
        "feed_forward": layers * feed_forward_matrices * _product(tokens, size, config.intermediate_size),
        "head": _product(shape.labelled + pairs, size, size) + _product(pairs, size, 1),
        "vocabulary": _product(shape.labelled, size, vocabulary_rows),
    }


def training_flops(config: ModelConfig, shape: PassShape) -> float:
    """Operations of forward and backward of one pass: three times the forward products."""
    return (1 + BACKWARD_FACTOR) * sum(forward_flops(config, shape).values())


def training_flops_per_sequence(
    model: Mapping[str, Any],
    vocabulary_size: int,
    sequence_length: int,
    labelled_share: float,
    batch_size: int | None = None,
) -> float:
    """Operations of training on one sequence of `sequence_length` tokens, forward and backward.

    `model` are the settings of a model of either family without the vocabulary size. `labelled_share` is the share of
    the positions that are labelled: only they meet the vocabulary. `batch_size` are the sequences of one forward pass,
    which share the projection of the relative positions; None leaves that out, as in a large batch. A model with
    `sentence_pair_head` judges one pair per sequence. Raises ConfigError and ModelError for an impossible model, and
    ModelError for an impossible share, length or batch.
    """
    _require(0 <= labelled_share <= 1, "labelled_share", labelled_share, "a number from 0 to 1")
    _require(sequence_length >= 1, "sequence_length", sequence_length, "1 or more")
    _require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "1 or more, or None")
    config = model_config({**model, "vocab_size": vocabulary_size})
    parts = forward_flops(config, PassShape(1, sequence_length, labelled_share * sequence_length, pairs=True))
    shared = parts.pop("position_table")
    forward = sum(parts.values()) + (shared / batch_size if batch_size is not None else 0.0)
    return (1 + BACKWARD_FACTOR) * forward


def _product(rows: float, inner: float, columns: float) -> float:
    """[rows, inner] @ [inner, columns]."""
    return 2 * rows * inner * columns


def _position_rows(config: LtgBertConfig, length: int) -> int:
    """Rows of the relative embedding that distances below `length` reach."""
    return 2 * bucket_of_distance(length - 1, config.position_bucket_size, config.max_position_embeddings) + 1


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ModelError(f"{key}: got {value!r}, expected {expected}")
