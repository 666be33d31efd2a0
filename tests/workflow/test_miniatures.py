"""The miniatures of the papers' experiments run from generated raw files to pages, tables, figures and reports."""

import json
import re
import sys
from pathlib import Path

import forked
import pytest
import yaml
from lxml import etree
from page_links import link_problems
from projects import (
    ONE_CONVERTS,
    make_project,
    planned_rules,
    rows_of,
    snakemake,
    with_fewer_pairs,
    with_smaller_models,
)

from hatchery.artifacts.manifests import read_manifest
from hatchery.experiment.project import Project
from hatchery.views.stages.draw_figure import figures_of
from hatchery.workflow.jobs import Jobs

pytestmark = pytest.mark.slow

MINIATURES = {
    "strict_mini": "elc_bert",
    "strict_small_mini": "elc_bert",
    "bnc_mini": "ltg_bert",
    "gpt_bert_mini": "gpt_bert",
}
# The paper's tables that compare models of the track; tables of variants and orders belong to the other track.
TABLES = {
    "strict_mini": (1, 2, 3, 7, 8, 9, 10, 11, 12),
    "strict_small_mini": (1, 2, 7, 8, 9, 10),
    "bnc_mini": (1, 2, 3, 4, 5, 6, 7, 8),
    # Two more tables belong to a study, and to a suite that is not generated.
    "gpt_bert_mini": (1, 3, 4, 5, 6, 7),
}
AGAIN = "strict_small_mini"
# Only these models run: every table of the paper gets numbers of ours, and every figure data.
RUNS = {
    "strict_mini": ("ltg_bert", "elc_biased", "elc_zero"),
    "strict_small_mini": ("ltg_bert", "elc_zero", "elc_zero_submitted"),
    "bnc_mini": ("subword", "post_norm", "order_nsp", "half_steps"),
    "gpt_bert_mini": ("gpt_bert", "ratio"),
}
# In its file, one of these models trains long enough to learn.
FEWER_STEPS = {
    **{experiment: {"batch_size": 8} for experiment in ("strict_mini", "strict_small_mini", "bnc_mini")},
    "gpt_bert_mini": {"steps": 20, "batch_size": 32, "evaluation_interval_steps": 10, "evaluation_sequences": 32},
}
# Table 2 of GPT-BERT shows models of two experiments. No other run of the second experiment has a row.
STUDY, ABLATIONS = "gpt_bert_table_2_mini", "gpt_bert_ablations_mini"
WITHOUT = ("layer_weights", "gate", "mask_schedule", "batch_schedule")
# Fine-tuning is also shorter than in the files, because longer fine-tuning does not improve a tiny model.
EPOCHS = 1
# One experiment shows spreads over several seeds, and another one the choice between several learning rates.
SEVERAL_SEEDS, SEVERAL_RATES, MOST_RATES = "strict_mini", "strict_small_mini", 2
# Figures that the tiny experiment does not have.
OTHERS = ("bias_violins", "feature_dots")


def pages(*experiments: str) -> list[str]:
    return [f"results/{experiment}/index.html" for experiment in experiments]


TABLE_2 = f"results/{STUDY}/analyses/table_2/manifest.json"


