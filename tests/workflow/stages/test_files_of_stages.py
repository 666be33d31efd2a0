"""A stage stands in its file and its rule alone, and its file is light: planning imports all, a job its own."""

import shutil
import subprocess
import sys
from pathlib import Path

from projects import make_project, snakemake

HEAVY = {"numpy", "pyarrow", "polars", "torch", "tokenizers", "matplotlib", "scipy", "lxml", "datasets", "transformers"}
PLANNING = {"hatchery.experiment.project", "hatchery.workflow.jobs", "snakemake"}

STAGE = '''"""The stage `greet_corpus`."""

from collections.abc import Mapping
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.stage import Stage


def greeting_settings(project: Any, corpus: str) -> dict[str, object]:
    """Whom to greet."""
    return {"greeting": f"Hello, {project.corpus(corpus).description}"}


@Stage(version=3, settings=greeting_settings, environment="corpora", sort="cpu", memory_mb=100, minutes=1)
def greet_corpus(settings: Mapping[str, Any], run: StageRun) -> None:
    """Write a greeting."""
    write_text(run.add_output(run.folder / "greeting.txt"), settings["greeting"])
'''
RULE = """

rule greet_corpus:
    output:
        "results/greetings/{corpus}/manifest.json",
    shell:
        "python scripts/run.py greet_corpus @{params.call} --output {output} 2>&1 | tee {log}"
"""


def test_files_of_stages_import_neither_what_computes_nor_what_plans(repository: Path) -> None:
    code = (
        "import sys; from hatchery.stage import function_of, stage_files\n"
        "for name in stage_files(): function_of(name)\n"
        f"print(sorted({HEAVY | PLANNING!r} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": str(repository / "scripts"), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_stage_is_added_by_a_file_and_a_rule(tmp_path: Path, repository: Path) -> None:
    folder = make_project(tmp_path / "project", repository)
    for name in ("scripts", "workflow"):
        (folder / name).unlink()
        shutil.copytree(repository / name, folder / name)
    (folder / "scripts/hatchery/corpora/stages/greet_corpus.py").write_text(STAGE, encoding="utf-8")
    with (folder / "workflow/rules/corpora.smk").open("a", encoding="utf-8") as rules:
        rules.write(RULE)
    done = snakemake(folder, "--cores", "1", "--", "results/greetings/tiny/manifest.json", forked=False)
    assert done.returncode == 0, done.stdout + done.stderr
    made = folder / "results/greetings/tiny"
    assert (made / "greeting.txt").read_text(encoding="utf-8").startswith("Hello, ")
    assert '"stage_version": 3' in (made / "manifest.json").read_text(encoding="utf-8")
    assert (folder / "logs/greet_corpus/tiny.log").is_file()
