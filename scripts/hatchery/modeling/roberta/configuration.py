"""The sizes and choices that define a model of the RoBERTa-like family, with the checks that refuse impossible ones.

Source: the reduced-vocabulary study ("Honey, I Shrunk the Language"), section 4 of its reference: a stock RoBERTa with
tied matrices, and the study's own model with a projection from narrow embeddings and an output matrix of its own. Both
are values of one configuration; two models with equal configurations have the same parameters under the same names.
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.modeling.configuration import LayerWeightingName, ModelConfig, require

PADDING_POSITION = 1
"""Row of the position table for padding; tokens count from the row behind it, and row 0 is never read."""


@dataclass(frozen=True)
class RobertaConfig(ModelConfig):
    """A model. Raises ModelError, naming key and value, when the values do not describe one."""

    vocab_size: int
    """Number of subwords, special tokens included."""

    hidden_size: int
    """Width of the hidden states; a multiple of `num_attention_heads`."""

    intermediate_size: int
    """Width inside the feed-forward block."""

    num_hidden_layers: int
    """Number of transformer layers, the embedding not counted."""

    num_attention_heads: int
    """Number of attention heads. Every untied model of the study has 8, also where its tables print 1, 2 or 4."""

    embedding_size: int | None = None
    """Width of the embeddings, which a projection and a norm bring to `hidden_size`; null: equal, and no projection."""

    extra_vocabulary_rows: int = 0
    """Rows of the vocabulary matrices beyond `vocab_size`; the study has 10 (19,010 rows for 19,000 subwords)."""

    max_position_embeddings: int = 128
    """Most tokens of an input. The position table has two rows more, as RoBERTa's (130 in the study)."""

    type_vocab_size: int = 2
    """Rows of the token-type table. Every token has type 0, so the other rows are never trained."""

    pad_token_id: int = 1
    """Id of the padding token of the tokenizer: it gets no position of its own, and its embedding no gradient."""

    hidden_dropout_prob: float = 0.1
    """Dropout of the embedding, the attention output and the feed-forward output."""

    attention_probs_dropout_prob: float = 0.1
    """Dropout of the attention probabilities."""

    layer_norm_eps: float = 1e-5
    """Added to the variance in every layer norm."""

    layer_weighting: LayerWeightingName = "none"
    """How a layer's input is made of the earlier layers' outputs; the study knows "none" only."""

    tie_word_embeddings: bool = True
    """Whether the output matrix is the word embedding, which then has to be as wide as the hidden states."""

    vocabulary_bias: bool = True
    """Whether the output layer has a bias."""

    sentence_pair_head: bool = False
    """Whether the model predicts if two texts belong together; set by the objective."""

    initialisation: Literal["corrected", "as_published"] = "corrected"
    """As published, linear biases and gain and bias of the projection's norm start at 0.01; corrected at 0, 1 and 0."""

    family: Literal["roberta"] = "roberta"
    """Tells the families of models apart in stored configurations."""

    def __post_init__(self) -> None:
        self.check_sizes()
        for name in ("max_position_embeddings", "type_vocab_size"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        require(self.embedding_width >= 1, "embedding_size", self.embedding_size, "1 or more, or null")
        require(self.extra_vocabulary_rows >= 0, "extra_vocabulary_rows", self.extra_vocabulary_rows, "0 or more")
        expected = f"an id below vocab_size ({self.vocab_size})"
        require(0 <= self.pad_token_id < self.vocab_size, "pad_token_id", self.pad_token_id, expected)
        if self.tie_word_embeddings:
            expected = f"hidden_size ({self.hidden_size}) or null while tie_word_embeddings is true"
            require(self.embedding_width == self.hidden_size, "embedding_size", self.embedding_size, expected)

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    @property
    def vocabulary_rows(self) -> int:
        """Rows of the word embedding and of the output layer: the number of logits."""
        return self.vocab_size + self.extra_vocabulary_rows

    @property
    def position_rows(self) -> int:
        """Rows of the position table."""
        return self.max_position_embeddings + PADDING_POSITION + 1
