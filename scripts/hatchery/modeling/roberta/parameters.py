"""How many parameters a model of the RoBERTa-like family has, by formula.

Source: the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Sizes"). With V rows of the vocabulary, E and
H the widths of embeddings and hidden states, I inside the feed-forward block and L layers, its own model has (V + 134)
E + E H + 3 H + L (4 H^2 + 2 H I + 9 H + I) + H^2 + 3 H + V (H + 1) parameters; the stock one, whose embeddings are as
wide as the hidden states and are the output matrix as well, lacks the projection and the matrix: E H + 3 H and V H. The
formula says where the parameters of a small model are (mostly in the vocabulary matrices) and is tested against built
models and against every published size.
"""

from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS
from hatchery.modeling.roberta.configuration import RobertaConfig


def embedding_parameters(config: RobertaConfig) -> int:
    """(V + positions + types + 2) E: three tables and a norm. The study logs this as "embedding parameters"."""
    rows = config.vocabulary_rows + config.position_rows + config.type_vocab_size + 2
    return rows * config.embedding_width


def roberta_parameters(config: RobertaConfig) -> int:
    """Parameters of the whole model that `config` describes, whatever it combines; a tied matrix counts once."""
    size, inner, rows = config.hidden_size, config.intermediate_size, config.vocabulary_rows
    # Attention, feed-forward block and two norms in each layer; linear layer, norm and output bias of the head.
    layer = 4 * size**2 + 2 * size * inner + 9 * size + inner
    total = embedding_parameters(config) + config.num_hidden_layers * layer + size**2 + 3 * size
    if config.embedding_size is not None:
        # The projection with its bias, and its norm.
        total += config.embedding_size * size + 3 * size
    if not config.tie_word_embeddings:
        total += rows * size
    if config.vocabulary_bias:
        total += rows
    if config.sentence_pair_head:
        total += size**2 + 2 * size + 1
    weighting = LAYER_WEIGHTINGS[config.layer_weighting]
    if weighting.layer_input == "softmax":
        consumers = config.num_hidden_layers + weighting.output_mixture
        total += consumers * (consumers + 1) // 2
    return total
