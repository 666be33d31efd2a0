"""Numbers that papers print for their models, and the comparison of an experiment with these numbers.

The file `config/published/values/<paper>.csv` contains each printed number of a paper once, converted to Hatchery's
unit of the metric. A number has the suite, task and metric of the comparable row of an experiment's `summary.csv`, if
there is such a row (docs/papers/babylm-evaluation.md, "Doubtful printed numbers"). Numbers that are not comparable with
ours are marked, with a reason.

Our number agrees with a published number if they differ by at most two combined standard deviations or, if no deviation
is known, by at most 0.5 in the unit of the metric (`judge`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from hatchery.analysis.settings import PublishedChoices, published_choices
from hatchery.artifacts.records import Derived, Record, read_records
from hatchery.errors import ConfigError, EvaluationError
from hatchery.settings.base import Natural, NonNegative, RefusedError, refused
from hatchery.settings.fields import NotEmpty
from hatchery.settings.problems import ALLOWED, alternatives

DEVIATIONS = 2.0
TOLERANCE_WITHOUT_DEVIATION = 0.5
# Most tables print one decimal, so a printed number may be off by half a unit of this decimal. A difference up to this
# size is accepted, even if the published runs have a standard deviation of 0.0.
PRINTED_ROUNDING = 0.05

Verdict = Literal["within", "above", "below", "not comparable", ""]


@dataclass(frozen=True)
class PublishedValue:
    """One number printed in a paper. `std` is None if no standard deviation is printed. `rounding` is half a unit of
    the last printed digit.
    """

    mean: float
    std: float | None
    source: str
    comparable: bool
    note: str
    rounding: float = PRINTED_ROUNDING


def half_of_last_digit(number: str) -> float:
    """Return half a unit of the last printed digit: 0.05 for `61.4`, 0.5 for `-72`."""
    return 0.5 * 10.0 ** -len(number.partition(".")[2])


def combined_deviation(published: float | None, ours: float | None, sampling: float | None) -> float | None:
    """Return the square root of the sum of squares of the published standard deviation and our standard deviation.

    Our standard deviation is over runs. For a single run, our standard deviation is the binomial deviation `sampling`.
    Return None if all deviations are None.
    """
    known = [deviation for deviation in (published, ours if ours is not None else sampling) if deviation is not None]
    return math.sqrt(math.fsum(deviation**2 for deviation in known)) if known else None


def judge(difference: float, deviation: float | None, rounding: float = PRINTED_ROUNDING) -> Verdict:
    """Compare our number with a published number, given `difference` (our number minus the published number).

    Return `within` if the absolute difference is at most twice `deviation`, or at most `rounding`. Otherwise return
    `above` or `below`. If `deviation` is None, `within` means a difference of at most 0.5, regardless of `rounding`.
    """
    tolerance = TOLERANCE_WITHOUT_DEVIATION if deviation is None else max(DEVIATIONS * deviation, rounding)
    # Add 1e-9: if a difference equals the tolerance, a floating-point error must not decide.
    if abs(difference) <= tolerance + 1e-9:
        return "within"
    return "above" if difference > 0 else "below"


PAPERS = {
    "babylm_2025": "BabyLM 2025",
    "babylm_pipeline": "BabyLM pipeline",
    "elc_bert": "ELC-BERT",
    "gpt_bert": "GPT-BERT",
    "ltg_bert": "LTG-BERT",
    "reduced_vocabulary": "Reduced vocabulary",
}
KEY = ("table", "track", "row", "suite", "task", "metric")

# Parts of metric names, each followed by the name of another row. `_minus_` names this row's value minus the other
# row's value. `epsilon_minimum_over_` names the minimum epsilon of almost stochastic order, for the claim that this row
# is better than the other row.
MINUS = "_minus_"
OVER = "epsilon_minimum_over_"


@dataclass(frozen=True)
class PublishedNumber(Record):
    """One number printed in a paper, in the unit of `metric`.

    `row` is the published model with its variant. `track` is empty if the number belongs to all tracks, or if the paper
    has no tracks. `spread` is the number after ±; `spread_kind` is the meaning of `spread`. `runs` is the number of
    runs, if the paper states it. `rounding` is half a unit of the last printed digit. `note` contains errata, and the
    reason if the number is not comparable with our numbers.
    """

    paper: str
    table: NotEmpty
    track: str
    row: NotEmpty
    suite: NotEmpty
    task: NotEmpty
    metric: NotEmpty
    value: float
    rounding: Annotated[float, Derived("value", half_of_last_digit)]
    spread: NonNegative | None
    spread_kind: Literal["", "deviation_over_runs", "root_mean_square_over_tasks"]
    runs: Natural | None
    comparable: bool
    note: str

    def __post_init__(self) -> None:
        if (self.spread is None) != (self.spread_kind == ""):
            raise refused("spread", self.spread, "a number with a spread_kind, and no number without a spread_kind")
        if not self.comparable and not self.note:
            raise RefusedError(
                "note", "got no note for a number that is not comparable, expected the reason why it is not comparable"
            )

    @property
    def source(self) -> str:
        """Position of the number in the paper, as shown on pages: `ELC-BERT Table 9`, `Reduced vocabulary, text`."""
        title = PAPERS[self.paper]
        return f"{title} Table {self.table}" if self.table.isdigit() else f"{title}, {self.table}"


Key = tuple[str, str, str, str]


def read_numbers(path: str | Path) -> list[PublishedNumber]:
    """Read the published numbers of one paper from the table `path`, in the order of its rows. The table's file is
    named `<paper>.csv`.

    Raises EvaluationError, naming file and line, if a column is missing, a number is repeated, `paper` or `spread_kind`
    has an unknown value, or a number is not comparable but has no reason.
    """
    paper = Path(path).stem
    if paper not in PAPERS:
        raise EvaluationError(f"{path}: got a file named {paper}, expected the name of a paper: {', '.join(PAPERS)}")
    return read_records(path, PublishedNumber, KEY, alike={"paper": paper})


def chosen_values(published: PublishedChoices, tables: Sequence[Path], flag: str) -> dict[Key, PublishedValue]:
    """Return the published values that our models replicate according to `published`, by (our model, suite, task,
    metric). The values are read from `tables`, which has one file per paper.

    In messages, `flag` names the argument `tables`. Raises ConfigError if `tables` and `published` name different
    papers, and for an unknown track or published row. Raises EvaluationError for an invalid table.
    """
    choices, given = published_choices(published), {table.stem: table for table in tables}
    if {choice.paper for choice in choices} != set(given):
        raise ConfigError(
            f"{flag}: got {', '.join(map(str, tables)) or None}, expected a table for each paper of `published` in "
            f"the settings: {published}"
        )
    numbers = {paper: read_numbers(table) for paper, table in given.items()}
    found: dict[Key, PublishedValue] = {}
    for choice in choices:
        found |= for_experiment(numbers[choice.paper], choice.paper, choice.track, choice.rows)
    return found


def for_experiment(
    numbers: Iterable[PublishedNumber], paper: str, track: str, rows: Mapping[str, str]
) -> dict[Key, PublishedValue]:
    """Return the published values for the rows of an experiment's summary, by (our model, suite, task, metric).

    `rows` maps our models to published models; several of our models may have the same published model. If several
    tables print the same score, the number with the most digits is used. Among equally many digits, the number of the
    later table is used. Some numbers are printed only as a difference from another model (LTG-BERT Table 2); these
    differences are converted to absolute numbers.

    Raises ConfigError, naming the nearest known name, for an unknown paper, track or published row. Raises
    EvaluationError if a printed difference refers to a number that the table does not contain.
    """
    known = list(numbers)
    _check("published.paper", paper, {number.paper for number in known})
    known = [number for number in known if number.paper == paper]
    check_choice(known, track, rows)
    known = [number for number in known if number.track in ("", track)]
    printed = _preferred(known)
    values = {
        key: _value(number)
        for key, number in printed.items()
        if MINUS not in number.metric and not number.metric.startswith(OVER)
    }
    for (row, suite, task, relation), change in printed.items():
        metric, minus, other = relation.partition(MINUS)
        if minus and (row, suite, task, metric) not in values:
            values[row, suite, task, metric] = _changed(change, _reference(known, change, metric, other))
    return {(model, *key[1:]): value for model, row in rows.items() for key, value in values.items() if key[0] == row}


def check_choice(numbers: Iterable[PublishedNumber], track: str, rows: Mapping[str, str]) -> None:
    """Raise ConfigError if `track` is not a track of the paper, or if a published row (a value of `rows`) is not among
    the rows of `numbers`. Each line of the error suggests the nearest name.
    """
    known = list(numbers)
    tracks = {number.track for number in known if number.track} or {""}
    # Check the track first. Otherwise every row of an unknown track would be reported as an unknown row.
    _check("published.track", track, tracks)
    names = {number.row for number in known if number.track in ("", track)}
    lines = []
    for model, row in rows.items():
        try:
            _check(f"published.rows.{model}", row, names)
        except ConfigError as error:
            lines.append(str(error))
    if lines:
        raise ConfigError("\n".join(lines))


def _check(key: str, name: str, known: set[str]) -> None:
    if name not in known:
        raise ConfigError(f"{key}: got {name!r}{alternatives(name, sorted(known - {''}), ALLOWED)}")


def _preferred(numbers: Iterable[PublishedNumber]) -> dict[Key, PublishedNumber]:
    """Return one number for each (row, suite, task, metric): the number with the most digits.

    Among numbers with equally many digits, later tables are preferred to earlier tables, and tables to the text.
    """
    chosen: dict[Key, PublishedNumber] = {}
    for number in numbers:
        key = (number.row, number.suite, number.task, number.metric)
        if key not in chosen or _rank(number) > _rank(chosen[key]):
            chosen[key] = number
    return chosen


def _rank(number: PublishedNumber) -> tuple[float, int]:
    return -number.rounding, int(number.table) if number.table.isdigit() else 0


def _value(number: PublishedNumber) -> PublishedValue:
    return PublishedValue(
        mean=number.value,
        std=number.spread,
        source=number.source,
        comparable=number.comparable,
        note=number.note,
        rounding=number.rounding,
    )


def _reference(numbers: Iterable[PublishedNumber], change: PublishedNumber, metric: str, row: str) -> PublishedNumber:
    """Return the number from which the printed difference `change` is measured. The number is from the same table,
    because other tables round differently.
    """
    for number in numbers:
        if (number.table, number.row, number.suite) == (change.table, row, change.suite) and (
            (number.task, number.metric) == (change.task, metric)
        ):
            return number
    raise EvaluationError(
        f"{change.source}: the row {change.row} prints {change.suite} {change.task} as a difference from the row "
        f"{row}, but the row {row} has no printed {metric}; add this number to the table"
    )


def _changed(change: PublishedNumber, start: PublishedNumber) -> PublishedValue:
    rounding = start.rounding + change.rounding
    remark = f"printed as {change.value:+g} from {start.value:g}"
    return PublishedValue(
        # Round to remove floating-point errors of the sum of two decimal numbers (85.1 - 0.5).
        mean=round(start.value + change.value, 6),
        std=change.spread,
        source=change.source,
        comparable=change.comparable and start.comparable,
        note=f"{remark}; {change.note}" if change.note else remark,
        rounding=rounding,
    )
