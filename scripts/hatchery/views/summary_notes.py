"""What there is to say of the numbers of a summary, as data: summary.md and the page of an experiment both show it."""

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
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY_TIES_CORRECT
from hatchery.views.summary_sections import Section, failure_texts, incomplete_texts, sections

UNMATCHED_SHOWN = 10
PUBLISHED_AVERAGES_TOLD = {
    "babylm_glue": "BabyLM's GLUE over 11 tasks",
    "msgs": "MSGS over the six ambiguous tasks without controls",
    "glue": "LTG-BERT's GLUE over 14 tasks whose metrics are joined first",
    "probing": "edge probing over five tasks",
}
"""By suite, what the average of its paper is over."""


@dataclass(frozen=True)
class SummaryNotes:
    """Notes on all numbers, the sections (suites) with theirs, and the remarks of a published table on its values.

    In notes, `this` is code. The sections have no measures here. `objectives` are the tasks of the models that were not
    trained on masked text.
    """

    notes: tuple[str, ...] = ()
    suites: tuple[Section, ...] = ()
    remarks: Mapping[Key, str] = field(default_factory=dict)
    objectives: Mapping[str, str] = field(default_factory=dict)


def notes_of(summary: Summary) -> SummaryNotes:
    """The notes on a summary."""
    return SummaryNotes(
        notes=tuple(general_notes(summary)),
        suites=tuple(Section(section.title, section.note, []) for section in sections(summary)),
        remarks={key: note for key, note in summary.published_notes.items() if summary.row(*key) is not None},
        objectives=summary.objectives,
    )


def notes_json(notes: SummaryNotes) -> str:
    """The text of summary_notes.json."""
    value = {
        "notes": notes.notes,
        "suites": [[suite.title, suite.note] for suite in notes.suites],
        "remarks": [[*key, note] for key, note in sorted(notes.remarks.items())],
        **({"objectives": notes.objectives} if notes.objectives else {}),
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def read_notes(path: Path) -> SummaryNotes:
    """What `notes_json` wrote. Raises ManifestError when the file is missing or was altered, EvaluationError for JSON
    of another kind.
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
        raise EvaluationError(f"{path}: not the notes on a summary: {error}") from error


def general_notes(summary: Summary) -> list[str]:
    """What holds for all numbers: what they are, what failed, what is compared. Of what there is nothing, no word."""
    pairs, finetuned = bool(summary.pair_suites), bool(summary.finetuned)
    guessed = [row for row in summary.rows if row.blind_guess is not None]
    notes = [
        "mean ± standard deviation over n runs. A run is one pretraining seed"
        + (" and, in fine-tuning, one fine-tuning seed and one learning rate" if finetuned else "")
        + "; none is selected. The deviation is the sample standard deviation (divided by n - 1); it is empty when "
        "n = 1."
        + (
            " There, minimal pairs have a 95 % interval instead: what the choice of the pairs alone leaves open "
            "(binomial). It says nothing of other seeds."
            if pairs
            else ""
        ),
    ]
    if len(summary.models) > 1:
        notes.append(
            "Bold on the page: the best number and all that noise may have kept from it. Noise is the root of the sum "
            "of squares of both numbers' standard deviations over runs"
            + (
                "; of single runs on minimal pairs, of half their 95 % intervals; of other single runs "
                if pairs
                else "; of single runs "
            )
            + "it is not known, and none is bold. Nor is any where noise could explain every difference"
            + (", or where the best is not beyond a blind guess by more than noise." if guessed else ".")
            + (
                " Where runs failed, a number counts as lower only if it is with these runs and without them."
                if any(row.n_failed for row in summary.rows)
                else ""
            )
        )
    if guessed:
        told = [
            *(["of two sentences it has 50 % right"] if pairs else []),
            *(
                ["of classes it has those with the most frequent label right, and a Matthews correlation of 0"]
                if finetuned
                else []
            ),
            *(
                [
                    "on held-out text it is the unigram distribution of the training tokens, a model that knew only "
                    "how frequent words are"
                ]
                if any(row.suite in HELD_OUT for row in guessed)
                else []
            ),
        ]
        notes.append(f"A blind guess does not see what it is about: {'; '.join(told)}.")
    if any(row.n_failed or row.n_without_number for row in summary.rows):
        notes.append(
            "Mean and deviation are over every run that gave a number, as in the papers. A run that failed (only one "
            "class predicted, MCC 0, or constant output) gave one: it is counted and named, and the mean without such "
            "runs stands behind their count (`mean_without_failed` in `summary.csv`). A run that diverged gave none: "
            "it is named, and is in no mean."
        )
    if pairs:
        ties = any(row.metric == ACCURACY_TIES_CORRECT for row in summary.rows)
        notes.append(
            "`phenomenon average` weighs phenomena equally, `paradigm average` weighs paradigms equally. A tie is no "
            "right answer" + ("; with `ties correct` it is, as in the pipeline of BabyLM 2023." if ties else ".")
        )
    if any(row.metric == AVERAGE_METRIC for row in summary.rows):
        notes.append(_averages_note(summary))
    if any(row.verdict for row in summary.rows):
        notes.append(
            f"Verdict: within when ours differs from the published mean by at most {DEVIATIONS:g} x the combined "
            "standard deviation (root of the sum of squares of both; for a single run of minimal pairs the binomial "
            f"deviation stands in for ours), or by at most {TOLERANCE_WITHOUT_DEVIATION} points where there is none."
        )
    if summary.unmatched:
        shown = "; ".join(", ".join(key) for key in summary.unmatched[:UNMATCHED_SHOWN])
        rest = len(summary.unmatched) - UNMATCHED_SHOWN
        notes.append(
            f"{len(summary.unmatched)} published values have no counterpart here: {shown}"
            + (f"; and {rest} more." if rest > 0 else ".")
        )
    notes += [f"{text}." for text in incomplete_texts(summary)]
    notes += [f"Failed or without a number: {text}." for text in failure_texts(summary)]
    return notes


def _averages_note(summary: Summary) -> str:
    suites = {original_suite(task.suite) for task in summary.finetuned}
    published = [words for suite, words in PUBLISHED_AVERAGES_TOLD.items() if suite in suites]
    note = (
        "Averages of fine-tuned tasks stay within a suite. `by task` is the mean of the task means (first metric of "
        "each task), with the root mean square of their deviations, as papers print it, and a dash where a task has no "
        "number; `by run` averages the tasks within each run first."
    )
    if not published:
        return note
    return (
        f"{note} `average` is the published one where its tasks are complete: {', '.join(published)}; `average of n "
        "tasks` is the plain mean of those that there are."
    )
