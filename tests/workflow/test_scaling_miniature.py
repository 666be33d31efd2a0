"""The reduced-vocabulary study in miniature, from generated raw text to its page, and reruns after changes."""

from pathlib import Path

import pytest
from projects import (
    EMBEDDED,
    ONE_CONVERTS,
    changed,
    make_project,
    planned_rules,
    rows_of,
    snakemake,
    with_narrow_figures,
)

from hatchery.analysis.studies import analyses_of
from hatchery.analysis.tidy_tables import CURVES, RUNS, read_frame
from hatchery.artifacts.manifests import read_manifest
from hatchery.experiment.project import Project

pytestmark = pytest.mark.slow

STUDY = "reduced_vocabulary_mini"
PAGE = f"results/{STUDY}/index.html"
CONSTRAINED, UNCONSTRAINED = "reduced_vocabulary_constrained_mini", "reduced_vocabulary_unconstrained_mini"
CHECKPOINTS = "reduced_vocabulary_checkpoints_mini"
SUMMARIES = tuple(f"results/{experiment}/summary.csv" for experiment in (CONSTRAINED, UNCONSTRAINED))
# The sweep trains tokenizers of 1,000 entries, for which fewer documents are not enough.
SOURCES = "embedded: {documents: 4000, pairs_per_paradigm: 2, examples_per_task: 4, examples_per_suite_task: 32}\n"
# With fewer epochs, models do not learn a task, but their scores are drawn and tabulated in the same way.
EPOCHS = "epochs: 6,"
TASKS = ("stsb", "rte")
TRAINING = {"pretrain", "finetune_tasks", "measure_perplexity"}
FIGURES = ("loss_by_flops", "loss_by_tokens", "loss_by_parameters", "scores_by_cost", "learning_curves", "task_scores")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which the study ran to its page, with one model less and shorter fine-tuning."""
    folder = make_project(tmp_path_factory.mktemp("scaling") / "project", repository)
    config = folder / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    assert EMBEDDED in text
    config.write_text(text.replace(EMBEDDED, SOURCES), encoding="utf-8")
    with_narrow_figures(folder, STUDY)
    path = folder / f"config/experiments/{CONSTRAINED}.yaml"
    text = path.read_text(encoding="utf-8")
    assert EPOCHS in text
    path.write_text(text.replace(EPOCHS, "epochs: 2,"), encoding="utf-8")
    path = folder / f"config/experiments/{CHECKPOINTS}.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("rows: [[32, 32, 64, 1, 1], ", "rows: ["), encoding="utf-8")
    result = snakemake(folder, *ONE_CONVERTS, "--cores", "2", PAGE, timeout=1800)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.mark.parametrize("experiment", [CONSTRAINED, UNCONSTRAINED])
def test_every_model_and_its_twin_have_losses_and_scores_on_all_and_on_filtered_rows(
    experiment: str, folder: Path
) -> None:
    rows = rows_of(folder / f"results/{experiment}/summary.csv")
    for run in Project(folder / "config").experiment(experiment).runs:
        found = {(row["suite"], row["task"]) for row in rows if row["model"] == run}
        for task in TASKS:
            assert ("demo_rv_glue", f"demo_rv_glue_{task}") in found
            assert ("demo_rv_glue_filtered", f"demo_rv_glue_{task}_filtered") in found
        assert any(suite == "perplexity" for suite, _ in found)


def test_the_vocabulary_leaves_rows_out_and_keeps_some(folder: Path) -> None:
    base = folder / f"results/{CONSTRAINED}/finetuning/rv_32_32_64_1_1-s0"
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
    trained = {
        row["model"]: row["mean"]
        for row in rows_of(folder / f"results/{UNCONSTRAINED}/summary.csv")
        if row["task"] == "test"
    }
    assert set(trained) == set(Project(folder / "config").experiment(UNCONSTRAINED).runs)


def numbers(folder: Path, entry: str) -> list[dict[str, str]]:
    return rows_of(folder / f"results/{STUDY}/analyses/{entry}/numbers.csv")


def test_the_page_has_the_figures_and_the_tables_of_the_study_which_are_latex_too(folder: Path) -> None:
    page = (folder / PAGE).read_text(encoding="utf-8")
    project = Project(folder / "config")
    for entry, settings in analyses_of(project, STUDY).items():
        made = {path.name for path in (folder / f"results/{STUDY}/analyses/{entry}").iterdir()}
        assert {"tables.tex", "table_01.tex", "tables.md", "numbers.csv"} <= made
        assert f"analyses/{entry}/table_01.tex" in page
        assert not settings.title or settings.title in page
    for figure in FIGURES:
        assert (folder / f"results/{STUDY}/figures/{figure}.svg").is_file()


def test_the_tables_of_the_paper_have_our_numbers(folder: Path) -> None:
    texts = {(row["of"], row["kind"]) for row in numbers(folder, "table_1") if float(row["number"]) > 0}
    assert texts >= {(part, kind) for part in (CONSTRAINED, UNCONSTRAINED) for kind in ("selected", "sequences")}
    assert sum(row["final_choice"] == "1" for row in numbers(folder, "table_6")) == 1
    ours = [row for row in numbers(folder, "table_3") if row["of"] == CONSTRAINED]
    # Three of our models have the names of rows in Table 3, and so have their twins.
    assert len(ours) == 3 * 6 and all(row["value"] for row in ours)
    changes = [row for row in numbers(folder, "table_4") if row["of"] == UNCONSTRAINED]
    assert len(changes) == 2 * 4 and all(row["value"] for row in changes)


def test_laws_steps_and_scores_are_of_our_models(folder: Path) -> None:
    points = {
        row["model"] for row in numbers(folder, "power_laws") if (row["kind"], row["source"]) == ("point", "ours")
    }
    trained = [run for run in Project(folder / "config").experiment(CONSTRAINED).runs if "untrained" not in run]
    assert points == {f"{CONSTRAINED}/{run}" for run in trained}
    assert [row["to"] for row in numbers(folder, "cost_effectiveness") if row["source"] == "ours"] == ["128"]
    scored = [row for row in numbers(folder, "correlation") if (row["kind"], row["source"]) == ("model", "ours")]
    # Both suites have scores of all models except the largest, whose scores may be missing after sixty steps.
    assert len(scored) >= 2 * 3 and all(row["score"] for row in scored)
    assert {row["against"].partition("/")[0] for row in numbers(folder, "comparison")} == {CONSTRAINED}


def test_one_changed_model_of_a_grid_reruns_this_model_and_the_views_alone(folder: Path) -> None:
    assert planned_rules(folder, PAGE, *SUMMARIES) == {}
    row = "rows: [[32, 64, 256, 2, 4]]"
    with changed(folder / f"config/experiments/{CONSTRAINED}.yaml", row, "rows: [[32, 64, 128, 2, 4]]"):
        planned = planned_rules(folder, *SUMMARIES)
        of_page = planned_rules(folder, PAGE)
    # The model and its untrained counterpart.
    assert planned == {
        "pretrain": 2,
        "finetune_tasks": 2,
        "measure_perplexity": 2,
        "collect_measurements": 1,
        "summarise": 1,
    }
    assert {rule: of_page[rule] for rule in TRAINING} == dict.fromkeys(TRAINING, 2)
    assert not of_page.keys() & {
        "train_tokenizer",
        "encode_corpus",
        "select_text",
        "select_tokenizer",
        "describe_corpus",
    }


def test_a_setting_of_an_analysis_reruns_the_analysis_its_figures_and_the_page(folder: Path) -> None:
    with changed(folder / f"config/studies/{STUDY}.yaml", "draws: 50", "draws: 40"):
        planned = planned_rules(folder, PAGE)
    drawn = {f"draw_figure loss_by_{axis}": 1 for axis in ("flops", "tokens", "parameters")}
    assert planned == {"analyse": 1, "write_page": 1, **drawn}


def test_another_sweep_or_a_printed_size_reruns_the_table_that_shows_it_and_the_page(folder: Path) -> None:
    with changed(folder / "config/tokenizer_sweeps/demo_reduced.yaml", "sizes: [600, 800, 1000]", "sizes: [600, 1000]"):
        assert planned_rules(folder, PAGE) == {"select_tokenizer": 1, "analyse": 1, "write_page": 1}
    with changed(folder / "config/published/corpora/sizes.csv", "c4,span,spans,3,", "c4,span,spans,3.1,"):
        planned = planned_rules(folder, PAGE)
    assert planned["analyse"] == 1
    assert not planned.keys() & {*TRAINING, "group_sequences", "encode_corpus", "join_experiments", "summarise"}


def test_checkpoints_inside_runs_are_models_of_figure_4(folder: Path) -> None:
    """These models have perplexities and scores, and the sizes, losses and FLOPs of their step in the run's curve."""
    project = Project(folder / "config")
    runs = {row["run"]: row for row in read_frame(folder / f"results/{CHECKPOINTS}/runs.parquet", RUNS).to_dicts()}
    assert set(runs) == {run.name for run in project.seeded_runs(CHECKPOINTS)} and len(runs) == 2 * 3
    curves = read_frame(folder / f"results/{CHECKPOINTS}/curves.parquet", CURVES).to_dicts()
    for step in (20, 40):
        (point,) = [row for row in curves if (row["run"], row["step"]) == ("rv_32_32_128_2_2-s0", step)]
        row, whole = runs[f"rv_32_32_128_2_2_at_{step}-s0"], runs["rv_32_32_128_2_2-s0"]
        assert (row["steps"], row["tokens"], row["initial"]) == (step, point["tokens"], "")
        assert (row["training_flops"], row["development_loss"]) == (point["flops"], point["development_loss"])
        assert row["training_flops"] == pytest.approx(whole["training_flops"] * step / whole["steps"])
    models = [row for row in numbers(folder, "figure_4") if row["kind"] == "model"]
    assert len(models) == 2 * len(runs)
    # All checkpoints of a run are different models.
    assert len({row["perplexity"] for row in models}) == len(runs)
