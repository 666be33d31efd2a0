"""The printed numbers of one table, each of which must find its place in the layout: none is lost, none is invented."""

from collections.abc import Iterable

from hatchery.analysis.published_values import PublishedNumber
from hatchery.errors import ConfigError
from hatchery.settings.problems import nearest
from hatchery.views.score_table import Digits, Score

Place = tuple[str, str, str, str, str]


class PrintedTable:
    """The numbers of a table by (track, row, suite, task, metric); remembers which were asked for."""

    def __init__(self, numbers: Iterable[PublishedNumber], paper: str, table: str, caveat: str = "") -> None:
        self.where = f"{paper}, table {table}"
        self._caveat = caveat
        self._numbers: dict[Place, PublishedNumber] = {
            (number.track, number.row, number.suite, number.task, number.metric): number
            for number in numbers
            if (number.paper, number.table) == (paper, table)
        }
        self._placed: set[Place] = set()

    def value(
        self, place: Place, digits: Digits, reference: bool = False, lower_is_better: bool = False
    ) -> Score | None:
        """The number at a place as it is printed; None where the table prints none.

        Raises ConfigError when the layout would show fewer digits than are printed.
        """
        number = self._numbers.get(place)
        if number is None:
            return None
        self._placed.add(place)
        for kind, printed, shown in (
            ("decimals", number.value, digits.mean(number.value)),
            ("deviation_decimals", number.spread, "" if number.spread is None else digits.deviation(number.spread)),
        ):
            if printed is not None and abs(float(shown.replace(",", "")) - printed * digits.scale) > 1e-9:
                raise ConfigError(
                    f"{self.where}: {kind}: {', '.join(filter(None, place))} is printed as"
                    f" {printed * digits.scale:g}, which the layout would show as {shown}"
                )
        return Score(
            mean=number.value,
            deviation=number.spread,
            digits=digits,
            comparable=number.comparable and not self._caveat,
            note=number.note,
            reference=reference,
            lower_is_better=lower_is_better,
        )

    def check_complete(self, rows: Iterable[tuple[str, str]]) -> None:
        """Raise ConfigError for a row (track, name) without any printed number, and for a number without a place."""
        known = {place[:2] for place in self._numbers}
        for track, row in rows:
            if (track, row) not in known:
                hint = nearest(row, {name for _, name in known})
                raise ConfigError(f"{self.where}: the row {' '.join(filter(None, (track, row)))} is not printed{hint}")
        if missing := sorted(set(self._numbers) - self._placed):
            raise ConfigError(f"{self.where}: the layout has no place for {', '.join(filter(None, missing[0]))}")
