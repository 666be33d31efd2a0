"""The scores of an experiment by model and measure. Figures, tables and pages use this module to select the measures
that are shown and the best models.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hatchery.analysis.aggregates import SLACK
from hatchery.analysis.comparability import not_compared
from hatchery.analysis.measurements import PRETRAINING_SUITE
from hatchery.analysis.summary_rows import SummaryRow, decimals_of, read_summary
from hatchery.analysis.task_averages import AVERAGE_METRIC, RUN_AVERAGE_METRIC
from hatchery.evaluation.basis import differing
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    PAIR_AVERAGE,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
)
from hatchery.evaluation.perplexity.measurements import PERPLEXITY_SUITE
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE, HELD_OUT_METRICS
from hatchery.evaluation.reading_times.measurements import GAINS, PERPLEXITY_OF_WORDS
from hatchery.evaluation.translation_settings import TRANSLATION_SUITE
from hatchery.rendering.escaping import readable
from hatchery.training.objectives import DEFAULT_TASK
from hatchery.translation.metrics import BLEU, CHRF, METRICS

VERDICTS = ("within", "above", "below", "not comparable")
HELD_OUT = (PRETRAINING_SUITE, PERPLEXITY_SUITE)
PERPLEXITY = "perplexity"
SHOWN_METRICS = {BLEU: "BLEU", CHRF: "chrF"}

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Measure:
    """A measure: one score per model, identified by `suite`, `task` and `metric`, and shown as `label`.

    If `objective` is set, the measure is only shown for models that were trained for this objective.
    """

    label: str
    suite: str
    task: str
    metric: str
    objective: str = ""


@dataclass(frozen=True)
class Scores:
    """The scores of an experiment: the rows of its summary, and the models with their labels.

    `models` are in the order of display, and `labels` contains their displayed names. `objectives` contains the
    objective of each model that was not trained on masked text.
    """

    rows: Sequence[SummaryRow]
    models: Sequence[str]
    labels: Mapping[str, str] = field(default_factory=dict)
    objectives: Mapping[str, str] = field(default_factory=dict)
    by_key: dict[tuple[str, str, str, str], SummaryRow] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_key", {row.selectors: row for row in self.rows})

    def label(self, model: str) -> str:
        """Return the displayed label of a model, or its name if it has no label."""
        return self.labels.get(model, model)

    def objective(self, model: str) -> str:
        """Return the objective with which a model was trained."""
        return self.objectives.get(model, DEFAULT_TASK)

    def row(self, model: str, suite: str, task: str, metric: str) -> SummaryRow | None:
        """Return the summary row of a model's score; None if the model does not have this score."""
        return self.by_key.get((model, suite, task, metric))

    def row_for(self, measure: Measure, model: str) -> SummaryRow | None:
        """Return the summary row of a model for a measure; None if the model does not have this score, or if the
        measure is for models of another objective.
        """
        if measure.objective not in ("", self.objective(model)):
            return None
        return self.row(model, measure.suite, measure.task, measure.metric)

    def keys(self) -> list[Key]:
        """Return the key (suite, task, metric) of every score, in the order of the summary's rows."""
        return list(dict.fromkeys(row.selectors[1:] for row in self.rows))

    def suites(self) -> list[str]:
        """Return all suites of which there are scores, beginning with those of held-out text."""
        return sorted(dict.fromkeys(suite for suite, _, _ in self.keys()), key=lambda suite: suite not in HELD_OUT)

    def with_numbers(self, measures: Collection[Measure]) -> list[str]:
        """Return the models that have a summary row for at least one of `measures`."""
        return [model for model in self.models if any(self.row_for(measure, model) for measure in measures)]

    def present(self, measures: Iterable[Measure]) -> list[Measure]:
        """Return those of the `measures` for which at least one model has a summary row.

        If models have different objectives, a measure whose meaning depends on the objective becomes one measure per
        objective.
        """
        found = []
        for measure in measures:
            tasks = list(dict.fromkeys(map(self.objective, self.with_numbers([measure]))))
            apart = len(tasks) > 1 and depends_on_objective(measure.suite, measure.metric)
            of_task = [replace(measure, label=f"{measure.label}, {task}", objective=task) for task in tasks]
            found += of_task if apart else [measure][: len(tasks)]
        return found

    def best(self, measure: Measure) -> set[str]:
        """Return the models with the best displayed score, and the models whose difference from this score may be
        noise.

        The noise of a score is `SummaryRow.noise`. The noise of a difference is the square root of the sum of the
        squared noise of the two scores. If the noise of a model is unknown, the noise of the best model is used. If
        runs of a model failed, the model is worse only if its score is worse with and without the failed runs. Only a
        model with several pretraining seeds can be best.

        The result is empty in each of these cases:

        - fewer than two models have a mean;
        - the direction of the metric is unknown;
        - the scores are not comparable;
        - the noise of the best model is unknown;
        - noise could explain all differences;
        - the best score, minus its noise, is not better than the score of guesses without reading the test items;
        - one of the models to return has only one pretraining seed.
        """
        sign, decimals = direction(measure.metric), decimals_of(measure.metric)
        rows = self.with_means(measure)
        shown = {model: [round(mean, decimals) * sign for mean in row.readings] for model, row in rows.items()}
        if not sign or len(shown) < 2 or differing(row.basis for row in rows.values()):
            return set()
        best = max(shown, key=lambda model: (shown[model][0], rows[model].noise))
        least, noise = min(shown[best]), rows[best].noise
        blind = [row.blind_guess * sign for row in rows.values() if row.blind_guess is not None]
        if noise == math.inf or least - noise <= max(blind, default=-math.inf) + SLACK:
            return set()
        reach = {model: math.hypot(noise, noise if row.noise == math.inf else row.noise) for model, row in rows.items()}
        found = {model for model in shown if max(shown[model]) >= least - reach[model] - SLACK} | {best}
        of_several = all(rows[model].seeds > 1 for model in found)
        return found if of_several and len(found) < len(shown) else set()

    def with_means(self, measure: Measure) -> dict[str, SummaryRow]:
        """Return the rows of a measure that contain a mean, by model."""
        rows = {model: self.row_for(measure, model) for model in self.models}
        return {model: row for model, row in rows.items() if row is not None and row.mean is not None}

    def not_compared(self, measures: Iterable[Measure]) -> list[str]:
        """Return a note that names the `measures` whose scores are not comparable between models, with the reasons. The
        result is a list with one text.

        The list is empty if all scores are comparable.
        """
        ranked = (measure for measure in measures if direction(measure.metric))
        return not_compared({m.label: differing(row.basis for row in self.with_means(m).values()) for m in ranked})

    def blind_guesses(self, measure: Measure) -> list[str]:
        """Return, in ascending order and without duplicates, the displayed scores on a measure that a guesser would
        reach without reading the test items.
        """
        rows = [self.row_for(measure, model) for model in self.models]
        known = sorted({row.blind_guess for row in rows if row is not None and row.blind_guess is not None})
        return list(dict.fromkeys(f"{guess:.{decimals_of(measure.metric)}f}" for guess in known))

    def verdicts(self) -> dict[str, int]:
        """Return the number of rows for each verdict of the comparison with published values; empty if no row has a
        published value.
        """
        counts = Counter[str](row.verdict for row in self.rows)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    def compared(self) -> dict[str, list[SummaryRow]]:
        """Return the rows that have a published value, by suite."""
        found: dict[str, list[SummaryRow]] = {}
        for row in self.rows:
            if row.verdict:
                found.setdefault(row.suite, []).append(row)
        return found

    def headline(self) -> list[Measure]:
        """Return the headline measures, which summarise an experiment: perplexities and bits per byte, then one or two
        averages per suite of minimal pairs, then the averages of all remaining suites.

        For translation, the headline measures are the BLEU scores of all test sets. If one of the remaining suites has
        no average, its first score is a headline measure.
        """
        keys = self.keys()
        suites = [suite for suite in self.suites() if suite not in HELD_OUT]
        metrics = (PERPLEXITY, BITS_PER_BYTE)
        found = [key for suite in HELD_OUT for own in metrics for key in keys if (key[0], key[2]) == (suite, own)]
        pairs = [suite for suite in suites if (suite, PHENOMENON_AVERAGE, ACCURACY) in keys]
        for suite in pairs:
            if (suite, PAIR_AVERAGE, ACCURACY) in keys:
                found.append((suite, PAIR_AVERAGE, ACCURACY))
                continue
            found.append((suite, PHENOMENON_AVERAGE, ACCURACY))
            if self._is_preferred((suite, PARADIGM_AVERAGE, ACCURACY), found[-1]):
                found.append((suite, PARADIGM_AVERAGE, ACCURACY))
        for suite in suites:
            shown = BLEU if suite == TRANSLATION_SUITE else AVERAGE_METRIC
            averages = [key for key in keys if key[0] == suite and key[2] == shown]
            if not averages and suite not in (*pairs, TRANSLATION_SUITE):
                # If a suite has no average, for example because it has only one task, show its first score.
                averages = [key for key in keys if key[0] == suite][:1]
            found += averages
        return [Measure(name_of(key), *key) for key in found]

    def _is_preferred(self, key: Key, than: Key) -> bool:
        both = [(self.row(model, *key), self.row(model, *than)) for model in self.models]
        return any(
            one is not None and (one.published_mean is not None or (other is not None and other.mean != one.mean))
            for one, other in both
        )


