"""Parts of an experiment's page that come from other files: figures, sizes of corpora, and sentences written by models.

Links are relative to the page, so a folder of results can be moved or sent. The sentences are outputs of the stage
`fill_sentences`. Models with equal corpus, tokenizer and objective have equal prompts, so they share a table.
"""

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from hatchery.analysis.settings import labels_of
from hatchery.artifacts.checksums import verified_view
from hatchery.artifacts.manifests import read_manifest
from hatchery.evaluation.sentences_file import WORDINGS, Answer, read_examples, text_of_sentences
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.rendering.templates import embedded_figure, read_text, render
from hatchery.units import count
from hatchery.views.figures.registry import FAILED_LABEL, PUBLISHED_LABEL, declared_figures


def address(target: Path, page: Path) -> str:
    """Return the link from `page` to the file `target`, as a relative path that is not yet escaped."""
    relative = Path(os.path.relpath(target.absolute(), page.absolute().parent))
    return quote(relative.as_posix())


# For each plot marker, a sentence that is appended to the captions of figures whose legend contains this marker.
MARKS = {PUBLISHED_LABEL: "Open diamonds are published values.", FAILED_LABEL: "Hollow marks are failed runs."}


def figure_of(path: Path) -> Markup:
    """Return the figure as HTML, with its caption (followed by a sentence for each marker in the legend) and its
    explanation.

    Raises ManifestError if the figure's file was altered.
    """
    drawing = read_text(verified_view(path))
    # Matplotlib draws letters as paths and writes each text as an SVG comment next to its paths. Search these comments.
    marks = [sentence for label, sentence in MARKS.items() if f"<!-- {label} -->" in drawing]
    declared = declared_figures()[path.stem]
    return embedded_figure(path, " ".join([declared.caption, *marks]), declared.paragraphs)


_SPLITS = ("train", "dev", "test")
_SIZES = ("documents", "sentences", "words", "characters")


def corpora(cards: Mapping[str, Path], page: Path) -> Table:
    """Return a table with a row for each split of each corpus; `cards` are the manifests of corpus cards.

    Raises ManifestError if a card's manifest is missing or damaged.
    """
    rows: list[list[Content]] = []
    for corpus, path in cards.items():
        manifest = read_manifest(path)
        name: Content = Cell(corpus, link=address(manifest.file("card.html"), page))
        for split in (split for split in _SPLITS if split in manifest.measures):
            counts = manifest.measures[split]
            rows.append([name, split, *(count(counts[key]) for key in _SIZES)])
            name = ""
    return table(("corpus", "split", *_SIZES), rows, words=2, caption="Sizes of the corpora")


EXAMPLES = "Examples"
MODELS_SHOWN = 12


def examples_section(
    written: Mapping[str, Path], runs: Sequence[SeededRun], swatches: Mapping[str, str] | None = None
) -> str:
    """Return HTML tables of sentences written by models, with a row for each model; empty if there are no sentences.

    `written` are the manifests of the stage `fill_sentences` by run, and `swatches` maps the label of a model to its
    colour. Only the first MODELS_SHOWN models are shown, each with its first seed. Raises ManifestError and
    EvaluationError for a damaged result.
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
    worded = [(wording, tasks[task]) for task, wording in WORDINGS.items() if task in tasks]
    return render("examples.html.j2", source=source, tasks=worded, swatches=swatches or {})
