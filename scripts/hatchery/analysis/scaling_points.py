"""What fits are made of: the development losses of runs against their cost, tokens and sizes, ours and published ones.

Our FLOPs are counted as a study asks. A curve knows the matrix products so far; another count of the whole training is
shared out in proportion, which is exact where all sequences have one length.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path

from hatchery.analysis.flops_counts import FlopsCount, training_flops
from hatchery.analysis.published_curves import PublishedRun
from hatchery.analysis.tidy_tables import CURVES, RUNS, Row, read_frame
from hatchery.modeling.flops import STUDY_BATCH_SIZE


@dataclass(frozen=True)
class ScalingPoint:
    """One evaluation of a model; `loss` is in nats, `tokens` and `flops` are those seen and spent by then."""

    model: str
    step: int
    flops: float
    tokens: float
    parameters: float
    loss: float

    def along(self, axis: str) -> float:
        """`flops`, `tokens` or `parameters`."""
        return float(getattr(self, axis))


def distinct_runs(path: Path, experiments: Collection[str] = (), within: Sequence[str] = ()) -> list[Row]:
    """The pretrainings in `runs.parquet`, of some experiments or of all, each model once.

    Several experiments may name a model of the same settings, which is trained once. `within` are columns in whose
    values rows must agree to count as one. Raises ManifestError for an altered table.
    """
    rows = read_frame(path, RUNS, experiment=experiments or None).drop_nulls("steps")
    return rows.unique(["manifest", *within], keep="first", maintain_order=True).to_dicts()


def points_of_runs(
    runs: Path, curves: Path, count: FlopsCount, experiments: Collection[str] = (), most_parameters: int | None = None
) -> list[ScalingPoint]:
    """The points of trained models in the order of the tables; of some experiments, or of all where none is named.

    A point is the mean of a model's seeds, at the steps at which all of them were evaluated: of the lowest losses,
    those of the luckiest seeds would be the points that laws are fitted to. Runs without that count of FLOPs are left
    out. Raises ManifestError for an altered table.
    """
    totals = {
        run["run"]: (run["model"], run["parameters"], total, run["training_flops"])
        for run in distinct_runs(runs, experiments)
        if run["training_flops"] and (most_parameters is None or run["parameters"] <= most_parameters)
        if (total := training_flops(run, count)) is not None
    }
    columns = ("run", "step", "flops", "tokens", "development_loss")
    seeds, measured = Counter(model for model, *_ in totals.values()), dict[tuple[str, int], list[ScalingPoint]]()
    for run, step, flops, tokens, loss in (
        read_frame(curves, CURVES, experiment=experiments or None).select(columns).iter_rows()
    ):
        if loss is not None and run in totals and step > 0:
            model, parameters, total, products = totals[run]
            point = ScalingPoint(model, step, total * flops / products, tokens, parameters, loss)
            measured.setdefault((model, step), []).append(point)
    return [_mean(points) for (model, _), points in measured.items() if len(points) == seeds[model]]


def _mean(points: Sequence[ScalingPoint]) -> ScalingPoint:
    flops, tokens, loss = (
        fsum(values) / len(points)
        for values in zip(*((point.flops, point.tokens, point.loss) for point in points), strict=True)
    )
    return replace(points[0], flops=flops, tokens=tokens, loss=loss)


def published_points(logged: Iterable[PublishedRun]) -> list[ScalingPoint]:
    """The points of published curves; FLOPs by the study's code, tokens with padding, as the study has them."""
    return [
        ScalingPoint(
            *(run.name, updates),
            flops=updates * STUDY_BATCH_SIZE * run.flops_per_sequence("code"),
            tokens=run.tokens(updates),
            parameters=run.parameters,
            loss=loss,
        )
        for run in logged
        for updates, loss in run.curve
    ]
