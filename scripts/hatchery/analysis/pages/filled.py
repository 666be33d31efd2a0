"""Sentences that the models of an experiment filled in, side by side on its page: what they have learned, at a glance.

The sentences are those of the stage `fill_sentences`, the same for all models of one corpus and tokenizer.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from hatchery.analysis.settings import SeededRun
from hatchery.evaluation.filled_sentences.results import (
    FilledSentence,
    Guess,
    read_filled_sentences,
    text_of_sentences,
)
from hatchery.rendering.templates import render

GAP = "____"
GUESSES_SHOWN = 3
MODELS_SHOWN = 12


def filled_in(filled: Mapping[str, Path], runs: Sequence[SeededRun]) -> str:
    """A table of sentences with a row for every model; `filled` are the manifests of the stage by the name of a run.

    Of a model with several pretraining seeds the first one
    speaks, of many models the first MODELS_SHOWN. Empty without sentences. Raises ManifestError and
    EvaluationError for a damaged result.
    """
    speakers: dict[str, str] = {}
    for run in runs:
        if run.name in filled:
            speakers.setdefault(run.model, run.name)
    said = {model: read_filled_sentences(filled[name]) for model, name in islice(speakers.items(), MODELS_SHOWN)}
    groups: dict[FilledSentence, dict[str, Sequence[Guess]]] = {}
    for model, sentences in said.items():
        for sentence in sentences:
            # The sentence itself, whoever filled it in.
            key = FilledSentence(sentence.before, sentence.word, sentence.after)
            groups.setdefault(key, {})[model] = sentence.guesses
    if not groups:
        return ""
    told = [
        {"text": sentence.with_gap(GAP), "word": sentence.word, "guesses": list(guesses.items())}
        for sentence, guesses in groups.items()
    ]
    source = text_of_sentences(next(iter(filled.values())))
    return render("filled.html.j2", source=source, sentences=told, shown=GUESSES_SHOWN)
