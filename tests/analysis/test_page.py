"""The page holds the tables and figures themselves and loads nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from hatchery.analysis.page import write_page
from hatchery.errors import EvaluationError
from hatchery.storage.manifests import stage_run

SETTINGS = {"stage": "write_page", "stage_version": 1, "experiment": "demo", "description": "A <small> test."}
SVG = '<?xml version="1.0"?><svg xmlns="x"><defs><path id="a"/></defs><use href="#a" clip-path="url(#a)"/></svg>'


@pytest.fixture
def markdown(tmp_path: Path) -> Path:
    path = tmp_path / "summary.md"
    path.write_text("# Summary\n\n| model | accuracy |\n|---|---:|\n| ltg_bert | 81.5 |\n", encoding="utf-8")
    return path


def test_the_page_holds_table_and_figures(tmp_path: Path, markdown: Path) -> None:
    for name in ("learning_curves", "phenomena"):
        (tmp_path / f"{name}.svg").write_text(SVG, encoding="utf-8")
    output = tmp_path / "index.html"
    write_page(SETTINGS, markdown, [tmp_path / "learning_curves.svg", tmp_path / "phenomena.svg"], output)
    page = output.read_text(encoding="utf-8")
    assert "<td>ltg_bert</td>" in page
    assert "A &lt;small&gt; test." in page
    assert page.count("<svg") == 2
    assert 'id="learning_curves-a"' in page
    assert 'href="#phenomena-a"' in page
    assert "url(#phenomena-a)" in page
    assert "<script" not in page


def test_a_file_that_is_no_drawing_is_named_and_no_page_is_left(tmp_path: Path, markdown: Path) -> None:
    (tmp_path / "broken.svg").write_text("<html></html>", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"broken\.svg: not an SVG"):
        write_page(SETTINGS, markdown, [tmp_path / "broken.svg"], tmp_path / "index.html")
    assert not (tmp_path / "index.html").exists()


def test_the_page_counts_the_corpora_and_links_their_cards(tmp_path: Path, markdown: Path) -> None:
    output = tmp_path / "results" / "demo" / "index.html"
    card = tmp_path / "results" / "cards" / "a&b" / "manifest.json"
    counts = {"documents": 3, "sentences": 40, "words": 1234567, "characters": 5}
    with stage_run(card, {}) as run:
        (run.folder / "card.html").write_text("card")
        run.add_output(run.folder / "card.html")
        run.measures.update({"train": counts, "dev": {**counts, "documents": 1}})
    write_page(SETTINGS, markdown, [], output, {"a&b": card})
    page = output.read_text(encoding="utf-8")
    assert '<a href="../cards/a&amp;b/card.html">a&amp;b</a>' in page
    assert page.count("1,234,567") == 2


def test_a_long_page_begins_with_links_to_its_sections(tmp_path: Path, markdown: Path) -> None:
    titles = ("Overview", "Minimal pairs: blimp", "Fine-tuning: glue, further metrics")
    markdown.write_text("# Summary\n\n" + "".join(f"## {title}\n\ntext\n\n" for title in titles), encoding="utf-8")
    output = tmp_path / "index.html"
    write_page(SETTINGS, markdown, [], output)
    page = output.read_text(encoding="utf-8")
    assert page.index("</h1>") < page.index("<nav") < page.index("<h2")
    targets = re.findall(r'<a href="#([^"]+)">', page)
    assert targets == ["overview", "minimal-pairs-blimp", "fine-tuning-glue-further-metrics", "figures"]
    assert all(f'<h2 id="{target}">' in page for target in targets)
