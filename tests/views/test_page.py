"""The page embeds tables and figures, every number links to its origin, and the page loads no files."""

import base64
import hashlib
import json
import re
import shutil
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest
from page_links import link_problems, read_page
from page_site import METRICS, NOTES, ROWS, Site, two_runs

from hatchery.analysis.summary_rows import row_anchor
from hatchery.artifacts.atomic import write_json, write_text
from hatchery.artifacts.checksums import write_checksums
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import EvaluationError, ManifestError
from hatchery.evaluation.sentences_file import GAP, SENTENCES_FILE, Answer, FilledSentence, FilledSentences
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.citation import how_to_cite
from hatchery.rendering.escaping import listed
from hatchery.rendering.style import Style, model_styles
from hatchery.rendering.templates import FOLDER as TEMPLATES
from hatchery.views.figures.registry import declared_figures
from hatchery.views.page import compose_page
from hatchery.views.page_files import MARKS, examples_section, figure_of
from hatchery.views.page_runs import training_times
from hatchery.views.page_settings import PageSettings
from hatchery.views.summary_notes import SummaryNotes


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site of two runs; tests may change its files."""
    return two_runs(tmp_path)


def test_every_link_of_the_page_and_of_what_it_leads_to_has_a_target(written: Site) -> None:
    problems, pages = link_problems(written.page)
    assert problems == []
    names = {page.name for page in pages}
    assert names == {"index.html", "provenance.html", "card.html", "cost.html"}


def test_a_link_without_target_would_be_found(site: Site) -> None:
    site.write(ROWS)
    text = site.page.read_text(encoding="utf-8").replace("provenance.html#row-elc", "provenance.html#row-elk", 1)
    write_text(site.page, text)
    (site.results / "cost.html").unlink()
    problems, _ = link_problems(site.page)
    assert len(problems) == 2
    assert "'cost.html' is not there" in problems[0]
    assert "there is no such place" in problems[1]


def test_every_number_of_the_summary_is_a_link_to_its_row(written: Site) -> None:
    text = written.page.read_text(encoding="utf-8")
    links = re.findall(r'<a href="provenance\.html#(row-[^"]+)"[^>]*>([^<]+)</a>', text)
    shown = dict(links)
    assert set(shown) == {row_anchor(*row.split(",")[:4]) for row in ROWS}
    assert shown["row-elc-glue-average-score_percent"] == "70.2 ± 1.2"
    assert shown["row-elc-glue-cola-mcc_percent"] == "-"
    assert shown["row-elc-pretraining-development-perplexity"] == "665.10"


def test_every_run_leads_to_its_manifest_and_to_its_details(written: Site) -> None:
    text = written.page.read_text(encoding="utf-8")
    for run, path in written.pretraining.items():
        digest, words = read_manifest(path).digest[:12], run.replace("-s", ", seed ")
        assert f'<a href="provenance.html#m-{digest}">{digest}</a>' in text
        assert f'<a href="#run-{run}">{words}</a>' in text


def test_the_headline_has_the_averages_beside_the_published_values_in_the_order_of_the_models(written: Site) -> None:
    text = written.page.read_text(encoding="utf-8")
    headline = text.partition("Main results</h2>")[2].partition("</section>")[0]
    heads = re.findall(r'<th scope="(?:col|row)"[^>]*>(?:<span class="swatch"[^>]*></span>)?([^<]*)</th>', headline)
    # Both averages are equal here, so only the full table shows the paradigm average.
    assert heads == [
        *("measure", "ltg", "elc", "roberta"),
        *("development perplexity while training", "blimp: phenomenon average", "glue: average"),
    ]
    words = read_page(written.page).text
    assert "61.0 n=1 published 70.0 ± 0.5: below" in words
    assert "70.2 ± 1.2 n=4, 2 failed (71.5 without) published 70.0: within" in words
    assert "58.0 n=1 published 60.0: not comparable" in words
    assert "Verdicts on the 3 numbers that have a published counterpart: 1 within, 1 below, 1 not comparable." in words
    assert "Imported models: roberta" in words


def test_the_paradigm_average_is_in_the_headline_where_it_differs(site: Site) -> None:
    rows = [
        row.replace("elc,blimp,paradigm_average,accuracy_percent,61", "elc,blimp,paradigm_average,accuracy_percent,62")
        for row in ROWS
    ]
    assert "blimp: paradigm average" in site.write(rows)


@pytest.mark.parametrize("models", [4, 5, 13])
def test_from_five_models_on_they_are_the_rows_of_tables(site: Site, models: int) -> None:
    rows = [
        f"m{number},blimp,phenomenon_average,accuracy_percent,5{number % 10}.0000,,1,0,,0,,,,,"
        for number in range(models)
    ]
    text = site.write(rows)
    for number in range(models):
        counts = [
            text.count(f"{cell}m{number}</th>") for cell in ('<th scope="col" class="number">', '<th scope="row">')
        ]
        assert counts == ([2, 0] if models < 5 else [0, 2])


def test_times_of_training_stand_below_a_table_of_the_paper_that_prints_such(site: Site) -> None:
    assert "Training time of our models" not in site.write(ROWS)
    first, second = site.pretraining
    site.seconds = {first: 90.0, second: 3600.0}
    labels = [name.rpartition("-")[0] for name in site.pretraining]
    times = f"{labels[0]} 1.5; {labels[1]} 60.0"
    caption = f"Training time of our models in minutes, over all attempts, averaged over seeds: {times}"
    site.write(ROWS)
    assert caption in read_page(site.page).text


def test_a_time_is_the_mean_of_the_seeds_that_have_one() -> None:
    rows = [{"label": label, "seconds": seconds} for label, seconds in (("a", 60.0), ("a", 120.0), ("b", None))]
    assert training_times([{"label": "tiny", "seconds": 2.75}]).endswith(": tiny 0.046")
    assert training_times(rows).endswith(": a 1.5") and training_times(rows[2:]) == ""
    assert training_times([{"label": "untrained", "seconds": 0.0}]) == ""


def test_the_page_holds_figures_tables_of_the_paper_notes_and_runs(written: Site) -> None:
    text = written.page.read_text(encoding="utf-8")
    # Two figures with one drawing, one with a wide and a narrow drawing, and the loss curves of two runs.
    assert text.count("<svg") == 6
    assert text.count('class="wide"') == text.count('class="narrow"') == 1
    assert "<symbol" not in text
    first, _, rest = text.partition("Figures</h2>")
    assert 'id="learning_curves-a"' in first and 'href="#phenomena-a"' in rest
    assert 'href="#phenomena-a"' in text
    assert "url(#phenomena-a)" in text
    assert '<h3 id="paper-paper-table-1">' in text
    assert "<strong>51.6</strong>†" in text
    words = read_page(written.page).text
    assert "mean ± standard deviation over n runs" in words
    assert "<dt>Minimal pairs: blimp</dt><dd>Accuracy in percent by phenomenon; chance is 50.</dd>" in text
    assert '<a href="../cards/a%26b/card.html">a&amp;b</a>' in text
    assert "a&b train 3 40 1,234,567 5 dev 1 40 1,234,567 5" in words
    assert text.count("1,234,567") == 2
    assert re.search(
        r'#run-ltg-s1">ltg, seed 1</a></th><td[^>]*>12,345</td><td[^>]*>3</td><td[^>]*>384</td>'
        r"<td[^>]*>6\.000</td>",
        text,
    )


def test_the_page_can_be_read_without_seeing_it(written: Site) -> None:
    for path in (written.page, written.results / "provenance.html"):
        page = read_page(path)
        levels = page.levels()
        assert levels.count(1) == 1
        assert levels[0] == 1
        # Headings do not skip a level.
        assert all(below <= above + 1 for above, below in pairwise(levels))
        tags = [tag for tag, _ in page.tags]
        assert "main" in tags
        assert "nav" in tags
        # The page has only our script, and its policy allows no other script.
        script = (TEMPLATES / "tables.js").read_bytes()
        assert tags.count("script") == 1 and f"<script>{script.decode()}</script>" in path.read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
        assert f"script-src &#39;sha256-{digest}&#39;;" in path.read_text(encoding="utf-8").replace("'", "&#39;")
        assert ("html", {"lang": "en"}) in page.tags
        for tag, attributes in page.tags:
            if tag == "svg":
                assert attributes["role"] == "img"
                assert attributes["aria-label"]
                assert attributes.get("aria-describedby") in {None, *page.ids}
            if tag == "th":
                assert attributes.get("scope") in ("col", "row", "rowgroup")


def test_perplexities_of_different_objectives_are_not_compared(site: Site) -> None:
    rows = [
        "gpt,perplexity,dev,perplexity,4.0000,0.1,2,0,,0,,,,,",
        "gpt,perplexity,dev,word_perplexity,40.0000,0.1,2,0,,0,,,,,",
        "gpt_two,perplexity,dev,perplexity,3.0000,0.1,2,0,,0,,,,,",
        "ltg,perplexity,dev,perplexity,9.0000,0.1,2,0,,0,,,,,",
        "ltg_two,perplexity,dev,perplexity,8.0000,0.1,2,0,,0,,,,,",
    ]
    text = site.write(rows, replace(NOTES, objectives={"gpt": "causal", "gpt_two": "causal"}))
    best = set(re.findall(r'<strong class="best"><a href="provenance\.html#(row-[^"]+)"', text))
    assert best == {"row-gpt_two-perplexity-dev-perplexity", "row-ltg_two-perplexity-dev-perplexity"}
    named = re.findall(r'scope="row">([^<]+)<', text)
    assert {"dev perplexity, causal", "dev perplexity, masked"} <= set(named)
    assert "dev perplexity" not in named


def test_averages_stand_apart_from_what_they_average(written: Site) -> None:
    text = written.page.read_text(encoding="utf-8").partition(">All results</h2>")[2]
    table = text.partition(">blimp (accuracy in percent)</h3>")[2].partition("</table>")[0]
    groups = [re.findall(r'scope="row">([^<]+)<', group) for group in table.split("<tbody>")[1:]]
    assert groups == [["phenomenon average", "paradigm average"], ["agreement"]]
    table = text.partition(">glue</h3>")[2].partition("</table>")[0]
    groups = [re.findall(r'scope="row">([^<]+)<', group) for group in table.split("<tbody>")[1:]]
    assert groups == [["average, by task", "average, by run"], ["cola, mcc in percent"]]


def test_the_page_leads_to_the_cost_and_the_figures_and_says_how_to_cite_and_how_the_export_is_made(
    written: Site,
) -> None:
    text = written.page.read_text(encoding="utf-8")
    assert '<a href="figures/phenomena.svg">phenomena.svg</a> and <a href="figures/phenomena.pdf">.pdf</a>' in text
    assert how_to_cite() in text
    assert '<a href="cost.html">cost.html</a>' in text
    assert "<code>snakemake --cores 1 results/demo/export/README.md</code>" in text
    # The export does not exist when the page is written, so the page has no link to it.
    assert 'href="export' not in text


def test_a_single_model_beside_one_of_others_is_told_of_in_the_singular(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.add_run("ltg", METRICS)
    site.add_baseline("roberta")
    site.day = "2024-02-29"
    text = site.write([row for row in ROWS if not row.startswith("elc")])
    assert "The model: ltg." in text and "The model was pretrained on" in text


def test_every_model_says_what_it_would_write_into_a_gap(written: Site) -> None:
    section = written.page.read_text(encoding="utf-8").partition(">Examples</h2>")[2].partition("</section>")[0]
    assert "sentences of the corpus&#39;s development text" in section
    assert section.count("<tbody>") == 1, "one sentence, whoever filled it in"
    assert "The dogs ____ near &lt;the&gt; house." in section
    for model, guess in (("ltg", "<strong>sleep</strong> <span>40 %</span>"), ("elc", "…ing <span>&lt; 1 %</span>")):
        swatch = '(?:<span class="swatch"[^>]*></span>)?'
        assert re.search(rf'scope="row">{swatch}{model}</th><td dir="auto">{re.escape(guess)}</td>', section)


def test_models_that_fill_in_continue_and_translate_stand_in_one_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = {
        "masked": FilledSentences("fill", (FilledSentence(f"A {GAP} sleeps.", "dog", (Answer("cat", 12.0),)),)),
        "causal": FilledSentences(
            "continue", (FilledSentence("The dogs", "are old.", (Answer("sleep."), Answer("eat."))),)
        ),
        "nmt": FilledSentences("translate", (FilledSentence("Der Hund", "the dog", (Answer("a dog"),)),)),
    }
    manifests = {}
    for name, written in examples.items():
        manifests[name] = tmp_path / name / "manifest.json"
        with stage_run(manifests[name], {}) as run:
            write_json(run.folder / SENTENCES_FILE, asdict(written))
            run.add_output(run.folder / SENTENCES_FILE)
    runs = [SeededRun(name, name, 1, label=name.upper()) for name in examples]
    # Only the first seed of a model is shown.
    runs.insert(1, SeededRun("second", "masked", 2, label="MASKED"))
    manifests["second"] = manifests["nmt"]
    section = examples_section(manifests, runs)
    row = r'<th colspan="\d" [^>]*>(.*?) <span>\((.*?)\)</span>.*?scope="row">(.*?)</th>(.*?)</tr>'
    rows = re.findall(row, section, re.DOTALL)
    assert [row[:3] for row in rows] == [
        ("A ____ sleeps.", "dog", "MASKED"),
        ("The dogs", "are old.", "CAUSAL"),
        ("Der Hund", "the dog", "NMT"),
    ]
    assert [re.findall(r'<td dir="auto">(.*?)(?: <span>.*?)?</td>', row[3]) for row in rows] == [
        ["cat"],
        ["sleep.", "eat."],
        ["a dog"],
    ]
    assert re.findall(r" <span>(.*? %)</span>", section) == ["12 %"]
    monkeypatch.setattr("hatchery.views.page_files.MODELS_SHOWN", 2)
    assert [name in examples_section(manifests, runs) for name in ("MASKED", "CAUSAL", "NMT")] == [True, True, False]
    manifests = {"masked": tmp_path / "few" / "manifest.json"}
    with stage_run(manifests["masked"], {}) as run:
        few = (Answer("cat", 1.0), Answer("cow", 0.0))
        sentences = FilledSentences("fill", tuple(FilledSentence(f"{GAP} {n}", "x", (few[n],)) for n in (0, 1)))
        write_json(run.folder / SENTENCES_FILE, asdict(sentences))
        run.add_output(run.folder / SENTENCES_FILE)
    assert re.findall(r" <span>(.*? %)</span>", examples_section(manifests, runs)) == ["1 %", "&lt; 1 %"]


def test_captions_name_marks_only_where_the_drawing_has_them(tmp_path: Path) -> None:
    drawing = '<svg viewBox="0 0 1 1"><!-- {} --></svg>'
    for label, sentence in MARKS.items():
        for written in (label, "elc (1 seed)"):
            write_text(tmp_path / "phenomena.svg", drawing.format(written))
            write_checksums([tmp_path / "phenomena.svg"])
            assert (sentence in figure_of(tmp_path / "phenomena.svg")) == (written == label)
    captions = [declared.caption for declared in declared_figures().values()]
    assert not any("diamond" in caption or "hollow" in caption for caption in captions)


def test_text_from_data_stays_text(site: Site) -> None:
    attack = '"><script>alert(1)</script>'
    rows = [
        *ROWS,
        f"<b>x</b>,blimp,{attack.replace(chr(34), '')},accuracy_percent,61.0000,,1,0,,0,1.0,,<i>p</i>,1.0,above",
    ]
    site.write(rows, SummaryNotes((attack,)), description=attack)
    page = read_page(site.page)
    tags = Counter(tag for tag, _ in page.tags)
    assert not tags.keys() & {"b", "i"} and tags["script"] == 1
    assert page.text.count("<script>alert(1)</script>") >= 3
    assert link_problems(site.page)[0] == []


def test_of_when_and_where_results_were_made_the_page_tells_the_day_alone(site: Site) -> None:
    def written(day: str, seconds: int = 7) -> str:
        site.day = day
        for path in site.pretraining.values():
            facts = {"host": "another-machine", "started": f"{day}T23:59:59+00:00", "wall_seconds": seconds}
            write_text(path.with_name("provenance.json"), json.dumps(facts))
        return site.write(ROWS)

    site.write(ROWS)
    first = written("2024-02-29")
    assert "The models were pretrained on 29 February 2024." in first
    assert written("2024-02-29", seconds=8) == first
    assert "pretrained on 1 March 2024" in written("2024-03-01")
    assert "were pretrained o" not in written("later")
    assert "another-machine" not in (site.results / "provenance.html").read_text(encoding="utf-8")


def test_a_file_that_is_no_drawing_is_named_and_no_page_is_left(site: Site) -> None:
    site.write(ROWS)
    site.page.unlink()
    broken = site.results / "phenomena.svg"
    write_text(broken, "<html></html>")
    write_checksums([broken])
    with pytest.raises(EvaluationError, match=r"phenomena\.svg: expected an SVG"):
        compose_page(PageSettings("demo", ""), site.page_inputs(figures=[broken]), site.page)
    assert not site.page.exists()


def test_the_table_of_runs_needs_no_file_of_a_run_and_no_altered_table(site: Site) -> None:
    first = site.write(ROWS)
    table = site.results / "runs.parquet"
    inputs = site.page_inputs(runs=table)
    for path in site.pretraining.values():
        shutil.rmtree(path.parent)
    compose_page(PageSettings("demo", ""), inputs, site.page)
    rows = re.findall(r"<td[^>]*>(?:6\.000|665\.100|2\.345)</td>", site.page.read_text(encoding="utf-8"))
    assert len(rows) == 2 * 3 and rows == re.findall(r"<td[^>]*>(?:6\.000|665\.100|2\.345)</td>", first)
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    with pytest.raises(ManifestError, match=r"runs\.parquet"):
        compose_page(PageSettings("demo", ""), inputs, site.page)


def test_a_page_of_many_models_stays_small_and_says_what_it_leaves_out(site: Site) -> None:
    tasks = [
        f"m{model:03d},glue,task{task:02d},accuracy_percent,5{task % 10}.0,0.5,5,0,,0,70.0,0.5,Paper Table 2,-9.0,below"
        for model in range(250)
        for task in range(14)
    ]
    averages = [f"m{model:03d},glue,average,score_percent,5{model % 10}.0,0.1,5,0,,0,,,,," for model in range(250)]
    pairs = [f"m{model:03d},blimp,agreement,accuracy_percent,60.0,1.0,5,0,,0,,,,," for model in range(13)]
    text = site.write([*tasks, *averages, *pairs])
    assert len(text) < 1_000_000
    words = read_page(site.page).text
    assert "The experiment has 250 models. Averages are shown for the first 200 of these models" in words
    assert "glue; the first 500 of 3,500" in words
    # The table of averages has 200 models. Each table of scores of single tasks has twelve models: three tables of the
    # first suite's 14 tasks and average, and one table of the second suite, of which 13 models have scores.
    tables = text.partition(">Metrics and notes</h2>")[0]
    counts = [tables.count(f'<th scope="row">m{model:03d}</th>') for model in (11, 12, 199, 200)]
    assert counts == [1 + 3 + 1, 1, 1, 0]
    assert "more numbers of summary.csv are not on this page" in read_page(site.results / "provenance.html").text
    assert link_problems(site.page)[0] == []


def test_the_colour_that_a_model_has_in_figures_stands_beside_its_name(written: Site) -> None:
    text = written.page.read_text(encoding="utf-8")
    styles = model_styles(["ltg", "elc"], Style())
    for model, style in styles.items():
        swatch = f'<span class="swatch" style="background: {style.colour}" aria-hidden="true"></span>'
        # Contents, tables of numbers, examples and runs.
        assert f"<li>{swatch}{model}</li>" in text
        assert f'<th scope="col" class="number">{swatch}{model}</th>' in text
        assert f'<th scope="row">{swatch}{model}</th>' in text
        assert f'<th scope="row">{swatch}<a href="#run-{model}-s1">' in text
    assert '<th scope="col" class="number">roberta</th>' in text


def test_the_page_tells_of_those_units_alone_that_it_has(written: Site) -> None:
    words = read_page(written.page).text
    assert "perplexity per labelled token" in words and "per word" not in words


def test_names_with_commas_are_listed_with_semicolons() -> None:
    assert listed(["plain", "elc, rate 1", "third"]) == "plain; elc, rate 1 and third"
