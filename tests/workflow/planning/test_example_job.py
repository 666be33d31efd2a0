"""An example job of a rule shows inputs, outputs, settings and resources; a rule without a job is one line."""

from pathlib import Path

import pytest

from hatchery.errors import PlanError
from hatchery.workflow.example_job import _paths, example_text


def test_an_example_names_what_a_job_reads_and_writes_its_settings_and_what_it_asks_for(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    lines = example_text("write_page", ["results/demo/index.html"]).splitlines()
    assert {"rule write_page:", '        output="results/{experiment}/index.html",'} <= set(lines)
    assert {"        mem_mb=2000,", "        call=...,", "write_page demo (one job of 1)"} <= set(lines)
    assert {"  summary: results/demo/summary.parquet", "  tables: none"} <= set(lines)
    assert "  output: results/demo/index.html" in lines
    assert {"  experiment: demo", "  threads: 1", "  mem_mb: 2000", "  analysis.yaml"} <= set(lines)
    assert any(line.startswith("  python scripts/run.py write_page results/settings/") for line in lines)
    for rule, message in (("write_pge", "did you mean 'write_page'"), ("import_model", "needs no job of")):
        with pytest.raises(PlanError, match=message):
            example_text(rule, ["results/demo/index.html"])


def test_the_first_of_many_paths_of_an_input_are_shown_and_the_others_counted() -> None:
    names = list("abcdefg")
    assert _paths("models", names) == ["models:", *(f"  {name}" for name in "abcde"), "  and 2 more"]
    assert _paths("models", dict(zip(names[:6], names, strict=False))) == [
        "models:",
        *(f"  {name}: {name}" for name in "abcdef"),
    ]
