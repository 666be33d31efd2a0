"""NLTK's Punkt sentence tokenizer with identical results, but many times faster and independent of the clock.

NLTK's algorithm (Kiss and Strunk, Computational Linguistics 32, 2006) considers every `.`, `?` and `!` that is followed
by other punctuation or white space. To decide whether this mark ends a sentence, the algorithm annotates the tokens of
the words before and after the mark. In many contexts, no decision of NLTK is needed, because the mark always ends a
sentence: `?`, `!`, and a full stop after a plain word that is neither an abbreviation nor the first half of a
collocation. Only all other contexts (abbreviations, initials, numbers, unusual characters) are passed to NLTK.

NLTK cancels a regular expression after five seconds of wall time. Here the patterns run without this limit, so results
do not depend on the load of the machine. The limit is not needed, because all these patterns take linear time. Only one
pattern, which matches a single character, keeps the limit.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache


@contextmanager
def _without_initialising(*packages: str) -> Iterator[None]:
    """Allow imports of modules without running the `__init__` of their packages; `packages` are these packages, outer
    packages first.

    NLTK's `__init__` loads SciPy, scikit-learn and pandas, which Punkt does not need: 1.5 seconds in every process.
    """
    outermost = packages[0]
    before = {name for name in sys.modules if name.partition(".")[0] == outermost}
    for name in packages:
        if name not in sys.modules and (spec := importlib.util.find_spec(name)) is not None:
            sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        # Remove the incomplete packages from `sys.modules`, so that later imports load the complete packages.
        for name in [name for name in sys.modules if name.partition(".")[0] == outermost]:
            if name not in before:
                del sys.modules[name]


with _without_initialising("nltk", "nltk.tokenize"):
    from nltk import redos
    from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer, PunktToken

# This pattern matches every mark before a character that continues neither a word nor a number. The matches include all
# of Punkt's candidates for sentence ends.
_POSSIBLE_END = re.compile(r"[.?!](?=[^\w.,-])")
# Characters that end a word for Punkt; a test compares these characters with NLTK's own expression.
PUNCTUATION_AFTER_END = frozenset(")\";}]*:@'({[‘’“”«»?!")
# This pattern matches the last token before a full stop. It matches only words of ASCII letters, whose limits as
# Punkt's tokens are unambiguous.
_PLAIN_WORD = re.compile(r"""[(\[{"]*(?:[A-Za-z]+(?=['’]))?(['’‘“]?[A-Za-z]+)""")
_CLOSED = frozenset(')]}"')
_ASCII_SPACES = " \n\t\r\x0b\x0c"
_ASCII_SPACE_BUT_BLANK = re.compile(r"[\n\t\r\x0b\x0c]")
# This pattern allows only spaces, newlines and printable ASCII, because Python counts some control characters as white
# space, but NLTK's expressions do not.
_BEFORE_NEXT = re.compile(r"[ \n]+(?=[!-~])")
# Maximum length of cached contexts. Longer contexts hardly ever recur, so they are not cached.
_CONTEXT_CHARACTERS = 60


class UntimedLanguage(PunktLanguageVars):
    """NLTK's language variables, but their regular expressions have no time limit."""

    __slots__ = ()

    re_boundary_realignment = redos.compile(PunktLanguageVars.re_boundary_realignment, timeout=None)

    def __init__(self) -> None:
        # The base class uses the patterns in these slots if they are set.
        patterns = {"_re_word_tokenizer": self._word_tokenizer_re(), "_re_period_context": self.period_context_re()}
        for slot, pattern in patterns.items():
            setattr(self, slot, redos.compile(pattern, timeout=None))


class UntimedToken(PunktToken):
    """NLTK's token class, but its regular expressions have no time limit."""

    __slots__ = ()

    _RE_ELLIPSIS = redos.compile(PunktToken._RE_ELLIPSIS, timeout=None)
    _RE_NUMERIC = redos.compile(PunktToken._RE_NUMERIC, timeout=None)
    _RE_INITIAL = redos.compile(PunktToken._RE_INITIAL, timeout=None)
    _RE_ALPHA = redos.compile(PunktToken._RE_ALPHA, timeout=None)


class OrthographicContexts(dict[str, int]):
    """Orthographic-context flags by word type. Unknown types have the value 0; unlike NLTK's defaultdict, this mapping
    does not store unknown types.
    """

    def __missing__(self, word_type: str) -> int:
        return 0


def untimed_tokenizer(parameters: PunktParameters) -> PunktSentenceTokenizer:
    """Return NLTK's tokenizer with `parameters`, but without the time limits of its regular expressions."""
    tokenizer = PunktSentenceTokenizer(lang_vars=UntimedLanguage(), token_cls=UntimedToken)
    tokenizer._params.abbrev_types = parameters.abbrev_types
    tokenizer._params.collocations = parameters.collocations
    tokenizer._params.sent_starters = parameters.sent_starters
    tokenizer._params.ortho_context = OrthographicContexts(parameters.ortho_context)
    return tokenizer


class SentenceSpans:
    """Finds the spans of sentences, which equal the spans of the given Punkt tokenizer with `realign_boundaries`."""

    def __init__(self, punkt: PunktSentenceTokenizer) -> None:
        self._punkt = punkt
        parameters = punkt._params
        self._special = frozenset(parameters.abbrev_types) | {first for first, _ in parameters.collocations}
        if "." in self._special:
            # In `spans` and `_breaks`, the empty word represents a full stop between spaces.
            self._special |= {""}
        self._context = punkt._lang_vars.period_context_re()
        self._closing = punkt._lang_vars.re_boundary_realignment
        self._cached_has_break = lru_cache(1 << 16)(punkt.text_contains_sentbreak)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each sentence of `text`, in order, without the white space between sentences."""
        special = self._special
        spans = []
        start = 0
        # `previous` is the position of the last candidate that Punkt considered; `run_start` is the start of the run
        # without white space that contains this candidate.
        previous, run_start = -1, 0
        # The last candidate for a sentence end, if it is not yet decided: (position, start of the run without white
        # space that contains the candidate, start of the next sentence). If the next candidate is in the same run, the
        # next candidate replaces this candidate.
        waiting: tuple[int, int, int] | None = None
        opens_with_punctuation = False
        for match in _POSSIBLE_END.finditer(text):
            position = match.start()
            following = text[position + 1]
            if following in " \n" and "!" <= text[position + 2 : position + 3] <= "~":
                next_start = position + 2
            elif following in PUNCTUATION_AFTER_END:
                next_start = position + 1
            elif gap := _BEFORE_NEXT.match(text, position + 1):
                next_start = gap.end()
            else:
                context = self._context.match(text, position)
                if context is None:
                    continue
                next_start = context.start("next_tok") if context.group("next_tok") else position + 1
            space = text.rfind(" ", previous + 1, position)
            # Read the word before the mark only if a space precedes this word. Otherwise a long text without spaces
            # would be copied at every mark.
            word = text[space + 1 : position] if space > 0 else ""
            plain = space > 0 and (not word or word.isalpha())
            if plain or (space > 0 and not _ASCII_SPACE_BUT_BLANK.search(word)):
                run_start = space + 1
            else:
                run_start = _run_start(text, previous, position, run_start)
            # Of several candidates in one run without white space ("?!"), Punkt uses the last candidate.
            if waiting is not None and waiting[0] <= run_start and self._breaks(text, *waiting):
                spans.append((start, waiting[0] + 1))
                start = waiting[2]
                opens_with_punctuation = True
            waiting = None
            previous = position
            if following not in _ASCII_SPACES:
                waiting = (position, run_start, next_start)
            elif (
                not text[next_start].isspace()
                and (
                    text[position] != "."
                    or (plain and len(word) != 1 and word.isascii() and word.lower() not in special)
                )
            ) or self._breaks(text, position, run_start, next_start):
                spans.append((start, position + 1))
                start = next_start
                opens_with_punctuation = opens_with_punctuation or text[start] in PUNCTUATION_AFTER_END
        if waiting is not None and self._breaks(text, *waiting):
            spans.append((start, waiting[0] + 1))
            start = waiting[2]
            opens_with_punctuation = True
        end = len(text.rstrip())
        if start < end or opens_with_punctuation:
            spans.append((start, end))
        return list(self._realigned(text, spans)) if opens_with_punctuation else spans

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of `text`: the texts of its spans."""
        return [text[start:end] for start, end in self.spans(text)]

    def _breaks(self, text: str, position: int, run_start: int, next_start: int) -> bool:
        """Return True if the punctuation mark at `position` ends a sentence. Only unusual contexts are passed to Punkt.

        The mark is in a sequence of characters without white space, which starts at `run_start`. If the mark ends a
        sentence, the next sentence starts at `next_start`.
        """
        # Let Punkt decide whether the mark ends a sentence. NLTK's expression counts a control character as a word, but
        # Python counts it as white space.
        if not text[next_start].isspace():
            if text[position] != ".":
                return True
            word = text[run_start:position]
            if not word or word[-1] in _CLOSED:
                if "" not in self._special:
                    return True
            else:
                plain = _PLAIN_WORD.fullmatch(word)
                if plain is not None and len(plain[1]) > 1 and plain[1].lower() not in self._special:
                    return True
        context = text[run_start : position + 1] + self._context.match(text, position).group("after_tok")
        has_break = (
            self._cached_has_break if len(context) <= _CONTEXT_CHARACTERS else self._punkt.text_contains_sentbreak
        )
        return bool(has_break(context))

    def _realigned(self, text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the spans with quotes and brackets at the start of a sentence moved to the previous sentence, as Punkt
        does.
        """
        shift = 0
        for index, (start, stop) in enumerate(spans):
            start += shift
            shift = 0
            if index + 1 < len(spans):
                next_start, next_stop = spans[index + 1]
                if next_start < next_stop and text[next_start] in PUNCTUATION_AFTER_END:
                    closing = self._closing.match(text[next_start:next_stop])
                    if closing:
                        shift = closing.end()
                        yield start, next_start + len(closing.group().rstrip())
                        continue
            if start < stop:
                yield start, stop


def _run_start(text: str, previous: int, position: int, previous_start: int) -> int:
    """Return the start of the word before the mark at `position`, as Punkt computes it; the word contains no ASCII
    white space.

    `previous` is the position of the previous mark that may end a sentence, and `previous_start` is the start of the
    word before that mark.
    """
    space = -1
    for character in _ASCII_SPACES:
        space = max(space, text.rfind(character, max(previous, space) + 1, position))
    if space < 0:
        return previous_start
    # As in Punkt, a space at index 0 counts as no space.
    return space + 1 if space > 0 else 0
