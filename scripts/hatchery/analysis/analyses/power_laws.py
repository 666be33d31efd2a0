"""Power laws between loss and FLOPs, tokens or parameters of compute-optimal models, and break points between two laws.

Source: "Honey, I Shrunk the Language" (the reduced-vocabulary study), Section 5.1 and Figures 1 to 3. If `paper` is
set, the learning curves that its authors published are analysed in the same way, and the fits printed in the paper are
shown next to ours.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import (
    Analysis,
    Findings,
    Numbers,
    Study,
    paper_files,
)
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.flops_counts import COUNT_NAMES
from hatchery.analysis.scaling_settings import PowerLawsSettings
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Cell, Column, Group, Table
from hatchery.units import power

if TYPE_CHECKING:
    from hatchery.analysis.compute_optimal import ScalingPoint
    from hatchery.analysis.scaling_laws import BreakPoint, Law, Laws

OURS, LOGGED, PRINTED = "ours", "published curves", "printed"
AXIS_NAMES = {"flops": "FLOPs", "tokens": "tokens", "parameters": "parameters"}


def analyse(settings: PowerLawsSettings, study: Study) -> Findings:
    """Return findings with the compute-optimal points (FLOPs, loss), the fitted laws, and the break points between
    laws, for the study's models and for the published curves.

    Raises ManifestError for an altered file, and EvaluationError for an invalid file.
    """
    from hatchery.analysis.compute_optimal import points_of_runs, published_points, why_no_points
    from hatchery.analysis.published_curves import read_published_curves
    from hatchery.analysis.scaling_laws import scaling_laws

    tables = study.tables
    clouds = {
        OURS: points_of_runs(
            tables["runs"], tables["curves"], settings.flops, settings.experiments, settings.most_parameters
        )
    }
    printed: dict[tuple[str, str], float] = {}
    if settings.paper:
        clouds[LOGGED] = published_points(read_published_curves(study.files[f"curves/{settings.paper}"]))
        printed = printed_laws(study, settings.paper)
    found = {source: scaling_laws(points, settings) for source, points in clouds.items()}
    rows = [row for source, laws in found.items() for row in _rows(source, clouds[source], laws)]
    shown = [_laws_table(settings, found, printed), *_breaks(found), *_regions(clouds, found)]
    apart = why_no_points(tables["runs"], settings.experiments)
    return Findings(rows, shown, [*_notes(settings, clouds, bool(apart)), *apart])


def printed_laws(study: Study, paper: str) -> dict[tuple[str, str], float]:
    """Return the parameters that the paper `paper` prints for its fits, by (name of the fit, name of the parameter)."""
    from hatchery.analysis.published_values import read_numbers

    numbers = read_numbers(study.files[f"values/{paper}"])
    return {(number.task, number.metric): number.value for number in numbers if number.suite == "scaling"}


def rounded(value: float | None, digits: int = 7) -> float | None:
    """Round to `digits` significant digits, because the digits after them differ between machines."""
    return None if value is None else float(f"{value:.{digits - 1}e}")


_EMPTY: Numbers = dict.fromkeys(
    (
        *("kind", "source", "model", "step", "flops", "tokens", "parameters", "loss", "optimal"),
        *("axis", "region", "above", "up_to", "points", "exponent", "exponent_low", "exponent_high", "coefficient"),
        *("r_squared", "gain"),
    )
)


def _rows(source: str, points: Sequence["ScalingPoint"], laws: "Laws") -> Iterable[Numbers]:
    """Yield rows for the points (evaluations of a model), the fitted laws, and the break points between laws. All rows
    have the same columns; `kind` names the type of a row.
    """
    optimal = set(laws.optimal)
    for place, point in enumerate(points):
        yield _EMPTY | {
            **{"kind": "point", "source": source, "model": point.model, "step": point.step},
            **{name: rounded(point.along(name)) for name in AXIS_NAMES},
            **{"loss": rounded(point.loss), "optimal": int(place in optimal)},
        }
    for each in laws.laws:
        row = {"kind": "law", "source": source, "axis": each.axis, "region": each.region, "points": each.points}
        row |= {"above": each.bounds.above, "up_to": each.bounds.up_to}
        if each.law is not None:
            row |= {name: rounded(getattr(each.law, name), 6) for name in ("exponent", "coefficient", "r_squared")}
        if each.interval is not None:
            row |= {"exponent_low": rounded(each.interval.low, 6), "exponent_high": rounded(each.interval.high, 6)}
        yield _EMPTY | row
    if (found := laws.found_break) is not None:
        yield _EMPTY | {
            **{"kind": "break", "source": source, "axis": "flops", "points": found.single.points},
            **{"above": rounded(found.below), "up_to": rounded(found.above), "gain": rounded(found.gain, 4)},
        }


def _laws_table(settings: PowerLawsSettings, found: dict[str, "Laws"], printed: dict[tuple[str, str], float]) -> Table:
    groups = []
    for place, law in enumerate(found[OURS].laws or found[next(reversed(found))].laws):
        rows = [_law_row(source, laws.laws[place]) for source, laws in found.items() if laws.laws]
        # Name of the fit in the file of published values, such as `flops_above_break` or `tokens`.
        name = f"{law.axis}_{law.region}" if law.axis == "flops" else law.axis
        if (name, "exponent") in printed:
            values = {metric: printed.get((name, metric)) for metric in _PRINTED_FORMS}
            texts = ["-" if value is None else f"{value:{_PRINTED_FORMS[metric]}}" for metric, value in values.items()]
            rows.append([PRINTED, "-", texts[0], "-", *texts[1:]])
        groups.append(Group(rows, _heading(law)))
    interval = f"{100 * settings.confidence:g} % interval"
    headings = ("points", "exponent", interval, "C", "R²")
    columns = [Column("source", words=True), *(Column(text) for text in headings)]
    return Table(columns, groups, "Power laws, loss = C x^exponent, through the compute-optimal points")


_PRINTED_FORMS = {"exponent": ".4f", "coefficient": ".3g", "r_squared": ".4g"}


def _heading(law: "Law") -> str:
    from hatchery.analysis.scaling_laws import WHOLE

    if law.region == WHOLE:
        return f"loss against {AXIS_NAMES[law.axis]}, all compute-optimal points"
    bounds = [
        f"above {power(law.bounds.above)}" if law.bounds.above else "",
        f"up to {power(law.bounds.up_to)}" if law.bounds.up_to else "",
    ]
    return f"loss against {AXIS_NAMES[law.axis]}, {readable(law.region)} ({', '.join(filter(None, bounds))})"


def _law_row(source: str, each: "Law") -> list[str]:
    if each.law is None:
        return [source, str(each.points), *["-"] * 4]
    low_high = "-" if each.interval is None else f"{each.interval.low:.4f} to {each.interval.high:.4f}"
    law = each.law
    return [source, str(each.points), f"{law.exponent:.4f}", low_high, f"{law.coefficient:.3g}", f"{law.r_squared:.4f}"]


def _breaks(found: dict[str, "Laws"]) -> list[Table]:
    rows = [_break_row(source, laws.found_break) for source, laws in found.items() if laws.found_break is not None]
    if not rows:
        return []
    columns = [Column("source", words=True), Column("break between (FLOPs)"), Column("gain"), Column("exponent below")]
    columns += [Column("exponent above"), Column("a break?", words=True)]
    return [Table(columns, [Group(rows)], "The best division of the compute-optimal points into two power laws")]


def _regions(clouds: dict[str, list["ScalingPoint"]], found: dict[str, "Laws"]) -> list[Table]:
    from hatchery.analysis.compute_optimal import regions_of_one_model

    rows = []
    for source, laws in found.items():
        best = [clouds[source][place] for place in laws.optimal]
        for places in regions_of_one_model([point.model for point in best]):
            first, last = best[places[0]], best[places[-1]]
            bounds = f"{power(first.flops)} to {power(last.flops)}"
            rows.append([source, first.model, f"{first.parameters:,.0f}", str(len(places)), bounds])
    if not rows:
        return []
    columns = [Column("source", words=True), Column("model", words=True), Column("parameters"), Column("points")]
    return [Table([*columns, Column("FLOPs")], [Group(rows)], "Models that are compute-optimal at consecutive points")]


def _break_row(source: str, found: "BreakPoint") -> list[str | Cell]:
    exponents = [f"{law.exponent:.4f}" for law in (found.left, found.right)]
    verdict = "yes" if found.decisive else "no"
    return [source, f"{power(found.below)} and {power(found.above)}", f"{found.gain:.1f}", *exponents, verdict]


def _notes(settings: PowerLawsSettings, clouds: dict[str, list["ScalingPoint"]], apart: bool) -> list[str]:
    from hatchery.analysis.scaling_laws import DECISIVE

    bins = "the bins of January 2023" if settings.bins == "january_2023" else f"{settings.number_of_bins} quantiles"
    notes = [
        "In each bin of FLOPs, the compute-optimal point is the evaluation with the lowest development loss; "
        f"bins: {bins}.",
        f"Method of counting our FLOPs: {COUNT_NAMES[settings.flops]}. Our tokens are counted without padding; "
        "numbers of parameters include all matrices.",
        "Laws are fitted by least squares of the loss (Levenberg-Marquardt), not of its logarithm; R² refers to the "
        "loss.",
        "The loss of a model is the mean over its seeds.",
        f"Intervals: {settings.draws:,} times, models are drawn with replacement, each with all of its "
        "evaluations. Compute-optimal points and laws are computed for each draw. A dash means that there "
        "are too few points or models.",
        "Gain: decrease of the Bayesian information criterion if two laws are fitted instead of one. A gain "
        f"above {DECISIVE:g} counts as a break.",
    ]
    if not clouds[OURS] and not apart:
        notes.append("The study has no development losses of trained models yet.")
    if LOGGED in clouds:
        notes.append(
            f"Published curves: {len({point.model for point in clouds[LOGGED]})} runs in the history of the "
            "authors' repository (January 2023). FLOPs are counted by the authors' code, tokens include "
            "padding, and losses count padding as labels. Only the exponents of these curves can be compared "
            "with ours, not the coefficients."
        )
    return notes


ANALYSIS = Analysis(
    title="Power laws",
    version=1,
    settings=PowerLawsSettings,
    run=analyse,
    needs=(tables("runs", "curves"),),
    published=lambda settings: paper_files(settings.paper),
)
