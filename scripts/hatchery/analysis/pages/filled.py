"""Sentences that the models of an experiment filled in, side by side on its page: what they have learned, at a glance.

The sentences are those of the stage `fill_sentences`, the same for all models of one corpus and tokenizer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hatchery.analysis.cards.tables import html_text
from hatchery.analysis.settings import SeededRun
from hatchery.evaluation.filled_sentences.results import (
    FilledSentence,
    Guess,
    read_filled_sentences,
    text_of_sentences,
)

GAP = "____"
GUESSES_SHOWN = 3
_INTRODUCTION = (
    "A word was left out of some short sentences of the corpus's {}, and each model says what it would write there, "
    "the most probable first. The word that stood there is in brackets, and bold where a model found it."
)


def filled_in(filled: Mapping[str, Path], runs: Sequence[SeededRun]) -> str:
    """A table of sentences with a row for every model; `filled` are the manifests of the stage by the name of a run.

    Of a model with several pretraining seeds the first one speaks. Empty without sentences. Raises ManifestError and
    EvaluationError for a damaged result.
    """
    speakers: dict[str, str] = {}
    for run in runs:
        if run.name in filled:
            speakers.setdefault(run.model, run.name)
    said = {model: read_filled_sentences(filled[name]) for model, name in speakers.items()}
    groups: dict[FilledSentence, dict[str, Sequence[Guess]]] = {}
    for model, sentences in said.items():
        for sentence in sentences:
            # The sentence itself, whoever filled it in.
            key = FilledSentence(sentence.before, sentence.word, sentence.after)
            groups.setdefault(key, {})[model] = sentence.guesses
    if not groups:
        return ""
    text = _INTRODUCTION.format(text_of_sentences(next(iter(filled.values()))))
    body = "\n".join(_group(sentence, guesses) for sentence, guesses in groups.items())
    return (
        f'<p class="prose">{html_text(text)}</p>\n'
        '<div class="table" tabindex="0" role="region" aria-label="Sentences filled in"><table class="filled">\n'
        f"{body}\n</table></div>"
    )


def _group(sentence: FilledSentence, guesses: Mapping[str, Sequence[Guess]]) -> str:
    heading = f"{html_text(sentence.with_gap(GAP))} <span>({html_text(sentence.word)})</span>"
    rows = "\n".join(
        f'<tr><th scope="row">{html_text(model)}</th>'
        + "".join(f"<td>{_guess(guess, sentence.word)}</td>" for guess in some[:GUESSES_SHOWN])
        + "</tr>"
        for model, some in guesses.items()
    )
    return (
        f'<tbody>\n<tr><th colspan="{1 + GUESSES_SHOWN}" scope="rowgroup" dir="auto">{heading}</th></tr>\n'
        f"{rows}\n</tbody>"
    )


def _guess(guess: Guess, word: str) -> str:
    text = html_text(guess.text)
    shown = f"<strong>{text}</strong>" if guess.text == word else text
    share = f"{guess.percent:.0f} %" if guess.percent >= 1 else "&lt; 1 %"
    return f"{shown} <span>{share}</span>"
