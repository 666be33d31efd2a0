"""The numbers of `summary.csv` as tables of a page, ours beside the published ones, each a link to where it comes from.

A cell is one row of the summary, found by its key and never by its text: model, suite, task and metric. The link leads
to the row on the page of provenance, and from there to the manifests.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote

from hatchery.analysis.aggregates import least_of_best
from hatchery.analysis.measurements import (
    ACCURACY,
    PARADIGM_AVERAGE,
    PERPLEXITY_SUITE,
    PHENOMENON_AVERAGE,
    PRETRAINING_SUITE,
)
from hatchery.analysis.summary_layout import depends_on_objective, readable
from hatchery.analysis.summary_rows import (
    BLIND_GUESS,
    NORMAL_95,
    PROVENANCE_ROWS,
    NumberedRow,
    decimals_of,
    interval_text,
)
from hatchery.analysis.task_averages import AVERAGE_METRIC
from hatchery.analysis.translation_measurements import TRANSLATION_SUITE
from hatchery.objectives.settings import DEFAULT_TASK
from hatchery.rendering.escaping import breakable
from hatchery.rendering.table import Column, Content, Group, Table, divided
from hatchery.rendering.templates import render
from hatchery.translation.metrics import BLEU, METRICS

VERDICTS = ("within", "above", "below", "not comparable")
# Numbers side by side in one table, and how many models are its rows instead of columns.
SIDE_BY_SIDE, ROWS_FROM = 6, 5
# A page of more models than this shows the averages of the first ROWS_SHOWN and the tasks of the first MODELS_OF_MANY.
MOST_MODELS, ROWS_SHOWN, MODELS_OF_MANY = 36, 200, 12
PERPLEXITY = "perplexity"

Key = tuple[str, str, str]


@dataclass(frozen=True)
class _Line:
    """A number, the models that it is shown of, those of them that are best, and what a blind guess has."""

    name: str
    key: Key
    models: frozenset[str]
    best: set[str]
    blind_guess: str


class Numbers:
    """The rows of a summary by model and (suite, task, metric), with the page on which each of them has an anchor."""

    def __init__(
        self,
        rows: Sequence[NumberedRow],
        provenance: str,
        labels: Mapping[str, str] | None = None,
        objectives: Mapping[str, str] | None = None,
    ) -> None:
        """`provenance` is the address of that page, relative to the page of the tables.

        `labels` are what people read for the models, in the order in which they are shown, `objectives` the tasks of
        those that were not trained on masked text.
        """
        self._labels = order = dict(labels or {})
        self._objectives = objectives or {}
        self._rows = {(row.values["model"], _key(row)): row for row in rows}
        self._provenance = provenance
        named = dict.fromkeys(model for model, _ in self._rows)
        self.models = [*(model for model in order if model in named), *(model for model in named if model not in order)]
        self.keys = list(dict.fromkeys(key for _, key in self._rows))
        # Held-out text first, as in the summary.
        suites = dict.fromkeys(suite for suite, _, _ in self.keys)
        self.suites = sorted(suites, key=lambda suite: suite not in (PRETRAINING_SUITE, PERPLEXITY_SUITE))

    def row(self, model: str, key: Key) -> NumberedRow | None:
        """The row of one number, or None."""
        return self._rows.get((model, key))

    def label(self, model: str) -> str:
        """What people read for a model."""
        return self._labels.get(model, model)

    def verdicts(self) -> Counter[str]:
        """How many rows have which verdict; empty without published values."""
        return Counter(row.values["verdict"] for row in self._rows.values() if row.values["verdict"])

    def compared(self) -> dict[str, list[NumberedRow]]:
        """The rows that have a verdict, by suite."""
        found: dict[str, list[NumberedRow]] = {}
        for row in self._rows.values():
            if row.values["verdict"]:
                found.setdefault(row.values["suite"], []).append(row)
        return found

    def headline(self) -> list[Key]:
        """The averages that stand for the experiment: perplexities, then one or two per suite."""
        suites = [suite for suite in self.suites if suite not in (PRETRAINING_SUITE, PERPLEXITY_SUITE)]
        found = [key for key in self.keys if key[0] == PRETRAINING_SUITE and key[2] == PERPLEXITY]
        found += [key for key in self.keys if key[0] == PERPLEXITY_SUITE and key[2] == PERPLEXITY]
        pairs = [suite for suite in suites if (suite, PHENOMENON_AVERAGE, ACCURACY) in self.keys]
        for suite in pairs:
            found.append((suite, PHENOMENON_AVERAGE, ACCURACY))
            if self._says_more((suite, PARADIGM_AVERAGE, ACCURACY), found[-1]):
                found.append((suite, PARADIGM_AVERAGE, ACCURACY))
        for suite in suites:
            averages = [key for key in self.keys if key[0] == suite and key[2] == AVERAGE_METRIC]
            if suite == TRANSLATION_SUITE:
                averages = [key for key in self.keys if key[0] == suite and key[2] == BLEU]
            elif not averages and suite not in pairs:
                # What is not averaged, a suite of one task say, stands for itself.
                averages = [key for key in self.keys if key[0] == suite][:1]
            found += averages
        return found

    def _says_more(self, key: Key, than: Key) -> bool:
        both = [(self.row(model, key), self.row(model, than)) for model in self.models]
        return any(
            one is not None and (one.values["published_mean"] or (other and other.values["mean"] != one.values["mean"]))
            for one, other in both
        )

    def best(self, key: Key, among: Collection[str] | None = None) -> set[str]:
        """The models with the best number as it is shown, and those that noise may have kept from it (`noise_of`).

        There is none where noise is not known, where it could explain all differences, and where the best number is
        not beyond a blind guess. `among` are the models that are compared (None: all).
        """
        sign = direction(key[2])
        rows = {model: self.row(model, key) for model in (self.models if among is None else among)}
        known = {model: row for model, row in rows.items() if row is not None and row.values["mean"]}
        shown = {
            model: (round(float(row.values["mean"]), decimals_of(key[2])) * sign, noise_of(row))
            for model, row in known.items()
        }
        if not sign or len(shown) < 2 or max(shown.values())[1] == math.inf:
            return set()
        least = least_of_best(shown.values())
        blind = [float(row.values["blind_guess"]) * sign for row in known.values() if row.values["blind_guess"]]
        found = {model for model, (value, _) in shown.items() if value >= least}
        return found if len(found) < len(shown) and least > max(blind, default=-math.inf) else set()

    def _lines(self, keys: Sequence[Key], names: Sequence[str]) -> Iterator["_Line"]:
        """A line for each number; for each objective, where models of several have one that depends on it."""
        for key, name in zip(keys, names, strict=True):
            by_task: dict[str, list[str]] = {}
            for model in self.models:
                if self.row(model, key):
                    by_task.setdefault(self._objectives.get(model, DEFAULT_TASK), []).append(model)
            if len(by_task) > 1 and depends_on_objective(key[0], key[2]):
                for task, models in by_task.items():
                    yield self._line(f"{name}, {task}", key, models)
            else:
                yield self._line(name, key, self.models)

    def _line(self, name: str, key: Key, models: Collection[str]) -> "_Line":
        rows = [self.row(model, key) for model in models]
        guesses = sorted({float(row.values["blind_guess"]) for row in rows if row and row.values["blind_guess"]})
        texts = dict.fromkeys(f"{guess:.{decimals_of(key[2])}f}" for guess in guesses)
        blind = " to ".join([*texts][:: max(1, len(texts) - 1)])
        return _Line(name, key, frozenset(models), self.best(key, models), blind or "-")

    def _cell_of(self, line: "_Line", model: str) -> str:
        return self.cell(self.row(model, line.key) if model in line.models else None, model in line.best)

    def tables(
        self, label: str, keys: Sequence[Key], names: Sequence[str], caption: bool = True, averages: int = 0
    ) -> list[Table]:
        """Tables of `keys` (rows, called `names`) by models (columns); from ROWS_FROM models on, these are the rows.

        The first `averages` rows are set apart from the rest. The best of a row are bold, and what a blind guess
        has is the last column. Of many models the first MODELS_OF_MANY are in them.
        """
        models = [model for model in self.models if any(self.row(model, key) for key in keys)]
        if len(self.models) > MOST_MODELS:
            models = models[:MODELS_OF_MANY]
        if not models or len(models) >= ROWS_FROM:
            return self._models_as_rows(label, models, keys, names, caption)
        lines = list(self._lines(keys, names))
        blind = any(line.blind_guess != "-" for line in lines)
        rows = [
            [line.name, *(self._cell_of(line, model) for model in models), *([line.blind_guess] if blind else [])]
            for line in lines
        ]
        groups = [Group(group) for group in (rows[:averages], rows[averages:]) if group]
        # A long name may break where its words end; otherwise it would push the last columns out of sight.
        columns = [Column("measure", words=True), *(Column(breakable(self.label(model))) for model in models)]
        columns += [Column(BLIND_GUESS)] if blind else []
        return [Table(columns, groups, label if caption else "", label, kind="scores")]

    def overview(
        self, label: str, keys: Sequence[Key], names: Sequence[str], sets: Mapping[str, str] | None = None
    ) -> list[Table]:
        """The same of averages: of many models the first ROWS_SHOWN, below the name of their set, if any."""
        if len(self.models) < ROWS_FROM:
            return self.tables(label, keys, names)
        return self._models_as_rows(label, self.models[:ROWS_SHOWN], keys, names, True, sets or {})

    def _models_as_rows(
        self,
        label: str,
        models: Sequence[str],
        keys: Sequence[Key],
        names: Sequence[str],
        caption: bool,
        sets: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Table]:
        made = []
        for shown in divided(list(self._lines(keys, names)), SIDE_BY_SIDE):
            groups: dict[str, list[list[Content]]] = {}
            if any(line.blind_guess != "-" for line in shown):
                groups[""] = [[BLIND_GUESS, *(line.blind_guess for line in shown)]]
            for model in models:
                cells = [self._cell_of(line, model) for line in shown]
                # The heading stands for the experiment of a study, too.
                group = sets.get(model, "")
                name = self.label(model).rpartition("/")[2] if group else self.label(model)
                groups.setdefault(group, []).append([breakable(name), *cells])
            columns = [Column("model", words=True), *(Column(line.name) for line in shown)]
            rows = [Group(lines, name) for name, lines in groups.items()]
            made.append(Table(columns, rows, label if caption else "", label, kind="scores"))
        return made

    def left_out(self) -> str:
        """What a page of many models does not show; empty where it shows all."""
        count = len(self.models)
        if count <= MOST_MODELS:
            return ""
        shown = f"the first {ROWS_SHOWN} of " if count > ROWS_SHOWN else "all "
        return (
            f"The experiment has {count:,} models. Averages are shown of {shown}them, single tasks of the first "
            f"{MODELS_OF_MANY}; summary.csv has every number of every model."
        )

    def cell(self, row: NumberedRow | None, best: bool = False) -> str:
        """Ours as a link, runs and failures, and below it the published value with the verdict; a dash for nothing."""
        if row is None:
            return "-"
        values = row.values
        return render(
            "number.html.j2",
            # The page of provenance has no place for rows beyond the first.
            address=f"{self._provenance}#{quote(row.anchor)}" if row.number <= PROVENANCE_ROWS else "",
            spoken=row.label(),
            text=number_text(row),
            runs=row.runs(),
            interval=interval_of(row),
            best=best,
            published=published_text(row),
            source=values["published_source"],
            verdict=values["verdict"],
        )


def number_text(row: NumberedRow) -> str:
    """`mean ± std` with one decimal (two for perplexity); a dash where no run gave a number."""
    mean, std = row.values["mean"], row.values["std"]
    if not mean:
        return "-"
    decimals = decimals_of(row.values["metric"])
    return f"{float(mean):.{decimals}f}" + (f" ± {float(std):.{decimals}f}" if std else "")


def noise_of(row: NumberedRow) -> float:
    """How far below the best a number may be by chance: infinitely where one run without known noise says it.

    Over several runs that is the standard deviation of the best, as in LTG-BERT, Tables 2 and 3. Of a single run it is
    what 95 % of the differences between two such models keep below, if only the choice of the items differs.
    """
    if row.values["std"]:
        return float(row.values["std"])
    sampling = row.values["sampling_deviation"]
    return NORMAL_95 * math.sqrt(2) * float(sampling) if sampling else math.inf


def interval_of(row: NumberedRow) -> str:
    """The interval of a number of a single run; empty where there is none."""
    values = row.values
    if not values["mean"] or not values["sampling_deviation"]:
        return ""
    return interval_text(float(values["mean"]), float(values["sampling_deviation"]), values["metric"])


def direction(metric: str) -> int:
    """1 where more is better, -1 where less is, 0 where neither is known."""
    if metric == PERPLEXITY or metric.endswith("_nats"):
        return -1
    return 1 if metric.endswith(("_percent", *METRICS)) else 0


def name_of(key: Key) -> str:
    """What the headline calls a number."""
    suite, task, metric = key
    if suite in (PRETRAINING_SUITE, PERPLEXITY_SUITE):
        return f"{readable(task)} {readable(metric)}" + (" while training" if suite == PRETRAINING_SUITE else "")
    what = readable(task) if metric in (AVERAGE_METRIC, ACCURACY) else f"{readable(task)}, {metric_name(metric)}"
    return f"{readable(suite)}: {what}"


def metric_name(metric: str) -> str:
    """`accuracy in percent`, `loss in nats`, `perplexity`."""
    for ending, unit in (("_percent", "percent"), ("_nats", "nats")):
        if metric.endswith(ending):
            return f"{readable(metric.removesuffix(ending))} in {unit}"
    return readable(metric)


def published_text(row: NumberedRow) -> str:
    """The published value with its deviation; empty where there is none to compare with."""
    values = row.values
    if not values["verdict"] or not values["published_mean"]:
        return ""
    decimals = decimals_of(values["metric"])
    deviation = f" ± {float(values['published_std']):.{decimals}f}" if values["published_std"] else ""
    return f"{float(values['published_mean']):.{decimals}f}{deviation}"


def _key(row: NumberedRow) -> Key:
    return row.values["suite"], row.values["task"], row.values["metric"]
