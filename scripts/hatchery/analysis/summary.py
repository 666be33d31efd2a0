"""The summary of an experiment: one row for each model, suite, task and metric, with the published value.

`analysis.summary_rows` writes the rows as CSV and Parquet. `views.summary_text` and `views.summary_latex` convert the
rows to text and to LaTeX.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from hatchery.analysis.aggregates import Aggregate, aggregate_values
from hatchery.analysis.published_values import PublishedValue, Verdict, combined_deviation, judge
from hatchery.analysis.scores import Scores
from hatchery.analysis.settings import SummarySettings, baseline_runs, labels_of, models_in_order
from hatchery.analysis.summary_rows import DECIMALS, SELECTORS, SummaryRow
from hatchery.analysis.task_averages import task_averages
from hatchery.evaluation.basis import joined
from hatchery.evaluation.evaluation import Level, TidyRow
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    ACCURACY_TIES_CORRECT,
    AT_BEST_TEMPERATURE,
    CORRELATION,
)
from hatchery.evaluation.perplexity.measurements import TRAINED_ON
from hatchery.rendering.escaping import readable

DIGEST_LENGTH = 12
SHOWN_OF_PAIRS = (ACCURACY, AT_BEST_TEMPERATURE, CORRELATION)
SUMMARISED_LEVELS: tuple[Level, ...] = ("split", "phenomenon", "average", "task")
"""Levels of the measurements that a summary shows. Scores of paradigms, of complete suites of minimal pairs, of bins of
a split, and of words are only in the tidy table.
"""
ORDER = ("seed", "finetuning_seed", "learning_rate")
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class FinetunedTask:
    """A task on which fine-tuned models were scored: its suite and its main metric.

    `main` is false for a task on which models were only scored, after fine-tuning on another task.
    """

    suite: str
    task: str
    metric: str
    main: bool


@dataclass(frozen=True, kw_only=True)
class Summary(Scores):
    """The rows of a summary, sorted by model, suite, task and metric, and values that tables show in addition.

    `kinds` maps each suite to its kind of evaluation. `models`, `pair_suites` (suites of minimal pairs) and `finetuned`
    are in the order of the configuration; baselines come last. `failures` are the measurements of runs that failed or
    have no score, with an additional column `title`, the displayed title of the run. `incomplete` are averages without
    a value, with the tasks that lack scores. `unmatched` are published values without a row of our models.
    `published_notes` are the notes of the published table. `settings` describes how each suite, except the perplexity,
    was measured. `trained_otherwise` maps a model to a description of its training masks if these differ from the masks
    with which its perplexity was measured.
    """

    experiment: str
    kinds: Mapping[str, str] = field(default_factory=dict)
    pair_suites: list[str] = field(default_factory=list)
    finetuned: list[FinetunedTask] = field(default_factory=list)
    failures: list[TidyRow] = field(default_factory=list)
    unmatched: list[Key] = field(default_factory=list)
    published_notes: dict[Key, str] = field(default_factory=dict)
    incomplete: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    trained_otherwise: Mapping[str, str] = field(default_factory=dict)


def summarised(settings: SummarySettings, measured: pl.DataFrame, published: Mapping[Key, PublishedValue]) -> Summary:
    """Compute the summary from the rows of the tidy table of measurements. The order of these rows has no effect."""
    measured = shown_pairs(measured).sort(*SELECTORS, *ORDER, maintain_order=True)
    runs = (*settings.runs, *baseline_runs(settings.baselines, settings.runs))
    # A study contains models of several experiments, so map each model to its experiment.
    experiments = dict(measured.select("model", "experiment").unique().iter_rows())
    rows = {
        key: _row(experiments[key[0]], key, aggregate, manifests, published)
        for key, aggregate, manifests in _groups(measured)
    }
    tuned = measured.filter(pl.col("kind") == "finetuning")
    incomplete: dict[Key, tuple[str, ...]] = {}
    for (model, suite), mine in tuned.partition_by("model", "suite", as_dict=True).items():
        for average in task_averages(suite, mine):
            key = (model, suite, average.task, average.metric)
            manifests = _joined({manifest[:DIGEST_LENGTH] for manifest in average.manifests})
            rows[key] = _row(experiments[model], key, average.aggregate, manifests, published)
            if average.without_number:
                incomplete[key] = average.without_number
    titles = {run.name: run.title for run in runs}
    failed = measured.filter(pl.col("primary"), (pl.col("failed") != "") | pl.col("value").is_null())
    return Summary(
        experiment=settings.experiment,
        kinds=dict(measured.select("suite", "kind").unique().iter_rows()),
        models=models_in_order(runs),
        pair_suites=list(settings.suites),
        finetuned=_finetuned(settings.tasks, tuned),
        rows=[rows[key] for key in sorted(rows)],
        failures=[row | {"title": titles[row["run"]]} for row in failed.to_dicts()],
        incomplete=incomplete,
        unmatched=sorted(set(published) - set(rows)),
        published_notes={key: value.note for key, value in published.items() if value.note},
        labels=labels_of(settings.runs),
        objectives=settings.objectives,
        settings=_settings(measured.filter(pl.col("kind") != "perplexity")),
        trained_otherwise=dict(
            measured.filter(pl.col("settings").str.starts_with(TRAINED_ON)).select("model", "settings").unique().rows()
        ),
    )


def _settings(measured: pl.DataFrame) -> dict[str, str]:
    """Return, for each suite, a description of the settings with which the suite was evaluated.

    If the tasks of a suite have different descriptions, each description begins with the names of its tasks.
    """
    found: dict[str, dict[str, list[str]]] = {}
    described = measured.filter(pl.col("settings") != "").select("suite", "settings", "task").unique().sort("task")
    for suite, text, task in described.iter_rows():
        found.setdefault(suite, {}).setdefault(text, []).append(task)
    return {
        suite: next(iter(texts))
        if len(texts) == 1
        else " ".join(f"On {', '.join(map(readable, texts[one]))}: {one}." for one in texts)
        for suite, texts in found.items()
    }


def shown_pairs(measured: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of minimal pairs for the summary: phenomena and averages. All rows of other kinds of measurements
    are kept.

    BabyLM's pipelines count ties between identical sentences as correct, which gives a second accuracy. If any model
    has a tie in a suite, the averages of this suite show both accuracies for all models. Without ties, both would be
    equal.
    """
    averages = measured.filter(pl.col("kind") == "minimal_pairs", pl.col("level") == "average")
    strict, generous = (
        averages.filter(pl.col("metric") == metric).select("run", "suite", "task", "value")
        for metric in (ACCURACY, ACCURACY_TIES_CORRECT)
    )
    both = strict.join(generous, on=["run", "suite", "task"], suffix="_generous")
    tied = both.filter(pl.col("value") != pl.col("value_generous"))["suite"].unique()
    return measured.filter(
        (pl.col("kind") != "minimal_pairs")
        | (pl.col("level").is_in(["phenomenon", "average"]) & pl.col("metric").is_in(SHOWN_OF_PAIRS))
        | (
            (pl.col("level") == "average")
            & (pl.col("metric") == ACCURACY_TIES_CORRECT)
            & pl.col("suite").is_in(tied.to_list())
        )
    )


