"""The texts of a task: normalisation before tokenisation, and the filter of rows by vocabulary.

Texts are normalised as LTG-BERT normalises GLUE and similar tasks (docs/papers/ltg-bert.md, "Fine-tuning"). The
normalisation `ltg` first strips the text. A text that is only a bracket or quote token of the Penn Treebank becomes
this bracket or quote. Then punctuation is normalised as in Moses, encodings are repaired, and the text is stripped
again. SST-2, MRPC, HANS and WSC are distributed as tokens separated by spaces; for these tasks, `ltg_detokenised`
applies the steps to every token and then joins the tokens. The cleaning of corpora applies the same rules for
punctuation, encodings, contractions and spaces.

Words are compared with a vocabulary in two ways (docs/papers/reduced-vocabulary.md, "Comparison of words" and "Filtered
GLUE").

- `as_published`: the texts are joined by a space and split at single spaces. A token with an upper-case letter is
  skipped as a name, unless it is the first token of the joined texts. In the tokens that are not skipped, digits and
  the DELETED_SYMBOLS are deleted at any position. The remaining characters, in lower case, must be a word of the
  vocabulary, the remainder of a contraction, or empty. Other symbols, such as `%` or `/`, are not deleted, so a row
  with such a token is dropped. There is no rule for links.
- `corrected`: words, contractions, numerals, hyphens and links are compared by the rules `corrected` of
  `vocabulary.comparison`, by which pretraining text is selected. The first word of a text or sentence must be in the
  vocabulary. Any other word with an upper-case letter is skipped as a name.
"""

import re
from collections.abc import Callable, Sequence, Set

from hatchery.corpora.cleaning import join_contractions, repair_spaces
from hatchery.corpora.sentences import split_sentences
from hatchery.corpora.typography import normalise_punctuation, repair_encoding
from hatchery.evaluation.tasks.settings import Normalisation, VocabularyFilter
from hatchery.vocabulary.comparison import COMPARISONS, HYPERLINK, KnownWords

_TREEBANK = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}


def normalise(text: str) -> str:
    """Return a text or a token, normalised as in LTG-BERT's code and without white space at its ends."""
    text = text.strip()
    return repair_encoding(normalise_punctuation(_TREEBANK.get(text, text))).strip()


def detokenise(text: str) -> str:
    """Return running text made from tokens separated by spaces (docs/papers/ltg-bert.md, "Detokenisation").

    As in LTG-BERT's code, the rule for contractions requires a space after the contraction, so a contraction at the end
    of a text stays separate (`it does n't`). Spaces around hyphens also stay.
    """
    text = " ".join(token for piece in text.split(" ") if (token := normalise(piece)))
    text = repair_spaces(join_contractions(text))
    return repair_free_quotes(repair_free_quotes(text, '"'), "'").strip()


def repair_free_quotes(text: str, mark: str) -> str:
    """Return the text with corrected spaces around opening and closing quotes `mark`.

    Only quotes next to a space, or at the beginning or end of the text, are counted as opening and closing quotes;
    quotes inside words, such as apostrophes, stay unchanged. The counted quotes alternate between opening and closing.
    If the number of counted quotes is odd, they cannot be paired, and the text is returned unchanged.
    """
    if mark not in text:
        return text
    last = len(text) - 1
    free = [
        index
        for index, character in enumerate(text)
        if character == mark and (index in (0, last) or text[index - 1].isspace() or text[index + 1].isspace())
    ]
    if not free or len(free) % 2:
        return text
    pieces, start = [], 0
    for number, index in enumerate(free):
        pieces.append(text[start:index])
        start = index + 1
        if number % 2 == 0:
            if pieces[-1] and not pieces[-1][-1].isspace():
                pieces.append(" ")
            pieces.append(mark)
            start += text[start : start + 1] == " "
        else:
            pieces[-1] = pieces[-1].removesuffix(" ")
            pieces.append(mark)
            if text[start : start + 1].isalnum():
                pieces.append(" ")
    return "".join([*pieces, text[start:]])


NORMALISATIONS: dict[Normalisation, Callable[[str], str]] = {
    "none": lambda text: text,
    "ltg": normalise,
    "ltg_detokenised": detokenise,
}


Within = Callable[[Sequence[str]], bool]

DELETED_SYMBOLS = "!:&“”—-_,@#$?;’.'()\""
"""Symbols that the published filter deletes in addition to the digits."""

LEFTOVERS = frozenset({"", "nt", "s", "re", "t", "d", "ll"})
"""Remainders of contractions after the deletion of symbols. The published filter accepts these remainders."""

_DELETED = str.maketrans("", "", DELETED_SYMBOLS + "0123456789")
_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")


def make_filter(settings: VocabularyFilter, vocabulary: Set[str]) -> Within:
    """Return a function that receives the texts of a row in order, and tests whether all their words are in
    `vocabulary`.
    """
    if settings.reading == "as_published":
        return lambda texts: _as_published(" ".join(texts), vocabulary)
    known = KnownWords(vocabulary, COMPARISONS["corrected"])
    return lambda texts: all(_corrected(text, known) for text in texts)


def _as_published(text: str, vocabulary: Set[str]) -> bool:
    for index, token in enumerate(text.split(" ")):
        lower = token.lower()
        if index and lower != token:
            continue
        word = lower.translate(_DELETED)
        if word not in vocabulary and word not in LEFTOVERS:
            return False
    return True


def _corrected(text: str, known: KnownWords) -> bool:
    if HYPERLINK in text.lower():
        return False
    return all(known.contains(_without_names(sentence)) for sentence in split_sentences(text))


def _without_names(sentence: str) -> str:
    """Return the sentence without names. A name is any word with an upper-case letter, except the first word of the
    sentence."""
    if sentence[1:].islower():
        return sentence
    first = _WORD.search(sentence)
    if first is None:
        return sentence
    rest = _WORD.sub(lambda word: "" if any(map(str.isupper, word.group())) else word.group(), sentence[first.end() :])
    return sentence[: first.end()] + rest