def read_scores(path: Path, labels: Mapping[str, str], objectives: Mapping[str, str] | None = None) -> Scores:
    """Read the scores of a `summary.parquet`. Models with a label come first, in the order of `labels`.

    Raises ManifestError if the file is missing, was altered, or is not a summary.
    """
    rows = read_summary(path)
    named = dict.fromkeys(row.model for row in rows)
    models = [*(model for model in labels if model in named), *(model for model in named if model not in labels)]
    return Scores(rows, models, labels, objectives or {})


def depends_on_objective(suite: str, metric: str) -> bool:
    """Return True if a score has different meanings for models with different training objectives."""
    known = HELD_OUT_METRICS.get(metric)
    return suite in HELD_OUT and not (known and known.compares_objectives)


def direction(metric: str) -> int:
    """Return 1 if higher values of a metric are better, -1 if lower values are better, 0 if unknown."""
    if metric.endswith("_nats") or metric == PERPLEXITY_OF_WORDS:
        return -1
    if metric.endswith(("_percent", *METRICS)) or metric in GAINS:
        return 1
    return HELD_OUT_METRICS[metric].better if metric in HELD_OUT_METRICS else 0


def name_of(key: Key) -> str:
    """Return the displayed name of a score, such as `BLiMP: phenomenon average`."""
    suite, task, metric = key
    if suite in HELD_OUT:
        return f"{readable(task)} {readable(metric)}" + (" while training" if suite == PRETRAINING_SUITE else "")
    what = readable(task) if metric in (AVERAGE_METRIC, ACCURACY) else f"{readable(task)}, {metric_name(metric)}"
    return f"{readable(suite)}: {what}"


def metric_name(metric: str) -> str:
    """Return the displayed name of a metric with its unit: `accuracy in percent`, `loss in nats`, `perplexity`."""
    for ending, unit in (("_percent", "percent"), ("_nats", "nats")):
        if metric.endswith(ending):
            return f"{readable(metric.removesuffix(ending))} in {unit}"
    return readable(metric)


def average_name(task: str, metric: str) -> str:
    """Return the displayed name of an average over tasks: the name of the average, and how its deviation was
    computed."""
    return f"{readable(task)}, by {'run' if metric == RUN_AVERAGE_METRIC else 'task'}"
