"""Held-out documents as token ids of an external model, encoded when needed.

As in the token shards of Hatchery's models, sentences are encoded one by one. Here, each sentence except a document's
first begins with a space, so that a byte-level tokenizer sees running text. Markers of Hatchery's converters, such as
`[TAB]`, are encoded as plain characters.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.objectives.examples import NextTokenExamples
from hatchery.objectives.padded_examples import Padding
from hatchery.objectives.segments import Segment, first_tokens, room_for_tokens
from hatchery.objectives.sequences import Framer
from hatchery.objectives.special_ids import SpecialIds
from hatchery.progress import Progress
from hatchery.tokenization.documents import count_documents, read_batches, shards_by_split, split_sentences
from hatchery.tokenization.token_shards import Document

NO_WORDS = np.zeros(0, dtype=np.uint8)


@dataclass(frozen=True)
class OwnSpecialIds(SpecialIds):
    """The special ids of an external tokenizer; their values may be anywhere in its vocabulary. No text token has a
    special id."""

    def maskable(self, ids: np.ndarray, special_tokens_too: bool = False) -> np.ndarray:
        """Return a bool for each token of `ids`: True if the token may be predicted. Padding tokens may not be
        predicted. The special tokens before and after a text may be predicted only if `special_tokens_too` is true.
        """
        framing = (self.pad,) if special_tokens_too else (self.cls, self.sep, self.pad)
        return ~np.isin(ids, framing)


class OwnText:
    """The non-empty documents of a split as token ids of an external model. The class has the interface `HeldOutText`.
    The documents do not mark the tokens that begin a word.
    """

    n_special = 0
    """Number of ids at the start of the vocabulary that are reserved for special tokens: 0, because the special ids of
    an external tokenizer may be anywhere in its vocabulary.
    """

    def __init__(self, model: BaselineModel, documents: Iterable[list[str]], split: str, where: str) -> None:
        """Encode the documents of a split; each batch in `documents` is a list of texts.

        Raises EvaluationError for a masked model whose tokenizer does not add a token both before and after a text.
        """
        self.where, self.split = where, split
        if model.architecture == "masked" and not (model.frame.before and model.frame.after):
            raise EvaluationError(
                f"{model.where}: perplexity: the tokenizer does not add a token both before and after a text, "
                "expected one token before and one after held-out text; measure this masked model in an experiment "
                "without perplexity.splits"
            )
        self.vocabulary_size = model.vocabulary_size
        cls = model.frame.before[0]
        mask = cls if model.mask_id is None else model.mask_id
        its = model.tokenizer
        self.special = OwnSpecialIds(cls, its.sep_id, its.pad_id, mask, n_protected=0, first_random=0)
        self.words = 0
        self._ids = array("I")
        self._bounds = array("q", [0])
        self._sentence_starts: list[np.ndarray] = []
        for texts in documents:
            self._add(model, texts)
        self.n_documents, self.n_tokens = len(self._sentence_starts), len(self._ids)
        self._flat = np.frombuffer(self._ids, dtype=np.uint32) if self._ids else np.zeros(0, dtype=np.uint32)

    def document(self, index: int) -> Document:
        """Return the token ids of the document with this index, counted from 0."""
        ids = self._flat[self._bounds[index] : self._bounds[index + 1]]
        return Document(ids, self._sentence_starts[index], NO_WORDS, 0)

    def document_lengths(self) -> np.ndarray:
        """Return the number of tokens of every document, int64 [n_documents]."""
        return np.diff(np.array(self._bounds, dtype=np.int64))

    def next_tokens(self, sequence_length: int) -> NextTokenExamples:
        """Return sequences with tokens of one document each. Together, they predict every token and every end of a
        document once.

        Hatchery's causal models have the same targets, but each of their sequences contains several documents,
        separated by the attention mask. Not every class of `transformers` accepts this mask.
        """
        pieces = Pieces(self, room_for_tokens(sequence_length))
        framer, padding = Framer(self.special, with_word_starts=False), Padding(self.special.pad, sequence_length)
        return NextTokenExamples(pieces, framer, padding, keeps_apart=False)

    def _add(self, model: BaselineModel, texts: list[str]) -> None:
        documents = [sentences for sentences, _ in map(split_sentences, texts) if sentences]
        flat = [" " * (number > 0) + text for sentences in documents for number, text in enumerate(sentences)]
        encoded = iter(model.tokenizer.encode_sentences(flat))
        for sentences in documents:
            starts = [0]
            for sentence in sentences:
                ids = next(encoded)
                self._ids.extend(ids)
                starts.append(starts[-1] + len(ids))
                self.words += len(sentence.split())
            self._sentence_starts.append(np.unique(np.array(starts[:-1], dtype=np.int32)))
            self._bounds.append(len(self._ids))


def own_text(model: BaselineModel, corpus: Manifest, split: str) -> OwnText:
    """Encode a split of the corpus whose manifest is `corpus`. Raises EvaluationError for a missing split, and the
    errors of OwnText."""
    shards = shards_by_split(corpus)
    if split not in shards:
        raise EvaluationError(f"{corpus.path}: there is no split {split!r}; there are: {', '.join(shards)}")

    def documents(progress: Progress) -> Iterator[list[str]]:
        for path in shards[split]:
            for batch in read_batches(path):
                yield batch.texts
                progress.update(len(batch.texts))

    with Progress(count_documents(shards[split]), f"encoding, {split}", "documents") as progress:
        return OwnText(model, documents(progress), split, str(corpus.path))


class Pieces:
    """Pieces of the documents of an `OwnText`: each document is split into pieces of at most `limit` tokens."""

    def __init__(self, text: OwnText, limit: int) -> None:
        self._text, self._limit = text, limit
        counts = -(-text.document_lengths() // limit)
        self._documents = np.repeat(np.arange(len(counts)), counts)
        self._firsts = (np.arange(len(self._documents)) - np.repeat(np.cumsum(counts) - counts, counts)) * limit

    def __len__(self) -> int:
        return len(self._documents)

    def places(self) -> np.ndarray:
        """Return the position of the first token of each piece of a document, in the concatenated tokens of the split:
        int64 [pieces].
        """
        return first_tokens(self._text)[self._documents] + self._firsts

    def __getitem__(self, index: int) -> Segment:
        number, first = int(self._documents[index]), int(self._firsts[index])
        document = self._text.document(number)
        return Segment(number, document, first, min(len(document.ids), first + self._limit))
