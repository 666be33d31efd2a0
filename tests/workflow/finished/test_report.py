"""Snakemake's own report shows the results of an experiment under headings, each with its caption."""

import json
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from browser import BROWSER, violations
from lxml import html
from projects import snakemake

from hatchery.workflow.registry import STAGES

pytestmark = pytest.mark.slow

MOST_ROWS = 5


def test_the_report_has_scores_figures_page_and_cards_with_captions(finished_project: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.zip"
    done = snakemake(finished_project, "--report", str(report), "--", "results/tiny/index.html", forked=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(report) as archive:
        page = archive.read("report/report.html").decode()
    categories = json.loads(re.search(r"var categories = (\{.*?\})[;\n]", page)[1])
    assert categories["tiny"]["Page"] == ["results/tiny/index.html"]
    assert categories["tiny"]["Scores"] == ["results/tiny/summary.csv", "results/tiny/summary.txt"]
    assert categories["tiny"]["Figures"] and all(path.endswith(".svg") for path in categories["tiny"]["Figures"])
    corpora = ("demo_books_sample", "demo_reduced", "tiny")
    assert categories["Corpora"] == {name: [f"results/cards/{name}/card.html"] for name in corpora}
    shown = sum(len(paths) for each in categories.values() for paths in each.values())
    assert page.count('"caption": "<p>') == shown


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize("page", ["tiny/index.html", "tiny/provenance.html", "tiny/cost.html", "cards/tiny/card.html"])
def test_no_page_of_a_real_experiment_violates_a_rule_of_accessibility(
    finished_project: Path, tmp_path: Path, page: str
) -> None:
    done = snakemake(finished_project, "--cores", "2", f"results/{page}")
    assert done.returncode == 0, done.stdout + done.stderr
    # The copy is not next to the page, because it would stay in the folder of results.
    copy = tmp_path / Path(page).name
    copy.write_text(with_rows_of_each_kind((finished_project / "results" / page).read_text("utf-8")), encoding="utf-8")
    assert violations(tmp_path, copy, 1280) == []


def with_rows_of_each_kind(page: str) -> str:
    """Return the page with the first rows of each table, the first row of each other structure, and the first shapes of
    each drawing.

    The rules check elements and their attributes. Thousands of rows and shapes take a minute.
    """
    parsed = html.document_fromstring(page)
    for drawing in parsed.iter("svg"):
        for shape in [*drawing.iter("path", "use")][MOST_ROWS:]:
            shape.getparent().remove(shape)
    for body in parsed.iter("tbody"):
        builds: Counter[tuple[object, ...]] = Counter()
        for place, row in enumerate(list(body.iterchildren("tr"))):
            build = tuple((e.tag, e.get("class"), e.get("scope"), bool(e.text)) for e in row.iter())
            builds[build] += 1
            if place >= MOST_ROWS and builds[build] > 1:
                body.remove(row)
    return f"<!DOCTYPE html>\n{html.tostring(parsed, encoding='unicode')}"


def test_each_reported_stage_has_a_caption(repository: Path) -> None:
    reported = {name for name, stage in STAGES.items() if stage.reported}
    assert {path.stem for path in (repository / "workflow/report").iterdir()} == reported
    assert all(stage.reported.keys() <= stage.outputs.keys() for stage in STAGES.values())
