"""What the summaries for people show, in which order and under which names; Markdown and plain text share it.

A section is a list of measures, and a measure picks one row of the summary per model. How the sections are drawn
(models as rows, or as columns) is up to each writer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hatchery.analysis.measurements import PRETRAINING_SUITE
from hatchery.analysis.scores import PERPLEXITY, SHOWN_METRICS, Measure, average_name, depends_on_objective, metric_name
from hatchery.analysis.settings import OTHER
from hatchery.analysis.summary import Summary
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.task_averages import AVERAGE_METRIC, RUN_AVERAGE_METRIC
from hatchery.evaluation.evaluation import Evaluation
from hatchery.evaluation.kinds import evaluations
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    ACCURACY_TIES_CORRECT,
    AT_BEST_TEMPERATURE,
    CORRELATION,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
)
from hatchery.evaluation.perplexity.measurements import PERPLEXITY_SUITE
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE, HELD_OUT_METRICS, LOG_PROBABILITY, SLOPES, WITHOUT_BIAS
from hatchery.evaluation.settings import TRANSLATION_SUITE
from hatchery.rendering.escaping import readable
from hatchery.training.objectives import DEFAULT_TASK, OBJECTIVES
from hatchery.translation.metrics import METRICS

AVERAGES = (PHENOMENON_AVERAGE, PARADIGM_AVERAGE)


@dataclass(frozen=True)
class Section:
    """Measures that are shown together; `note` says what they are. A `detail` is left out of the terminal."""

    title: str
    note: str
    measures: list[Measure]
    detail: bool = False


def sections(summary: Summary) -> list[Section]:
    """The sections of an experiment: overview, held-out text, suites of minimal pairs, suites of fine-tuned tasks.

    Measures without any row are left out, and so are sections without measures.
    """
    overview = f"Averages in percent; perplexity {_perplexity_per_model(summary)}."
    candidates = [Section("Overview", overview, _overview(summary))]
    for kind, evaluation in evaluations().items():
        candidates += _OWN.get(kind, _plain_sections)(summary, kind, evaluation)
    kept = [replace(section, measures=summary.present(section.measures)) for section in candidates]
    return [_with_what_does_not_compare(section, summary) for section in kept if section.measures]


def _with_what_does_not_compare(section: Section, summary: Summary) -> Section:
    note = " ".join(filter(None, (section.note, *summary.not_compared(section.measures))))
    return replace(section, note=note)


def _objectives(summary: Summary) -> list[str]:
    """What the models that guess something on held-out text were trained for."""
    guessing = {summary.objective(row.model) for row in summary.rows if depends_on_objective(row.suite, row.metric)}
    others = sorted(task for task in guessing if task.startswith(OTHER))
    return [*(task for task in OBJECTIVES if task in guessing), *others] or [DEFAULT_TASK]


def _perplexity_per(task: str) -> str:
    return "per token of each one's own tokenizer" if task.startswith(OTHER) else OBJECTIVES[task][0].perplexity_per


def _what_is_predicted(task: str) -> str:
    if not task.startswith(OTHER):
        return OBJECTIVES[task][0].asked_for
    return (
        "Models that others pretrained are asked in the same way, but for tokens of tokenizers of their own: compare "
        "no perplexity of theirs but the one per word."
    )


def _perplexity_per_model(summary: Summary) -> str:
    """What the perplexity of the models is per."""
    objectives = _objectives(summary)
    if len(objectives) == 1:
        return _perplexity_per(objectives[0])
    each = ", ".join(f"{_perplexity_per(task)} of {task} models" for task in objectives)
    return f"{each}; those of different objectives are not comparable"


def _overview(summary: Summary) -> list[Measure]:
    return [replace(measure, label=_short_name(measure)) for measure in summary.headline()]


_SHORT_NAMES = {PHENOMENON_AVERAGE: "phenomena", PARADIGM_AVERAGE: "paradigms"}


def _short_name(measure: Measure) -> str:
    """What a terminal has room for."""
    if measure.metric in (PERPLEXITY, BITS_PER_BYTE):
        return f"{readable(measure.task)} {readable(measure.metric)}"
    name = f"{readable(measure.suite)}, {_SHORT_NAMES.get(measure.task, readable(measure.task))}"
    return name if measure.metric in (ACCURACY, AVERAGE_METRIC) else f"{name} {metric_name(measure.metric)}"


def _average_rows(summary: Summary, metrics: tuple[str, ...] = (AVERAGE_METRIC,)) -> list[SummaryRow]:
    """One row for each average over tasks and each of `metrics`, suites in the order of the configuration."""
    found: dict[tuple[str, str, int], SummaryRow] = {}
    for row in summary.rows:
        if row.metric in metrics:
            found.setdefault((row.suite, row.task, metrics.index(row.metric)), row)
    suites = list(dict.fromkeys(task.suite for task in summary.finetuned))
    return [found[key] for key in sorted(found, key=lambda key: (suites.index(key[0]), *key[1:]))]


def _averages_agree(summary: Summary, suite: str) -> bool:
    """Whether the two averages are equal for every model, as they are where each phenomenon has one paradigm."""
    for model in summary.models:
        by_phenomenon, by_paradigm = (summary.row(model, suite, task, ACCURACY) for task in AVERAGES)
        if by_phenomenon and by_paradigm and by_phenomenon.mean != by_paradigm.mean:
            return False
    return True


def _splits(summary: Summary) -> list[str]:
    return sorted({row.task for row in summary.rows if row.suite == PERPLEXITY_SUITE})


def _plain_sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """A section for each suite of the kind, with a measure for each number."""
    suites: dict[str, list[Measure]] = {}
    for suite, task, metric in dict.fromkeys(row.selectors[1:] for row in summary.rows):
        if summary.kinds.get(suite) == kind:
            measure = Measure(f"{readable(task)} {metric_name(metric)}", suite, task, metric)
            suites.setdefault(suite, []).append(measure)
    return [Section(_title(evaluation, kind, suite), evaluation.note, measures) for suite, measures in suites.items()]


def _title(evaluation: Evaluation, kind: str, suite: str) -> str:
    """Suites that say no more than what their kind is need no second name."""
    return evaluation.title if suite == kind else f"{evaluation.title}: {readable(suite)}"


def _perplexity_sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    named = [(metric.label, name) for name, metric in HELD_OUT_METRICS.items() if metric.label]
    shown = (
        # What has a unit of its own, then percent.
        *sorted(named, key=lambda pair: HELD_OUT_METRICS[pair[1]].percent),
        ("slope by log-frequency", SLOPES[LOG_PROBABILITY]),
        ("slope without bias", SLOPES[WITHOUT_BIAS]),
    )
    measures = [
        Measure(f"{split} {label}", PERPLEXITY_SUITE, split, metric)
        for split in _splits(summary)
        for label, metric in shown
    ]
    asked = list(dict.fromkeys(map(_what_is_predicted, _objectives(summary))))
    if len(asked) > 1:
        asked.append("Numbers of models with different objectives are not comparable.")
    if any(row.metric in SLOPES.values() for row in summary.rows):
        asked.append(
            "The slopes are those of the log-probability of right tokens on the logarithm of their frequency in the "
            "training text, from the whole model and without the bias of its output layer."
        )
    if summary.trained_otherwise:
        own = summary.trained_otherwise
        models = ", ".join(f"{summary.label(model)} ({own[model]})" for model in summary.models if model in own)
        asked.append(
            f"Never saw the common masks in training: {models}; their perplexities may be high for that alone."
        )
    return [Section(evaluation.title, " ".join(asked), measures)]


def _translation_sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    """Scores of every test set, then those of development text while training."""
    tests = sorted({row.task for row in summary.rows if row.suite == TRANSLATION_SUITE})
    measures = [
        Measure(f"{readable(test)} {SHOWN_METRICS[metric]}", TRANSLATION_SUITE, test, metric)
        for test in tests
        for metric in METRICS
    ]
    training = {(row.task, row.metric) for row in summary.rows if row.suite == PRETRAINING_SUITE}
    for kind, label in (("best", "highest {metric} of {task}"), ("alc", "area of {metric}, {task}")):
        measures += [
            Measure(
                label.format(metric=SHOWN_METRICS[metric], task=readable(task)),
                *(PRETRAINING_SUITE, task, f"{kind}_{metric}"),
            )
            for metric in METRICS
            for task in sorted(task for task, name in training if name == f"{kind}_{metric}")
        ]
    return [Section(evaluation.title, evaluation.note, measures)]


def _minimal_pair_sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    return [
        _suite_section(
            summary, suite, _title(evaluation, kind, suite), _with_settings(_scores_of(rows), summary, suite)
        )
        for suite in summary.pair_suites
        if (rows := [row for row in summary.rows if row.suite == suite])
    ]


def _scores_of(rows: Sequence[SummaryRow]) -> str:
    """Sentence that names the metric of a suite of minimal pairs and the score of a blind guess."""
    is_correlation = all(row.metric == CORRELATION for row in rows)
    what = "Spearman's correlation with the preferences of people" if is_correlation else "Accuracy"
    of_phenomena = [row for row in rows if row.metric in (ACCURACY, CORRELATION) and row.task not in AVERAGES]
    chance = range_of_guesses(of_phenomena)
    return f"{what} in percent by phenomenon{chance and f'; chance is {chance}'}."


def range_of_guesses(rows: Iterable[SummaryRow]) -> str:
    """Range of the blind guesses of rows, such as `50` or `20 to 50`; empty if no guess is known."""
    known = {round(row.blind_guess, 1) for row in rows if row.blind_guess is not None}
    return " to ".join(f"{guess:g}" for guess in sorted({min(known), max(known)})) if known else ""


def _with_settings(note: str, summary: Summary, suite: str) -> str:
    """What is said of a section, and how its numbers were made."""
    settings = summary.settings.get(suite, "").removesuffix(".")
    return f"{note} {settings[0].upper()}{settings[1:]}." if settings else note


def _suite_section(summary: Summary, suite: str, title: str, note: str) -> Section:
    tasks = {row.task for row in summary.rows if row.suite == suite}
    measures = [Measure(readable(task), suite, task, ACCURACY) for task in sorted(tasks.difference(AVERAGES))]
    correlated = sorted(row.task for row in summary.rows if (row.suite, row.metric) == (suite, CORRELATION))
    measures += [
        Measure(f"{readable(task)}, correlation with people", suite, task, CORRELATION)
        for task in dict.fromkeys(correlated)
    ]
    for task in AVERAGES:
        if task == PHENOMENON_AVERAGE or not _averages_agree(summary, suite):
            label = f"{readable(task)}, ties correct"
            measures.append(Measure(label, suite, task, ACCURACY_TIES_CORRECT))
            # Shown where it was asked for.
            label = f"{readable(task)}, best temperature"
            measures.append(Measure(label, suite, task, AT_BEST_TEMPERATURE))
    if any((row.suite, row.metric) == (suite, AT_BEST_TEMPERATURE) for row in summary.rows):
        note += " The best of 61 temperatures is chosen on these very pairs: an upper bound, not comparable."
    return Section(title, note, measures)


def _finetuning_sections(summary: Summary, kind: str, evaluation: Evaluation) -> list[Section]:
    suites = dict.fromkeys(task.suite for task in summary.finetuned)
    return [
        section
        for suite in suites
        for section in _tuned_suite_sections(summary, suite, _title(evaluation, kind, suite), evaluation.note)
    ]


def _tuned_suite_sections(summary: Summary, suite: str, title: str, over: str) -> list[Section]:
    """The averages and the first metric of every task; then all other metrics."""
    tasks = [task for task in summary.finetuned if task.suite == suite]
    prefix = _common_word([task.task for task in tasks if task.main])
    metrics = {task.metric for task in tasks}
    measures = [
        Measure(average_name(row.task, row.metric), suite, row.task, row.metric)
        for row in _average_rows(summary, (AVERAGE_METRIC, RUN_AVERAGE_METRIC))
        if row.suite == suite
    ]
    for task in tasks:
        label = readable(task.task.removeprefix(prefix))
        label = label if len(metrics) == 1 else f"{label} {_metric_label(task.metric)}"
        measures.append(Measure(label, suite, task.task, task.metric))
    further = [
        Measure(f"{readable(task.task.removeprefix(prefix))} {_metric_label(metric)}", suite, task.task, metric)
        for task in tasks
        for metric in sorted({row.metric for row in summary.rows if (row.suite, row.task) == (suite, task.task)})
        if metric != task.metric
    ]
    what = f"{_metric_label(tasks[0].metric)} in percent" if len(metrics) == 1 else "Percent"
    note = _with_settings(f"{what[0].upper()}{what[1:]}, {over}.", summary, suite)
    return [
        Section(title, note, measures),
        Section(f"{title}, further metrics", "Percent.", further, detail=True),
    ]


_OWN = {
    "perplexity": _perplexity_sections,
    "translation": _translation_sections,
    "minimal_pairs": _minimal_pair_sections,
    "finetuning": _finetuning_sections,
}
"""Kinds of evaluation whose sections are more than a line for each number."""


def _metric_label(metric: str) -> str:
    return readable(metric.removesuffix("_percent"))


def _common_word(tasks: list[str]) -> str:
    """The first word that all names share with its underscore, such as `babylm_`; empty where they share none."""
    beginnings = {task.partition("_")[0] for task in tasks}
    shared = beginnings.pop() + "_" if len(beginnings) == 1 and len(tasks) > 1 else ""
    return shared if all(task.startswith(shared) for task in tasks) else ""


def incomplete_texts(summary: Summary) -> list[str]:
    """The averages without a number, and why."""
    return [
        f"{summary.label(model)}, {readable(suite)}: no {readable(average)}, because no run gave a number for "
        + ", ".join(tasks)
        for (model, suite, average, _), tasks in summary.incomplete.items()
    ]


def failure_texts(summary: Summary) -> list[str]:
    """Which runs failed or gave no number, and why: one text per model and task."""
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
