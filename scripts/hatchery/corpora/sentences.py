"""A small rule-based sentence splitter for English, until a trained one takes its place.

A sentence ends at a run of `.`, `!` or `?` (with closing quotes and brackets) before white space, when what follows
begins with an upper-case letter, a digit or an opening quote or bracket. A single full stop does not end it after a
title or another abbreviation that is usually followed by a name or number (Mr. Finch), nor after an initial (J. Alder).
"""

import re

_END = re.compile(r"""([.!?]+)["'”’)\]]*(\s+)(?=["'“‘(\[{`]*[A-Z0-9À-ÖØ-Þ]|[-–—] ?[A-Z])""")
# Before a name or a number these never end a sentence. `etc.`, `Inc.` and `p.m.` do often enough to stay out.
_BEFORE_NAMES = "mr mrs ms dr prof st sr gen col capt lt sgt rev hon gov sen rep pres messrs mme mlle fr mt ft ph.d"
_BEFORE_NUMBERS = "no nos vol fig figs pp ch art sec approx jan feb apr aug sept oct nov dec"
_ABBREVIATIONS = frozenset(f"{_BEFORE_NAMES} {_BEFORE_NUMBERS} cf e.g i.e viz vs".split())
_INITIALS = re.compile(r"[A-Z](?:\.[A-Z])*")
_PRONOUN_OR_LETTER = frozenset("IA")


def split_sentences(text: str) -> list[str]:
    """The sentences of one paragraph, in order, without empty ones.

    Joined by single spaces they are the paragraph with its white space collapsed; splitting a sentence again gives
    the sentence.
    """
    text = " ".join(text.split())
    if not text:
        return []
    sentences = []
    start = 0
    for match in _END.finditer(text):
        if match.group(1) == "." and _is_abbreviation(text[start : match.start()]):
            continue
        sentences.append(text[start : match.start(2)])
        start = match.end()
    sentences.append(text[start:])
    return sentences


def _is_abbreviation(before: str) -> bool:
    word = before.rsplit(" ", 1)[-1].lstrip("\"'“‘([{`-")
    if _INITIALS.fullmatch(word):
        return word not in _PRONOUN_OR_LETTER or " " not in before
    return word.lower() in _ABBREVIATIONS
