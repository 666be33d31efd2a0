"""The drawing of the stages (docs/workflow.svg), from raw sources to the page, with the arrows of Snakemake's graph.

Several targets are asked for, because no experiment has all stages. An arrow that follows from others is left out.
"""

import re
import subprocess
from pathlib import Path

from hatchery.environments.diagrams import Box, diagram, essential
from hatchery.errors import HatcheryError

TITLE = "The stages from raw sources to the page of an experiment"
LEGEND = {"text": "text, from raw to ids", "model": "models and their evaluation", "show": "what people see"}
TARGETS = (
    "results/demo/index.html",
    "results/demo_suites/index.html",
    "results/demo_suites/export/README.md",
    "results/strict_small_mini/index.html",
    "results/tokens/reduced_vocabulary/reduced_vocabulary/manifest.json",
)
# Drawn as one: several tasks in one job.
SAME = {"finetune_tasks": "finetune"}
BOXES = {
    "generate_embedded_sources": Box(2, 0, "text", "text and tasks of the demo"),
    "register_source": Box(2, 1, "text", "names, sizes, checksums"),
    "convert_corpus": Box(0.9, 2, "text", "raw files to documents"),
    "build_vocabulary": Box(3, 2, "text", "a word list"),
    "sample_corpus": Box(0.2, 3, "text", "a share of a corpus"),
    "select_text": Box(3, 3, "text", "text within the words"),
    "group_sequences": Box(3, 4, "text", "selected text, joined"),
    "describe_corpus": Box(0.4, 5, "show", "the card of a corpus"),
    "train_tokenizer": Box(2.35, 5, "text", "from the documents"),
    "encode_corpus": Box(2.35, 6, "text", "documents to ids"),
    "pretrain": Box(2.35, 7, "model", "once for each seed"),
    "score_minimal_pairs": Box(1.25, 8, "model", "without training"),
    "measure_perplexity": Box(2.35, 8, "model", "of held-out text"),
    "finetune": Box(3.4, 8, "model", "and probe, on tasks"),
    "fill_sentences": Box(4.4, 8, "model", "words for gaps"),
    "collect_measurements": Box(1.9, 9, "show", "all numbers, in tidy tables"),
    "summarise": Box(1.4, 10, "show", "means and verdicts"),
    "write_cost": Box(2.85, 10, "show", "before any run"),
    "write_tables": Box(0.4, 11, "show", "those of the papers"),
    "write_provenance": Box(1.4, 11, "show", "each number's way back"),
    "draw_figure": Box(2.4, 11, "show", "one job for each"),
    "write_run_card": Box(3.4, 11, "show", "a page for each model"),
    "export_model": Box(4.4, 11, "model", "for transformers"),
    "write_page": Box(1.9, 12, "show", "of the experiment"),
    "list_exported_models": Box(4.3, 12, "show", "how to load each"),
}


def workflow_svg(project: Path) -> str:
    """The stages as an SVG file, as Snakemake plans them in `project`. Raises HatcheryError where it plans nothing."""
    graph: dict[str, set[str]] = {}
    for target in TARGETS:
        for upper, lower in _planned(target, project):
            graph.setdefault(SAME.get(upper, upper), set()).add(SAME.get(lower, lower))
    for names in list(graph.values()):
        for name in names:
            graph.setdefault(name, set())
    if unknown := sorted(graph.keys() ^ BOXES.keys()):
        raise HatcheryError(
            f"environments/workflow_diagram.py: BOXES: expected every planned stage: {', '.join(unknown)}"
        )
    return diagram(TITLE, BOXES, essential(graph), LEGEND)


def _planned(target: str, project: Path) -> list[tuple[str, str]]:
    """The arrows of Snakemake's graph of rules."""
    command = ["snakemake", "--rulegraph", "dot", "--", target]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise HatcheryError(f"{target}: Snakemake plans nothing: {ended.stderr.strip().splitlines()[-1]}")
    names = dict(re.findall(r'(\d+)\[label = "(\w+)', ended.stdout))
    return [(names[upper], names[lower]) for upper, lower in re.findall(r"(\d+) -> (\d+)", ended.stdout)]
