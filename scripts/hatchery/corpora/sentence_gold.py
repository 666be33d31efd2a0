"""Texts whose sentence ends people have marked, and how well a splitter finds them.

Read are the tagged Brown corpus as NLTK distributes it (a sentence per line, `word/tag`) and CoNLL-U files (a sentence
per `# text` line, paragraphs by `# newpar`). Scores count the ends inside paragraphs: the last one is always found.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_CLOSING = frozenset((*".,;:?!)]}", "''"))
_OPENING = frozenset((*"([{$", "``"))
_QUOTES = {"``": '"', "''": '"'}
_SENTENCES_PER_PARAGRAPH = 5


@dataclass(frozen=True)
class BoundaryScores:
    """Counts of sentence ends: found and right, found and wrong, missed."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Share of the found ends that are right; 1 where none was found."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Share of the right ends that were found; 1 where there is none."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0


def boundary_scores(split: Callable[[str], list[str]], paragraphs: Iterable[list[str]]) -> BoundaryScores:
    """How `split` does on paragraphs of marked sentences, joined by single spaces.

    Ends are compared by the number of characters that are not white space before them.
    """
    right = wrong = missed = 0
    for sentences in paragraphs:
        marked, found = _ends(sentences), _ends(split(" ".join(sentences)))
        right += len(marked & found)
        wrong += len(found - marked)
        missed += len(marked - found)
    return BoundaryScores(right, wrong, missed)


def _ends(sentences: list[str]) -> set[int]:
    ends, characters = set(), 0
    for sentence in sentences:
        characters += len("".join(sentence.split()))
        ends.add(characters)
    return ends - {characters}


def conllu_paragraphs(text: str) -> Iterator[list[str]]:
    """Paragraphs of a CoNLL-U file as lists of sentences, from its `# text`, `# newpar` and `# newdoc` lines."""
    sentences: list[str] = []
    for line in text.split("\n"):
        if line.startswith(("# newdoc", "# newpar")) and sentences:
            yield sentences
            sentences = []
        elif line.startswith("# text = "):
            sentences.append(" ".join(line.removeprefix("# text = ").split()))
    if sentences:
        yield sentences


def brown_sentences(text: str) -> list[str]:
    """Sentences of one file of the tagged Brown corpus as running text: quotes plain, no blanks before marks."""
    return [_running_text(line.split()) for line in text.split("\n") if line.strip()]


def brown_paragraphs(text: str) -> list[list[str]]:
    """Runs of five sentences: the tagged corpus does not say where its paragraphs begin."""
    sentences = brown_sentences(text)
    return [sentences[i : i + _SENTENCES_PER_PARAGRAPH] for i in range(0, len(sentences), _SENTENCES_PER_PARAGRAPH)]


def _running_text(tagged: list[str]) -> str:
    text, last = "", ""
    for pair in tagged:
        token = pair.rpartition("/")[0]
        # The corpus writes these marks twice.
        if token in ("?", "!", ";", ":") and token == last:
            last = ""
            continue
        glued = not text or last in _OPENING or token in _CLOSING
        text += ("" if glued else " ") + _QUOTES.get(token, token)
        last = token
    return text
