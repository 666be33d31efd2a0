"""The tokens that begin a word, for whole-word masking and for counting words.

The definition of a word depends on the kind of tokenizer:

- *byte-level* and *metaspace*: a word is text between white space by `str.split()`, as BabyLM counts words. So `don't`
  and `12.` are one word each, although the pre-tokeniser splits them. Ids show only ASCII white space, so sentences
  with other white space (U+00A0, U+3000) are read again as text. A token of only white space (the `Ġ` before a digit)
  belongs to the next word. Special tokens that a text spells out, and the texts between them, are separate words. The
  first token of a sentence always begins a word.
- *continuation prefix* (`@@` of the BNC WordPiece): a word is a pre-token. Every token without the prefix begins a
  word, as in the published masking code and in LTG-BERT's counts. So `do` and `n't` are two words, and each punctuation
  mark is a word. An unknown token represents a complete pre-token. `text_word_starts` finds words between white space
  in the text.
"""

import re
from collections.abc import Sequence

import numpy as np
from tokenizers import pre_tokenizers

from hatchery.tokenization.tokenizer_file import Tokenizer

# Maximum number of sentences that the library encodes at a time. The number limits the memory, because a document may
# be a whole corpus (AO-CHILDES).
SENTENCES_PER_CALL = 8192
ASCII_SPACE = " \t\n\r\v\f"
"""ASCII white-space characters. Each character is one symbol in a byte-level vocabulary."""
OTHER_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
"""All other white space at which `str.split()` splits."""
_WORD = re.compile(r"\S+")


class WordStarts:
    """Finds word starts from ids. Only sentences with unknown tokens or with white space outside ASCII are read again
    as text.
    """

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
            # A token that consists only of the prefix is a pre-token of the text, so this token begins a word.
            continues = [token.startswith(mark.symbol) and token != mark.symbol for token in tokens]
            self._begins = ~np.array(continues, dtype=bool)
            self._only_space = np.zeros(len(tokens), dtype=bool)
        self._begins |= self._separates
        self._only_space &= ~self._separates

    def __call__(self, ids: np.ndarray, sentence_starts: np.ndarray, sentences: Sequence[str]) -> np.ndarray:
        """Return a mask, bool with the shape of `ids`, that is True for tokens that begin a word. `ids` are the
        concatenated tokens of all sentences.

        `sentence_starts` are the indices in `ids` of the first token of each sentence; `sentences` are the texts of the
        sentences, which must not be empty.
        """
        begins = self._begins[ids]
        if not self._white_space:
            begins[sentence_starts] = True
            return begins
        only_space = self._only_space[ids]
        separates = self._separates[ids]
        unknown = np.flatnonzero(ids == self._tokenizer.unknown_id)
        if unknown.size:
            # Read sentences with unknown tokens as text. The id of an unknown token shows neither whether the text
            # spells out "[UNK]" nor whether the unknown text begins a word.
            name = self._tokenizer.special.unknown
            texts = self._unknown_texts(unknown, sentence_starts, sentences)
            separates[unknown] = [text == name for text in texts]
            begins[unknown] = [text == name or text[:1] in ASCII_SPACE for text in texts]
            only_space[unknown] = [not text.strip(ASCII_SPACE) for text in texts]
        # Text after a special token begins a word. If the tokenizer adds no prefix space, the first token after a
        # special token is not spelled as the beginning of a word.
        begins[1:] |= separates[:-1]
        # A token of white space begins a word, unless the next token begins a word or is white space.
        next_begins = np.append(begins[1:], True)
        starts = np.where(only_space, ~next_begins, begins)
        starts[sentence_starts] = True
        spaced = [number for number, sentence in enumerate(sentences) if OTHER_SPACE.search(sentence)]
        _set_by_text(starts, self._tokenizer, [sentences[number] for number in spaced], sentence_starts[spaced], ids)
        return starts

    def _unknown_texts(self, unknown: np.ndarray, sentence_starts: np.ndarray, sentences: Sequence[str]) -> list[str]:
        affected = np.unique(np.searchsorted(sentence_starts, unknown, side="right") - 1)
        chosen = [sentences[index] for index in affected]
        parts = (chosen[start : start + SENTENCES_PER_CALL] for start in range(0, len(chosen), SENTENCES_PER_CALL))
        return [text for part in parts for text in self._tokenizer.unknown_texts(part)]


