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
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY_TIES_CORRECT, CORRELATION
from hatchery.settings.base import dumped_values
from hatchery.views.summary_sections import Section, failure_texts, incomplete_texts, range_of_guesses, sections

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
        **dumped_values(notes),
        "suites": [[suite.title, suite.note] for suite in notes.suites],
        "remarks": [[*key, note] for key, note in sorted(notes.remarks.items())],
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
    has_pairs, rows = bool(summary.pair_suites), summary.rows
    notes = [
        _runs_note(has_pairs, bool(summary.finetuned)),
        _bold_note(summary, has_pairs) if len(summary.models) > 1 else "",
        _blind_guess_note(summary),
        FAILED_RUNS if any(row.n_failed or row.n_without_number for row in rows) else "",
        _pairs_note(summary) if has_pairs else "",
        _averages_note(summary) if any(row.metric == AVERAGE_METRIC for row in rows) else "",
        VERDICT + VERDICT_OF_ONE * any(row.verdict and row.seeds < 2 for row in rows)
        if any(row.verdict for row in rows)
        else "",
        _unmatched_note(summary) if summary.unmatched else "",
        *(f"{text}." for text in incomplete_texts(summary)),
        *(f"Failed or without a number: {text}." for text in failure_texts(summary)),
    ]
    return [note for note in notes if note]


FAILED_RUNS = (
    "Mean and deviation are over every run that gave a number, as in the papers. A run that failed (only one "
    "class predicted, MCC 0, or constant output) gave one: it is counted and named, and the mean without such "
    "runs stands behind their count (`mean_without_failed` in `summary.csv`). A run that diverged gave none: "
    "it is named, and is in no mean."
)
VERDICT_OF_ONE = " Of a model with one pretraining seed, a verdict is of this trained model alone."
VERDICT = (
    f"Verdict: within when ours differs from the published mean by at most {DEVIATIONS:g} x the combined "
    "standard deviation (root of the sum of squares of both; for a single run of minimal pairs the binomial "
    f"deviation stands in for ours), or by at most {TOLERANCE_WITHOUT_DEVIATION} points where there is none."
)


def _runs_note(has_pairs: bool, has_finetuned: bool) -> str:
    in_finetuning = " and, in fine-tuning, one fine-tuning seed and one learning rate" if has_finetuned else ""
    note = (
        f"mean ± standard deviation over n runs. A run is one pretraining seed{in_finetuning}; none is selected. The "
        "deviation is the sample standard deviation (divided by n - 1); it is empty when n = 1."
    )
    if not has_pairs:
        return note
    return (
        f"{note} There, minimal pairs have a 95 % interval instead: what the choice of the pairs alone leaves open "
        "(binomial). It says nothing of other seeds."
    )


def _bold_note(summary: Summary, has_pairs: bool) -> str:
    of_pairs = "on minimal pairs, of half their 95 % intervals; of other single runs " if has_pairs else ""
    guessed = any(row.blind_guess is not None for row in summary.rows)
    beyond_a_guess = ", or where the best is not beyond a blind guess by more than noise" if guessed else ""
    note = (
        "Bold on the page: the best number and all that noise may have kept from it. Noise is the root of the sum "
        f"of squares of both numbers' standard deviations over runs; of single runs {of_pairs}it is not known. None is "
        f"bold where noise could explain every difference{beyond_a_guess}, where numbers do not compare, and where a "
        "model with one pretraining seed might be the best: a claim about models needs several."
    )
    if not any(row.n_failed for row in summary.rows):
        return note
    return f"{note} Where runs failed, a number counts as lower only if it is with these runs and without them."


def _blind_guess_note(summary: Summary) -> str:
    guessed = [row for row in summary.rows if row.blind_guess is not None]
    of_pairs = [row for row in guessed if summary.kinds.get(row.suite) == "minimal_pairs"]
    choices = [row for row in of_pairs if row.metric != CORRELATION]
    share = range_of_guesses(choices)
    candidates = "of two sentences" if share == "50" else "of the candidates of an item"
    guesses = {
        f"{candidates} it has {share} % right": bool(choices),
        "with the preferences of people it has a correlation of 0": len(of_pairs) > len(choices),
        "of classes it has those with the most frequent label right, and a Matthews correlation of 0": any(
            summary.kinds.get(row.suite) == "finetuning" for row in guessed
        ),
        "on held-out text it is the unigram distribution of the training tokens, a model that knew only how frequent "
        "words are": any(row.suite in HELD_OUT for row in guessed),
    }
    true = "; ".join(text for text, is_so in guesses.items() if is_so)
    return f"A blind guess does not see the item: {true}." if true else ""


def _pairs_note(summary: Summary) -> str:
    ties = any(row.metric == ACCURACY_TIES_CORRECT for row in summary.rows)
    else_right = "; with `ties correct` it is, as in the pipeline of BabyLM 2023" if ties else ""
    return (
        "`phenomenon average` weighs phenomena equally, `paradigm average` weighs paradigms equally. A tie is no "
        f"right answer{else_right}."
    )


def _unmatched_note(summary: Summary) -> str:
    shown = "; ".join(", ".join(key) for key in summary.unmatched[:UNMATCHED_SHOWN])
    rest = len(summary.unmatched) - UNMATCHED_SHOWN
    more = f"; and {rest} more" if rest > 0 else ""
    return f"{len(summary.unmatched)} published values have no counterpart here: {shown}{more}."


def _averages_note(summary: Summary) -> str:
    suites = {original_suite(task.suite) for task in summary.finetuned}
    published = [sentence for suite, sentence in PUBLISHED_AVERAGES_TOLD.items() if suite in suites]
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
