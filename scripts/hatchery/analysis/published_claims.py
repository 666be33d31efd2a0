"""Where the text of the reduced-vocabulary paper and its own tables and logs disagree, computed from the latter.

Each claim is told with its place, and beside it what the published numbers say; no number of ours is used. Source of
the list: docs/papers/reduced-vocabulary.md, "Claims that the tables contradict"; that filtered GLUE is not always
higher was found while it was written.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hatchery.analysis.published_curves import DEFAULT_RATE, PublishedRun
from hatchery.analysis.published_flops import REVERSED, Shape, printed_flops, shape_of, shape_text
from hatchery.analysis.published_values import PublishedNumber
from hatchery.analysis.scaling.correlation import p_value_of, pairs_for, spearman
from hatchery.errors import EvaluationError
from hatchery.units import power

UNTRAINED, UNCONSTRAINED = "_untrained", "_unconstrained"
STATED_SETS, STATED_MODELS, STATED_PAIRS = (16, 16, 30), 70, 32
"""Sections 4.1 and 1 and footnote 5 of the reduced-vocabulary paper: models of set-1, set-2 and set-3, all models,
models of the correlation."""


@dataclass(frozen=True)
class Claim:
    """What the text says and where, and what the published numbers say; both are sentences."""

    said: str
    where: str
    found: str


class _Numbers:
    """The printed numbers by place."""

    def __init__(self, numbers: Iterable[PublishedNumber]) -> None:
        self.all = list(numbers)
        self._found = {(n.table, n.row, n.suite, n.task, n.metric): n for n in self.all}

    def number(self, table: str, row: str, suite: str, task: str, metric: str) -> PublishedNumber:
        try:
            return self._found[table, row, suite, task, metric]
        except KeyError:
            raise EvaluationError(
                f"the published values lack {suite} {task} {metric} of {row} (table {table})"
            ) from None

    def glue(self, row: str, suite: str = "rv_glue_filtered") -> float:
        return self.number("3", row, suite, "average", "score_percent").value

    def perplexity(self, row: str, table: str) -> float:
        return self.number(table, row, "perplexity", "test", "perplexity").value

    def rows(self, table: str, suffix: str = "") -> list[str]:
        """Models of a table: those with a suffix, or those without any."""
        names = dict.fromkeys(n.row for n in self.all if n.table == table)
        return [name for name in names if (name.endswith(suffix) if suffix else shape_row(shape_of(name)) == name)]


def shape_row(shape: Sequence[int]) -> str:
    """What the published values call a shape."""
    return "_".join(["rv", *map(str, shape)])


def claims(numbers: Iterable[PublishedNumber], logged: Sequence[PublishedRun]) -> list[Claim]:
    """The claims in the order of the paper. Raises EvaluationError for a number that is not among the published."""
    known = _Numbers(numbers)
    runs = {run.sizes: run for run in logged if run.peak_learning_rate == DEFAULT_RATE}
    tell: tuple[Callable[[_Numbers, dict[Shape, PublishedRun], Sequence[PublishedRun]], Claim], ...] = (
        *(_number_of_models, _pretraining_helps, _filtered_is_higher, _depth, _correlation),
        *(_larger_models, _sizes, _reversed_flops),
    )
    return [claim(known, runs, logged) for claim in tell]


def _number_of_models(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    larger = [row for row in known.rows("7") if row not in known.rows("3")]
    unconstrained = known.rows("4", UNCONSTRAINED)
    small = sum(STATED_SETS)
    total = small + len(larger) + len(unconstrained)
    return Claim(
        f"Over {STATED_MODELS} models of 1 to 100 million parameters are pretrained.",
        "section 1",
        f"The sets of section 4.1 have {', '.join(map(str, STATED_SETS[:-1]))} and {STATED_SETS[-1]} models,"
        f" Table 7 adds {len(larger)}, Table 4 {len(unconstrained)}: {total} in all. Of these {small} have the reduced"
        " vocabulary and less than 20 million parameters.",
    )


def _pretraining_helps(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    rows = known.rows("3")
    scores = {
        row: (
            known.glue(row),
            known.glue(row + UNTRAINED),
        )
        for row in rows
    }
    lower = [
        f"{_name(row)} {ours:.2f} against {random:.2f}" for row, (ours, random) in scores.items() if ours <= random
    ]
    return Claim(
        "For every model shape, the pretrained model is better than its randomly initialised counterpart.",
        "section 5.3",
        f"In Table 3, {len(rows) - len(lower)} of {len(rows)} are; not so {_listed(lower)} (filtered GLUE).",
    )


def _filtered_is_higher(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    rows = known.rows("3")
    scores = {row: (known.glue(row), known.glue(row, "rv_glue")) for row in rows}
    lower = [f"{_name(row)} {kept:.2f} against {whole:.2f}" for row, (kept, whole) in scores.items() if kept <= whole]
    return Claim(
        "Models are consistently better on vocabulary-filtered GLUE.",
        "section 5.3",
        f"In Table 3, {len(rows) - len(lower)} of {len(rows)} are; not so {_listed(lower)}.",
    )


def _depth(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    four, eight = runs[256, 256, 1024, 4, 8], runs[256, 256, 1024, 8, 8]
    scores = [known.glue(shape_row(run.sizes)) for run in (four, eight)]
    return Claim(
        f"GLUE falls from 4 layers to 8 ({scores[0]:.2f} to {scores[1]:.2f}), so more layers do not always help.",
        "abstract, section 5.3",
        f"The logs of January 2023 have the model of 4 layers with {_kind(four)}, that of 8 with {_kind(eight)}: the"
        " two differ in more than their depth.",
    )


def _correlation(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    printed = {
        (suite, metric): known.number("text", "rv_all", "correlation", f"perplexity_and_{suite}", metric).value
        for suite in ("filtered_glue", "unfiltered_glue")
        for metric in ("spearman", "p_value")
    }
    rho, p_value = printed["filtered_glue", "spearman"], printed["filtered_glue", "p_value"]
    other, p_other = printed["unfiltered_glue", "spearman"], printed["unfiltered_glue", "p_value"]
    rows = known.rows("3")
    perplexities = [known.perplexity(row, "3") for row in rows]
    tabulated = [
        spearman(perplexities, [known.glue(row, suite) for row in rows]) for suite in ("rv_glue_filtered", "rv_glue")
    ]
    values = [f"{each.rho:.2f} (p = {each.p_value:.2f})" for each in tabulated]
    return Claim(
        f"Perplexity and filtered GLUE correlate with rho = {rho:.2f}, p = {power(p_value)}, over {STATED_PAIRS}"
        f" models; unfiltered GLUE with {other:.2f}, p = {p_other:.2g}.",
        "section 5.3, footnote 5",
        f"With {STATED_PAIRS} models, rho = {rho:.2f} has p = {power(p_value_of(rho, STATED_PAIRS))}; the printed"
        f" p values belong to {pairs_for(rho, p_value)} and {pairs_for(other, p_other)} models. The {len(rows)} models"
        f" of Table 3 alone give {values[0]} filtered and {values[1]} unfiltered; the others are not tabulated.",
    )


def _larger_models(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    baseline, *larger = known.rows("7")
    best = runs[shape_of(baseline)]
    anchor = next(run for run in logged if run.sizes == (256, 256, 1024, 8, 8) and not run.tied)
    reached = known.number("repository of January 2023", anchor.row, "perplexity", "test", "perplexity").value
    better = sum(known.perplexity(row, "7") < reached for row in larger)
    return Claim(
        f"More parameters do not bring the perplexity below {known.perplexity(baseline, '7'):.2f}, that of a model of"
        " 16 million.",
        "section 5.1, appendix D, Table 7",
        f"The logs have that model with {_kind(best)}, {best.parameters / 1e6:.2f} million parameters and a peak"
        f" learning rate of {power(best.peak_learning_rate)}; the larger models have two matrices and"
        f" {power(anchor.peak_learning_rate)} (launch scripts). The model of {anchor.parameters / 1e6:.2f} million"
        f" that was logged with both reached {reached:.2f}; {better} of the {len(larger)} larger ones are below that.",
    )


def _sizes(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    tied = [runs[shape] for shape in map(shape_of, known.rows("3")) if shape in runs and runs[shape].tied]
    return Claim(
        "Table 3 prints the sizes of models that differ in one hyperparameter each.",
        "section 4.1, Table 3",
        f"The logs have {len(tied)} of its models ({_listed([shape_text(run.sizes) for run in tied])}) with tied"
        " matrices and no projection, all others with two matrices and a projection. Four of the tied ones are printed"
        f" with the size of the untied model (16.24 million, logged {tied[0].parameters / 1e6:.2f}), three with"
        " their own.",
    )


def _reversed_flops(known: _Numbers, runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun]) -> Claim:
    printed = [each for each in printed_flops(known.all) if each.number.table == "3"]
    backwards = [each for each in printed if each.formula == REVERSED]
    unexplained = [each for each in printed if not each.formula]
    first, last = backwards[0], backwards[-1]
    return Claim(
        "Table 3 prints the FLOPs of each model; appendix A prints the formula.",
        "Table 3, appendix A",
        f"The totals follow from the published code, not from the printed formula. Those of the last {len(backwards)}"
        f" rows stand in reverse order ({shape_text(first.shape)} {first.number.value:.2f}, {shape_text(last.shape)}"
        f" {last.number.value:.2f} at 1e15, counted {first.counted['code']:.2f} and {last.counted['code']:.2f}). One"
        f" follows from no formula: {shape_text(unexplained[0].shape)} {unexplained[0].number.value:g}, counted"
        f" {unexplained[0].counted['code']:.2f}.",
    )


def _kind(run: PublishedRun) -> str:
    return "tied matrices and no projection" if run.tied else "two matrices and a projection"


def _name(row: str) -> str:
    return shape_text(shape_of(row))


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, ["; ".join(parts[:-1]), parts[-1]])) if parts else "none"
