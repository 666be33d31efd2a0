"""What the encoding of tasks asks of a tokenizer, ours or that of a model of others."""

from collections.abc import Sequence
from typing import Protocol

from tokenizers import Tokenizer as Backend


class TextTokenizer(Protocol):
    """Texts to ids, and the ids around them: `[CLS] a [SEP] b [SEP]`."""

    @property
    def backend(self) -> Backend:
        """The library's tokenizer, for character offsets."""

    @property
    def cls_id(self) -> int | None:
        """In front of the first text; None where the model was pretrained with nothing there (T5)."""

    @property
    def sep_id(self) -> int:
        """Behind every text."""

    @property
    def pad_id(self) -> int:
        """What shorter inputs are filled up with; no model looks at it."""

    @property
    def separators_in_pair(self) -> int:
        """How many `sep_id` stand between two texts."""

    def encode_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without the tokens that frame it."""
