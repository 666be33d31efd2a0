"""The drawing of the house (docs/architecture.svg): the packages of the library in storeys, and what stands on what.

The arrows are read from the imports, so the drawing cannot say what the code does not. Only what a package is for and
its place are written here. An arrow that follows from others is left out, and so are those to the ground that nearly
everything stands on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from hatchery.environments.imports import LIBRARY, package_graph
from hatchery.errors import HatcheryError

# The lowest storeys, over the whole width: from the top to the bottom.
GROUND = ("storage", "settings")
SORTS = {
    "plan": "planned and run",
    "show": "what people see",
    "model": "models",
    "text": "text, from raw to ids",
    "ground": "what all stand on",
}


@dataclass(frozen=True)
class Box:
    """A package: its place (columns may be fractions, row 0 is the highest), its sort (of SORTS) and what it is for."""

    column: float
    row: int
    sort: str
    purpose: str


BOXES = {
    "environments": Box(0.1, 0, "plan", "packages, lock files"),
    "provenance": Box(1.5, 0, "show", "a number's way back"),
    "cluster": Box(3.1, 0, "plan", "Slurm: checks, logs"),
    "planning": Box(2.4, 1, "plan", "files, jobs, resources"),
    "stages": Box(0.8, 2, "plan", "one record for each stage"),
    "running": Box(2.4, 2, "plan", "a call of Snakemake"),
    "costs": Box(4, 2, "model", "operations, time and disk"),
    "config": Box(0.8, 3, "plan", "YAML files, checked"),
    "sources": Box(0, 4, "text", "raw inputs, downloads"),
    "embedded": Box(1, 4, "text", "generated English"),
    "analysis": Box(2, 4, "show", "measurements to views"),
    "export": Box(3, 4, "model", "models for transformers"),
    "evaluation": Box(2.3, 5, "model", "pairs, tasks, perplexity"),
    "pretraining": Box(3.5, 6, "model", "the training"),
    "modeling": Box(2.4, 7, "model", "families of models"),
    "objectives": Box(3.4, 7, "model", "segments and masking"),
    "runs": Box(4.4, 7, "model", "run folder, checkpoints"),
    "vocabulary": Box(0.9, 8, "text", "word lists, selections"),
    "tokenization": Box(2.6, 8, "text", "documents to ids"),
    "corpora": Box(1.7, 9, "text", "raw files to documents"),
    "rendering": Box(3.3, 9, "show", "tables, pages, drawings"),
    "storage": Box(0, 10, "ground", "files: written whole, compared with checksums, listed in manifests"),
    "settings": Box(0, 11, "ground", "what a value may be, and the words of an error"),
}

_WIDTH, _HEIGHT = 174, 42
_STEP_X, _STEP_Y = 184, 74
_LEFT, _TOP = 100, 96
_COLUMNS = 5.4
_ENTRANCES = (
    ("Snakefile, workflow/rules/", "which file is made from which"),
    ("scripts/*.py", "the commands: arguments, and one call of the library"),
)
# Light and dark follow the reader's settings; each has a background of its own, because a page need not follow them.
_STYLE = """
text { font-family: sans-serif; fill: #1a1a1a; text-anchor: middle; }
.name { font-size: 15px; font-weight: bold; }
.purpose { font-size: 12px; }
.legend { font-size: 13px; text-anchor: start; }
.paper { fill: #ffffff; }
.box { stroke: #555555; stroke-width: 1; fill: #ffffff; }
.arrow { stroke: #767676; stroke-width: 1.6; fill: none; }
.head { fill: #767676; }
.plan { fill: #dbe8fa; } .show { fill: #ebddf7; } .model { fill: #d8f0dc; }
.text { fill: #fbeacb; } .ground { fill: #e6e6e6; }
@media (prefers-color-scheme: dark) {
text { fill: #f2f2f2; }
.paper { fill: #161b22; }
.box { stroke: #9a9a9a; fill: #161b22; }
.arrow { stroke: #a0a0a0; } .head { fill: #a0a0a0; }
.plan { fill: #1f3a63; } .show { fill: #4a2c66; } .model { fill: #1d4a2a; }
.text { fill: #5c4312; } .ground { fill: #3a3a3a; }
}
"""


def architecture_svg(root: Path) -> str:
    """The packages below `root` (scripts/) as an SVG file. Raises HatcheryError where a place does not fit them."""
    graph = package_graph(root)
    packages = {name for name in graph if (root / LIBRARY / name).is_dir()}
    if packages != BOXES.keys():
        different = ", ".join(sorted(packages ^ BOXES.keys()))
        raise HatcheryError(f"environments/architecture.py: BOXES: expected a place for every package: {different}")
    arrows = essential(_without_files(graph, packages))
    for upper, lower in arrows:
        if BOXES[upper].row >= BOXES[lower].row:
            raise HatcheryError(
                f"environments/architecture.py: BOXES: {upper} needs {lower}, which must stand lower; move one of them"
            )
    files = sorted(graph.keys() - packages)
    height = _TOP + _STEP_Y * (max(box.row for box in BOXES.values()) + 1) + 16
    width = _LEFT + _STEP_X * (_COLUMNS - 0.4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="title">',
        '<title id="title">The packages of scripts/hatchery as storeys; each needs only those below it</title>',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>',
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>',
        *_entrances(width),
        *(_arrow(BOXES[upper], BOXES[lower]) for upper, lower in arrows),
        *(_box(name, box, width) for name, box in BOXES.items()),
        *_files(files, width, height),
        *_legend(width),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def essential(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The pairs (needs, is needed) of a graph without circles that do not follow from the others, sorted."""

    def below(name: str) -> set[str]:
        return graph[name].union(*map(below, graph[name]))

    return sorted((name, low) for name in graph for low in graph[name] - set().union(*map(below, graph[name])))


def _without_files(graph: Mapping[str, set[str]], packages: set[str]) -> dict[str, set[str]]:
    """The packages above the ground alone; what one needs through a file beside the packages, it needs itself."""

    def needed(name: str) -> set[str]:
        return set().union(*({low} if low in packages else needed(low) for low in graph[name]))

    drawn = packages - set(GROUND)
    return {name: needed(name) & drawn - {name} for name in drawn}


def _place(box: Box) -> tuple[float, float]:
    """The middle of the upper edge."""
    return _LEFT + _STEP_X * box.column, _TOP + _STEP_Y * box.row


def _box(name: str, box: Box, width: float) -> str:
    middle, top = _place(box)
    wide: float = _WIDTH
    if box.sort == "ground":
        middle, wide = width / 2, width - 20
    return (
        f'<rect class="box {box.sort}" x="{middle - wide / 2:g}" y="{top:g}" width="{wide:g}" height="{_HEIGHT}" '
        'rx="6"/>'
        f'<text class="name" x="{middle:g}" y="{top + 18:g}">{name}</text>'
        f'<text class="purpose" x="{middle:g}" y="{top + 34:g}">{escape(box.purpose)}</text>'
    )


def _arrow(upper: Box, lower: Box) -> str:
    """From the lower edge of a box to the upper edge of another, leaving and arriving upright."""
    (left, top), (right, bottom) = _place(upper), _place(lower)
    top += _HEIGHT
    # Where arrows of several boxes arrive, they come from their own sides.
    shift = max(-50.0, min(50.0, (left - right) / 4))
    left, right = left - shift, right + shift
    bend = (bottom - top) / 2
    return (
        f'<path class="arrow" marker-end="url(#head)" d="M{left:g},{top:g} C{left:g},{top + bend:g} '
        f'{right:g},{bottom - bend:g} {right:g},{bottom - 2:g}"/>'
    )


def _entrances(width: float) -> list[str]:
    """What calls the library: the workflow and its commands."""
    parts = []
    half = (width - 30) / 2
    for index, (name, purpose) in enumerate(_ENTRANCES):
        left = 10 + index * (half + 10)
        parts.append(
            f'<rect class="box" x="{left:g}" y="30" width="{half:g}" height="{_HEIGHT}" rx="6" stroke-dasharray="5 3"/>'
            f'<text class="name" x="{left + half / 2:g}" y="48">{name}</text>'
            f'<text class="purpose" x="{left + half / 2:g}" y="64">{escape(purpose)}</text>'
        )
    return parts


def _files(files: list[str], width: float, height: float) -> list[str]:
    names = ", ".join(files)
    return [
        f'<text class="purpose" x="{width / 2:g}" y="{height - 22:g}">Beside the packages stand single files: {names}'
        "</text>"
    ]


def _legend(width: float) -> list[str]:
    parts = []
    room = (width - 20) / len(SORTS)
    for index, (sort, words) in enumerate(SORTS.items()):
        left = 10 + index * room
        parts.append(
            f'<rect class="box {sort}" x="{left:g}" y="7" width="14" height="14"/>'
            f'<text class="legend" x="{left + 20:g}" y="19">{words}</text>'
        )
    return parts