def _groups(measured: pl.DataFrame) -> Iterator[tuple[Key, Aggregate, str]]:
    """Yield each score, aggregated over the runs of a model: key, mean and deviations, and the digests of the manifests
    from which the score was computed.
    """
    grouped = measured.group_by(SELECTORS, maintain_order=True).agg(
        # Collect the values of each group, because their mean is computed with `fsum`. `fsum` rounds only once, so the
        # mean does not depend on the order in which polars adds.
        "value",
        "failed",
        "sampling_deviation",
        pl.col("blind_guess").first(),
        pl.col("manifest").str.head(DIGEST_LENGTH).unique(),
        # Baselines have no seed (null), so each baseline counts as one training.
        pl.col("seed").n_unique(),
        pl.col("basis").fill_null("").unique(),
    )
    for model, suite, task, metric, *columns, blind_guess, manifests, seeds, bases in grouped.iter_rows():
        runs = list(zip(*columns, strict=True))
        basis = joined(("", each) for each in bases)
        aggregate = replace(aggregate_values(runs, blind_guess), seeds=seeds, basis=basis)
        yield (model, suite, task, metric), aggregate, _joined(manifests)


def _joined(manifests: Iterable[str]) -> str:
    return ";".join(sorted(manifests))


def _finetuned(tasks: Sequence[str], tuned: pl.DataFrame) -> list[FinetunedTask]:
    """Return the fine-tuning tasks in the order of the configuration.

    Each task is followed by the other tasks on which its fine-tuned models were also scored.
    """
    found: dict[tuple[int, bool, str, str], FinetunedTask] = {}
    columns = ("suite", "task", "metric", "main", "origin")
    for suite, task, metric, main, origin in tuned.filter("primary").select(columns).unique().iter_rows():
        found[tasks.index(origin), not main, suite, task] = FinetunedTask(suite, task, metric, main)
    return [found[key] for key in sorted(found)]


def _row(
    experiment: str,
    key: Key,
    aggregate: Aggregate,
    manifests: str,
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
        mean_without_failed=_rounded(aggregate.mean_without_failed),
        n_without_number=aggregate.n_without_number,
        published_mean=None if value is None else value.mean,
        published_std=None if value is None else value.std,
        published_source="" if value is None else value.source,
        difference=difference,
        verdict=verdict,
        manifests=manifests,
        sampling_deviation=_rounded(aggregate.sampling_deviation),
        blind_guess=_rounded(aggregate.blind_guess),
        seeds=aggregate.seeds,
        basis=aggregate.basis,
    )


def _rounded(value: float | None) -> float | None:
    # Add 0.0: it converts -0.0, which would be printed as -0.0000, into 0.0.
    return None if value is None else round(value, DECIMALS) + 0.0
