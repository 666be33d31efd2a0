"""Impossible requests to Snakemake end in lines that begin with `error: `, without a traceback."""

import sys
from pathlib import Path

import forked
from projects import snakemake
from shipped import edit

TASK = """
data: my_text
format: rows
files: {train: train.jsonl, validation: dev.jsonl}
fields: [sentense]
labels: [good, bad]
metrics: [accuracy]
"""
ROWS = '{"sentence": "It rains.", "label": "good"}\n{"sentence": "Rains it.", "label": "bad"}\n'


def refused(project: Path, *words: str) -> list[str]:
    """Run a call that has to fail; return the lines of its error, without `error: `."""
    result = snakemake(project, *words)
    said = result.stdout + result.stderr
    assert result.returncode != 0, said
    assert "Traceback" not in said
    assert "MissingRuleException" not in said
    return [line.removeprefix("error: ") for line in said.splitlines() if line.startswith("error: ")]


def test_misspelt_targets_are_told_together_with_the_names_that_there_are(project: Path) -> None:
    first, second = refused(project, "-n", "--", "results/tiny/sumary.csv", "results/tny/index.html")
    assert first.startswith("results/tiny/sumary.csv: no rule makes this file; request results/<exp")
    assert second.startswith("results/tny/index.html: got 'tny', no such experiment; did you mean 'tiny'?")


def test_mistakes_of_several_files_are_told_before_anything_is_planned(project: Path) -> None:
    data = project / "data"
    data.mkdir()
    for name in ("train", "dev"):
        (data / f"{name}.jsonl").write_text(ROWS, encoding="utf-8")
    edit(project / "config", "config.yaml", "  my_text:\n    path: null", "  my_text:\n    path: data")
    (project / "config/tasks/judged.yaml").write_text(TASK, encoding="utf-8")
    edit(
        project / "config", "experiments/tiny.yaml", "demo_acceptability: {}", "demo_acceptability: {}\n    judged: {}"
    )
    edit(project / "config", "tokenizers/tiny.yaml", "kind: byte_bpe", "kind: unigram")

    lines = refused(project, "-n", "results/tiny/summary.csv")

    assert lines == [
        "config/tokenizers/tiny.yaml: pre_tokenizer: got 'byte_level', expected metaspace, because the kind unigram "
        "allows no other pre_tokenizer",
        "config/tasks/judged.yaml: train.jsonl:1: the field 'sentense' of the task 'judged' is missing; "
        "the record has: label, sentence; the record looks like a record of CoLA or SST-2",
    ]
    assert not (project / "results").exists()


def test_missing_raw_data_is_listed_by_a_dry_run_and_stops_a_real_one(project: Path) -> None:
    edit(project / "config", "config.yaml", "  my_text:\n    path: null", "  my_text:\n    path: /dev/zero")
    edit(project / "config", "experiments/tiny.yaml", "corpus: tiny", "corpus: my_text")
    edit(
        project / "config", "experiments/tiny.yaml", "minimal_pairs: [tiny_pairs]", "minimal_pairs: [tiny_pairs, blimp]"
    )

    planned = snakemake(project, "-n", "results/tiny/summary.csv")

    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "pretrain" in planned.stdout + planned.stderr
    missing = [line for line in planned.stderr.splitlines() if line.startswith("missing: ")]
    assert [line.split("'")[1] for line in missing] == ["blimp", "my_text"]
    assert "is not at ../shared/data/blimp.zip: set data.blimp.path" in missing[0]
    assert "is at /dev/zero, which is a device or a pipe" in missing[1]

    lines = refused(project, "--cores", "1", "results/tiny/summary.csv")
    assert [f"missing: {line}" for line in lines] == missing
    assert not (project / "resources").exists()
    assert not list((project / ".snakemake/locks").glob("*"))

    command = [sys.executable, "scripts/explain.py", "results/tiny/summary.csv"]
    why = forked.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert why.returncode == 0, why.stderr
    said = why.stdout.partition("Missing raw data; no job starts before these data exist:\n")[2].splitlines()
    assert [f"missing: {line.removeprefix('- ')}" for line in said] == missing