def _byte_symbols() -> str:
    """Return the symbols that represent ASCII white space in byte-level tokens."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(byte_level.pre_tokenize_str(character)[0][0] for character in ASCII_SPACE)


def text_word_starts(
    tokenizer: Tokenizer, sentences: Sequence[str], sentence_starts: np.ndarray, ids: np.ndarray
) -> np.ndarray:
    """Return a mask, bool [len(ids)], that is True for tokens that begin a word; white space separates words. `ids` are
    the concatenated tokens of all sentences.

    The words are found in `sentences`, for tokenizers whose ids do not show white space. Special tokens are treated as
    by `WordStarts`, which also describes `sentence_starts`. All tokens that were added after a sentence are special.
    """
    starts = ids < tokenizer.n_special
    _set_by_text(starts, tokenizer, sentences, sentence_starts, ids)
    return starts


def _set_by_text(
    starts: np.ndarray, tokenizer: Tokenizer, sentences: Sequence[str], sentence_starts: np.ndarray, ids: np.ndarray
) -> None:
    """Set in `starts` the word starts of the tokens of `sentences`, computed from the text."""
    for first in range(0, len(sentences), SENTENCES_PER_CALL):
        part = sentences[first : first + SENTENCES_PER_CALL]
        for number, spans in enumerate(tokenizer.token_spans(part), first):
            begin = int(sentence_starts[number])
            own = slice(begin, begin + len(spans))
            starts[own] = _starts_of(sentences[number], spans, ids[own], tokenizer)


def _starts_of(sentence: str, spans: Sequence[tuple[int, int]], ids: np.ndarray, tokenizer: Tokenizer) -> np.ndarray:
    """Return which tokens of a sentence begin a word: bool [len(spans)]; `spans` are the tokens' character spans."""
    texts = [sentence[start:end] for start, end in spans]
    special = ids < tokenizer.n_special
    special &= [text.strip() == tokenizer.special.unknown for text in texts] | (ids != tokenizer.unknown_id)
    ends = np.maximum.accumulate(np.array([end for _, end in spans], dtype=np.int64))
    begins = {found.start() for found in _WORD.finditer(sentence)}
    # Text after a special token begins a word, even without a space between them.
    begins |= {
        start
        for (start, _), text, after in zip(spans[1:], texts[1:], special, strict=False)
        if after and text and not text[0].isspace()
    }
    # If the normaliser removed the first character of a word, the word begins at the token of its next character.
    first = np.minimum(np.searchsorted(ends, sorted(begins), side="right"), len(spans) - 1)
    counts = np.bincount(first, minlength=len(spans))
    counts[special] = 1
    for index in np.flatnonzero(counts & ~special).tolist():
        space, target = spans[index - 1], index
        if index and texts[index - 1].isspace() and not texts[index][:1].isspace():
            # If a white-space character is split into several byte tokens, the word begins at the first of these
            # tokens.
            while target and spans[target - 1] == space:
                target -= 1
        counts[[target, index]] = counts[[index, target]]
    _spread(counts, special)
    return counts > 0


def _spread(counts: np.ndarray, special: np.ndarray) -> None:
    """Move word starts between tokens, in place, so that at most one word starts in a token; `counts` is the number of
    words that start in each token. If several words start in a token, one of these word starts stays, and the others
    move to the nearest tokens without a word start. If there are more words than tokens, the remaining word starts are
    dropped.

    Several words start in a token only if the token contains white space, for example U+00A0 if the tokenizer splits
    only at spaces.
    """
    for index in np.flatnonzero((counts > 1) & ~special):
        free = np.flatnonzero(counts == 0)
        nearest = free[np.argsort(np.abs(free - index), kind="stable")][: counts[index] - 1]
        counts[nearest], counts[index] = 1, 1
