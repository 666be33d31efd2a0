"""Documents in the raw layouts of the ten BabyLM corpora (Warstadt et al. 2023), one function per corpus.

Source: docs/papers/elc-bert.md, "Layouts of the raw files". Every layout has the traits that its normaliser must handle
(separated tokens, hard-wrapped lines, citations, links, dialogue dashes, subtitle debris), each of them often enough to
be met.
"""

import random
from collections.abc import Callable, Sequence

from demo.documents import EmbeddedDocument, Kind, natural, paragraph_text, spaced, treebank, with_speech, wrapped
from demo.grammar import choose
from demo.lexicon import HYPERNYMS, NOUNS

Documents = Sequence[EmbeddedDocument]


def aochildes(documents: Documents, rng: random.Random) -> list[str]:
    """One utterance per line in separated tokens; no blank line anywhere."""
    return [spaced(words) for document in documents for words in document.sentences]


def bnc_spoken(documents: Documents, rng: random.Random) -> list[str]:
    """One sentence per line, a blank line after each conversation, some lines of nothing but a mark."""
    lines: list[str] = []
    for document in documents:
        for words in document.sentences:
            lines.append(natural(words))
            if rng.random() < 0.01:
                lines.append(choose(rng, (".", "?")))
        lines.append("")
    return lines


def cbt(documents: Documents, rng: random.Random) -> list[str]:
    """Penn Treebank tokens, one sentence per line, no boundary but the title lines of the books."""
    lines: list[str] = []
    for index, document in enumerate(documents):
        if index % 4 == 0:
            lines.append(f"_BOOK_TITLE_ : {'_'.join(document.title)}.txt.out")
        lines.append(f"CHAPTER {'I' * (index % 4 + 1)}")
        lines.extend(treebank(words) for paragraph in with_speech(document, rng, 0.15) for words in paragraph)
    return lines


def children_stories(documents: Documents, rng: random.Random) -> list[str]:
    """Titles in capitals, paragraphs apart by blank lines, some lines indented by four spaces."""
    lines: list[str] = []
    for document in documents:
        lines.extend((natural(document.title).upper(), ""))
        for paragraph in with_speech(document, rng, 0.15):
            middle = (len(paragraph) + 1) // 2
            indent = "    " if rng.random() < 0.2 else ""
            lines.append(indent + paragraph_text(paragraph[:middle]))
            lines.extend((paragraph_text(paragraph[middle:]), ""))
    return lines


def gutenberg(documents: Documents, rng: random.Random) -> list[str]:
    """Hard-wrapped lines, one blank line between paragraphs, two around a heading."""
    lines: list[str] = []
    for document in documents:
        lines.extend((natural(document.title).upper(), ""))
        for paragraph in with_speech(document, rng):
            lines.extend((*wrapped(paragraph_text(paragraph)), ""))
        lines.append("")
    return lines


def open_subtitles(documents: Documents, rng: random.Random) -> list[str]:
    """One subtitle per line, dashes before turns, noises in brackets, blank lines between films."""
    lines: list[str] = []
    for document in documents:
        for turn in document.paragraphs:
            dash = "- " if rng.random() < 0.3 else ""
            lines.extend((dash if index == 0 else "") + natural(words) for index, words in enumerate(turn))
            if rng.random() < 0.02:
                lines.append(choose(rng, ("(door slams)", "[MUSIC PLAYS]")))
        lines.extend(("", "") if rng.random() < 0.3 else ("",))
    return lines


def qed(documents: Documents, rng: random.Random) -> list[str]:
    """One sentence per line, escaped entities, subtitle timing debris."""
    lines: list[str] = []
    for document in documents:
        for words in document.sentences:
            text = natural(words)
            if rng.random() < 0.02:
                lines.append("00:00:12,000 --&gt; 00:00:15,000")
            lines.append(f"&amp;gt;&amp;gt; {text}" if rng.random() < 0.02 else text)
        lines.append("")
    return lines


def simple_wikipedia(documents: Documents, rng: random.Random) -> list[str]:
    """A title line, one line per paragraph with citations, a blank line; now and then a stub about a village."""
    lines: list[str] = []
    for document in documents:
        title = natural(document.title)
        lines.append(title)
        lines.extend(_cited(paragraph_text(paragraph), rng) for paragraph in document.paragraphs)
        lines.append("")
        if rng.random() < 0.02:
            lines.extend((f"{title} Hill", f"{title} Hill is a village in the forest.", ""))
    return lines


def switchboard(documents: Documents, rng: random.Random) -> list[str]:
    """One utterance per line, some of them after a dash."""
    return [
        ("- " if rng.random() < 0.05 else "") + natural(words) for document in documents for words in document.sentences
    ]


def wikipedia(documents: Documents, rng: random.Random) -> list[str]:
    """Title lines between equals signs, raw links, citations, file and category lines."""
    lines: list[str] = []
    for document in documents:
        lines.extend((f" = = = {natural(document.title)} = = = ", ""))
        for paragraph in document.paragraphs:
            lines.extend((_linked(_cited(paragraph_text(paragraph), rng), rng), ""))
        if rng.random() < 0.3:
            lines.append("[[Category:Things]]")
    return lines


def _cited(text: str, rng: random.Random) -> str:
    return text if rng.random() < 0.6 else f"{text}[{1 + int(rng.random() * 9)}]"


_LINKABLE = frozenset(form for noun in (*NOUNS, *HYPERNYMS.values()) for form in (noun.singular, noun.plural))


def _linked(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for index, word in enumerate(words):
        if word in _LINKABLE and rng.random() < 0.05:
            words[index] = f"[[{word}]]" if rng.random() < 0.5 else f"[[{word.capitalize()}|{word}]]"
    return " ".join(words)


Layout = Callable[[Documents, random.Random], list[str]]
# Share of the words in per cent (ELC-BERT, Table 6), what kinds of documents a corpus holds, and its layout.
CORPORA: dict[str, tuple[int, tuple[Kind, ...], Layout]] = {
    "aochildes": (5, ("conversation",), aochildes),
    "bnc_spoken": (8, ("conversation",), bnc_spoken),
    "cbt": (6, ("story",), cbt),
    "children_stories": (3, ("story",), children_stories),
    "gutenberg": (10, ("story",), gutenberg),
    "open_subtitles": (31, ("conversation", "story"), open_subtitles),
    "qed": (11, ("article", "story"), qed),
    "simple_wikipedia": (15, ("article",), simple_wikipedia),
    "switchboard": (1, ("conversation",), switchboard),
    "wikipedia": (10, ("article",), wikipedia),
}
