"""The summary of an experiment: one tidy row per model, suite, task and metric, with the published value beside it.

The rows are computed here, without files; `summary_tables`, `summary_markdown` and `summary_text` write them down.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from hatchery.analysis.aggregates import Aggregate, aggregate_runs
from hatchery.analysis.measurements import Level, Measurement, shown_pairs
from hatchery.analysis.published import PublishedValue, Verdict, combined_deviation, judge
from hatchery.analysis.settings import SummarySettings, baseline_runs, labels_of, models_in_order
from hatchery.analysis.task_averages import task_averages

DECIMALS = 4
DIGEST_LENGTH = 12
SUMMARISED_LEVELS: tuple[Level, ...] = ("split", "phenomenon", "average", "task")
"""Paradigms and whole suites of minimal pairs stand in the tidy table alone."""
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class SummaryRow:
    """One row of `summary.csv`; the fields are its columns, in order, and None is an empty field.

    `difference` is ours minus published, in the unit of the metric. `manifests` holds the first 12 hexadecimal digits
    of the SHA-256 of every manifest that the row was computed from, sorted and joined by semicolons.
    """

    experiment: str
    model: str
    suite: str
    task: str
    metric: str
    mean: float | None
    std: float | None
    n: int
    n_failed: int
    published_mean: float | None
    published_std: float | None
    published_source: str
    difference: float | None
    verdict: Verdict
    manifests: str


COLUMNS = tuple(column.name for column in fields(SummaryRow))


@dataclass(frozen=True)
class FinetunedTask:
    """A task that fine-tuned models were scored on: its suite, and the metric that stands for it.

    `main` as in `Measurement`. `majority_percent` is the accuracy of its most frequent label, None without classes.
    """

    suite: str
    task: str
    metric: str
    main: bool
    majority_percent: float | None


@dataclass(frozen=True)
class Summary:
    """The rows sorted by model, suite, task and metric, and what the tables for people say besides.

    `models`, `suites` (of minimal pairs) and `finetuned` keep the order of the configuration; baselines come after the
    experiment's own models. `failures` are the runs that were left out, `unmatched` the published values that no row
    of ours answers, `published_notes` the remarks that the published table makes on its values. `labels` are the
    names that people read for models.
    """

    experiment: str
    models: list[str]
    suites: list[str]
    finetuned: list[FinetunedTask]
    rows: list[SummaryRow]
    failures: list[Measurement]
    unmatched: list[Key]
    published_notes: dict[Key, str]
    labels: dict[str, str] = field(default_factory=dict)
    by_key: dict[Key, SummaryRow] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        keyed = {(row.model, row.suite, row.task, row.metric): row for row in self.rows}
        object.__setattr__(self, "by_key", keyed)

    def label(self, model: str) -> str:
        """What people read for a model."""
        return self.labels.get(model, model)

    def row(self, model: str, suite: str, task: str, metric: str) -> SummaryRow | None:
        """The row of one number, or None."""
        return self.by_key.get((model, suite, task, metric))


def summarise(
    settings: SummarySettings, measurements: Iterable[Measurement], published: Mapping[Key, PublishedValue]
) -> Summary:
    """Compute the summary of `measurements`; the order in which they come does not matter."""
    measurements = sorted(shown_pairs(measurements), key=_order)
    groups: dict[Key, list[Measurement]] = {}
    for measurement in measurements:
        key = (measurement.run.model, measurement.suite, measurement.task, measurement.metric)
        groups.setdefault(key, []).append(measurement)
    rows = {key: _row(settings.experiment, key, aggregate_runs(runs), runs, published) for key, runs in groups.items()}
    models = models_in_order((*settings.runs, *baseline_runs(settings.baselines, settings.runs)))
    finetuned: dict[str, list[Measurement]] = {}
    for run in measurements:
        if run.finetuned:
            finetuned.setdefault(run.run.model, []).append(run)
    for model in models:
        tuned = finetuned.get(model, [])
        for suite in dict.fromkeys(run.suite for run in tuned):
            for average in task_averages(suite, [run for run in tuned if run.suite == suite]):
                key = (model, suite, average.task, average.metric)
                rows[key] = _row(settings.experiment, key, average.aggregate, average.runs, published)
    return Summary(
        experiment=settings.experiment,
        models=models,
        suites=list(settings.suites),
        finetuned=_finetuned(settings.tasks, measurements),
        rows=[rows[key] for key in sorted(rows)],
        failures=[m for m in measurements if m.failed and m.primary and m.finetuned],
        unmatched=sorted(set(published) - set(rows)),
        published_notes={key: value.note for key, value in published.items() if value.note},
        labels=labels_of(settings.runs),
    )


def _order(measurement: Measurement) -> tuple[str, str, str, str, int, int, float]:
    seed = -1 if measurement.finetuning_seed is None else measurement.finetuning_seed
    rate = measurement.learning_rate or 0.0
    run = measurement.run
    return (run.model, measurement.suite, measurement.task, measurement.metric, run.seed, seed, rate)


def _finetuned(tasks: Sequence[str], measurements: Iterable[Measurement]) -> list[FinetunedTask]:
    """In the order of the configuration; what else a task's models were scored on follows the task."""
    found: dict[tuple[int, bool, str, str], FinetunedTask] = {}
    for run in measurements:
        if run.finetuned and run.primary:
            task = FinetunedTask(run.suite, run.task, run.metric, run.main, run.majority_percent)
            found.setdefault((tasks.index(run.origin), not run.main, run.suite, run.task), task)
    return [found[key] for key in sorted(found)]


def _row(
    experiment: str,
    key: Key,
    aggregate: Aggregate,
    runs: Iterable[Measurement],
    published: Mapping[Key, PublishedValue],
) -> SummaryRow:
    mean, std = _rounded(aggregate.mean), _rounded(aggregate.std)
    value = published.get(key)
    difference: float | None = None
    verdict: Verdict = ""
    if value is not None:
        verdict = "not comparable"
        if value.comparable and mean is not None:
            difference = round(mean - value.mean, DECIMALS) + 0.0
            deviation = combined_deviation(value.std, aggregate.std, aggregate.sampling_deviation)
            verdict = judge(difference, deviation, value.rounding)
    return SummaryRow(
        experiment,
        *key,
        mean=mean,
        std=std,
        n=aggregate.n,
        n_failed=aggregate.n_failed,
        published_mean=None if value is None else value.mean,
        published_std=None if value is None else value.std,
        published_source="" if value is None else value.source,
        difference=difference,
        verdict=verdict,
        manifests=";".join(sorted({run.manifest[:DIGEST_LENGTH] for run in runs})),
    )


def _rounded(value: float | None) -> float | None:
    # Adding 0.0 turns a negative zero, which would print as -0.0000, into zero.
    return None if value is None else round(value, DECIMALS) + 0.0
