"""Spelling of task texts before tokenisation, as LTG-BERT normalises GLUE and its kin (docs/papers/ltg-bert.md,
"Fine-tuning").

`ltg` strips, writes a text that is nothing but one bracket or quote of the Penn Treebank as that character, normalises
punctuation as Moses does, repairs encodings and strips. `ltg_detokenised`, for SST-2, MRPC, HANS and WSC, which are
distributed as tokens divided by blanks, does the same to every token and then joins them. The rules for punctuation,
encodings, contractions and spaces are those of the corpora.
"""

from collections.abc import Callable

from hatchery.corpora.cleaning import join_contractions, repair_spaces
from hatchery.corpora.typography import normalise_punctuation, repair_encoding
from hatchery.evaluation.tasks.settings import Normalisation

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
    """A text, or a token, in the spelling of LTG-BERT; stripped."""
    text = text.strip()
    return repair_encoding(normalise_punctuation(_TREEBANK.get(text, text))).strip()


def detokenise(text: str) -> str:
    """Tokens divided by blanks as running text (docs/papers/ltg-bert.md, "Detokenisation").

    As published: a contraction at the very end of a text stays apart (`it does n't`), because the rule asks for a
    blank behind it. Blanks around hyphens stay.
    """
    text = " ".join(token for piece in text.split(" ") if (token := normalise(piece)))
    text = repair_spaces(join_contractions(text))
    return repair_free_quotes(repair_free_quotes(text, '"'), "'").strip()


def repair_free_quotes(text: str, mark: str) -> str:
    """Blanks around those quotes `mark` that touch a blank or an edge of the text, opening and closing in turn.

    Quotes inside words (apostrophes) do not count. An odd number of quotes is left as it is, for nobody can pair them.
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
