"""NLTK's Punkt sentence tokenizer, made faster and free of the clock, with every decision as in the library.

The algorithm is the library's (Kiss and Strunk, Computational Linguistics 32, 2006). NLTK gives up on a regular
expression after five seconds of wall time; here the patterns, which are linear, run without that limit, so that a
result never depends on how busy the machine is. Importing this module imports the whole of NLTK, a second of work:
`hatchery.corpora.sentences` does it at the first use.
"""

import re

from nltk import redos
from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer, PunktToken

# A word of two or more plain letters, its mark, and something that cannot belong to the token of the mark. A full stop
# and a blank may be the first of a spaced ellipsis, hence no second one after them.
_NOT_IN_WORDS = r"""[)";}\]*:@'({\[‘’“”«»?!]"""
_PLAIN_END = re.compile(rf"([A-Za-z]{{2,}})(?:[?!](?: \S|{_NOT_IN_WORDS})|(\.)(?: [^\s.]|{_NOT_IN_WORDS}))")


class UntimedLanguage(PunktLanguageVars):
    """The library's patterns without their time limit."""

    __slots__ = ()

    re_boundary_realignment = redos.compile(PunktLanguageVars.re_boundary_realignment, timeout=None)

    def __init__(self) -> None:
        # The base class takes the patterns from these slots where they are filled.
        patterns = {"_re_word_tokenizer": self._word_tokenizer_re(), "_re_period_context": self.period_context_re()}
        for slot, pattern in patterns.items():
            setattr(self, slot, redos.compile(pattern, timeout=None))


class UntimedToken(PunktToken):
    """The library's token with patterns without their time limit."""

    __slots__ = ()

    _RE_ELLIPSIS = redos.compile(PunktToken._RE_ELLIPSIS, timeout=None)
    _RE_NUMERIC = redos.compile(PunktToken._RE_NUMERIC, timeout=None)
    _RE_INITIAL = redos.compile(PunktToken._RE_INITIAL, timeout=None)
    _RE_ALPHA = redos.compile(PunktToken._RE_ALPHA, timeout=None)


class OrthographicContexts(dict[str, int]):
    """The context flags of word types, 0 for unknown ones, which the library's defaultdict would keep for good."""

    def __missing__(self, word_type: str) -> int:
        return 0


class FastPunktTokenizer(PunktSentenceTokenizer):
    """The library's tokenizer with a short way for the marks whose decision needs no tokens."""

    def __init__(self, parameters: PunktParameters) -> None:
        super().__init__(lang_vars=UntimedLanguage(), token_cls=UntimedToken)
        self._params.abbrev_types = parameters.abbrev_types
        self._params.collocations = parameters.collocations
        self._params.sent_starters = parameters.sent_starters
        self._params.ortho_context = OrthographicContexts(parameters.ortho_context)
        self._undecided = parameters.abbrev_types | {first for first, _ in parameters.collocations}

    def text_contains_sentbreak(self, text: str) -> bool:
        """Whether a sentence ends inside `text`, as the library's method of this name decides it.

        A text that begins with a plain word and its mark has a break there: the first pass of Punkt marks the token
        of `!` and `?`, and a word with a full stop that is no known abbreviation; its second pass takes that back
        only for collocations, initials and numbers.
        """
        plain = _PLAIN_END.match(text)
        if plain is not None and (plain[2] is None or plain[1].lower() not in self._undecided):
            return True
        return bool(super().text_contains_sentbreak(text))
