"""The reduced-vocabulary study in miniature, from generated raw text to tables; a changed model reruns itself alone."""

import csv
from pathlib import Path

import pytest
from projects import make_project, planned_rules, snakemake

from hatchery.config.project import Project
from hatchery.storage.manifests import read_manifest

pytestmark = pytest.mark.slow

CONSTRAINED, UNCONSTRAINED = "reduced_vocabulary_constrained_mini", "reduced_vocabulary_unconstrained_mini"
SUMMARIES = tuple(f"results/{experiment}/summary.csv" for experiment in (CONSTRAINED, UNCONSTRAINED))
TASKS = ("cola", "sst2", "rte")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which both experiments ran to their tables, with the generated sources of the demo."""
    folder = make_project(tmp_path_factory.mktemp("scaling") / "project", repository)
    (folder / "config/config.yaml").write_bytes((repository / "config/config.yaml").read_bytes())
    result = snakemake(folder, "--cores", "2", *SUMMARIES, timeout=1800)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


def summary(folder: Path, experiment: str) -> list[dict[str, str]]:
    with (folder / f"results/{experiment}/summary.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize("experiment", [CONSTRAINED, UNCONSTRAINED])
def test_every_model_and_its_twin_have_losses_and_scores_on_all_and_on_filtered_rows(
    experiment: str, folder: Path
) -> None:
    rows = summary(folder, experiment)
    for run in Project(folder / "config").experiment(experiment)["runs"]:
        found = {(row["suite"], row["task"]) for row in rows if row["model"] == run}
        for task in TASKS:
            assert ("demo_rv_glue", f"demo_rv_glue_{task}") in found
            assert ("demo_rv_glue_filtered", f"demo_rv_glue_{task}_filtered") in found
        assert any(suite == "perplexity" for suite, _ in found)


def test_the_vocabulary_leaves_rows_out_and_keeps_some(folder: Path) -> None:
    base = folder / f"results/{CONSTRAINED}/finetuning/rv_16_16_64_1_2-s0"
    for task in TASKS:
        plain, filtered = (
            read_manifest(base / f"demo_rv_glue_{task}{end}/manifest.json").measures for end in ("", "_filtered")
        )
        assert plain != filtered


def test_models_of_any_words_are_tested_on_the_same_text_as_the_others(folder: Path) -> None:
    constrained, unconstrained = (
        folder / f"results/sequences/{name}" for name in ("demo_reduced", "demo_unconstrained")
    )
    assert constrained.is_dir() and unconstrained.is_dir()
    trained = {row["model"]: row["mean"] for row in summary(folder, UNCONSTRAINED) if row["task"] == "test"}
    assert set(trained) == set(Project(folder / "config").experiment(UNCONSTRAINED)["runs"])


def test_one_changed_model_of_a_grid_reruns_this_model_and_the_views_alone(folder: Path) -> None:
    assert planned_rules(folder, *SUMMARIES) == {}
    path = folder / f"config/experiments/{CONSTRAINED}.yaml"
    before = path.read_text(encoding="utf-8")
    row = "rows: [[32, 64, 256, 2, 4]]"
    assert row in before, f"{path} no longer holds {row!r}: mend this test"
    path.write_text(before.replace(row, "rows: [[32, 64, 128, 2, 4]]"), encoding="utf-8")
    try:
        planned = planned_rules(folder, *SUMMARIES)
    finally:
        path.write_text(before, encoding="utf-8")
    # The model and its untrained counterpart.
    assert planned == {
        "pretrain": 2,
        "finetune_tasks": 2,
        "measure_perplexity": 2,
        "collect_measurements": 1,
        "summarise": 1,
    }
