"""Pages of studies and of many models: colours, legend, folded suites and groups of models."""

import json
import re
from pathlib import Path

import pytest
from page_links import read_page
from page_site import ROWS, Site, two_runs

from hatchery.analysis.analyses.analysis import FINDINGS_FILE, NUMBERS_FILE
from hatchery.analysis.scores import Measure, Scores
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.rendering.style import Style, model_styles
from hatchery.rendering.table import as_json, table
from hatchery.typed import build
from hatchery.views.page import _units, compose_page
from hatchery.views.page_scores import ScoreTables
from hatchery.views.page_settings import PageSettings


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site of two runs; tests may change its files."""
    return two_runs(tmp_path)


def test_on_the_page_of_a_study_models_have_the_colours_of_its_figures(site: Site) -> None:
    site.write(ROWS)
    inputs = site.page_inputs(parts={"a": site.page, "b": site.page})
    runs = [{"name": f"{model}-s1", "model": model, "seed": 1} for model in ("a/other", "a/elc", "elc", "ltg")]
    parts = {name: {"description": "", "corpus": "c"} for name in ("a", "b")}
    page = site.results / "study.html"
    settings = {"experiment": "demo", "description": "", "runs": runs, "parts": parts}
    compose_page(build(PageSettings, settings), inputs, page)
    colour = model_styles([run["model"] for run in runs], Style())["ltg"].colour
    swatch = f'<span class="swatch" style="background: {colour}" aria-hidden="true"></span>'
    text = page.read_text(encoding="utf-8")
    assert f"{swatch}ltg</th>" in text
    # Both experiments have the corpus `c`, and each of the four models has one seed.
    assert "Imported models: roberta. Evaluations: blimp and glue. Corpus: c." in read_page(page).text
    # Two runs are of the experiment `a`.
    assert [text.count(f'>{name}</a></th><td class="words" data-label="corpus">c</td>') for name in "ab"] == [1, 1]
    assert re.findall(r'data-label="pretrained models">(\d+)<', text) == ["2", "0"]


def test_an_analysis_is_on_the_page_with_its_answer_its_notes_and_links_to_its_files(site: Site) -> None:
    site.write(ROWS)
    manifest = site.results / "analyses" / "paired" / "manifest.json"
    tables = [as_json(table(["model", "p"], [["elc", "0.04"]], caption="Paired tests of elc"))]
    findings = {"title": "Paired tests", "tables": tables, "notes": ["By `t`."], "answer": ["Elc differs."]}
    with stage_run(manifest, {"stage": "analyse"}) as run:
        for name, text in ((FINDINGS_FILE, json.dumps(findings)), (NUMBERS_FILE, "p\n0.04\n"), ("tables.md", "#")):
            write_text(run.folder / name, text)
            run.add_output(run.folder / name)
    settings = build(PageSettings, {"experiment": "demo", "description": "", "runs": site.runs})
    surprisals = site.results / "surprisals.csv"
    compose_page(settings, site.page_inputs(analyses={"paired": manifest}, surprisals=[surprisals]), site.page)
    text = site.page.read_text(encoding="utf-8")
    assert "<li>Elc differs.</li>" in text.partition(">Main results</h2>")[0]
    section = text.partition(">Analyses</h2>")[2].partition("</section>")[0]
    assert "<h3>Paired tests</h3>" in section and "<caption>Paired tests of elc</caption>" in section
    assert "<li>By <code>t</code>.</li>" in section
    assert f'All numbers: <a href="analyses/paired/{NUMBERS_FILE}">analyses/paired/{NUMBERS_FILE}</a>.' in section
    assert 'Tables: <a href="analyses/paired/tables.md">tables.md</a>.' in section
    assert 'under all models: <a href="surprisals.csv">surprisals.csv</a>' in text


def test_up_to_twelve_models_are_in_the_legend_and_up_to_fifteen_rows_of_a_suite_are_unfolded(site: Site) -> None:
    def page(models: int, tasks: int) -> str:
        rows = [f"m0,glue,t{task},accuracy_percent,60.0,1.0,2,0,,0,,,,," for task in range(tasks)]
        site.write(rows)
        runs = [{"name": f"m{model}-s1", "model": f"m{model}", "seed": 1} for model in range(models)]
        settings = build(PageSettings, {"experiment": "demo", "description": "", "runs": runs})
        compose_page(settings, site.page_inputs(), site.page)
        return site.page.read_text(encoding="utf-8")

    few, many = page(12, 15), page(13, 16)
    assert few.count('<ul class="legend">') == 1 and few.count("m11</li>") == 1 and 'class="legend"' not in many
    assert "<details open><summary><h3>glue" in few and "<details><summary><h3>glue" in many


def test_averages_of_many_models_are_grouped_by_set_under_the_names_within_their_experiment(site: Site) -> None:
    models = [f"s/m{number}" for number in range(5)]
    site.write([f"{m},blimp,phenomenon_average,accuracy_percent,60.0,,1,0,,0,,,,,|,50.0" for m in models])
    runs = [{"name": f"{model}-s1", "model": model, "seed": 1} for model in models]
    sets = {"s/m0": "one", "s/m1": "two", "s/m2": "one"}
    settings = {"experiment": "demo", "description": "", "runs": runs, "sets": sets}
    compose_page(build(PageSettings, settings), site.page_inputs(), site.page)
    text = site.page.read_text(encoding="utf-8").partition(">Main results</h2>")[2].partition("</section>")[0]
    groups = [re.findall(r'<th scope="row">(.*?)</th>', group) for group in text.split("<tbody>")[1:]]
    assert groups == [["blind guess", "s/m3", "s/m4"], ["m0", "m2"], ["m1"]]
    assert re.findall(r'scope="rowgroup"[^>]*>\s*(\w+)', text) == ["one", "two"]
    # Colours of figures show the sets, not the models.
    assert 'class="swatch"' not in site.page.read_text(encoding="utf-8")


def test_the_first_section_counts_trainings_if_a_model_has_several_and_names_the_runs_that_are_listed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write(ROWS)
    runs = [{"name": f"{model}-s{seed}", "model": model, "seed": seed} for model, seed in (("ltg", 1), ("ltg", 2))]
    settings = {"experiment": "demo", "description": "", "runs": [*runs, {"name": "elc-s1", "model": "elc", "seed": 1}]}
    monkeypatch.setattr("hatchery.views.page.RUNS_SHOWN", 1)
    compose_page(build(PageSettings, settings), site.page_inputs(runs=site.write_runs()), site.page)
    words = read_page(site.page).text
    assert "Compared models: ltg and elc, 3 pretraining runs with different seeds in all." in words
    assert "The first 1 of 2 pretrained models are listed." in words


def test_a_page_says_how_many_models_it_shows_from_37_models_on() -> None:
    def left_out(models: int) -> str:
        return ScoreTables(Scores([], [f"m{number}" for number in range(models)]), "provenance.html").left_out()

    assert left_out(36) == "" and "shown for all these models, and single tasks are shown for the first 12" in left_out(
        37
    )
    assert "The experiment has 200 models. Averages are shown for all these models" in left_out(200)
    assert "Averages are shown for the first 200 of these models" in left_out(201)


def test_the_units_of_the_averages_are_those_of_their_metrics() -> None:
    def units(*metrics: str) -> str:
        return _units([Measure("label", "suite", "task", metric) for metric in metrics])

    assert units("score_percent", "chrf", "bits_per_byte", "bleu", "perplexity") == (
        "perplexity per labelled token, bits per byte of text, BLEU and chrF in points, other averages in percent"
    )
    assert units("score_percent") == "in percent"
