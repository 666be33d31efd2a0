"""The drawing of the house (docs/architecture.svg): the packages of the library in storeys, and what stands on what.

The arrows are read from the imports, so the drawing cannot say what the code does not. Only what a package is for and
its place are written here. An arrow that follows from others is left out, and so are those to the ground that nearly
everything stands on.
"""

from collections.abc import Mapping
from pathlib import Path

from hatchery.environments.diagrams import WIDTH, Box, box, diagram, essential
from hatchery.environments.imports import LIBRARY, package_graph
from hatchery.errors import HatcheryError

TITLE = "The packages of scripts/hatchery as storeys; each needs only those below it"
LEGEND = {
    "plan": "planned and run",
    "show": "what people see",
    "model": "models",
    "text": "text, from raw to ids",
    "ground": "what all stand on",
}
BOXES = {
    "environments": Box(0.1, 0, "plan", "packages, lock files"),
    "provenance": Box(1.5, 0, "show", "a number's way back"),
    "cluster": Box(3.1, 0, "plan", "Slurm: checks, logs"),
    "planning": Box(2.4, 1, "plan", "files, jobs, resources"),
    "stages": Box(0.8, 2, "plan", "one record for each stage"),
    "running": Box(2.4, 2, "plan", "a call of Snakemake"),
    "costs": Box(4, 4, "model", "operations, time and disk"),
    "config": Box(0.8, 3, "plan", "YAML files, checked"),
    "sources": Box(0, 4, "text", "raw inputs, downloads"),
    "embedded": Box(1, 4, "text", "generated English"),
    "analysis": Box(2, 4, "show", "measurements to views"),
    "export": Box(3, 3, "model", "models for transformers"),
    "evaluation": Box(2.3, 5, "model", "pairs, tasks, perplexity"),
    "pretraining": Box(3.5, 6, "model", "the training"),
    "translation": Box(2.4, 7, "model", "beam search, BLEU"),
    "modeling": Box(2.4, 8, "model", "families of models"),
    "objectives": Box(3.4, 8, "model", "segments and masking"),
    "runs": Box(4.4, 8, "model", "run folder, checkpoints"),
    "vocabulary": Box(0.9, 9, "text", "word lists, selections"),
    "tokenization": Box(2.6, 9, "text", "documents to ids"),
    "corpora": Box(1.7, 10, "text", "raw files to documents"),
    "rendering": Box(3.3, 10, "show", "tables, pages, drawings"),
    "storage": Box(0, 11, "ground", "files: written whole, compared with checksums, listed in manifests", wide=True),
    "settings": Box(0, 12, "ground", "what a value may be, and the words of an error", wide=True),
}

_ENTRANCES = (
    ("Snakefile, workflow/rules/", "which file is made from which"),
    ("scripts/*.py", "the commands: arguments, and one call of the library"),
)


def architecture_svg(root: Path) -> str:
    """The packages below `root` (scripts/) as an SVG file. Raises HatcheryError where a place does not fit them."""
    graph = package_graph(root)
    packages = {name for name in graph if (root / LIBRARY / name).is_dir()}
    if packages != BOXES.keys():
        different = ", ".join(sorted(packages ^ BOXES.keys()))
        raise HatcheryError(f"environments/architecture.py: BOXES: expected a place for every package: {different}")
    files = ", ".join(sorted(graph.keys() - packages))
    half = WIDTH / 2 - 15
    entrances = [
        box(name, purpose, 10 + half / 2 + index * (half + 10), 30, half)
        for index, (name, purpose) in enumerate(_ENTRANCES)
    ]
    arrows = essential(_above_ground(graph, packages))
    return diagram(TITLE, BOXES, arrows, LEGEND, entrances, f"Beside the packages stand single files: {files}")


def _above_ground(graph: Mapping[str, set[str]], packages: set[str]) -> dict[str, set[str]]:
    """The packages above the ground alone; what one needs through a file beside the packages, it needs itself."""

    def needed(name: str) -> set[str]:
        return set().union(*({low} if low in packages else needed(low) for low in graph[name]))

    drawn = {name for name in packages if not BOXES[name].wide}
    return {name: needed(name) & drawn - {name} for name in drawn}
