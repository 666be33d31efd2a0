"""Sentences that the models of an experiment wrote in, side by side on its page: what they have learned, at a glance.

The sentences are those of the stage `fill_sentences`, the same for all models of one corpus, tokenizer and objective.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hatchery.analysis.settings import SeededRun
from hatchery.evaluation.filled_sentences.results import (
    FilledSentence,
    Guess,
    Sentences,
    read_sentences,
    text_of_sentences,
)
from hatchery.rendering.templates import render

GAP = "____"
GUESSES_SHOWN = 3
MODELS_SHOWN = 12
FILLED, TRANSLATED = "Masked-word predictions", "Translated sentences"


class Written(NamedTuple):
    """A section of the page: its title and its tables as HTML, empty without sentences."""

    title: str
    html: str


def written_sentences(filled: Mapping[str, Path], runs: Sequence[SeededRun]) -> Written:
    """A table of sentences with a row for every model; `filled` are the manifests of the stage by the name of a run.

    Of a model with several pretraining seeds the first one
    speaks, of many models the first MODELS_SHOWN. Words that masked models filled in, or else translations. Raises
    ManifestError and EvaluationError for a damaged result.
    """
    speakers: dict[str, str] = {}
    for run in runs:
        if run.name in filled:
            speakers.setdefault(run.model, run.name)
    said = {model: read_sentences(filled[name]) for model, name in islice(speakers.items(), MODELS_SHOWN)}
    if not said:
        return Written(FILLED, "")
    source = text_of_sentences(next(iter(filled.values())))
    if translated := _translated(said):
        return Written(TRANSLATED, render("translated.html.j2", source=source, sentences=translated))
    return Written(FILLED, _filled_in(said, source))


def _filled_in(said: Mapping[str, Sentences], source: str) -> str:
    groups: dict[FilledSentence, dict[str, Sequence[Guess]]] = {}
    for model, written in said.items():
        for sentence in written.sentences:
            # The sentence itself, whoever filled it in.
            key = FilledSentence(sentence.before, sentence.word, sentence.after)
            groups.setdefault(key, {})[model] = sentence.guesses
    if not groups:
        return ""
    told = [
        {"text": sentence.with_gap(GAP), "word": sentence.word, "guesses": list(guesses.items())}
        for sentence, guesses in groups.items()
    ]
    return render("filled.html.j2", source=source, sentences=told, shown=GUESSES_SHOWN)


def _translated(said: Mapping[str, Sentences]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Source, then what stands for it in the corpus and what each model writes."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for model, written in said.items():
        for each in written.translated:
            groups.setdefault((each.source, each.reference), []).append((model, each.translation))
    return [(source, [("the corpus", reference), *rows]) for (source, reference), rows in groups.items()]
