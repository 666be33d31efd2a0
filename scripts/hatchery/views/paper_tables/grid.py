"""A table on its way to paper: blocks of lines of values, with the rule for bold face and the text of a value.

Markdown and LaTeX draw the same grid, so that both say the same. Numbers are rounded as the rest of the tables do
(Python's formatting of the four decimals of `summary.csv`); what is best is judged on the numbers as shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hatchery.analysis.aggregates import least_of_best

PUBLISHED = "published"
OURS = "ours"
BoldRule = Literal["best", "within_deviation"]
"""What is bold: the best number, or all that are within one standard deviation of it."""


@dataclass(frozen=True)
class Digits:
    """How numbers are shown: times `scale`, with so many decimals, and with a sign where they are changes."""

    decimals: int = 1
    deviation_decimals: int = 1
    scale: float = 1.0
    signed: bool = False
    grouped: bool = False

    def mean(self, value: float) -> str:
        """The number as text; zero has no sign."""
        text = _plain(value * self.scale, self.decimals, self.grouped)
        return f"+{text}" if self.signed and float(text.replace(",", "")) > 0 else text

    def deviation(self, value: float) -> str:
        """The deviation as text."""
        return _plain(value * self.scale, self.deviation_decimals, self.grouped)


def _plain(value: float, decimals: int, grouped: bool) -> str:
    # Without the inner rounding, a scale of 0.01 would turn some ties of the last digit by a binary fraction.
    text = f"{round(value, 10):{',' if grouped else ''}.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


@dataclass(frozen=True)
class Value:
    """One number in its place.

    `mean` is None where no run gave a number. `n` runs are in it, of which `n_failed` failed; `n_without_number` are
    not. All are 0 for printed numbers. `note` is the remark on a printed number; one that is not `comparable` has its
    reason there. `bold` marks the best; a `reference`, from which the others of its column are changes, competes with
    them as a change of 0.
    """

    mean: float | None
    digits: Digits
    deviation: float | None = None
    n: int = 0
    n_failed: int = 0
    n_without_number: int = 0
    comparable: bool = True
    note: str = ""
    bold: bool = False
    reference: bool = False
    lower_is_better: bool = False

    @property
    def mean_text(self) -> str:
        """The number as shown; a dash where there is none."""
        return "-" if self.mean is None else self.digits.mean(self.mean)

    @property
    def deviation_text(self) -> str:
        """The deviation as shown; empty where there is none."""
        return "" if self.mean is None or self.deviation is None else self.digits.deviation(self.deviation)

    @property
    def failures_text(self) -> str:
        """`2 failed, 1 without a number`; empty where all is well."""
        failed = f"{self.n_failed} failed" if self.n_failed else ""
        without = f"{self.n_without_number} without a number" if self.n_without_number else ""
        return ", ".join(filter(None, (failed, without)))


@dataclass(frozen=True)
class Line:
    """One line of a table: its label, whose numbers they are (`source`, and `model` for ours), and the values."""

    label: str
    source: str
    values: tuple[Value | None, ...]
    model: str = ""

    @property
    def runs(self) -> str:
        """Numbers of runs behind the values of ours: `5`, or `5-9`; empty for printed numbers."""
        counts = [value.n for value in self.values if value is not None and value.n + value.n_without_number]
        if not counts:
            return ""
        low, high = min(counts), max(counts)
        return str(low) if low == high else f"{low}-{high}"


@dataclass(frozen=True)
class Block:
    """Lines below one heading, which may be empty."""

    heading: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class PaperTable:
    """A whole table. `label_heading` stands above the labels, `headings` above the values.

    Of a table `with_times` the paper prints how long models trained, which the page of an experiment adds of ours.
    """

    paper: str
    number: str
    caption: str
    label_heading: str
    headings: tuple[str, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    with_times: bool = False

    @property
    def name(self) -> str:
        """The beginning of its file names: `elc_bert_table_07`."""
        return f"{self.paper}_table_{int(self.number):02d}"

    @property
    def lines(self) -> list[Line]:
        """The lines of all blocks."""
        return [line for block in self.blocks for line in block.lines]

    @property
    def has_ours(self) -> bool:
        """Whether any number of ours is in it: without one there is nothing to set beside the paper's."""
        return any(line.source != PUBLISHED and any(line.values) for line in self.lines)


def with_best_bold(lines: Sequence[Line], rule: BoldRule = "best") -> list[Line]:
    """The lines with the best number of every column bold: among the printed ones, and apart from them among ours.

    Numbers that look the same are the same: ties are all bold. "within_deviation" adds what is at most the deviation of
    the best below it; of several that are best, the largest deviation counts (in LTG-BERT's Table 3, 92.3 on SST-2 is
    bold beside 92.8 ± 0.5 and 92.8 ± 0.4). A number without rivals is not bold.
    """
    columns: dict[tuple[bool, int], list[tuple[float, float]]] = {}
    for line in lines:
        for column, value in enumerate(line.values):
            if value is not None and (strength := _strength(value)) is not None:
                reach = float(value.deviation_text or 0) if rule == "within_deviation" else 0.0
                columns.setdefault((line.source == PUBLISHED, column), []).append((strength, reach))
    least = {key: least_of_best(found) for key, found in columns.items()}

    def bold(value: Value | None, key: tuple[bool, int]) -> Value | None:
        strength = None if value is None else _strength(value)
        if value is None or strength is None or len(columns[key]) < 2:
            return value
        return replace(value, bold=strength >= least[key])

    return [
        replace(line, values=tuple(bold(value, (line.source == PUBLISHED, c)) for c, value in enumerate(line.values)))
        for line in lines
    ]


def _strength(value: Value) -> float | None:
    """The number as shown, higher being better; None where there is none."""
    if value.mean is None:
        return None
    shown = 0.0 if value.reference else float(value.mean_text.replace(",", ""))
    return -shown if value.lower_is_better else shown


def remarks(lines: Iterable[Line], headings: Sequence[str], comparable: bool) -> list[str]:
    """The remarks on printed numbers that are (not) comparable, each once, with the places that it is about."""
    places: dict[str, list[str]] = {}
    for line in lines:
        for heading, value in zip(headings, line.values, strict=True):
            if value is None or not value.note or value.comparable != comparable:
                continue
            # A reason is told whole; mere remarks are told one by one, because many numbers share them.
            for remark in [value.note] if not comparable else value.note.split("; "):
                places.setdefault(remark, []).append(f"{line.label}, {heading}")
    return [f"{note} ({_named(where)})" for note, where in places.items()]


def _named(places: list[str]) -> str:
    distinct = list(dict.fromkeys(places))
    return "; ".join(distinct) if len(distinct) <= 3 else f"{len(distinct)} numbers"
