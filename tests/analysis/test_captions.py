"""The captions of the report, rendered the way Snakemake renders them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

from hatchery.views.figures.registry import declared_figures

CAPTIONS = ("pretraining", "summary", "workflow", "run_card", "provenance", "paper_tables")


class Inputs(list):
    """Three inputs, also under the names that rules give them."""

    minimal_pairs = finetuning = ("a", "b", "c")
    published = ()


def body(repository: Path, name: str, **given: object) -> str:
    """The caption as HTML."""
    text = (repository / "workflow" / "report" / f"{name}.rst").read_text(encoding="utf-8")
    wildcards = SimpleNamespace(experiment="demo", run="elc-s1")
    snakemake = SimpleNamespace(wildcards=wildcards, input=Inputs("abc"), config={}, **given)
    rendered = Environment(undefined=StrictUndefined).from_string(text).render(snakemake=snakemake)
    # Level 2 (warnings) and above stop the rendering, so a broken mark fails here and not in the report.
    html = publish_parts(rendered, writer="html", settings_overrides={"halt_level": 2})["body"]
    assert "system-message" not in html
    return str(html)


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_caption_renders_without_complaint(repository: Path, name: str) -> None:
    assert ("demo" in body(repository, name)) == (name != "workflow")


@pytest.mark.parametrize("name", declared_figures())
def test_the_report_says_of_a_figure_what_its_page_says_and_more(repository: Path, name: str) -> None:
    declared = declared_figures()[name]
    html = body(repository, "figure", params=SimpleNamespace(text=declared.report_text("demo", False)))
    assert f"<strong>{declared.title} of</strong>" in html and "demo" in html
    assert " ".join(declared.caption.split()) in " ".join(html.split())
    assert "Source: " in html


@pytest.mark.parametrize("name", declared_figures())
def test_a_caption_names_diamonds_only_where_published_values_are_drawn(name: str) -> None:
    declared = declared_figures()[name]
    assert "diamond" not in declared.report_text("demo", False)
    assert ("diamond" in declared.report_text("demo", True)) == bool(declared.published)
