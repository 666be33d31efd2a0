"""The sections of a summary: their contents, order and names, which are the same in Markdown and plain text.

A section is a list of measures, and a measure selects one row of the summary per model. Each format decides if models
are rows or columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hatchery.analysis.scores import PERPLEXITY, Measure, depends_on_objective, metric_name
from hatchery.analysis.settings import OTHER
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.task_averages import AVERAGE_METRIC
from hatchery.evaluation.basis import ASKED, aspects_of
from hatchery.evaluation.evaluation import Evaluation
from hatchery.evaluation.kinds import evaluations
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    PAIR_AVERAGE,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
)
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE
from hatchery.rendering.escaping import readable
from hatchery.training.objectives import DEFAULT_TASK, OBJECTIVES
from hatchery.training.objectives.masked import BOUND
from hatchery.views.sections import own_sections


@dataclass(frozen=True)
class Section:
    """Measures that a summary shows together, with an explanatory `note`. The terminal omits the section if `detail` is
    True.
    """

    title: str
    note: str
    measures: list[Measure]
    detail: bool = False


def sections(summary: Summary) -> list[Section]:
    """Return the sections of an experiment: the overview, and then the sections of each kind of evaluation.

    Measures without any row, and sections without measures, are omitted.
    """
    overview = f"Averages in percent; perplexity {_perplexity_per_model(summary)}."
    candidates = [Section("Overview", overview, _overview(summary))]
    for kind, evaluation in evaluations().items():
        candidates += (own_sections(kind) or _plain_sections)(summary, kind, evaluation)
    kept = [replace(section, measures=summary.present(section.measures)) for section in candidates]
    return [_with_what_does_not_compare(section, summary) for section in kept if section.measures]


def _with_what_does_not_compare(section: Section, summary: Summary) -> Section:
    note = " ".join(filter(None, (section.note, *summary.not_compared(section.measures))))
    return replace(section, note=note)


def objectives_of(summary: Summary) -> list[str]:
    """Return the different objectives of the models that were evaluated on held-out text, or the default objective if
    no model was evaluated on held-out text.
    """
    guessing = {summary.objective(row.model) for row in summary.rows if depends_on_objective(row.suite, row.metric)}
    others = sorted(task for task in guessing if task.startswith(OTHER))
    return [*(task for task in OBJECTIVES if task in guessing), *others] or [DEFAULT_TASK]


def _perplexity_per(task: str, summary: Summary) -> str:
    """Return the unit of the perplexity of models with a given objective. Masked diffusion has its own unit, because
    its perplexity is a bound.
    """
    if task.startswith(OTHER):
        return "per token of each model's own tokenizer"
    own = (row for row in summary.rows if summary.objective(row.model) == task)
    guessing = (row.basis for row in own if depends_on_objective(row.suite, row.metric))
    bounds = {BOUND in aspects_of(basis).get(ASKED, "") for basis in guessing}
    units = [f"per token that can be hidden ({BOUND})"] if True in bounds else []
    return " or ".join(units if bounds == {True} else [OBJECTIVES[task][0].perplexity_per, *units])


def _perplexity_per_model(summary: Summary) -> str:
    """Return the unit of the models' perplexity, such as `per masked token`; if objectives differ, return one unit per
    objective.
    """
    objectives = objectives_of(summary)
    if len(objectives) == 1:
        return _perplexity_per(objectives[0], summary)
    each = ", ".join(f"{_perplexity_per(task, summary)} of {task} models" for task in objectives)
    return f"{each}; perplexities of different objectives are not comparable"


def _overview(summary: Summary) -> list[Measure]:
    return [replace(measure, label=_short_name(measure)) for measure in summary.headline()]


_SHORT_NAMES = {PHENOMENON_AVERAGE: "phenomena", PARADIGM_AVERAGE: "paradigms", PAIR_AVERAGE: "pairs"}


def _short_name(measure: Measure) -> str:
    """Return a name of a measure that is short enough for a terminal."""
    if measure.metric in (PERPLEXITY, BITS_PER_BYTE):
        return f"{readable(measure.task)} {readable(measure.metric)}"
    name = f"{readable(measure.suite)}, {_SHORT_NAMES.get(measure.task, readable(measure.task))}"
    return name if measure.metric in (ACCURACY, AVERAGE_METRIC) else f"{name} {metric_name(measure.metric)}"


def _plain_sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """Return a section for each suite of a kind of evaluation, with a measure for each task and metric."""
    suites: dict[str, list[Measure]] = {}
    for suite, task, metric in dict.fromkeys(row.selectors[1:] for row in summary.rows):
        if summary.kinds.get(suite) == kind:
            measure = Measure(f"{readable(task)} {metric_name(metric)}", suite, task, metric)
            suites.setdefault(suite, []).append(measure)
    return [
        Section(suite_title(evaluation, kind, suite), evaluation.note, measures) for suite, measures in suites.items()
    ]


def suite_title(evaluation: Evaluation, kind: str, suite: str) -> str:
    """Return the title of a suite: the title of its kind and, unless kind and suite have the same name, the suite's
    name.
    """
    return evaluation.title if suite == kind else f"{evaluation.title}: {readable(suite)}"


def range_of_guesses(rows: Iterable[SummaryRow]) -> str:
    """Return the range of the scores of blind guesses (without seeing the test items) that `rows` contain, such as `50`
    or `20 to 50`; empty if no row has this score.
    """
    known = {round(row.blind_guess, 1) for row in rows if row.blind_guess is not None}
    return " to ".join(f"{guess:g}" for guess in sorted({min(known), max(known)})) if known else ""


def with_settings(note: str, summary: Summary, suite: str) -> str:
    """Return the note of a section, followed by a description of the settings with which the suite was evaluated."""
    settings = summary.settings.get(suite, "").removesuffix(".")
    return f"{note} {settings[0].upper()}{settings[1:]}." if settings else note


def incomplete_texts(summary: Summary) -> list[str]:
    """Return one text for each average over tasks that is missing for a model. The text names the tasks for which no
    run of the model has a score.
    """
    return [
        f"{summary.label(model)}, {readable(suite)}: no {readable(average)}, because no run has a score for "
        + ", ".join(tasks)
        for (model, suite, average, _), tasks in summary.incomplete.items()
    ]


def failure_texts(summary: Summary) -> list[str]:
    """Return one text for each pretrained model and task of which some runs failed or have no score. It lists the
    reasons with the fine-tuning seeds and learning rates of these runs.
    """
    runs: dict[tuple[str, str], dict[tuple[str, float | None], list[int | None]]] = {}
    for failure in summary.failures:
        alike = runs.setdefault((failure["title"], failure["task"]), {})
        failed = failure["failed"]
        reason = failed if failure["value"] is not None else f"no number ({failed or 'not measured'})"
        alike.setdefault((reason, failure["learning_rate"]), []).append(failure["finetuning_seed"])
    return [
        f"{name}, {task}: " + "; ".join(_runs_text(seeds, rate, failed) for (failed, rate), seeds in alike.items())
        for (name, task), alike in runs.items()
    ]


def _runs_text(seeds: list[int | None], rate: float | None, reason: str) -> str:
    learning_rate = "" if rate is None else f" at learning rate {rate:g}"
    named = ", ".join(str(seed) for seed in seeds if seed is not None)
    return readable(reason) + (f" with seed{'s' if len(seeds) > 1 else ''} {named}" if named else "") + learning_rate
