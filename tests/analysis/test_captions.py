"""The captions of the report, rendered the way Snakemake renders them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

CAPTIONS = ("learning_curves", "layer_weights", "phenomena", "pretraining", "summary", "workflow")


@pytest.mark.parametrize("name", CAPTIONS)
def test_a_caption_renders_without_complaint(repository: Path, name: str) -> None:
    text = (repository / "workflow" / "report" / f"{name}.rst").read_text(encoding="utf-8")
    snakemake = SimpleNamespace(
        wildcards=SimpleNamespace(experiment="demo", cell="elc-s1"), input=["a", "b", "c"], config={}
    )
    rendered = Environment(undefined=StrictUndefined).from_string(text).render(snakemake=snakemake)
    # Level 2 (warnings) and above stop the rendering, so a broken mark fails here and not in the report.
    body = publish_parts(rendered, writer="html", settings_overrides={"halt_level": 2})["body"]
    assert "system-message" not in body
    if name != "workflow":
        assert "demo" in body
    if name in ("learning_curves", "layer_weights", "phenomena"):
        assert "(3 " in body.replace("\n", " ")
