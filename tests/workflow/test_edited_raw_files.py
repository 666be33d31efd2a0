"""Editing, touching and moving raw files of one's own: what the real workflow plans and runs."""

import os
import shutil
from pathlib import Path

import pytest
from projects import make_project, planned_rules, snakemake

pytestmark = pytest.mark.slow

CORPUS = "results/corpora/my_text/manifest.json"


def set_path(project: Path, data: Path) -> None:
    path = project / "config/config.yaml"
    head, rest = path.read_text(encoding="utf-8").split("\n  my_text:\n", 1)
    lines = rest.split("\n")
    lines[0] = f"    path: {data}"
    path.write_text(f"{head}\n  my_text:\n" + "\n".join(lines), encoding="utf-8")


def test_an_edited_file_is_converted_again_and_a_moved_or_touched_one_is_not(tmp_path: Path, repository: Path) -> None:
    project, data = make_project(tmp_path / "project", repository), tmp_path / "texts"
    data.mkdir()
    for number in range(40):
        (data / f"{number}.txt").write_text(f"A text with the number {number}.\n", encoding="utf-8")
    set_path(project, data)

    def run() -> bytes:
        result = snakemake(project, "--cores", "1", CORPUS)
        assert result.returncode == 0, result.stdout + result.stderr
        assert planned_rules(project, CORPUS) == {}
        return (project / CORPUS).read_bytes()

    first = run()
    (data / "7.txt").write_text("A text with the number 8.\n", encoding="utf-8")
    assert planned_rules(project, CORPUS) == {"register_source": 1, "convert_corpus": 1}
    second = run()
    assert second != first
    os.utime(data / "9.txt", (1_000_000, 1_000_000))
    assert planned_rules(project, CORPUS) == {"register_source": 1}
    shutil.move(data, tmp_path / "moved")
    set_path(project, tmp_path / "moved")
    assert planned_rules(project, CORPUS) == {"register_source": 1}
    made = (project / CORPUS).stat().st_mtime_ns
    assert run() == second
    assert (project / CORPUS).stat().st_mtime_ns == made
    (tmp_path / "moved/7.txt").write_text("A text with the number 7.\n", encoding="utf-8")
    assert run() == first
