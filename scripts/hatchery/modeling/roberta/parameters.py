"""How many parameters a model of the RoBERTa-like family has, by formula.

Source: the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Sizes"). The formulas say where the parameters
of a small model are (mostly in the vocabulary matrices) and are tested against built models and against every published
size.
"""

from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS
from hatchery.modeling.roberta.configuration import RobertaConfig

STUDY_POSITION_ROWS, STUDY_TOKEN_TYPES = 130, 2


def embedding_parameters(
    vocabulary_rows: int,
    embedding_size: int,
    position_rows: int = STUDY_POSITION_ROWS,
    token_types: int = STUDY_TOKEN_TYPES,
) -> int:
    """(V + positions + types + 2) E: three tables and a norm. The study logs this as "embedding parameters"."""
    return (vocabulary_rows + position_rows + token_types + 2) * embedding_size


def projection_parameters(embedding_size: int, hidden_size: int) -> int:
    """E H + 3 H: the projection with its bias, and its norm."""
    return embedding_size * hidden_size + 3 * hidden_size


def layer_parameters(hidden_size: int, intermediate_size: int) -> int:
    """4 H^2 + 2 H I + 9 H + I of one layer: attention, feed-forward block, two norms."""
    return 4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 9 * hidden_size + intermediate_size


def untied_parameters(
    vocabulary_rows: int,
    embedding_size: int,
    hidden_size: int,
    intermediate_size: int,
    num_hidden_layers: int,
    position_rows: int = STUDY_POSITION_ROWS,
    token_types: int = STUDY_TOKEN_TYPES,
) -> int:
    """P_untied = (V + 134) E + E H + 3 H + L (4 H^2 + 2 H I + 9 H + I) + H^2 + 3 H + V (H + 1).

    The study's own model: a projection behind the embedding, and an output matrix beside it.
    """
    return (
        embedding_parameters(vocabulary_rows, embedding_size, position_rows, token_types)
        + projection_parameters(embedding_size, hidden_size)
        + num_hidden_layers * layer_parameters(hidden_size, intermediate_size)
        + _head_without_matrix(hidden_size, vocabulary_rows)
        + vocabulary_rows * hidden_size
    )


def tied_parameters(
    vocabulary_rows: int,
    hidden_size: int,
    intermediate_size: int,
    num_hidden_layers: int,
    position_rows: int = STUDY_POSITION_ROWS,
    token_types: int = STUDY_TOKEN_TYPES,
) -> int:
    """P_tied = (V + 134) H + L (4 H^2 + 2 H I + 9 H + I) + H^2 + 3 H + V.

    Stock RoBERTa: embeddings as wide as the hidden states, which are the output matrix as well; no projection.
    """
    return (
        embedding_parameters(vocabulary_rows, hidden_size, position_rows, token_types)
        + num_hidden_layers * layer_parameters(hidden_size, intermediate_size)
        + _head_without_matrix(hidden_size, vocabulary_rows)
    )


def roberta_parameters(config: RobertaConfig) -> int:
    """Parameters of the whole model that `config` describes, whatever it combines; a tied matrix counts once."""
    size, rows = config.hidden_size, config.vocabulary_rows
    total = embedding_parameters(rows, config.embedding_width, config.position_rows, config.type_vocab_size)
    total += config.num_hidden_layers * layer_parameters(size, config.intermediate_size)
    total += _head_without_matrix(size, rows)
    if config.embedding_size is not None:
        total += projection_parameters(config.embedding_size, size)
    if not config.tie_word_embeddings:
        total += rows * size
    if not config.vocabulary_bias:
        total -= rows
    if config.sentence_pair_head:
        total += size**2 + 2 * size + 1
    weighting = LAYER_WEIGHTINGS[config.layer_weighting]
    if weighting.layer_input == "softmax":
        consumers = config.num_hidden_layers + weighting.output_mixture
        total += consumers * (consumers + 1) // 2
    return total


def _head_without_matrix(hidden_size: int, vocabulary_rows: int) -> int:
    """H^2 + 3 H + V: linear layer, norm, output bias."""
    return hidden_size**2 + 3 * hidden_size + vocabulary_rows
