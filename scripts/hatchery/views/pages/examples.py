"""Examples of what models write, side by side on the page of an experiment: what they have learned, at a glance.

The sentences are those of the stage `fill_sentences`, the same for all models of one corpus, tokenizer and objective.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from hatchery.analysis.settings import labels_of
from hatchery.evaluation.sentences_file import (
    WORDINGS,
    Answer,
    Examples,
    read_examples,
    text_of_sentences,
)
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.table import Table, table
from hatchery.rendering.templates import render

EXAMPLES = "Examples"
MODELS_SHOWN = 12


def examples_section(
    written: Mapping[str, Path], runs: Sequence[SeededRun], swatches: Mapping[str, str] | None = None
) -> str:
    """Tables of sentences as HTML, with a row for every model; empty without examples.

    `written` are the manifests of the stage by the name of a run. Of a model with several pretraining seeds the first
    one speaks, of many models the first MODELS_SHOWN. `swatches` are colours by
    the names of models. Raises ManifestError and EvaluationError for a damaged result.
    """
    speakers: dict[str, str] = {}
    for run in runs:
        if run.name in written:
            speakers.setdefault(run.model, run.name)
    labels = labels_of(runs)
    tasks: dict[str, dict[tuple[str, str], dict[str, Sequence[Answer]]]] = {}
    for model, name in islice(speakers.items(), MODELS_SHOWN):
        said = read_examples(written[name])
        for example in said.examples:
            answers = tasks.setdefault(said.task, {}).setdefault((example.given, example.original), {})
            answers[labels[model]] = example.answers
    if not tasks:
        return ""
    source = text_of_sentences(written[next(iter(speakers.values()))])
    told = [(wording, tasks[task]) for task, wording in WORDINGS.items() if task in tasks]
    return render("examples.html.j2", source=source, tasks=told, swatches=swatches or {})


def examples_table(written: Examples) -> Table:
    """The examples of one model."""
    wording = written.wording
    rows = [
        (each.given, each.original, *map(_answer, each.answers[: len(wording.answers)])) for each in written.examples
    ]
    header = (wording.given, wording.original, *wording.answers)
    return table(header, rows, words=len(header), caption=EXAMPLES, foreign=True)


def _answer(answer: Answer) -> str:
    return answer.text if answer.percent is None else f"{answer.text} ({answer.percent:.1f}\N{NO-BREAK SPACE}%)"
