"""The registry of figures: each is one file of this folder, which says what it is (`FIGURE`) and draws it (`draw`)."""

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from hatchery.analysis.analyses.analysis import analysis_names, read_numbers
from hatchery.errors import ConfigError
from hatchery.rendering.figures import Declaration, declaration_in

Tables = Mapping[str, Path]
"""What a figure is given: the tidy tables that it needs, of one experiment or of several, and `published` values.

Of an analysis that it needs, it is given the manifest of every entry, as `<analysis>/<entry>`.
"""

PUBLISHED = "published"

# What legends call the marks that the page explains.
PUBLISHED_LABEL, FAILED_LABEL = "published mean", "failed run"

Need = Literal[
    "runs",
    "curves",
    "layer_weights",
    "minimal_pairs",
    "tasks",
    "ambiguous_tasks",
    "probes",
    "divergences",
    "bias_drift",
    "frequencies",
    "translations",
    "translated_tests",
    "regularised_starts",
    "sweeps",
]
NEEDS: Mapping[Need, tuple[str, str]] = {
    "runs": ("runs", "pretrained models"),
    "curves": ("curves", "pretrained models"),
    "layer_weights": ("layers", "pretrained models"),
    "minimal_pairs": ("measurements", "suites of minimal pairs"),
    "tasks": ("measurements", "fine-tuning tasks"),
    "ambiguous_tasks": ("measurements", "ambiguous tasks of MSGS"),
    "probes": ("layers", "edge probing tasks"),
    "divergences": ("curves", "runs with `divergences: true`"),
    "bias_drift": ("curves", "runs with `bias_drift: true`"),
    "frequencies": ("measurements", "splits with `perplexity.frequency_bin_nats`"),
    "translations": ("curves", "models that translate"),
    "translated_tests": ("measurements", "test sets under `translation`"),
    "regularised_starts": ("measurements", "runs on test sets that start from runs with `unigram_penalty`"),
    "sweeps": ("measurements", "sweeps or grids"),
}
"""What figures draw: the tidy table where it stands, and what a user calls it; in the order of the page.

Besides, a figure may need an analysis by its name; then it is one of studies that have such an entry.
"""


def numbers_of(tables: Tables, analysis: str) -> dict[str, list[dict[str, str]]]:
    """What an analysis found, as texts, by the entries of a study that name it. Raises ManifestError."""
    parts = {name: name.partition("/") for name in tables}
    return {parts[name][2]: read_numbers(path) for name, path in tables.items() if parts[name][0] == analysis}


@cache
def declared_figures() -> dict[str, Declaration]:
    """The figures that `draw_figure` draws, by name: in the order of what they need, then by name."""
    found = {path.stem: declaration_in(path) for path in sorted(Path(__file__).parent.glob("*.py"))}
    drawn = {name: declaration for name, declaration in found.items() if declaration is not None and declaration.needs}
    places = {name: place for place, name in enumerate((*NEEDS, *analysis_names()))}
    return dict(sorted(drawn.items(), key=lambda item: ([places[need] for need in item[1].needs], item[0])))


def tables_of(figure: Declaration) -> list[str]:
    """The tidy tables in which a figure finds what it needs."""
    return sorted({table for need, (table, _) in NEEDS.items() if need in figure.needs})


def figures_drawn_from(has: Collection[str]) -> dict[str, Declaration]:
    """The figures that can be drawn from results of these kinds (`NEEDS`)."""
    return {name: figure for name, figure in declared_figures().items() if set(figure.needs) <= set(has)}


def require_figure(name: str, has: Collection[str], of: str) -> Declaration:
    """The declaration of a figure of the experiment or study `of`. Raises ConfigError where that lacks a need."""
    figure = declared_figures()[name]
    words: dict[str, str] = {need: words for need, (_, words) in NEEDS.items()}
    lacking = [words.get(need, f"analyses {need!r}") for need in figure.needs if need not in has]
    if lacking:
        drawn = ", ".join(figures_drawn_from(has))
        raise ConfigError(f"the figure {name!r} of {of!r}: there are no {' and no '.join(lacking)}; it has: {drawn}")
    return figure
