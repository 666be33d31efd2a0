"""Project folders in which tests run the real workflow: links to the code, and a configuration of their own."""

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from forked import run, surroundings

TINY, CAUSAL = (
    tuple(f"results/{name}/{file}" for file in ("index.html", "export/README.md")) for name in ("tiny", "tiny_causal")
)
"""What is made of the tiny experiments of masked models and of a causal one."""
# One process converts a corpus; two processes make the same corpus, but import the library twice more.
ONE_CONVERTS = ("--set-threads", "convert_corpus=1")
LINKED = ("Snakefile", "scripts", "workflow", "envs", "profiles", "slurm", "gpus")
KINDS = ("experiments", "studies")
EMBEDDED = "embedded: {documents: 60, pairs_per_paradigm: 10, examples_per_task: 40, examples_per_suite_task: 12}\n"


def make_project(folder: Path, repository: Path) -> Path:
    """Make a project folder with the shipped configuration, the tiny experiment, and small embedded sources."""
    folder.mkdir(parents=True)
    for name in LINKED:
        (folder / name).symlink_to((repository / name).resolve())
    shutil.copytree(repository / "config", folder / "config")
    shutil.copytree(repository / "tests/workflow/tiny", folder / "config", dirs_exist_ok=True)
    path = folder / "config/config.yaml"
    text = re.sub(r"^embedded:\n(?:  .*\n)+", EMBEDDED, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert EMBEDDED in text, "config.yaml has no embedded block to replace: mend this helper"
    path.write_text(text, encoding="utf-8")
    return folder


def with_fewer_pairs(folder: Path) -> None:
    """Keep three pairs of each of the hundred paradigms; scoring ten takes as long as the rest of a miniature."""
    path = folder / "config/config.yaml"
    text = path.read_text(encoding="utf-8")
    assert EMBEDDED in text
    path.write_text(text.replace(EMBEDDED, EMBEDDED.replace("paradigm: 10", "paradigm: 3")), encoding="utf-8")


def with_smaller_models(folder: Path) -> None:
    """Reduce the miniatures' models to a third of the width and two layers, the minimum for a mixture of layers."""
    smaller = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    for name in ("ltg_demo", "elc_demo", "ltg_demo_bnc", "gpt_bert_demo"):
        path = folder / f"config/models/{name}.yaml"
        text = path.read_text(encoding="utf-8")
        for key, value in smaller.items():
            text, count = re.subn(rf"^{key}: .*$", f"{key}: {value}", text, flags=re.MULTILINE)
            assert count == 1, f"{path} does not set {key}"
        path.write_text(text, encoding="utf-8")


def with_narrow_figures(folder: Path, *names: str) -> None:
    """Make the figures of experiments or studies so narrow that phones need no separate drawings."""
    for name in names:
        (path,) = (path for kind in KINDS if (path := folder / f"config/{kind}/{name}.yaml").exists())
        text = re.sub(r"^figures: .*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        path.write_text(f"{text}figures: {{width_inches: 5}}\n", encoding="utf-8")


def configure(folder: Path, block: str = "cluster", **values: object) -> None:
    """Set keys of a block of the config.yaml of a project folder, such as `cluster`."""
    path = folder / "config/config.yaml"
    head, rest = path.read_text(encoding="utf-8").split(f"\n{block}:\n", 1)
    for key, value in values.items():
        rest, count = re.subn(rf"^  {key}: .*$", f"  {key}: {value}", rest, count=1, flags=re.MULTILINE)
        assert count == 1, f"the block {block} of config.yaml has no key {key}"
    path.write_text(f"{head}\n{block}:\n{rest}", encoding="utf-8")


def snakemake(
    folder: Path,
    *arguments: str,
    timeout: float = 1800,
    forked: bool = True,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run snakemake in `folder` with this interpreter's environment first on PATH, and further variables.

    Unless `forked`, Snakemake and its jobs are new processes, as a user's are.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return (run if forked else subprocess.run)(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=folder,
        env={**os.environ, **(surroundings() if forked else {"PATH": path}), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def rows_of(table: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV table, by column."""
    with table.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def planned_rules(folder: Path, *targets: str) -> dict[str, int]:
    """Return the rules that a dry run for `targets` plans, with their numbers of jobs; each figure counts as a rule.

    Raises AssertionError if Snakemake warns of results that are not up to date.
    """
    result = snakemake(folder, "--dry-run", *targets)
    assert result.returncode == 0, result.stdout + result.stderr
    output = result.stdout + result.stderr
    # Results that Snakemake calls finished must be made from the present files.
    assert "warning: " not in result.stderr, result.stderr
    if "Nothing to be done" in output:
        return {}
    table = output.rsplit("Job stats:", 1)[1]
    rows = re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)
    assert ("total") in dict(rows), output
    figures = re.findall(r"^ +output: results/\w+/figures/(\w+)\.svg", output, flags=re.MULTILINE)
    counts = {name: int(count) for name, count in rows if name not in ("total", "draw_figure")}
    return counts | {f"draw_figure {name}": figures.count(name) for name in figures}


EXPERIMENT, CAUSAL_EXPERIMENT = "config/experiments/tiny.yaml", "config/experiments/tiny_causal.yaml"
FIGURES = {
    "draw_figure learning_curves",
    "draw_figure layer_weights",
    "draw_figure phenomena",
    "draw_figure task_scores",
    "draw_figure layer_contributions",
}
CAUSAL_FIGURES = {
    "draw_figure learning_curves",
    "draw_figure layer_weights",
    "draw_figure output_divergences",
    "draw_figure bias_drift",
    "draw_figure token_frequency",
    "draw_figure word_surprisals",
}

COPY = "config/experiments/second.yaml"
STUDY = "config/studies/side.yaml"
STUDY_PAGE = "results/side/index.html"
STUDY_TEXT = """\
description: Side by side.
experiments: [tiny, second]
analyses:
  comparison: {}
figures: {width_inches: 5}
"""


@contextmanager
def changed(path: Path, old: str, new: str) -> Iterator[None]:
    before = path.read_bytes()
    text = before.decode("utf-8")
    assert old in text, f"{path} no longer holds {old!r}: mend this test"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(before)
