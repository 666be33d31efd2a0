"""Incremental cost-effectiveness: the reduction of perplexity per additional 1e9 FLOPs, for each increase of a model
size.

Source: "Honey, I Shrunk the Language" (the reduced-vocabulary study), Section 4.4, Equation 1 and Table 2. A positive
ratio means that the perplexity decreases. FLOPs are counted for one training sequence, without the projection from
embedding size to hidden size. The unit (1e9 FLOPs) is inferred, because the paper's text mentions both billions and
millions.

If `paper` is set, two further kinds of ratios are shown: the ratios that the paper prints, and ratios computed from the
perplexities that its authors logged (docs/papers/reduced-vocabulary.md, "Cost-effectiveness").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from hatchery.analysis.analyses.analysis import (
    Analysis,
    AnalysisSettings,
    Findings,
    Numbers,
    PartsOfStudy,
    Study,
    paper_files,
)
from hatchery.analysis.analyses.needs import tables
from hatchery.analysis.comparability import not_compared
from hatchery.analysis.flops_counts import COUNT_NAMES, FlopsCount
from hatchery.errors import ConfigError
from hatchery.evaluation.basis import differing
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Column, Group, Table
from hatchery.settings.fields import Unique
from hatchery.settings.problems import alternatives
from hatchery.sums import plain_sum

GIGA = 1e9


@dataclass(frozen=True)
class Option:
    """A model: its `sizes`, its cost (FLOPs per training sequence) and its outcome (perplexity)."""

    name: str
    sizes: Mapping[str, int]
    flops: float
    perplexity: float


@dataclass(frozen=True)
class Step:
    """Two models that differ in a single size, such as the number of layers; `size` names this size. The larger model
    has the next larger value of this size.
    """

    size: str
    smaller: Option
    larger: Option

    @property
    def ratio(self) -> float | None:
        """Reduction of perplexity from the smaller to the larger model, per 1e9 additional FLOPs in one training
        sequence. None if the larger model does not have more FLOPs.
        """
        cost = (self.larger.flops - self.smaller.flops) / GIGA
        return (self.smaller.perplexity - self.larger.perplexity) / cost if cost > 0 else None


def steps(options: Sequence[Option], sizes: Sequence[str]) -> list[Step]:
    """Return all pairs of models that differ in exactly one size, such as the number of layers. `sizes` names the sizes
    that may differ. The two values of this size are neighbours among the models whose other sizes are equal. Pairs are
    in the order of `sizes`.

    Among models with equal sizes, only the first is used. If several series of models vary the same size, their pairs
    are in the order of the first models of the series.
    """
    distinct = {tuple(option.sizes.values()): option for option in reversed(options)}
    first = [option for option in options if distinct[tuple(option.sizes.values())] is option]
    found = []
    for size in sizes:
        rows: dict[tuple[int, ...], list[Option]] = {}
        for option in first:
            same = tuple(value for name, value in option.sizes.items() if name != size)
            rows.setdefault(same, []).append(option)
        for row in rows.values():
            ordered = sorted(row, key=lambda option: option.sizes[size])
            found += [Step(size, *pair) for pair in pairwise(ordered)]
    return found


SIZE_COLUMNS = {
    "embedding_size": "embedding_size",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_hidden_layers": "layers",
    "num_attention_heads": "attention_heads",
}
"""The sizes of a model in the order of the reduced-vocabulary paper (E, H, I, L, A), and their columns in
`runs.parquet`.
"""
OURS, LOGGED, PRINTED = "ours", "published logs", "printed"

Size = Literal["embedding_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"]


@dataclass(frozen=True, kw_only=True)
class CostEffectivenessSettings(AnalysisSettings):
    """Settings of the analysis: models, the sizes that vary, and the measures of cost and outcome."""

    experiments: PartsOfStudy = ()
    """Experiments of the study; an empty list means all. Models of different experiments are never compared."""
    sets: Annotated[tuple[str, ...], Unique()] = ()
    """Names of the grid sets (`sets` of a grid of runs) whose models are compared. An empty list means all models."""
    sizes: tuple[Size, ...] = ("hidden_size", "num_hidden_layers", "embedding_size", "intermediate_size")
    """Model sizes that are varied, in the order of the table."""
    flops: FlopsCount = "code_without_projection"
    """Method of counting the FLOPs of our models. The study omits the projection from E (embeddings) to H (hidden
    states) only in this analysis.
    """
    split: str = "test"
    """Split whose perplexity is the outcome. If any model has no perplexity of this split, the last development
    perplexity of each model's training is used for all models.
    """
    paper: str = ""
    """Name of the paper whose published values (tables in config/published/) are shown next to our values. If empty, no
    published values are shown.
    """


def check(settings: CostEffectivenessSettings, study: Study) -> None:
    """Raise ConfigError if the setting `sets` contains a name that is not the name of a grid set: an entry of `sets` in
    the grid of one of the study's experiments.
    """
    known = list(dict.fromkeys(study.sets.values()))
    for name in settings.sets:
        if name not in known:
            raise ConfigError(f"sets: got {name!r}, expected the name of a grid set{alternatives(name, known)}")


def analyse(settings: CostEffectivenessSettings, study: Study) -> Findings:
    """Return the cost-effectiveness ratios of all pairs of models that differ in one size. Raises ManifestError for an
    altered file, and EvaluationError for an invalid file.
    """
    ours, split, apart = _our_options(settings, study)
    printed = _printed(settings, study)
    found: dict[tuple[str, str], list[Step]] = {
        (OURS, experiment): steps(options, settings.sizes) for experiment, options in ours.items()
    }
    if settings.paper:
        logged = steps(_logged_options(settings, study), settings.sizes)
        found[LOGGED, settings.paper] = [step for step in logged if _place(step) in printed]
    rows = [_row(source, experiment, step) for (source, experiment), each in found.items() for step in each] + [
        {
            **_row(PRINTED, settings.paper, step),
            "ratio": printed[key],
            "smaller_perplexity": None,
            "larger_perplexity": None,
        }
        for step in found.get((LOGGED, settings.paper), ())
        if (key := _place(step)) in printed
    ]
    return Findings(
        rows, [_table(settings, found, printed)] if rows else [], [*_notes(settings, split, bool(rows)), *apart]
    )


def _our_options(settings: CostEffectivenessSettings, study: Study) -> tuple[dict[str, list[Option]], str, list[str]]:
    """Return our models by experiment, the split on which their perplexity was measured, and notes on excluded
    experiments. A perplexity is the mean over a model's seeds.

    An experiment is excluded if its perplexities are not comparable.
    """
    from hatchery.analysis.compute_optimal import distinct_runs
    from hatchery.analysis.flops_counts import flops_per_sequence
    from hatchery.analysis.tidy_tables import MEASUREMENTS, read_frame
    from hatchery.evaluation.evaluation import TidyRow

    runs = [
        run
        for run in distinct_runs(study.tables["runs"], settings.experiments, within=["experiment"])
        if run["steps"] and (not settings.sets or study.sets.get(run["model"]) in settings.sets)
    ]
    measured = read_frame(study.tables["measurements"], MEASUREMENTS, kind=("perplexity",), task=(settings.split,))
    perplexities = measured.filter(measured["metric"] == "perplexity")
    values, bases = (dict(perplexities.select("run", column).iter_rows()) for column in ("value", "basis"))
    everywhere = bool(runs) and all(values.get(run["run"]) is not None for run in runs)
    by_model: dict[tuple[str, str], list[tuple[TidyRow, float]]] = {}
    used: dict[str, list[str]] = {}
    for run in runs:
        value = values[run["run"]] if everywhere else run["development_perplexity"]
        if value is not None:
            by_model.setdefault((run["experiment"], run["model"]), []).append((run, value))
            basis = bases[run["run"]] if everywhere else run["development_basis"]
            used.setdefault(run["experiment"], []).append(basis or "")
    apart = {name: differing(found) for name, found in used.items()}
    options: dict[str, list[Option]] = {}
    for (experiment, model), seeds in by_model.items():
        run = seeds[0][0]
        flops = flops_per_sequence(run, settings.flops)
        if flops is not None and not apart[experiment]:
            sizes = {size: run[column] for size, column in SIZE_COLUMNS.items()}
            mean = plain_sum(value for _, value in seeds) / len(seeds)
            options.setdefault(experiment, []).append(Option(model, sizes, flops, mean))
    split = settings.split if everywhere else "development"
    named = {f"{split} perplexity of {name}": different for name, different in apart.items()}
    return options, split, not_compared(named)


def _logged_options(settings: CostEffectivenessSettings, study: Study) -> list[Option]:
    """Return those models of the reduced-vocabulary study's published logs that were trained with the default learning
    rate and have the sizes of a model in the study's Table 3.
    """
    from hatchery.analysis.published_curves import DEFAULT_RATE, read_published_curves, shape_row
    from hatchery.analysis.published_values import read_numbers

    numbers = read_numbers(study.files[f"values/{settings.paper}"])
    perplexities = {
        n.row: n.value for n in numbers if (n.suite, n.metric) == ("perplexity", "perplexity") and not n.table.isdigit()
    }
    tabulated = {n.row for n in numbers if n.table == "3"}
    return [
        Option(
            shape_row(run.sizes),
            dict(zip(SIZE_COLUMNS, run.sizes, strict=True)),
            run.flops_per_sequence("code_without_projection"),
            perplexities[run.row],
        )
        for run in read_published_curves(study.files[f"curves/{settings.paper}"])
        if run.peak_learning_rate == DEFAULT_RATE and shape_row(run.sizes) in tabulated and run.row in perplexities
    ]


def _printed(settings: CostEffectivenessSettings, study: Study) -> dict[tuple[str, tuple[int, ...]], float]:
    """Return the cost-effectiveness ratios that the reduced-vocabulary study prints for pairs of models. A key is (name
    of the size that differs, all sizes of the larger model).
    """
    from hatchery.analysis.published_curves import shape_of
    from hatchery.analysis.published_values import read_numbers

    if not settings.paper:
        return {}
    numbers = read_numbers(study.files[f"values/{settings.paper}"])
    return {(n.task, shape_of(n.row)): n.value for n in numbers if n.suite == "cost_effectiveness"}


def _place(step: Step) -> tuple[str, tuple[int, ...]]:
    """Return the key under which `_printed` returns the cost-effectiveness ratio of a pair of models."""
    return step.size, tuple(step.larger.sizes.values())


def _row(source: str, experiment: str, step: Step) -> Numbers:
    return {
        **{"source": source, "experiment": experiment, "size": step.size},
        **{"from": step.smaller.sizes[step.size], "to": step.larger.sizes[step.size]},
        **{"smaller": step.smaller.name, "larger": step.larger.name},
        "smaller_perplexity": round(step.smaller.perplexity, 6),
        "larger_perplexity": round(step.larger.perplexity, 6),
        "gflops": round((step.larger.flops - step.smaller.flops) / GIGA, 6),
        "ratio": None if step.ratio is None else round(step.ratio, 4),
    }


def _table(
    settings: CostEffectivenessSettings,
    found: Mapping[tuple[str, str], Sequence[Step]],
    printed: Mapping[tuple[str, tuple[int, ...]], float],
) -> Table:
    """Return a table with a row for each pair of models, and a column of cost-effectiveness ratios for each source: our
    experiments, the logs of the reduced-vocabulary study, and the ratios printed in its paper.
    """
    places: dict[tuple[str, tuple[int, ...], tuple[int, ...]], dict[tuple[str, str], Step]] = {}
    for key, each in found.items():
        for step in each:
            place = (step.size, tuple(step.smaller.sizes.values()), tuple(step.larger.sizes.values()))
            places.setdefault(place, {})[key] = step
    groups = []
    for size in settings.sizes:
        rows = []
        for (varied, smaller, larger), by_source in places.items():
            if varied != size:
                continue
            index = list(SIZE_COLUMNS).index(size)
            ratios = [by_source[key].ratio if key in by_source else None for key in found]
            if settings.paper:
                ratios.append(printed.get((size, larger)))
            texts = ["-" if ratio is None else f"{ratio:.4f}" for ratio in ratios]
            rows.append([f"({', '.join(map(str, larger))})", f"{smaller[index]} to {larger[index]}", *texts])
        if rows:
            groups.append(Group(rows, readable(size).removeprefix("num ")))
    several = sum(source == OURS for source, _ in found) > 1
    sources = [f"ours, {name}" if source == OURS and several else source for source, name in found]
    columns = [Column("model (E, H, I, L, A)", words=True), Column("step", words=True)]
    columns += [Column(text) for text in (*sources, *([PRINTED] if settings.paper else []))]
    return Table(columns, groups, "Reduction of perplexity per 1e9 FLOPs of a training sequence (ICER)")


def _notes(settings: CostEffectivenessSettings, split: str, any_rows: bool) -> list[str]:
    notes = [
        "The two models of a row differ in a single size. ICER is the perplexity of the smaller model minus "
        "the perplexity of the larger model, divided by the difference of their FLOPs per training sequence, "
        "in 1e9. A positive ICER is a reduction of perplexity.",
        f"Our models: {split} perplexity, mean over seeds; FLOPs: {COUNT_NAMES[settings.flops]}.",
    ]
    if settings.sets:
        names = ", ".join(name.replace("_", "-") for name in settings.sets)
        notes.append(
            "Only our models of these grid sets (entries of `sets` in the grid of an experiment) are "
            f"compared: {names}."
        )
    if not any_rows:
        notes.append("No two compared models differ in only one size.")
    if settings.paper:
        notes.append(
            "Published logs: the perplexities that the authors logged, before rounding, and FLOPs by their "
            "code without the projection. All printed values follow from these numbers. The authors' "
            "perplexity counts padding; ours does not. The pairs with the largest H, L and E compare an untied "
            "model with a tied model."
        )
    return notes


ANALYSIS = Analysis(
    title="Cost-effectiveness of model sizes",
    version=1,
    settings=CostEffectivenessSettings,
    run=analyse,
    needs=(tables("runs", "measurements"),),
    published=lambda settings: paper_files(settings.paper),
    check=check,
)
