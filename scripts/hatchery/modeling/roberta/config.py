"""Configuration of the models of the reduced-vocabulary study, tied and untied.

Source: the reduced-vocabulary study ("Honey, I Shrunk the Language"), Section 3.4, and its code
(docs/papers/reduced-vocabulary.md, "Families of models"). Tied models are stock RoBERTa. Untied models project narrow
embeddings to the hidden size and have their own output matrix. Models with equal configurations have equal names and
shapes of parameters.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.settings.base import Count, Natural, Positive, Range, ReadingName, require

PADDING_POSITION = 1
"""Row of the position table for padding. The first token has the next row; row 0 is not used."""


@dataclass(frozen=True, kw_only=True)
class RobertaSizes(EncoderSizes):
    """Architecture of the models of the reduced-vocabulary study ("Honey, I Shrunk the Language"); the vocabulary size
    comes from the tokenizer.
    """

    embedding_size: Count | None = None
    """Width of the embeddings, which a linear layer and a norm project to `hidden_size`. `null`: embeddings of width
    `hidden_size` without a projection.
    """

    extra_vocabulary_rows: Natural = 0
    """Number of rows added to the vocabulary matrices. The study adds 10 rows (19,010 rows for 19,000 subwords)."""

    max_position_embeddings: Annotated[int, Range(ge=2)] = 128
    """Maximum number of tokens in an input. The position table has two additional rows, as in RoBERTa (130 rows in the
    study)."""

    type_vocab_size: Count = 2
    """Number of rows in the token-type table. Every token has type 0, so the other rows are never trained."""

    layer_norm_eps: Positive = 1e-5
    """Number added to the variance in every layer norm."""

    initialisation: ReadingName = "corrected"
    """Initial values of all linear biases, and of gain and bias of the norm after the projection. `as_published`: all
    these values are 0.01. `corrected`: biases are 0, and the gain is 1.
    """

    family: Literal["roberta"] = "roberta"
    """Family of the model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            not self.tie_word_embeddings or self.embedding_width == self.hidden_size,
            "tie_word_embeddings",
            self.tie_word_embeddings,
            f"false with embedding_size {self.embedding_size}, because the output matrix has the width of hidden_size "
            f"({self.hidden_size})",
        )

    @property
    def embedding_width(self) -> int:
        """Return the width of the embeddings of words, positions and token types."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    @property
    def position_rows(self) -> int:
        """Return the number of rows of the position table."""
        return self.max_position_embeddings + PADDING_POSITION + 1


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(RobertaSizes, ModelConfig):
    """Configuration of a model of the reduced-vocabulary study ("Honey, I Shrunk the Language"). Raises ConfigError for
    an invalid value.
    """

    pad_token_id: Natural = 1
    """Id of the padding token of the tokenizer. Positions do not count padding, and the embedding of padding gets no
    gradient from the lookup.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = f"an id below vocab_size ({self.vocab_size})"
        require(self.pad_token_id < self.vocab_size, "pad_token_id", self.pad_token_id, expected)

    @property
    def vocabulary_rows(self) -> int:
        """Return the number of rows of the word embedding and of the output layer: the number of logits."""
        return self.vocab_size + self.extra_vocabulary_rows


@dataclass(frozen=True, kw_only=True)
class RobertaFile(RobertaSizes):
    """Architecture of the models of the reduced-vocabulary study ("Honey, I Shrunk the Language"). The vocabulary size
    comes from the tokenizer.
    """

    description: str = ""
    """Description of the architecture for human readers."""
