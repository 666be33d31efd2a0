"""Which tokens begin a word, for whole-word masking and for counting words.

A word is what a tokenizer of its kind can tell from its tokens:

- *byte-level*, with or without a prefix space, and *metaspace*: what stands between ASCII white space, so `don't` and
  `12.` are one word each although the pre-tokeniser cuts them. Three rules for what is not plain: a token of white
  space alone (the `Ġ` in front of a digit) belongs to the word behind it; special tokens, and what a spelled-out
  special token separates, are units of their own, so that no word runs over them; the first token of a sentence
  always starts one.
- *continuation prefix* (`@@` of the BNC WordPiece): a pre-token. Every token without the prefix begins a word, so
  `do` and `n't` are two, and so is each mark of punctuation: this is all that the published maskers see, and what
  LTG-BERT counts as words. An unknown token stands for a whole pre-token.
"""

from collections.abc import Sequence

import numpy as np
from tokenizers import pre_tokenizers

from hatchery.tokenization.tokenizer_file import Tokenizer

ASCII_SPACE = " \t\n\r\v\f"
# Sentences with unknown tokens that are looked at together; bounds the memory where a document is a whole corpus.
SENTENCES_PER_CALL = 4096


class WordStarts:
    """Word starts from ids alone; only sentences with unknown tokens are looked at again as text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokens = tokenizer.tokens
        mark = tokenizer.word_mark
        self._tokenizer = tokenizer
        self._white_space = mark.kind != "continuation"
        self._separates = np.zeros(len(tokens), dtype=bool)
        self._separates[: tokenizer.n_special] = True
        if self._white_space:
            symbols = _byte_symbols() if mark.kind == "byte_level" else mark.symbol + ASCII_SPACE
            self._begins = np.array([token[:1] in symbols for token in tokens], dtype=bool)
            self._only_space = np.array([not token.strip(symbols) for token in tokens], dtype=bool)
        else:
            # The bare prefix cannot continue anything: it is a pre-token of the text.
            continues = [token.startswith(mark.symbol) and token != mark.symbol for token in tokens]
            self._begins = ~np.array(continues, dtype=bool)
            self._only_space = np.zeros(len(tokens), dtype=bool)
        self._begins |= self._separates
        self._only_space &= ~self._separates

    def __call__(self, ids: np.ndarray, sentence_starts: np.ndarray, sentences: Sequence[str]) -> np.ndarray:
        """Word starts (bool, shape of `ids`) of the concatenated `ids` of some sentences.

        `sentence_starts` are the offsets of the sentences in `ids`, `sentences` their texts; no sentence is empty.
        """
        begins = self._begins[ids]
        if not self._white_space:
            begins[sentence_starts] = True
            return begins
        only_space = self._only_space[ids]
        separates = self._separates[ids]
        unknown = np.flatnonzero(ids == self._tokenizer.unknown_id)
        if unknown.size:
            # The id says neither whether "[UNK]" was spelled out nor whether the unknown text begins a word.
            name = self._tokenizer.special.unknown
            texts = self._unknown_texts(unknown, sentence_starts, sentences)
            separates[unknown] = [text == name for text in texts]
            begins[unknown] = [text == name or text[:1] in ASCII_SPACE for text in texts]
            only_space[unknown] = [not text.strip(ASCII_SPACE) for text in texts]
        # Without a prefix space the text behind a special token begins with its first letter.
        begins[1:] |= separates[:-1]
        # White space with a word right behind it begins that word; in front of more white space it begins nothing.
        next_begins = np.append(begins[1:], True)
        starts = np.where(only_space, ~next_begins, begins)
        starts[sentence_starts] = True
        return starts

    def _unknown_texts(self, unknown: np.ndarray, sentence_starts: np.ndarray, sentences: Sequence[str]) -> list[str]:
        affected = np.unique(np.searchsorted(sentence_starts, unknown, side="right") - 1)
        chosen = [sentences[index] for index in affected]
        parts = (chosen[start : start + SENTENCES_PER_CALL] for start in range(0, len(chosen), SENTENCES_PER_CALL))
        return [text for part in parts for text in self._tokenizer.unknown_texts(part)]


def _byte_symbols() -> str:
    """ASCII white space as byte-level tokens spell it."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(byte_level.pre_tokenize_str(character)[0][0] for character in ASCII_SPACE)
