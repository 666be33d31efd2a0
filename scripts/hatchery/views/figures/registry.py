"""The registry of figures: each is one file of this folder, which says what it is (`FIGURE`) and draws it (`draw`).

Snakemake plans with the declarations, and Matplotlib takes half a second to load. So they are read from the files
without running them, and all values of a declaration are literals.
"""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import analysis_names, read_numbers
from hatchery.analysis.settings import FigureSettings
from hatchery.errors import ConfigError
from hatchery.typed import build
from hatchery.views.figures.needs import NEEDS

Tables = Mapping[str, Path]
"""What a figure is given: the tidy tables that it needs, of one experiment or of several, and `published` values.

Of an analysis that it needs, it is given the manifest of every entry, as `<analysis>/<entry>`.
"""

PUBLISHED = "published"

# What legends call the marks that the page explains.
PUBLISHED_LABEL, FAILED_LABEL = "published mean", "failed run"

BEGINNING, END = "\nFIGURE = Declaration(\n", "\n)\n"


@dataclass(frozen=True)
class Declaration:
    """What everybody but the code that draws it needs to know of a figure; its name is that of its file.

    `title` stands in the file. `caption` is what pages say below the figure, and its text for those who cannot see it;
    sentences of `also` follow where they are true. `explanation` can be folded out below (paragraphs, in which `this`
    is code). `published` says that the figure marks published values. `needs` are the kinds of results that it draws.
    One that tells its models apart shows the first of many; `all_models` says that it shows all, `by_set` that it does
    so where its models are in sets of a grid, whose colours they have then.
    Raise the version when the code of the figure draws something else.
    """

    title: str
    caption: str
    needs: tuple[str, ...]
    all_models: bool = False
    by_set: bool = False
    version: int = 1
    explanation: str = ""
    published: bool = False
    also: Mapping[str, str] = field(default_factory=dict)

    def caption_with(self, *true: str) -> str:
        """The caption with those of the sentences of `also` that are true."""
        return " ".join([self.caption, *(self.also[name] for name in true)])

    @property
    def page_text(self) -> str:
        """All that a page says of the figure."""
        return f"{self.caption}\n{self.explanation}"

    @property
    def paragraphs(self) -> list[str]:
        """The explanation by paragraphs."""
        return [" ".join(part.split()) for part in self.explanation.split("\n\n") if part.strip()]


def declaration_in(path: Path) -> Declaration | None:
    """The value of `FIGURE` in a file; None where it has none. Raises ValueError where it is not made of literals."""
    _, found, rest = path.read_text(encoding="utf-8").partition(BEGINNING)
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


def read_settings(settings: Mapping[str, Any]) -> FigureSettings:
    """Return the settings of a figure, of the class that its needs ask for. Raises ConfigError for wrong settings."""
    needs = declared_figures()[settings["figure"]].needs if settings.get("figure") else ()
    asks = [NEEDS[need].asks for need in needs if need in NEEDS]
    classes = [ask.settings for ask in asks if ask is not None] or [FigureSettings]
    cls = classes[0] if len(classes) == 1 else dataclass(frozen=True)(type(FigureSettings.__name__, (*classes,), {}))
    return build(cls, settings, "draw_figure")


def tables_of(figure: Declaration) -> list[str]:
    """The tidy tables in which a figure finds what it needs."""
    return sorted({NEEDS[need].table for need in figure.needs if need in NEEDS})


def figures_drawn_from(has: Collection[str]) -> dict[str, Declaration]:
    """The figures that can be drawn from results of these kinds (`NEEDS`)."""
    return {name: figure for name, figure in declared_figures().items() if set(figure.needs) <= set(has)}


def require_figure(name: str, has: Collection[str], of: str) -> Declaration:
    """The declaration of a figure of the experiment or study `of`. Raises ConfigError where that lacks a need."""
    figure = declared_figures()[name]
    lacking = [NEEDS[need].name if need in NEEDS else f"analyses {need!r}" for need in figure.needs if need not in has]
    if lacking:
        drawn = ", ".join(figures_drawn_from(has))
        raise ConfigError(f"the figure {name!r} of {of!r}: there are no {' and no '.join(lacking)}; it has: {drawn}")
    return figure
