"""The registry of figures: each is one file of this folder, which says what it is (`FIGURE`) and draws it (`draw`).

Snakemake plans with the declarations, and Matplotlib takes half a second to load. So they are read from the files and
not by running them, and all values of a declaration are literals.
"""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hatchery.errors import ConfigError

Need = Literal["curves", "layer_weights", "minimal_pairs", "tasks", "ambiguous_tasks", "probes"]
NEEDS: Mapping[Need, str] = {
    "curves": "pretrained models",
    "layer_weights": "pretrained models",
    "minimal_pairs": "suites of minimal pairs",
    "tasks": "fine-tuning tasks",
    "ambiguous_tasks": "ambiguous tasks of MSGS",
    "probes": "edge probing tasks",
}
"""What figures draw, and what a user calls it; in the order of the page."""
END = "\n)\n"


@dataclass(frozen=True)
class Declaration:
    """What everybody but `draw` needs to know of a figure; its name is that of its file.

    `title` stands in the file and in the report. `caption` is what pages and the report say below the figure, and its
    text for those who cannot see it; the report adds `explanation`, and `published` where the experiment names a paper
    (both in reStructuredText). An experiment has the figure if it has all that it `needs`. Raise the version when the
    figure is drawn anew. A figure without needs is drawn by the stage that has its numbers.
    """

    title: str
    caption: str
    needs: tuple[Need, ...] = ()
    version: int = 1
    explanation: str = ""
    published: str = ""

    def report_text(self, of: str, published: bool) -> str:
        """What the report of Snakemake says of the figure of an experiment, in reStructuredText."""
        parts = [f"**{self.title} of** ``{of}``. {self.caption}", self.explanation, self.published if published else ""]
        return "\n\n".join(part.strip() for part in parts if part)


@cache
def declared_figures() -> dict[str, Declaration]:
    """The figures of this folder by name: in the order of what they need, then by name."""
    found = {path.stem: declaration_in(path) for path in sorted(Path(__file__).parent.glob("*.py"))}
    kept = {name: declaration for name, declaration in found.items() if declaration is not None}
    places = {need: place for place, need in enumerate(NEEDS)}
    return dict(sorted(kept.items(), key=lambda item: ([places[need] for need in item[1].needs], item[0])))


def declaration_in(path: Path) -> Declaration | None:
    """The value of `FIGURE` in a file; None where it has none. Raises ValueError where it is not made of literals."""
    _, found, rest = path.read_text(encoding="utf-8").partition("\nFIGURE = Declaration(\n")
    if not found:
        return None
    call = ast.parse(f"Declaration(\n{rest.partition(END)[0]}{END}", mode="eval").body
    assert isinstance(call, ast.Call)
    return Declaration(**{str(keyword.arg): _literal(keyword, path) for keyword in call.keywords})


def _literal(keyword: ast.keyword, path: Path) -> Any:
    try:
        return ast.literal_eval(keyword.value)
    except ValueError as error:
        raise ValueError(f"{path}: FIGURE: {keyword.arg}: expected a literal, got {ast.unparse(keyword)}") from error


def figures_drawn_from(has: Collection[str]) -> dict[str, Declaration]:
    """The figures that can be drawn from results of these kinds (`NEEDS`)."""
    return {
        name: declaration
        for name, declaration in declared_figures().items()
        if declaration.needs and set(declaration.needs) <= set(has)
    }


def require_figure(name: str, has: Collection[str], of: str) -> Declaration:
    """The declaration of a figure of the experiment `of`. Raises ConfigError where it lacks what the figure needs."""
    declaration = declared_figures()[name]
    lacking = [NEEDS[need] for need in declaration.needs if need not in has]
    if lacking:
        drawn = ", ".join(figures_drawn_from(has))
        raise ConfigError(f"the figure {name!r} of {of!r}: there are no {' and no '.join(lacking)}; it has: {drawn}")
    return declaration
