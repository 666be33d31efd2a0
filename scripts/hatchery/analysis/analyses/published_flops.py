"""The FLOPs columns of the reduced-vocabulary paper beside every formula that could be meant."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Study
from hatchery.analysis.flops_counts import COUNT_NAMES, FlopsCount
from hatchery.rendering.table import Column, Group, Table

if TYPE_CHECKING:
    from hatchery.analysis.published_flops import PrintedFlops


@dataclass(frozen=True, kw_only=True)
class PublishedFlopsSettings(AnalysisSettings):
    """Whose FLOPs."""

    paper: Literal["reduced_vocabulary"] = "reduced_vocabulary"
    """The paper: a table below config/published/values/."""


def analyse(settings: PublishedFlopsSettings, study: Study) -> Findings:
    """Every printed number with what the formulas give. Raises EvaluationError."""
    from hatchery.analysis.published_flops import printed_flops
    from hatchery.analysis.published_values import read_numbers

    found = printed_flops(read_numbers(study.files[f"values/{settings.paper}"]))
    rows = [_row(each) for each in found]
    tables = [_table(found, number) for number in dict.fromkeys(each.number.table for each in found)]
    missed = [each for each in found if not each.formula]
    names = ", ".join(str(each.shape) for each in missed)
    notes = [
        f"{len(found) - len(missed)} of {len(found)} printed numbers follow to the last digit; not so: {names}.",
        "A training has 9,081,600 sequences. Tables 3 and 7 print 1e15 FLOPs, Table 4 the change in percent from a"
        " vocabulary of 19,010 rows to one of 29,010, which the code counts, with the projection.",
    ]
    return Findings(rows, tables, notes)


def follows_from(each: "PrintedFlops") -> str:
    """How a printed number follows, for people."""
    from hatchery.analysis.published_flops import REVERSED

    if not each.formula:
        return "nothing"
    if each.formula == REVERSED:
        return "the study's code; the last three rows stand in reverse order"
    names: dict[Any, str] = dict(COUNT_NAMES)
    return f"{names[each.formula]}, {'cut off' if each.cut_off else 'rounded'}"


def _row(each: "PrintedFlops") -> dict[str, Any]:
    counted = {str(formula): round(value, 4) for formula, value in each.counted.items()}
    number = each.number
    return {
        **{"table": number.table, "model": number.row, "metric": number.metric, "printed": number.value},
        **counted,
        **{"formula": each.formula, "cut_off": int(each.cut_off)},
    }


def _table(found: list["PrintedFlops"], number: str) -> Table:
    from hatchery.analysis.published_flops import shape_text

    chosen = [each for each in found if each.number.table == number]
    formulas: list[FlopsCount] = list(chosen[0].counted)
    columns = [Column("model (E, H, I, L, A)", words=True), Column("printed")]
    columns += [*(Column(COUNT_NAMES[formula]) for formula in formulas), Column("follows from", words=True)]
    rows = [
        [
            *(shape_text(each.shape), f"{each.number.value:.{_decimals(each)}f}"),
            *(f"{value:.2f}" for value in each.counted.values()),
            follows_from(each),
        ]
        for each in chosen
    ]
    unit = "change of FLOPs in percent" if "change" in chosen[0].number.metric else "1e15 FLOPs"
    return Table(columns, [Group(rows)], f"Table {number} of the paper: {unit}")


def _decimals(each: "PrintedFlops") -> int:
    return 0 if each.number.rounding >= 0.5 else 2


ANALYSIS = Analysis(
    title="The paper's FLOPs, printed and counted",
    version=1,
    settings=PublishedFlopsSettings,
    run=analyse,
    needs=(),
    published=lambda settings: [f"values/{settings.paper}"],
)
