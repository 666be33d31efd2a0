"""The summary of an experiment: one tidy row per model, suite, task and metric, with the published value beside it.

The rows are computed here, without files; `summary_tables`, `summary_markdown` and `summary_text` write them down.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from hatchery.analysis.aggregates import (
    AVERAGE,
    AVERAGE_METRIC,
    RUN_AVERAGE_METRIC,
    Aggregate,
    aggregate_runs,
    average_of_tasks,
    average_per_run,
)
from hatchery.analysis.measurements import FINETUNING_SUITE, Measurement
from hatchery.analysis.published import PublishedValue, Verdict, combined_deviation, judge
from hatchery.analysis.settings import SummarySettings, models_in_order

DECIMALS = 4
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


COLUMNS = tuple(field.name for field in fields(SummaryRow))


@dataclass(frozen=True)
class Summary:
    """The rows sorted by model, suite, task and metric, and what the tables for people say besides.

    `models`, `suites` and `tasks` keep the order of the configuration. `primary_metrics` maps each fine-tuning task to
    the metric that stands for it. `failures` are the runs that were left out, `unmatched` the published values that
    no row of ours answers, `published_notes` the remarks that the published table makes on its values.
    """

    experiment: str
    models: list[str]
    suites: list[str]
    tasks: list[str]
    rows: list[SummaryRow]
    primary_metrics: dict[str, str]
    failures: list[Measurement]
    unmatched: list[Key]
    published_notes: dict[Key, str]

    def row(self, model: str, suite: str, task: str, metric: str) -> SummaryRow | None:
        """The row of one number, or None."""
        wanted = (model, suite, task, metric)
        return next((row for row in self.rows if (row.model, row.suite, row.task, row.metric) == wanted), None)


def summarise(
    settings: SummarySettings, measurements: Iterable[Measurement], published: Mapping[Key, PublishedValue]
) -> Summary:
    """Compute the summary of `measurements`; the order in which they come does not matter."""
    measurements = sorted(measurements, key=_order)
    groups: dict[Key, list[Measurement]] = {}
    for measurement in measurements:
        key = (measurement.cell.run, measurement.suite, measurement.task, measurement.metric)
        groups.setdefault(key, []).append(measurement)
    rows = {key: _row(settings.experiment, key, aggregate_runs(runs), runs, published) for key, runs in groups.items()}
    models = models_in_order(settings.cells)
    for model in models:
        for key, aggregate, runs in _task_averages(model, measurements):
            rows[key] = _row(settings.experiment, key, aggregate, runs, published)
    return Summary(
        experiment=settings.experiment,
        models=models,
        suites=list(settings.suites),
        tasks=list(settings.tasks),
        rows=[rows[key] for key in sorted(rows)],
        primary_metrics={m.task: m.metric for m in measurements if m.suite == FINETUNING_SUITE and m.primary},
        failures=[m for m in measurements if m.failed and m.primary],
        unmatched=sorted(set(published) - set(rows)),
        published_notes={key: value.note for key, value in published.items() if value.note},
    )


def _order(measurement: Measurement) -> tuple[str, str, str, str, int, int]:
    seed = -1 if measurement.finetuning_seed is None else measurement.finetuning_seed
    cell = measurement.cell
    return (cell.run, measurement.suite, measurement.task, measurement.metric, cell.seed, seed)


def _task_averages(
    model: str, measurements: Sequence[Measurement]
) -> Iterable[tuple[Key, Aggregate, list[Measurement]]]:
    """The two averages over fine-tuning tasks; none for fewer than two tasks, where they would repeat the task."""
    tasks: dict[str, list[Measurement]] = {}
    for run in measurements:
        if run.cell.run == model and run.suite == FINETUNING_SUITE and run.primary:
            tasks.setdefault(run.task, []).append(run)
    if len(tasks) < 2:
        return
    runs = [run for task in tasks.values() for run in task]
    key = (model, FINETUNING_SUITE, AVERAGE)
    yield (*key, AVERAGE_METRIC), average_of_tasks([aggregate_runs(task) for task in tasks.values()]), runs
    yield (*key, RUN_AVERAGE_METRIC), average_per_run(list(tasks.values())), runs


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
            verdict = judge(difference, deviation)
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
        manifests=";".join(sorted({run.manifest for run in runs})),
    )


def _rounded(value: float | None) -> float | None:
    # Adding 0.0 turns a negative zero, which would print as -0.0000, into zero.
    return None if value is None else round(value, DECIMALS) + 0.0
