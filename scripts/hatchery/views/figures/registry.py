"""The registry of figures: each figure is one file of this folder with a declaration (`FIGURE`) and a function `draw`.

Planning needs only the declarations, but importing a figure imports Matplotlib, which takes half a second. Declarations
are therefore parsed from the source files, and all their values are literals.
"""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hatchery.analysis.analyses.analysis import analysis_names, read_numbers
from hatchery.analysis.settings import FigureSettings
from hatchery.errors import ConfigError
from hatchery.typed import build
from hatchery.views.figures.needs import NEEDS

Tables = Mapping[str, Path]
"""Input files of a figure by name: the tidy tables that it needs, and the tables of published values (`published` and,
for further papers, `published/<paper>`).

If the figure needs an analysis, the manifests of its entries in a study have the keys `<analysis>/<entry>`.
"""

PUBLISHED = "published"

# Legend labels of two kinds of plot markers, which the page explains.
PUBLISHED_LABEL, FAILED_LABEL = "published mean", "failed run"

BEGINNING, END = "\nFIGURE = Declaration(\n", "\n)\n"


@dataclass(frozen=True)
class Declaration:
    """Declaration of a figure for other modules; the name of the figure is the name of its file.

    - `title`: title in the SVG file
    - `caption`: text below the figure on pages, and alternative text for screen readers
    - `explanation`: paragraphs of a folded text below the caption, with code in backquotes
    - `published`: True if the figure shows published values
    - `needs`: kinds of results (`NEEDS`) or analyses that the figure draws
    - `all_models`: True if the figure draws all models, even if there are many; by default, only the first 40 models
      are drawn (`draw_figure.MOST_DRAWN`)
    - `by_set`: True if the figure also draws all models of a study or experiment with more than 12 models
      (`MOST_BY_NAME`), if all models are in grid sets (groups of models); colours then show the grid sets
    - `version`: increase this number when the code of the figure changes the drawing
    """

    title: str
    caption: str
    needs: tuple[str, ...]
    all_models: bool = False
    by_set: bool = False
    version: int = 1
    explanation: str = ""
    published: bool = False

    @property
    def page_text(self) -> str:
        """Return the text that a page prints with the figure."""
        return f"{self.caption}\n{self.explanation}"

    @property
    def paragraphs(self) -> list[str]:
        """Return the paragraphs of the figure's explanation."""
        return [" ".join(part.split()) for part in self.explanation.split("\n\n") if part.strip()]


def declaration_in(path: Path) -> Declaration | None:
    """Return the value of `FIGURE` in a file; None if the file has no `FIGURE`.

    Raises ValueError if a value is not a literal.
    """
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
    """Return the rows of each file `numbers.csv` of an analysis. A key is the name of an entry under `analyses` in the
    study's configuration; the value contains the rows of the file that this entry produced.

    Raises ManifestError for an altered table.
    """
    parts = {name: name.partition("/") for name in tables}
    return {parts[name][2]: read_numbers(path) for name, path in tables.items() if parts[name][0] == analysis}


@cache
def declared_figures() -> dict[str, Declaration]:
    """Return the figures that `draw_figure` draws, sorted by their needs (kinds of results in the order of NEEDS, then
    analyses) and name.
    """
    found = {path.stem: declaration_in(path) for path in sorted(Path(__file__).parent.glob("*.py"))}
    drawn = {name: declaration for name, declaration in found.items() if declaration is not None and declaration.needs}
    places = {name: place for place, name in enumerate((*NEEDS, *analysis_names()))}
    return dict(sorted(drawn.items(), key=lambda item: ([places[need] for need in item[1].needs], item[0])))


def read_settings(settings: Mapping[str, Any]) -> FigureSettings:
    """Return the settings of a figure, as an object of the settings class that the figure's needs define.

    Raises ConfigError for wrong settings.
    """
    needs = declared_figures()[settings["figure"]].needs if settings.get("figure") else ()
    asks = [NEEDS[need].asks for need in needs if need in NEEDS]
    classes = [ask.settings for ask in asks if ask is not None] or [FigureSettings]
    cls = classes[0] if len(classes) == 1 else dataclass(frozen=True)(type(FigureSettings.__name__, (*classes,), {}))
    return build(cls, settings, "draw_figure")


def tables_of(figure: Declaration) -> list[str]:
    """Return the names of the tidy tables that a figure needs."""
    return sorted({NEEDS[need].table for need in figure.needs if need in NEEDS})


def figures_drawn_from(has: Collection[str]) -> dict[str, Declaration]:
    """Return the figures whose needed results are all in `has`, which contains kinds of results (keys of NEEDS) and
    names of analyses.
    """
    return {name: figure for name, figure in declared_figures().items() if set(figure.needs) <= set(has)}


def require_figure(name: str, has: Collection[str], of: str) -> Declaration:
    """Return the declaration of the figure `name` for the experiment or study named `of`. `has` contains its kinds of
    results (keys of NEEDS) and its analyses.

    Raises ConfigError if the figure needs a result that `has` does not contain.
    """
    figure = declared_figures()[name]
    lacking = [NEEDS[need].name if need in NEEDS else f"analyses {need!r}" for need in figure.needs if need not in has]
    if lacking:
        drawn = ", ".join(figures_drawn_from(has))
        raise ConfigError(
            f"the figure {name!r} of {of!r}: there are no {' and no '.join(lacking)}; {of!r} has the figures: {drawn}"
        )
    return figure
