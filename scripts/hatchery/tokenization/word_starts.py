"""Which tokens begin a word, for whole-word masking and for counting words.

A word is what stands between ASCII white space, so `don't` and `12.` are one word each although the pre-tokeniser
cuts them. Three rules for what is not plain: a token of white space alone (the `Ġ` in front of a digit) belongs to
the word behind it; special tokens, and what a spelled-out special token separates, are units of their own, so that
no word runs over them; the first token of a sentence always starts one.
"""

from collections.abc import Sequence

import numpy as np
from tokenizers import pre_tokenizers

from hatchery.tokenization.special_tokens import SPECIAL_IDS, UNKNOWN
from hatchery.tokenization.tokenizer_file import Tokenizer

ASCII_SPACE = " \t\n\r\v\f"


class WordStarts:
    """Word starts from ids alone; only sentences with unknown tokens are looked at again as text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        symbols = "".join(byte_level.pre_tokenize_str(character)[0][0] for character in ASCII_SPACE)
        tokens = tokenizer.tokens
        self._tokenizer = tokenizer
        self._begins_with_space = np.array([token[:1] in symbols for token in tokens], dtype=bool)
        self._only_space = np.array([not token.strip(symbols) for token in tokens], dtype=bool)
        self._separates = np.zeros(len(tokens), dtype=bool)
        self._separates[list(SPECIAL_IDS.values())] = True
        self._begins_with_space |= self._separates
        self._only_space &= ~self._separates

    def __call__(self, ids: np.ndarray, sentence_starts: np.ndarray, sentences: Sequence[str]) -> np.ndarray:
        """Word starts (bool, shape of `ids`) of the concatenated `ids` of some sentences.

        `sentence_starts` are the offsets of the sentences in `ids`, `sentences` their texts; no sentence is empty.
        """
        begins = self._begins_with_space[ids]
        only_space = self._only_space[ids]
        unknown = np.flatnonzero(ids == self._tokenizer.unknown_id)
        if unknown.size:
            # The id 0 says neither whether "[UNK]" was spelled out nor whether the unknown text begins a word.
            texts = self._unknown_texts(unknown, sentence_starts, sentences)
            separates = self._separates[ids]
            separates[unknown] = [text == UNKNOWN for text in texts]
            begins[unknown] = [text == UNKNOWN or text[:1] in ASCII_SPACE for text in texts]
            begins[unknown] |= np.insert(separates, 0, True)[unknown]
            only_space[unknown] = [not text.strip(ASCII_SPACE) for text in texts]
        # White space with a word right behind it begins that word; in front of more white space it begins nothing.
        next_begins = np.append(begins[1:], True)
        starts = np.where(only_space, ~next_begins, begins)
        starts[sentence_starts] = True
        return starts

    def _unknown_texts(self, unknown: np.ndarray, sentence_starts: np.ndarray, sentences: Sequence[str]) -> list[str]:
        affected = np.unique(np.searchsorted(sentence_starts, unknown, side="right") - 1)
        return [text for index in affected for text in self._tokenizer.unknown_texts(sentences[index])]
