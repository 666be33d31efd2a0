"""`explain.py` and `trace.py` on a project in which Snakemake itself plans and runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from projects import make_project, snakemake
from summary_text import write_summary

from hatchery.artifacts.checksums import checksums_of, sha256_file

pytestmark = pytest.mark.slow
CORPUS = "results/corpora/tiny/manifest.json"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The tiny project with its corpus made, and nothing behind it."""
    folder = make_project(tmp_path_factory.mktemp("explain") / "project", repository)
    result = snakemake(folder, "--cores", "2", CORPUS)
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return folder


def explain(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/explain.py", *arguments]
    return forked.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_nothing_would_run_after_a_finished_run(project: Path) -> None:
    result = explain(project, CORPUS)
    assert (result.returncode, result.stdout, result.stderr) == (0, "nothing would run\n", "")


def test_a_changed_setting_is_named_with_its_old_and_new_value(project: Path) -> None:
    path = project / "config/corpora/tiny.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("development_fraction: 0.2", "development_fraction: 0.3"), encoding="utf-8")
    try:
        result = explain(project, CORPUS)
    finally:
        path.write_text(text, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "convert_corpus  1 job  split.development_fraction: 0.2 -> 0.3\n\nNothing whose cost is estimated would run.\n"
    )


def test_the_whole_experiment_is_explained_with_its_cost(project: Path) -> None:
    result = explain(project, "results/tiny/summary.csv")
    assert result.returncode == 0, result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}
    assert "convert_corpus" not in lines
    assert lines["pretrain"].split(maxsplit=3)[1:3] == ["4", "jobs"]
    assert lines["pretrain"].split(maxsplit=3)[3] == "not there yet"
    models = re.findall(r"^\| tiny/(\S+)", result.stdout, flags=re.MULTILINE)
    assert sorted(model.partition("-s")[0] for model in models) == ["elc_bert", "ltg_bert", "random", "roberta"]


def test_an_unknown_experiment_is_one_line(project: Path) -> None:
    result = explain(project, "results/tinny/summary.csv")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "did you mean 'tiny'" in result.stderr


def test_a_real_corpus_is_traced_to_the_generated_raw_files(project: Path) -> None:
    table = project / "results/tiny/summary.csv"
    table.parent.mkdir(exist_ok=True)
    digest = sha256_file(project / CORPUS)[:12]
    rows = write_summary(table.parent, [f"tiny,m,s,t,c,1,,1,0,,0,,,,,,{digest},,"])
    command = [sys.executable, "scripts/trace.py", str(table), "--row", "1", "--verify", "--verify-raw", "--json"]
    result = forked.run(command, cwd=project, capture_output=True, text=True, check=False)
    for path in (table, rows, checksums_of(table)):
        path.unlink()
    assert (result.returncode, result.stderr) == (0, "")
    nodes = json.loads(result.stdout)["nodes"].values()
    assert sorted(node.get("stage", node.get("name")) for node in nodes) == [
        "convert_corpus",
        "embedded_babylm",
        "embedded_bnc",
        "generate_embedded_sources",
    ]
