"""The scores of an experiment as tables of a page, ours beside the published ones, each a link to where it comes from.

The link leads to the row on the page of provenance, and from there to the manifests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import PROVENANCE_ROWS, SummaryRow
from hatchery.rendering.escaping import breakable, readable
from hatchery.rendering.table import Column, Content, Group, Table, divided
from hatchery.rendering.templates import render

BLIND_GUESS = "blind guess"
"""What tables call what a guess has that does not see its items."""
# Numbers side by side in one table, and how many models are its rows instead of columns.
SIDE_BY_SIDE, ROWS_FROM = 6, 5
# A page of more models than this shows the averages of the first ROWS_SHOWN and the tasks of the first MODELS_OF_MANY.
MOST_MODELS, ROWS_SHOWN, MODELS_OF_MANY = 36, 200, 12
COMPARED = ("model", "task", "metric", "ours", "published", "difference", "verdict", "source", "note")
"""The columns of a table of numbers beside published ones."""


def compared_cells(
    scores: Scores, row: SummaryRow, remarks: Mapping[tuple[str, str, str, str], str], ours: str, decimals: int | None
) -> list[str]:
    """A number beside the published one; `remarks` are those of the published table, `decimals` of the published."""
    return [
        scores.label(row.model),
        readable(row.task),
        readable(row.metric),
        ours,
        row.published(decimals),
        "" if row.difference is None else f"{row.difference:+.1f}",
        row.verdict,
        row.published_source,
        remarks.get(row.selectors, ""),
    ]


def verdict_counts(scores: Scores) -> str:
    """How many rows have which verdict, such as `3 within, 1 above`; empty without published values."""
    return ", ".join(f"{count} {verdict}" for verdict, count in scores.verdicts().items())


@dataclass(frozen=True)
class _Line:
    """A measure, the models that are best, and what a blind guess has."""

    measure: Measure
    best: set[str]
    blind_guess: str


class ScoreTables:
    """Tables of scores whose numbers lead to `provenance`, the address of that page."""

    def __init__(self, scores: Scores, provenance: str) -> None:
        """The address is relative to the page of the tables."""
        self.scores, self._provenance = scores, provenance
        self._places = {row.selectors: place for place, row in enumerate(scores.rows)}

    def of(self, label: str, measures: Sequence[Measure], averages: int = 0) -> list[Table]:
        """Tables of measures (rows) by models (columns); from ROWS_FROM models on, these are the rows.

        The first `averages` rows are set apart from the rest. The best of a row are bold, and what a blind guess
        has is the last column. Of many models the first MODELS_OF_MANY are in them.
        """
        models = self.scores.with_numbers(measures)
        if len(self.scores.models) > MOST_MODELS:
            models = models[:MODELS_OF_MANY]
        if not models or len(models) >= ROWS_FROM:
            return self._models_as_rows(label, models, measures)
        return [self._models_as_columns(label, models, measures, averages)]

    def overview(self, label: str, measures: Sequence[Measure], sets: Mapping[str, str]) -> list[Table]:
        """The same of averages, with a caption: of many models the first ROWS_SHOWN, below the name of their set."""
        if len(self.scores.models) >= ROWS_FROM:
            return self._models_as_rows(label, self.scores.models[:ROWS_SHOWN], measures, label, sets)
        models = self.scores.with_numbers(measures)
        return [self._models_as_columns(label, models, measures, 0, label)] if models else []

    def _lines(self, measures: Sequence[Measure]) -> list[_Line]:
        found = []
        for measure in self.scores.present(measures):
            guesses = self.scores.blind_guesses(measure)
            blind = " to ".join(guesses[:: max(1, len(guesses) - 1)])
            found.append(_Line(measure, self.scores.best(measure), blind))
        return found

    def _models_as_columns(
        self, label: str, models: Sequence[str], measures: Sequence[Measure], averages: int, caption: str = ""
    ) -> Table:
        lines = self._lines(measures)
        blind = any(line.blind_guess for line in lines)
        rows: list[list[Content]] = [
            [
                line.measure.label,
                *(self._cell(line, model) for model in models),
                *([line.blind_guess or "-"] if blind else []),
            ]
            for line in lines
        ]
        groups = [Group(group) for group in (rows[:averages], rows[averages:]) if group]
        # A long name may break where its words end; otherwise it would push the last columns out of sight.
        names = [Column(breakable(self.scores.label(model))) for model in models]
        columns = [Column("measure", words=True), *names, *([Column(BLIND_GUESS)] if blind else [])]
        return Table(columns, groups, caption, label, kind="scores")

    def _models_as_rows(
        self,
        label: str,
        models: Sequence[str],
        measures: Sequence[Measure],
        caption: str = "",
        sets: Mapping[str, str] | None = None,
    ) -> list[Table]:
        made = []
        for shown in divided(self._lines(measures), SIDE_BY_SIDE):
            groups: dict[str, list[list[Content]]] = {}
            if any(line.blind_guess for line in shown):
                groups[""] = [[BLIND_GUESS, *(line.blind_guess or "-" for line in shown)]]
            for model in models:
                # The heading stands for the experiment of a study, too.
                group, name = (sets or {}).get(model, ""), self.scores.label(model)
                name = name.rpartition("/")[2] if group else name
                groups.setdefault(group, []).append([breakable(name), *(self._cell(line, model) for line in shown)])
            columns = [Column("model", words=True), *(Column(line.measure.label) for line in shown)]
            made.append(
                Table(columns, [Group(rows, name) for name, rows in groups.items()], caption, label, kind="scores")
            )
        return made

    def _cell(self, line: _Line, model: str) -> str:
        return self.cell(self.scores.of(line.measure, model), model in line.best)

    def cell(self, row: SummaryRow | None, best: bool = False) -> str:
        """Ours as a link, runs and failures, and below it the published value with the verdict; a dash for nothing."""
        if row is None:
            return "-"
        return render(
            "number.html.j2",
            row=row,
            # The page of provenance has no place for rows beyond the first.
            address=f"{self._provenance}#{quote(row.anchor)}" if self._places[row.selectors] < PROVENANCE_ROWS else "",
            best=best,
        )

    def left_out(self) -> str:
        """What a page of many models does not show; empty where it shows all."""
        count = len(self.scores.models)
        if count <= MOST_MODELS:
            return ""
        shown = f"the first {ROWS_SHOWN} of " if count > ROWS_SHOWN else "all "
        return (
            f"The experiment has {count:,} models. Averages are shown of {shown}them, single tasks of the first "
            f"{MODELS_OF_MANY}; summary.csv has every number of every model."
        )
