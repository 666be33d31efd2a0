"""The tables of an analysis lie beside its numbers, as Markdown and as LaTeX that compiles."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.analyses.analysis import (
    Findings,
    Study,
    analysis_called,
    read_findings,
    settings_of,
    tables_as_files,
)
from hatchery.analysis.stages.analyse import analyse
from hatchery.analysis.studies import analyses_of
from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.rendering.table import table
from hatchery.runner import run_stage
from hatchery.typed import keys_of

PAPER = {"paper": "reduced_vocabulary"}
Analysed = Callable[..., Findings]


def settings(name: str, **chosen: Any) -> dict[str, Any]:
    made = {"analysis": name, **chosen}
    facts = {"experiment": "invented", "analysis": name, "version": 1, "title": "A title", "settings": made, "runs": []}
    return {"stage": "analyse", "stage_version": 1, **facts}


def test_every_table_is_a_file_and_those_of_an_earlier_run_are_removed(study: Study, tmp_path: Path) -> None:
    output = tmp_path / "analyses/mine/manifest.json"
    for name in ("power_laws", "correlation"):
        needs, published = analysis_called(name).needs, analysis_called(name).published
        tables = {need: study.tables[need] for need in needs}
        files = {file: study.files[file] for file in published(settings_of(name, PAPER))}
        run_stage(analyse, settings(name, **PAPER), output, tables=tables, files=files)
        written = {path.name for path in output.parent.iterdir()} - {"manifest.json", "numbers.csv", "findings.json"}
        count = 3 if name == "power_laws" else 1
        names = {f"table_{number:02}.tex" for number in range(1, count + 1)}
        assert written >= {*names, "tables.tex", "tables.md"}
        assert {path for path in written if re.match(r"table_\d", path)} == names
        assert {path.name for path in read_findings(output).files} == {*names, "tables.tex", "tables.md"}
    text = (output.parent / "table_01.tex").read_text(encoding="ascii")
    assert r"\label{tab:invented-mine-table-01}" in text and "study invented, mine" in text
    markdown = (output.parent / "tables.md").read_text(encoding="utf-8")
    assert markdown.startswith("# A title\n") and "\n| average of | of | n |" in markdown


def test_an_analysis_without_tables_writes_none() -> None:
    assert tables_as_files(Findings(notes=["Nothing."]), "title", "entry", "study") == {}


def test_sentences_break_their_lines_in_latex() -> None:
    wide = table(("a", "b"), [("word", "many words " * 20)], words=2)
    assert r"\begin{tabular}{lp{0.80\linewidth}}" in wide.latex("t", "l", wrap=True)
    assert r"\begin{tabular}{ll}" in wide.latex("t", "l")


def test_a_sign_that_latex_does_not_know_is_told() -> None:
    with pytest.raises(ConfigError, match="which no command is known for"):
        tables_as_files(Findings(tables=[table(("é",), [("x",)])]), "title", "entry", "study")


@pytest.fixture(scope="module")
def all_found(analysed: Analysed, repository: Path) -> dict[str, Findings]:
    """What the analyses of the reduced-vocabulary study find that read no file of a corpus or a sweep."""
    made = analyses_of(Project(repository / "config"), "reduced_vocabulary")
    few = {"experiments": (), "frontier": (), "sets": (), "draws": 2}
    found = {}
    for name, entry in made.items():
        analysis = analysis_called(entry.analysis)
        if "corpora" not in analysis.needs and not list(analysis.sweeps(entry)):
            asked = {key: few.get(key, value) for key, value in keys_of(entry, "analysis").items()}
            found[name] = analysed(entry.analysis, **asked)
    return found


def test_the_tables_of_every_analysis_are_latex_in_ascii(all_found: dict[str, Findings]) -> None:
    assert len(all_found) == 8
    for name, found in all_found.items():
        texts = tables_as_files(found, name, name, "reduced_vocabulary")
        assert sum(path.startswith("table_") for path in texts) == len(found.tables) > 0
        assert all(text.isascii() for path, text in texts.items() if path.endswith(".tex"))
        assert all(note.replace("`", "")[:20] in texts["tables.md"].replace("`", "") for note in found.notes)


@pytest.mark.slow
def test_the_documents_compile_with_one_table_on_a_page(all_found: dict[str, Findings], tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex with booktabs and geometry (texlive-latex-recommended on Debian)")
    for name, found in all_found.items():
        folder = tmp_path / name
        folder.mkdir()
        for file, text in tables_as_files(found, name, name, "reduced_vocabulary").items():
            (folder / file).write_text(text, encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        assert not re.findall(r"Overfull.*|Float too large.*|.*undefined.*", done.stdout), name
        pages = len(found.tables)
        assert f"({pages} page{'s' if pages > 1 else ''}" in done.stdout
