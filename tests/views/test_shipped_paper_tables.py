"""Every shipped experiment that repeats a paper writes its summary and the paper's tables in all forms."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from shipped_workflow import Workflow

from hatchery.analysis.published_values import read_numbers
from hatchery.analysis.summary_rows import read_summary
from hatchery.experiment.project import Project
from hatchery.typed import build, stage_body
from hatchery.views.paper_tables.settings import PaperTablesSettings

ELC_BERT, LTG_BERT, GPT_BERT = "1 2 7 8 9 10", "3 4 5 6 7 8", "1 3 4 5 6 7 8"
TABLES = {
    "strict": f"{ELC_BERT} 3 11 12",
    "strict_mini": f"{ELC_BERT} 3 11 12",
    "strict_small": ELC_BERT,
    "strict_small_mini": ELC_BERT,
    "bnc": f"1 2 {LTG_BERT}",
    "bnc_mini": f"1 2 {LTG_BERT}",
    # This experiment has other training text and other probes.
    "bnc_as_published": "2 3 4 6 8",
    "bnc_wikipedia_bookcorpus": LTG_BERT,
    "bnc_wikipedia_bookcorpus_mini": LTG_BERT,
    "gpt_bert_strict": GPT_BERT,
    "gpt_bert_strict_small": GPT_BERT,
    "gpt_bert_mini": "1 3 4 5 6 7",
    # Table 2 of GPT-BERT is a table of studies.
    "gpt_bert_ablations": "",
    "gpt_bert_ablations_mini": "",
    "gpt_bert_babylm_only": "",
    "gpt_bert_cosmopedia_only": "",
    "gpt_bert_fineweb_only": "",
    "gpt_bert_ratios": "",
}
"""The tables that each experiment with the tables of a paper writes."""
WITHOUT_LAYOUT = ("babylm_2025", "reduced_vocabulary")
"""Papers whose numbers are only in the summary."""


def test_every_shipped_experiment_that_repeats_a_paper_is_walked(repository: Path) -> None:
    project = Project(repository / "config")
    blocks = {name: project.experiment(name) for name in project.names("experiment")}
    repeats = {name for name, block in blocks.items() if block.paper_tables or block.published}
    others = {name for name in repeats if (own := blocks[name].published) and own.paper in WITHOUT_LAYOUT}
    minis = {name for name in repeats if (of := blocks[name].paper_tables) and of.of in others}
    assert repeats - others - minis == set(TABLES)


def written(workflow: Workflow, experiment: str) -> tuple[PaperTablesSettings, Path]:
    """Write the tables of an experiment; return their settings and their folder."""
    settings = json.loads(workflow.jobs.settings("write_tables", experiment=experiment))
    typed = build(PaperTablesSettings, stage_body(settings))
    printed = read_numbers(Path(f"config/published/values/{typed.published.paper}.csv"))
    for suite in workflow.project.experiment(experiment).minimal_pairs:
        named = {n.task for n in printed if n.suite == typed.papers_suite(suite) and n.metric.endswith("cy_percent")}
        workflow.paradigms[suite] = sorted(task for task in named if "average" not in task)
    workflow.summarise(experiment)
    workflow.measure_corpora(experiment)
    manifest = f"results/{experiment}/paper_tables/manifest.json"
    return typed, workflow.make("write_tables", manifest, experiment=experiment).parent


# A miniature has the same tables as its original.
CASES = [
    pytest.param(name, tables, marks=[pytest.mark.slow] if name.endswith("_mini") else [])
    for name, tables in TABLES.items()
]


@pytest.mark.parametrize(("experiment", "tables"), CASES)
def test_all_tables_of_a_paper_are_written_in_all_forms(workflow: Workflow, experiment: str, tables: str) -> None:
    settings, folder = written(workflow, experiment)
    numbers = [int(number) for number in tables.split()]
    names = [f"{settings.published.paper}_table_{number:02}" for number in sorted(numbers)]
    assert sorted(path.stem for path in folder.glob("*_table_*.tex")) == names
    assert sorted(path.stem for path in folder.glob("*_table_*.md")) == names
    markdown = (folder / "tables.md").read_text(encoding="utf-8")
    page = (folder / "tables.html").read_text(encoding="utf-8")
    document = (folder / "tables.tex").read_text(encoding="utf-8")
    for name, number in zip(names, sorted(numbers), strict=True):
        one = (folder / f"{name}.md").read_text(encoding="utf-8")
        ours = [line for line in one.splitlines() if line.startswith("|") and re.search(r"\bours\b", line)]
        cells = [cell.strip(" *†") for line in ours for cell in line.split("|")[3:]]
        shown = {cell for cell in cells if re.fullmatch(r"-?[\d.,]+( ± [\d.]+)?", cell)}
        latex = (folder / f"{name}.tex").read_text(encoding="utf-8")
        heading = f", Table {number}\n"
        assert shown and heading in markdown and heading.strip(", \n") in page and name in document
        assert not re.search(r"\bnan\b", one + latex)
        for cell in shown:
            mean = cell.partition(" ")[0]
            assert mean in page and mean.replace("-", "") in latex, (name, cell)
    folder = folder.parent
    assert "not written" not in (folder / "summary.tex").read_text(encoding="utf-8")
    summary = read_summary(folder / "summary.parquet")
    assert any(row.published_mean is not None for row in summary) or settings.caveat
    # Chance is one half for minimal pairs and the majority class's share for classification.
    suites = set(workflow.project.experiment(experiment).minimal_pairs)
    tasks = {row.task for row in summary if row.blind_guess == 25.0 and row.metric == "accuracy_percent"}
    assert tasks and not tasks & suites
    for row in summary:
        if row.metric == "accuracy_percent" and row.suite != "perplexity" and "average" not in row.task:
            assert row.blind_guess == (50.0 if row.suite in suites else 25.0), (row.suite, row.task)


@pytest.mark.slow
def test_one_document_of_all_paper_tables_and_summaries_compiles(workflow: Workflow, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex with booktabs and geometry (texlive-latex-recommended on Debian)")
    inputs, preamble = list[str](), ""
    for experiment in ("strict", "bnc", "gpt_bert_strict"):
        folder = written(workflow, experiment)[1]
        preamble = (folder / "tables.tex").read_text(encoding="utf-8").partition("\\setcounter")[0]
        for path in (*sorted(folder.glob("*_table_*.tex")), folder.parent / "summary.tex"):
            name = f"{experiment}_{path.name}"
            (tmp_path / name).write_text(path.read_text(encoding="utf-8"), encoding="ascii")
            inputs.append(f"\\input{{{name}}}\n\\clearpage\n")
    document = f"{preamble}{''.join(inputs)}\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(document, encoding="ascii")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert not re.findall(r"Overfull.*|Float too large.*|.*undefined.*", done.stdout)
