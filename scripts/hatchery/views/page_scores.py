"""The scores of an experiment as tables of a page, next to published values.

If the provenance page has a row for a score, the score links to this row, and the row links to the manifests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import PROVENANCE_ROWS
from hatchery.rendering.escaping import breakable
from hatchery.rendering.table import Table, divided
from hatchery.rendering.templates import render
from hatchery.views.score_table import ROWS_FROM, SIDE_BY_SIDE, Block, Line, Score, ScoreTable, blind_guesses, table_of

# With more than MOST_MODELS models, the page shows averages only for the first ROWS_SHOWN models, and scores of single
# tasks only for the first MODELS_OF_MANY models.
MOST_MODELS, ROWS_SHOWN, MODELS_OF_MANY = 36, 200, 12
OVERVIEW = "Suite averages"


class ScoreTables:
    """Makes tables of scores whose numbers link to the provenance page."""

    def __init__(self, scores: Scores, provenance: str) -> None:
        """Initialise with the address of the provenance page, relative to the page of the tables."""
        self.scores, self._provenance = scores, provenance
        self._places = {row.selectors: place for place, row in enumerate(scores.rows)}

    def tables(self, label: str, measures: Sequence[Measure], averages: int = 0) -> list[Table]:
        """Return tables of the scores in `measures`, with measures as rows and models as columns. With ROWS_FROM or
        more models, models are rows, and measures are columns.

        The best scores of a measure are bold. The scores of a blind guess are the last column or, if models are rows,
        the first row. If measures are rows, a line follows the first `averages` rows. With more than MOST_MODELS
        models, only the first MODELS_OF_MANY are shown.
        """
        models = self.scores.with_numbers(measures)
        if len(self.scores.models) > MOST_MODELS:
            models = models[:MODELS_OF_MANY]
        if not models or len(models) >= ROWS_FROM:
            return self._models_as_rows(label, models, measures)
        return [self._models_as_columns(label, models, measures, averages)]

    def overview(self, measures: Sequence[Measure], sets: Mapping[str, str]) -> list[Table]:
        """Return tables of the headline measures `measures`, with the caption OVERVIEW.

        If the experiment has ROWS_FROM or more models, models are rows, and only the first ROWS_SHOWN models are shown.
        These rows are grouped by `sets`, which maps each model to its grid set (a group of models that a grid defines).
        """
        if len(self.scores.models) >= ROWS_FROM:
            return self._models_as_rows(OVERVIEW, self.scores.models[:ROWS_SHOWN], measures, OVERVIEW, sets)
        models = self.scores.with_numbers(measures)
        return [self._models_as_columns(OVERVIEW, models, measures, 0, OVERVIEW)] if models else []

    def _models_as_columns(
        self, label: str, models: Sequence[str], measures: Sequence[Measure], averages: int, caption: str = ""
    ) -> Table:
        table, guesses = self._table(measures, models, caption)
        # Allow long names to wrap between words. Otherwise long names would push the last columns out of the window.
        lines = (*(replace(line, label=breakable(line.label)) for line in table.lines), *guesses)
        turned = replace(table, blocks=(Block("", lines),)).turned()
        parts = (turned.lines[:averages], turned.lines[averages:])
        return self._shown(replace(turned, blocks=tuple(Block("", tuple(part)) for part in parts if part)), label)

    def _models_as_rows(
        self,
        label: str,
        models: Sequence[str],
        measures: Sequence[Measure],
        caption: str = "",
        sets: Mapping[str, str] | None = None,
    ) -> list[Table]:
        made = []
        for part in divided(self.scores.present(measures), SIDE_BY_SIDE):
            table, guesses = self._table(part, models, caption)
            groups = {"": [*guesses]} if guesses else {}
            for line in table.lines:
                # The heading above a group of models already names the experiment, so omit the experiment from the
                # models' labels.
                group = (sets or {}).get(line.model, "")
                name = line.label.rpartition("/")[2] if group else line.label
                groups.setdefault(group, []).append(replace(line, label=breakable(name)))
            blocks = tuple(Block(heading, tuple(lines)) for heading, lines in groups.items())
            made.append(self._shown(replace(table, blocks=blocks), label))
        return made

    def _table(
        self, measures: Sequence[Measure], models: Sequence[str], caption: str
    ) -> tuple[ScoreTable, tuple[Line, ...]]:
        """Return a table with a line of scores for each model, and a tuple with one more line: the scores of a blind
        guess, which does not use the items. The tuple is empty if this score is unknown for all `measures`.
        """
        shown = self.scores.present(measures)
        guesses = blind_guesses(self.scores, shown, lambda found: " to ".join(found[:: max(1, len(found) - 1)]))
        return table_of(self.scores, shown, models, caption, best=True), guesses

    def _shown(self, table: ScoreTable, label: str) -> Table:
        return table.shown(self.cell, label, kind="scores")

    def cell(self, score: Score) -> str:
        """Return a cell as HTML: our score as a link, the number of runs, the number of failed runs, and the published
        value with the comparison.
        """
        if (row := score.row) is None:
            return score.without_number
        # The provenance page contains only the first PROVENANCE_ROWS rows, so later scores have no link.
        address = f"{self._provenance}#{quote(row.anchor)}" if self._places[row.selectors] < PROVENANCE_ROWS else ""
        return render("number.html.j2", score=score, row=row, address=address)

    def left_out(self) -> str:
        """Return a sentence on the models that a page with many models omits; empty if all models are shown."""
        count = len(self.scores.models)
        if count <= MOST_MODELS:
            return ""
        shown = f"the first {ROWS_SHOWN} of " if count > ROWS_SHOWN else "all "
        return (
            f"The experiment has {count:,} models. Averages are shown for {shown}these models, and single tasks are "
            f"shown for the first {MODELS_OF_MANY} models; summary.csv contains every number of every model."
        )
