"""The page of provenance: every row leads to its manifests, every link has a target, volatile facts stand apart."""

import re
from pathlib import Path
from typing import Any

import pytest

from hatchery.analysis.summary_rows import row_anchor
from hatchery.artifacts.atomic import write_text
from hatchery.runner import run_stage
from hatchery.views.stages.write_provenance import write_provenance

SETTINGS = {"stage": "write_provenance", "stage_version": 1, "experiment": "exp"}


def page(toy: Any) -> str:
    output = toy.folder / "results/exp/provenance.html"
    run_stage(
        write_provenance,
        SETTINGS,
        output,
        summary=toy.summary.with_suffix(".parquet"),
        project=toy.folder,
    )
    return output.read_text(encoding="utf-8")


def test_every_row_and_manifest_has_an_anchor_and_every_link_a_target(toy: Any) -> None:
    text = page(toy)
    anchors = re.findall(r'\bid="([^"]+)"', text)
    assert len(anchors) == len(set(anchors))
    assert row_anchor("ltg_bert", "pairs", "binding", "f1_percent") in anchors
    # Three rows, the pairs and pretraining of two models, tokens, corpus and source, and four sections.
    assert len(anchors) == 3 + 7 + 4
    links = re.findall(r'href="#([^"]+)"', text)
    assert set(links) <= set(anchors)
    assert not re.search(r'(?:src|href)="(?!#)', text)


def test_the_raw_files_and_their_terms_are_on_the_page(toy: Any) -> None:
    text = page(toy)
    assert text.count("raw text") == 0
    for number in range(7):
        assert f">text{number}.txt</th>" in text
    assert "licence: CC BY; terms: with attribution" in text


def test_only_the_section_of_volatile_facts_changes_when_the_work_is_done_again(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = page(toy)
    for path in (toy.folder / "results").rglob("provenance.json"):
        write_text(path, '{"host": "another-machine", "started": "later", "packages": {"torch": "9"}}')
    second = page(toy)
    mark = ">Times, places and versions</h2>"
    assert first.split(mark)[0] == second.split(mark)[0]
    assert first.split(mark)[1] != second.split(mark)[1]
    assert "another-machine" in second.split(mark)[1]


def test_what_is_gone_is_named_on_the_page(toy: Any) -> None:
    toy.manifest("tokens/toy/toy").unlink()
    text = page(toy)
    assert "Not found, or different" in text
    assert "input &#39;tokens&#39;: nothing in results/ or resources/ has the digest" in text


def test_names_from_files_cannot_break_the_page(toy: Any, tmp_path: Path) -> None:
    settings = {"stage": "score_minimal_pairs", "stage_version": 2, "suite": "<script>alert(1)</script>"}
    trained = toy.manifest("exp/pretraining/elc_bert-s1")
    toy.stage("exp/minimal_pairs/elc_bert-s1/pairs", settings, {"model": trained, "source": toy.source})
    toy.write_summary()
    text = page(toy)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
