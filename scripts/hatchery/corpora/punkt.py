"""NLTK's Punkt sentence tokenizer, made faster and free of the clock, with every decision as in the library.

The algorithm is the library's (Kiss and Strunk, Computational Linguistics 32, 2006). NLTK gives up on a regular
expression after five seconds of wall time; here the patterns, which are linear, run without that limit, so that a
result never depends on how busy the machine is.
"""

import importlib.util
import re
import string
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _without_initialising(*packages: str) -> Iterator[None]:
    """Let modules be imported from packages whose `__init__` is not run, outer packages first.

    NLTK's loads SciPy, scikit-learn and pandas, of which Punkt needs nothing: a second and a half, in every process.
    """
    outermost = packages[0]
    before = {name for name in sys.modules if name.partition(".")[0] == outermost}
    for name in packages:
        if name not in sys.modules and (spec := importlib.util.find_spec(name)) is not None:
            sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        # Whoever imports them later gets the whole packages.
        for name in [name for name in sys.modules if name.partition(".")[0] == outermost]:
            if name not in before:
                del sys.modules[name]


with _without_initialising("nltk", "nltk.tokenize"):
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
        # The patterns inside the library's wrapper, which is a generator of its own for every search.
        self._possible_end = self._lang_vars.period_context_re()._rx
        self._closing = self._lang_vars.re_boundary_realignment._rx
        self._undecided = parameters.abbrev_types | {first for first, _ in parameters.collocations}

    def span_tokenize(self, text: str, realign_boundaries: bool = True) -> Iterator[tuple[int, int]]:
        """Start and end of each sentence of `text`, as the library's method of this name gives them.

        The library cuts a copy of the text around every mark, twice; half of a conversion went there.
        """
        if not realign_boundaries:
            yield from super().span_tokenize(text, realign_boundaries=False)
            return
        moved = 0
        waiting: tuple[int, int] | None = None
        for span in self._spans(text):
            if waiting is not None:
                begin, end = waiting[0] + moved, waiting[1]
                closing = self._closing.match(text, *span)
                if closing:
                    yield begin, span[0] + len(closing.group(0).rstrip())
                    moved = closing.end() - span[0]
                else:
                    moved = 0
                    if begin < end:
                        yield begin, end
            waiting = span
        if waiting is not None and waiting[0] + moved < waiting[1]:
            yield waiting[0] + moved, waiting[1]

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The sentences before closing quotes and brackets are given to those that they close."""
        begin = 0
        for word, mark in self._marks(text):
            if self._is_break(text, word, mark.end("after_tok")):
                yield begin, mark.end()
                begin = mark.start("next_tok") if mark.group("next_tok") else mark.end()
        yield begin, len(text.rstrip())

    def _marks(self, text: str) -> Iterator[tuple[int, Any]]:
        """Each mark that could end a sentence, behind the beginning of its word: of several in a word, the last."""
        others = [blank for blank in string.whitespace if blank != " " and blank in text]
        word = stop = 0
        previous = None
        for mark in self._possible_end.finditer(text):
            start = mark.start()
            space = text.rfind(" ", stop, start)
            for blank in others:
                space = max(space, text.rfind(blank, stop, start))
            begin = space + 1 if space > stop else word
            if previous is not None and stop <= begin:
                yield word, previous
            previous, word, stop = mark, begin, start
        if previous is not None:
            yield word, previous

    def _is_break(self, text: str, start: int, end: int) -> bool:
        plain = _PLAIN_END.match(text, start, end)
        if plain is not None and (plain[2] is None or plain[1].lower() not in self._undecided):
            return True
        return bool(super().text_contains_sentbreak(text[start:end]))

    def text_contains_sentbreak(self, text: str) -> bool:
        """Whether a sentence ends inside `text`, as the library's method of this name decides it.

        A text that begins with a plain word and its mark has a break there: the first pass of Punkt marks the token
        of `!` and `?`, and a word with a full stop that is no known abbreviation; its second pass takes that back
        only for collocations, initials and numbers.
        """
        return self._is_break(text, 0, len(text))