def shorten_ablations(folder: Path) -> None:
    """Keep only the two numbers for which the miniature of Table 2 has a column, of models without one part each."""
    files = [folder / f"config/experiments/{name}.yaml" for name in ("gpt_bert_mini", ABLATIONS)]
    base, block = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in files)
    # The base experiment loses these runs in these tests, so copy them.
    block["runs"] |= {run: settings for run, settings in base["runs"].items() if run.startswith("without_")}
    block["minimal_pairs"] = ["demo_pairs_mntp"]
    block["finetuning"] = {"tasks": dict.fromkeys(base["finetuning"]["tasks"])}
    files[1].write_text(json.dumps(block, indent=1), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """A project folder in which some models of all miniatures ran to the pages."""
    folder = make_project(tmp_path_factory.mktemp("miniatures") / "project", repository)
    with_fewer_pairs(folder)
    with_smaller_models(folder)
    shorten_ablations(folder)
    for experiment, runs in RUNS.items():
        path = folder / f"config/experiments/{experiment}.yaml"
        block = yaml.safe_load(path.read_text(encoding="utf-8"))
        # Another test (`test_dry_runs`) plans all runs of the experiment.
        assert len(block["runs"]) > len(runs)
        block["runs"] = {run: block["runs"][run] for run in runs}
        block["pretraining"] |= FEWER_STEPS.get(experiment, {})
        # The figures are so narrow that phones need no separate drawings.
        block["figures"] = {"width_inches": 5}
        for settings in (block["finetuning"]["protocol"], *block["finetuning"]["tasks"].values()):
            if "base" in settings:
                settings["epochs"] = EPOCHS
            if "learning_rates" in settings:
                most = MOST_RATES if experiment == SEVERAL_RATES else 1
                settings["learning_rates"] = settings["learning_rates"][:most]
            if experiment != SEVERAL_SEEDS and "seeds" in settings:
                settings["seeds"] = settings["seeds"][:1]
        # JSON text is also YAML.
        path.write_text(json.dumps(block, indent=1), encoding="utf-8")
    result = snakemake(folder, *ONE_CONVERTS, "--cores", "2", *pages(*MINIATURES), TABLE_2, timeout=3600)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return folder


@pytest.fixture(scope="module")
def jobs(folder: Path) -> Jobs:
    return Jobs(Project(folder / "config"))


@pytest.mark.parametrize("experiment", MINIATURES)
def test_every_run_has_its_row_for_every_suite_and_task(experiment: str, folder: Path, jobs: Jobs) -> None:
    block = jobs.project.experiment(experiment)
    rows = rows_of(folder / f"results/{experiment}/summary.csv")
    for run in block.runs:
        of_run = [row for row in rows if row["model"] == run]
        assert set(block.finetuning.tasks) <= {row["task"] for row in of_run}
        assert set(block.minimal_pairs) <= {row["suite"] for row in of_run}
        for task in block.finetuning.tasks:
            counted = {int(row["n"]) + int(row["n_without_number"]) for row in of_run if row["task"] == task}
            protocol = jobs.project.protocol_of(experiment, task)
            assert counted == {len(protocol.seeds) * len(protocol.learning_rates)}, (run, task)


@pytest.mark.parametrize(("experiment", "paper"), MINIATURES.items())
def test_every_table_of_the_paper_is_there_and_says_that_this_is_a_miniature(
    experiment: str, paper: str, folder: Path, jobs: Jobs
) -> None:
    manifest = read_manifest(folder / jobs.results.of("write_tables", experiment=experiment))
    manifest.verify()
    names = {f"{paper}_table_{number:02}" for number in TABLES[experiment]}
    assert {path.stem for path in manifest.files(".md")} == names | {"tables"}
    assert {path.stem for path in manifest.files(".tex")} == names | {"tables"}
    chosen = jobs.project.experiment(experiment).paper_tables
    assert chosen is not None
    for name in names:
        assert chosen.caveat in " ".join(manifest.file(f"{name}.md").read_text(encoding="utf-8").split())
        assert r"\begin{tabular}" in manifest.file(f"{name}.tex").read_text(encoding="utf-8")
    page = (folder / f"results/{experiment}/index.html").read_text(encoding="utf-8")
    for name in (*(f"{name}.tex" for name in names), "tables.md"):
        assert f'href="paper_tables/{name}"' in page


def test_table_2_of_gpt_bert_is_filled_by_models_without_one_part_each(folder: Path, jobs: Jobs) -> None:
    measured = {
        (row["model"], row["task"], row["metric"]): float(row["mean"] or "nan")
        for row in rows_of(folder / f"results/{STUDY}/summary.csv")
        if row["suite"] in ("perplexity", "demo_pairs_mntp")
    }
    numbers = [
        row for row in rows_of(folder / f"results/{STUDY}/analyses/table_2/numbers.csv") if row["of"] == ABLATIONS
    ]
    filled = {(row["row"], row["task"], row["metric"]): float(row["value"]) for row in numbers if row["value"]}
    columns = [("dev", "perplexity"), ("paradigm_average", "best_temperature_accuracy_percent")]
    assert list(filled) == [(f"without_{part}", *column) for part in WITHOUT for column in columns]
    for (row, *column), difference in filled.items():
        ours, whole = measured[f"{ABLATIONS}/{row}", *column], measured["gpt_bert_mini/gpt_bert", *column]
        assert difference == pytest.approx(ours - whole, abs=1e-5)
    assert all(difference != 0 for (_, task, _), difference in filled.items() if task == "dev")


@pytest.mark.parametrize("experiment", MINIATURES)
def test_every_figure_is_a_drawing_on_the_page(experiment: str, folder: Path, jobs: Jobs) -> None:
    figures = jobs.results.of.each("draw_figure", experiment=experiment, figure=figures_of(jobs.project, experiment))
    for path in figures.values():
        assert etree.parse(folder / path).getroot().tag.endswith("svg")
    page = (folder / f"results/{experiment}/index.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= len(figures)
    assert {"learning_curves", "phenomena", "task_scores"} <= set(figures)
    elc = {"bias_violins", "feature_dots", "layer_weights"}
    others = {"bnc_mini": {"layer_contributions"}, "gpt_bert_mini": {"swept_values"}}
    assert others.get(experiment, elc) <= set(figures)


@pytest.mark.parametrize("experiment", MINIATURES)
def test_the_page_leads_to_everything_and_every_link_arrives(experiment: str, folder: Path) -> None:
    problems, seen = link_problems(folder / f"results/{experiment}/index.html")
    assert problems == []
    assert (folder / f"results/{experiment}/provenance.html").resolve() in seen


def test_a_cell_is_traced_to_raw_bytes_by_one_command(folder: Path, repository: Path) -> None:
    row = next(row for row in rows_of(folder / "results/bnc_mini/summary.csv") if row["task"] == "demo_glue_mnli")
    cell = "/".join(row[key] for key in ("model", "suite", "task", "metric"))
    command = [sys.executable, str(repository / "scripts/trace.py"), "results/bnc_mini/summary.csv", "--cell", cell]
    result = forked.run(
        [*command, "--verify", "--verify-raw", "--json"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    chain = json.dumps(json.loads(result.stdout))
    for stage in ("finetune", "pretrain", "encode_corpus", "train_tokenizer", "convert_corpus"):
        assert f'"{stage}"' in chain, stage
    assert re.search(r"embedded_\w+", chain)
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", chain))) > 5


def test_the_views_made_again_are_the_same_bytes(folder: Path) -> None:
    """The tiny experiment, which has no tables of a paper, tests equal results of runs from scratch."""
    results = folder / f"results/{AGAIN}"
    parts = ("*.csv", "*.parquet", "*.md", "*.txt", "index.html", "figures/*", "paper_tables/*")
    before = {path: path.read_bytes() for part in parts for path in results.glob(part) if path.is_file()}
    made_at = {path: path.stat().st_mtime_ns for path in before}
    views = ("summarise", "write_tables", "write_page", *(f"results/{AGAIN}/figures/{name}.svg" for name in OTHERS))
    result = snakemake(folder, "--cores", "2", "--forcerun", *views, "--", *pages(AGAIN), forked=False)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    again = {path for path in before if path.stat().st_mtime_ns != made_at[path] and path.name != "provenance.json"}
    assert [path for path in again if path.read_bytes() != before[path]] == []
    assert len(again) > 20
    names = {"summary.csv", "tables.tex", "tables.md", "index.html", *(f"{name}.svg" for name in OTHERS)}
    assert names <= {path.name for path in again}


def test_a_change_of_one_task_runs_its_job_again_and_trains_that_task_alone(folder: Path) -> None:
    path = folder / f"config/experiments/{AGAIN}.yaml"
    before = path.read_text(encoding="utf-8")
    manifests = sorted((folder / f"results/{AGAIN}/finetuning").glob("*/*/manifest.json"))
    changed_at = {manifest: manifest.stat().st_mtime_ns for manifest in manifests}
    path.write_text(before.replace('"demo_babylm_wsc": {}', '"demo_babylm_wsc": {"epochs": 2}'), encoding="utf-8")
    try:
        assert planned_rules(folder, f"results/{AGAIN}/summary.csv").keys() == {
            *("finetune_tasks", "collect_measurements", "summarise")
        }
        result = snakemake(folder, "--cores", "2", f"results/{AGAIN}/summary.csv", timeout=1800)
        assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    finally:
        path.write_text(before, encoding="utf-8")
    again = [manifest for manifest in manifests if manifest.stat().st_mtime_ns != changed_at[manifest]]
    assert {manifest.parent.name for manifest in again} == {"demo_babylm_wsc"}
    assert len(again) == len({manifest.parent.parent for manifest in manifests})
