"""The sentence filter, fast: exact Punkt at little cost, and one set operation per sentence.

Promise: the same outcome as `rules.plain_sentences` with Punkt's sentences, for every document.
"""

from hatchery.vocabulary.comparison import HYPERLINK
from hatchery.vocabulary.known_words import KnownWords
from hatchery.vocabulary.rules import LINK, SHORT, UNKNOWN, Outcome, Rule, counted_words
from hatchery.vocabulary.sentence_spans import SentenceSpans


class SentenceFilter:
    """Selects the sentences of documents by a rule."""

    def __init__(self, rule: Rule, sentences: SentenceSpans) -> None:
        self._rule = rule
        self._sentences = sentences
        self._known = KnownWords(rule.vocabulary, rule.comparison)

    def select(self, document: str, examples: bool = False) -> Outcome:
        """The outcome of one document, with examples of rejected sentences on request."""
        outcome = Outcome()
        text = document.lower() if self._rule.lower_case else document
        known = self._known
        folded = known.folded(text)
        linked = HYPERLINK in folded
        unknown = 0
        for start, end in self._sentences.spans(text):
            sentence = text[start:end]
            if linked and HYPERLINK in sentence.lower():
                reason = LINK
            elif not (
                known.contains_all(folded[start:end].split()) if sentence.isascii() else known.contains(sentence)
            ):
                # By far the most frequent case, so it is counted apart.
                unknown += 1
                if examples:
                    outcome.examples.setdefault(UNKNOWN, sentence)
                continue
            else:
                counted = counted_words(sentence, self._rule.comparison)
                if counted >= self._rule.minimum_counted_words:
                    outcome.accepted.append((sentence, counted))
                    continue
                reason = SHORT
            outcome.rejected[reason] += 1
            if examples:
                outcome.examples.setdefault(reason, sentence)
        outcome.rejected[UNKNOWN] = unknown
        return outcome
