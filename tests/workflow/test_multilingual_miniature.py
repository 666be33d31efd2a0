"""The multilingual track of BabyLM in miniature: from raw rows in three scripts to the submission and the page."""

import json
from pathlib import Path

import pytest
from projects import ONE_CONVERTS, make_project, planned_rules, snakemake, with_narrow_figures, with_smaller_models

from hatchery.export.multilingual_check import TUNED, ZERO_SHOT, structure_problems

pytestmark = pytest.mark.slow

EXPERIMENT = "babylm_multilingual_mini"
RESULTS = f"results/{EXPERIMENT}"
TARGETS = [f"{RESULTS}/{name}" for name in ("multilingual_submission/manifest.json", "index.html")]


def test_rows_in_three_scripts_become_both_files_and_a_page(tmp_path: Path, repository: Path) -> None:
    folder = make_project(tmp_path / "project", repository)
    with_smaller_models(folder)
    with_narrow_figures(folder, EXPERIMENT)
    path = folder / f"config/experiments/{EXPERIMENT}.yaml"
    text = path.read_text(encoding="utf-8")
    assert "epochs: 2," in text
    path.write_text(text.replace("epochs: 2,", "epochs: 1,"), encoding="utf-8")
    # With 12 examples, files of four choices would be empty and a treebank too small for three splits.
    config = folder / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("examples_per_suite_task: 12", "examples_per_suite_task: 24"), encoding="utf-8")
    result = snakemake(folder, *ONE_CONVERTS, "--cores", "2", *TARGETS, timeout=1200)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    assert planned_rules(folder, *TARGETS) == {}

    made = folder / RESULTS / "multilingual_submission"
    accuracies, predictions = (
        json.loads((made / f"gpt_bert-s42_{name}.json").read_text(encoding="utf-8"))
        for name in ("submission", "predictions")
    )
    assert structure_problems(accuracies, predictions) == []
    assert set(accuracies) == {*ZERO_SHOT, *TUNED}
    assert {task: set(entry) for task, entry in accuracies.items() if task in TUNED} == {
        task: set(languages) for task, languages in TUNED.items()
    }
    assert set(predictions["hidden"]) == {"hanzi_structure", "hanzi_pinyin", "meco_l1", "meco_l2"}
    assert {name: set(predictions["hidden"][name]) for name in ("meco_l1", "meco_l2")} == {
        "meco_l1": {"eng", "nld", "zho"},
        "meco_l2": {"nld", "zho"},
    }
    assert [len(entry) for entry in predictions["fast_eval_results"]] == [25, 25, 25]
    assert all("meco_l1_zho" in entry for entry in predictions["fast_eval_results"])
    report = (made / "submission.md").read_text(encoding="utf-8").replace("\\_", "_")
    missing = report.partition("## Missing parts")[2].partition("## Structure")[0]
    # Three marks of a thousand words are fewer than the 28, and one table of reading times is measured at these marks.
    assert [line for line in missing.split("\n") if line.startswith("- ")] == [
        "- fast_eval_results: 3 of 28 checkpoints"
    ]
    page = (folder / RESULTS / "index.html").read_text(encoding="utf-8")
    assert "Multilingual track: means" in page and "without the bugs of the official trainer" in page
