"""The captions of the report, rendered the way Snakemake renders them."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

FIGURES = ("learning_curves", "layer_weights", "phenomena", "task_scores", "bias_violins", "feature_dots")
CAPTIONS = (
    *(*FIGURES, "layer_contributions", "pretraining", "summary", "workflow"),
    *("run_card", "provenance", "paper_tables"),
)


class Inputs(list):
    """Three inputs, also under the names that rules give them."""

    minimal_pairs = finetuning = ("a", "b", "c")
    published = ()


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_caption_renders_without_complaint(repository: Path, name: str) -> None:
    text = (repository / "workflow" / "report" / f"{name}.rst").read_text(encoding="utf-8")
    snakemake = SimpleNamespace(
        wildcards=SimpleNamespace(experiment="demo", cell="elc-s1"), input=Inputs("abc"), config={}
    )
    rendered = Environment(undefined=StrictUndefined).from_string(text).render(snakemake=snakemake)
    # Level 2 (warnings) and above stop the rendering, so a broken mark fails here and not in the report.
    body = publish_parts(rendered, writer="html", settings_overrides={"halt_level": 2})["body"]
    assert "system-message" not in body
    if name != "workflow":
        assert "demo" in body
    if name in FIGURES:
        assert re.search(r"\b3 (pretrained|in all|scored|fine-tuned)", body.replace("\n", " "))


@pytest.mark.parametrize("name", ["phenomena", "task_scores", "bias_violins", "feature_dots"])
def test_a_caption_names_diamonds_only_where_published_values_are_drawn(repository: Path, name: str) -> None:
    text = (repository / "workflow" / "report" / f"{name}.rst").read_text(encoding="utf-8")
    told = {}
    for published in ([], ["config/published/values/a.csv"]):
        inputs = SimpleNamespace(published=published, minimal_pairs=["a"], finetuning=["a"])
        snakemake = SimpleNamespace(wildcards=SimpleNamespace(experiment="demo"), input=inputs)
        rendered = Environment(undefined=StrictUndefined).from_string(text).render(snakemake=snakemake)
        told[bool(published)] = "diamond" in rendered
    assert told == {False: False, True: True}
