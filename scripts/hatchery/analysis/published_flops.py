"""Which formula, and which rounding, gives each FLOPs total that the reduced-vocabulary study prints.

Tables 3 and 7 print totals in 1e15 for 9,081,600 sequences, some rounded and some cut off; Table 4 prints changes in
percent from 19,010 rows to 29,010 (docs/papers/reduced-vocabulary.md, "FLOPs"). Nothing is assumed: every formula is
tried on every number.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hatchery.analysis.published_values import PublishedNumber
from hatchery.errors import EvaluationError
from hatchery.modeling.paper_flops import (
    STUDY_SEQUENCES,
    STUDY_UNCONSTRAINED_ROWS,
    StudyFormula,
    reduced_vocabulary_flops,
)

Shape = tuple[int, int, int, int, int]
_ROW = re.compile(r"rv_(\d+)_(\d+)_(\d+)_(\d+)_(\d+)(_\w+)?")
_FORMULAS: tuple[StudyFormula, ...] = ("code", "code_without_projection", "printed", "complete")
TOTAL, CHANGE = "flops_1e15", "flops_relative_change_percent"
REVERSED = "reversed"


@dataclass(frozen=True)
class PrintedFlops:
    """A printed number with what the formulas give for its model.

    `formula` and `cut_off` say how it follows; `formula` is empty where it follows from none, and "reversed" where it
    is what the code gives for the model in its place when three rows are read backwards. For a change, the formula is
    that of the smaller vocabulary; the larger one is counted by the code.
    """

    number: PublishedNumber
    shape: Shape
    counted: dict[StudyFormula, float]
    formula: StudyFormula | str
    cut_off: bool = False


def shape_of(row: str) -> Shape:
    """(E, H, I, L, A) of a published row that is called after them. Raises EvaluationError for any other."""
    found = _ROW.fullmatch(row)
    if found is None:
        raise EvaluationError(f"the published row {row!r} is not called after its sizes, as in 'rv_256_64_1024_8_8'")
    embedding, hidden, inner, layers, heads = (int(size) for size in found.groups()[:5])
    return embedding, hidden, inner, layers, heads


def shape_text(shape: Sequence[int]) -> str:
    """The sizes as the paper prints them."""
    return f"({', '.join(map(str, shape))})"


def study_flops_1e15(shape: Shape, formula: StudyFormula) -> float:
    """The total of a whole training in 1e15."""
    return reduced_vocabulary_flops(*shape, formula) * STUDY_SEQUENCES / 1e15


def printed_flops(numbers: Iterable[PublishedNumber]) -> list[PrintedFlops]:
    """Every printed total and change among the numbers, in their order."""
    found = [
        _explained(number, {formula: _counted(number, formula) for formula in _FORMULAS})
        for number in numbers
        if number.metric in (TOTAL, CHANGE)
    ]
    return _with_reversed(found)


def _counted(number: PublishedNumber, formula: StudyFormula) -> float:
    shape = shape_of(number.row)
    if number.metric == TOTAL:
        return study_flops_1e15(shape, formula)
    larger = reduced_vocabulary_flops(*shape, "code", vocabulary_rows=STUDY_UNCONSTRAINED_ROWS)
    return 100 * (larger / reduced_vocabulary_flops(*shape, formula) - 1)


def _explained(number: PublishedNumber, counted: dict[StudyFormula, float]) -> PrintedFlops:
    shape, unit = shape_of(number.row), 2 * number.rounding
    for formula, value in counted.items():
        for cut_off in (False, True):
            whole = math.floor(value / unit) if cut_off else round(value / unit)
            if whole == round(number.value / unit):
                return PrintedFlops(number, shape, counted, formula, cut_off)
    return PrintedFlops(number, shape, counted, "")


def _with_reversed(found: list[PrintedFlops]) -> list[PrintedFlops]:
    """The last three totals of Table 3 are printed in the reverse order of their models."""
    last = [place for place, each in enumerate(found) if (each.number.table, each.number.metric) == ("3", TOTAL)][-3:]
    if len(last) < 3:
        return found
    backwards = [
        _explained(found[place].number, found[other].counted) for place, other in zip(last, reversed(last), strict=True)
    ]
    if not all(each.formula == "code" for each in backwards) or all(found[place].formula for place in last):
        return found
    changed = dict(zip(last, backwards, strict=True))
    return [
        PrintedFlops(each.number, each.shape, each.counted, REVERSED, changed[place].cut_off)
        if place in changed
        else each
        for place, each in enumerate(found)
    ]
