"""A kind of evaluation is added by two files of the library, and is planned, run, collected and shown."""

import shutil
from pathlib import Path

import polars as pl
import pytest
from projects import changed, rows_of, snakemake

pytestmark = pytest.mark.slow

STAGE = '''"""The stage `count_letters`: how many entries of a model's vocabulary have a letter."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.evaluation import Evaluated, Evaluation, TidyRow, measured
from hatchery.stage import Shared, Stage


def letter_rows(evaluated: Evaluated) -> list[TidyRow]:
    """The share of the vocabulary, in percent."""
    share = json.loads(evaluated.manifest.file("share.json").read_text())["share"]
    return [measured("letters", evaluated.name, "task", "share_percent", 100 * share)]


@Stage(
    version=1,
    settings=lambda project, letter: {"letter": letter},
    shared=Shared("letters", ("letter",)),
    evaluation=Evaluation(
        place=50,
        title="Letters of the vocabulary",
        note="Percent of its entries.",
        asked=lambda experiment, run: experiment.letters,
        rows=letter_rows,
    ),
    environment="evaluation",
    runs_on="cpu",
    memory_mb=500,
    minutes=1,
)
def count_letters(settings: Mapping[str, Any], model: Path, run: StageRun) -> None:
    """Write `share.json`."""
    entries = json.loads((model.parent / "tokenizer.json").read_text())["model"]["vocab"]
    share = sum(settings["letter"] in entry for entry in entries) / len(entries)
    write_json(run.add_output(run.folder / "share.json"), {"share": share})
'''
KEY = '''    letters: tuple[str, ...] = ()
    """Letters that are counted in the vocabulary."""
'''


def test_a_kind_of_evaluation_is_a_stage_with_its_record_and_a_key(
    finished_project: Path, tmp_path: Path, repository: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_project, folder, symlinks=True)
    (folder / "scripts").unlink()
    shutil.copytree(repository / "scripts", folder / "scripts")
    shutil.copy(repository / "CITATION.cff", folder)
    before = {path: path.read_bytes() for path in (folder / "scripts").rglob("*.py")}
    (folder / "scripts/hatchery/evaluation/stages/count_letters.py").write_text(STAGE, encoding="utf-8")
    keys = folder / "scripts/hatchery/experiment/experiment_file.py"
    anchor = "    baselines: Annotated[tuple[BaselineName"
    keys.write_text(keys.read_text(encoding="utf-8").replace(anchor, KEY + anchor), encoding="utf-8")
    assert [path for path, content in before.items() if path.read_bytes() != content] == [keys]

    table = folder / "results/tiny/measurements.parquet"
    earlier = pl.read_parquet(table)
    models = {path: path.stat().st_mtime_ns for path in (folder / "results/models").glob("*/manifest.json")}
    with changed(folder / "config/experiments/tiny.yaml", "minimal_pairs:", "letters: [e, q]\nminimal_pairs:"):
        done = snakemake(folder, "--cores", "2", "--", "results/tiny/index.html", forked=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    # Beside each other: those of four models, of two letters each.
    assert len(list((folder / "results/letters").glob("tiny-*/*-*/manifest.json"))) == 8
    assert (folder / "results/tiny/letters/elc_bert-s42/q/share.json").is_file()
    assert models and all(path.stat().st_mtime_ns == modified for path, modified in models.items())
    found = pl.read_parquet(table)
    assert found.filter(pl.col("kind") != "letters").equals(earlier)
    letters = found.filter(pl.col("kind") == "letters")
    assert letters["run"].to_list()[::2] == ["random-s42", "ltg_bert-s42", "elc_bert-s42", "roberta-s42"]
    shares = {
        (row["model"], row["task"]): float(row["mean"])
        for row in rows_of(folder / "results/tiny/summary.csv")
        if row["suite"] == "letters"
    }
    assert 100 > shares["elc_bert", "e"] == shares["random", "e"] > shares["elc_bert", "q"] > 0
    assert "## Letters of the vocabulary\n\nPercent of its entries." in (folder / "results/tiny/summary.md").read_text()
    page = (folder / "results/tiny/index.html").read_text(encoding="utf-8")
    assert f"{shares['elc_bert', 'e']:.1f}" in page and "letters" in page
