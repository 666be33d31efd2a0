"""The caption of the card in the report, rendered the way Snakemake renders it."""

from pathlib import Path
from types import SimpleNamespace

from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined


def test_the_caption_renders_without_complaint_and_names_the_corpus(repository: Path) -> None:
    text = (repository / "workflow" / "report" / "corpus_card.rst").read_text(encoding="utf-8")
    snakemake = SimpleNamespace(wildcards=SimpleNamespace(corpus="babylm_10M"), input=[], config={})
    rendered = Environment(undefined=StrictUndefined).from_string(text).render(snakemake=snakemake)
    body = publish_parts(rendered, writer="html", settings_overrides={"halt_level": 2})["body"]
    assert "system-message" not in body
    assert "babylm_10M" in body
