"""Notes on the numbers of a summary, as data: both summary.md and the experiment's page print them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.analysis.published_values import DEVIATIONS, TOLERANCE_WITHOUT_DEVIATION
from hatchery.analysis.scores import HELD_OUT
from hatchery.analysis.summary import Key, Summary
from hatchery.analysis.task_averages import AVERAGE_METRIC, original_suite
from hatchery.artifacts.checksums import verified_view
from hatchery.errors import EvaluationError
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY_TIES_CORRECT, CORRELATION
from hatchery.rendering.templates import render
from hatchery.settings.base import dumped_values
from hatchery.views.summary_sections import Section, failure_texts, incomplete_texts, range_of_guesses, sections

UNMATCHED_SHOWN = 10
PUBLISHED_AVERAGES = {
    "babylm_glue": "BabyLM's GLUE over 11 tasks",
    "msgs": "MSGS over the six ambiguous tasks without controls",
    "glue": "LTG-BERT's GLUE over 14 tasks, after averaging the metrics of each task",
    "probing": "edge probing over five tasks",
}
"""Description of the tasks in a paper's average, by suite."""


@dataclass(frozen=True)
class SummaryNotes:
    """Notes on all numbers of a summary, and the summary's sections (one per suite) with their notes. `remarks` maps
    the selectors of a summary row (model, suite, task, metric) to the remark on the row's published value.

    In the notes, code is in backquotes. The lists of measures in the sections are empty. `objectives` are the
    prediction tasks of models that were not trained on masked text.
    """

    notes: tuple[str, ...] = ()
    suites: tuple[Section, ...] = ()
    remarks: Mapping[Key, str] = field(default_factory=dict)
    objectives: Mapping[str, str] = field(default_factory=dict)


def notes_of(summary: Summary) -> SummaryNotes:
    """Return the notes on a summary."""
    return SummaryNotes(
        notes=tuple(general_notes(summary)),
        suites=tuple(Section(section.title, section.note, []) for section in sections(summary)),
        remarks={key: note for key, note in summary.published_notes.items() if summary.row(*key) is not None},
        objectives=summary.objectives,
    )


def notes_json(notes: SummaryNotes) -> str:
    """Return the notes as JSON, for summary_notes.json."""
    value = {
        **dumped_values(notes),
        "suites": [[suite.title, suite.note] for suite in notes.suites],
        "remarks": [[*key, note] for key, note in sorted(notes.remarks.items())],
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def read_notes(path: Path) -> SummaryNotes:
    """Return the notes in the file at `path`, the output of `notes_json`.

    Raises ManifestError if the file is missing or was altered, EvaluationError for JSON of another format.
    """
    try:
        value = json.loads(verified_view(path).read_text(encoding="utf-8"))
        return SummaryNotes(
            notes=tuple(value["notes"]),
            suites=tuple(Section(title, note, []) for title, note in value["suites"]),
            remarks={(model, suite, task, metric): note for model, suite, task, metric, note in value["remarks"]},
            objectives=dict(value.get("objectives", {})),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: cannot be read as notes on a summary: {error}") from error


def general_notes(summary: Summary) -> list[str]:
    """Return the notes that apply to all numbers of this summary: on means, failures, and comparisons."""
    rows = summary.rows
    suites = {original_suite(task.suite) for task in summary.finetuned}
    text = render(
        "summary_notes.md.j2",
        tuned=bool(summary.finetuned),
        pairs=bool(summary.pair_suites),
        several=len(summary.models) > 1,
        guesses=any(row.blind_guess is not None for row in rows),
        guessed=_blind_guesses(summary),
        failed=any(row.n_failed or row.n_without_number for row in rows),
        collapsed=any(row.n_failed for row in rows),
        ties=any(row.metric == ACCURACY_TIES_CORRECT for row in rows),
        averages=any(row.metric == AVERAGE_METRIC for row in rows),
        published_averages=[tasks for suite, tasks in PUBLISHED_AVERAGES.items() if suite in suites],
        verdicts=any(row.verdict for row in rows),
        verdicts_of_one=any(row.verdict and row.seeds < 2 for row in rows),
        deviations=f"{DEVIATIONS:g}",
        tolerance=TOLERANCE_WITHOUT_DEVIATION,
        unmatched=[", ".join(key) for key in summary.unmatched],
        most_unmatched=UNMATCHED_SHOWN,
    )
    return [
        *(" ".join(note.split()) for note in str(text).split("\n\n") if note.strip()),
        *(f"{text}." for text in incomplete_texts(summary)),
        *(f"Failed or without a number: {text}." for text in failure_texts(summary)),
    ]


def _blind_guesses(summary: Summary) -> list[str]:
    """Return phrases that state the scores of a blind guess, for the kinds of rows in this summary."""
    guessed = [row for row in summary.rows if row.blind_guess is not None]
    of_pairs = [row for row in guessed if summary.kinds.get(row.suite) == "minimal_pairs"]
    choices = [row for row in of_pairs if row.metric != CORRELATION]
    share = range_of_guesses(choices)
    candidates = "two sentences" if share == "50" else "the candidates of an item"
    guesses = {
        f"among {candidates}, it is correct in {share} % of items": bool(choices),
        "with human preferences, its correlation is 0": len(of_pairs) > len(choices),
        "in classification, it predicts the most frequent label, and its Matthews correlation is 0": any(
            summary.kinds.get(row.suite) == "finetuning" for row in guessed
        ),
        "on held-out text, it is the unigram distribution of the training tokens: a model that knows only "
        "how frequent tokens are": any(row.suite in HELD_OUT for row in guessed),
    }
    return [text for text, is_so in guesses.items() if is_so]
