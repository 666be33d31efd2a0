"""Baselines in the workflow: reported if they are missing, left out by one key, evaluated next to our models."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from baseline_cases import ARCHITECTURES, build
from forked import LOAD
from projects import rows_of, snakemake, with_narrow_figures

NAMES = ("bert", "gpt2", "t5")
# Every job of these models would import the same modules of the library, which takes most of the job's time.
IMPORTED = {LOAD: " ".join(f"transformers.models.{name}.modeling_{name}" for name in NAMES)}
ORGANISERS = ("opt_125m", "roberta_base", "t5_base")


def missing(text: str) -> dict[str, str]:
    lines = re.findall(r"^missing: (source '(\w+)' .*)$", text, re.MULTILINE)
    return {name: line for line, name in lines}


@pytest.mark.parametrize("experiment", ["strict", "bnc"])
def test_a_paper_s_baselines_are_planned_told_when_they_are_not_there_and_left_out_by_one_key(
    experiment: str, project: Path
) -> None:
    target = f"results/{experiment}/index.html"
    planned = snakemake(project, "-n", target)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    told = {name: line for name, line in missing(planned.stderr).items() if "leave_out_baselines" in line}
    names = [f"babylm_{name}" for name in ORGANISERS] if experiment != "bnc" else ["bert_base_cased"]
    # BERT is fetched from the hub at a commit, so its absence is not reported.
    assert sorted(told) == sorted(names if experiment != "bnc" else [])
    for name, line in told.items():
        assert f"to continue without this model: leave_out_baselines: [{name}] in config/config.yaml" in line
        assert "on the Hugging Face hub; give their folder" in line
    assert re.search(rf"^import_model +{len(names)}$", planned.stdout + planned.stderr, re.MULTILINE)

    left_out = f"leave_out_baselines=[{','.join(names)}]"
    without = snakemake(project, "-n", target, "--config", left_out)
    assert without.returncode == 0, without.stdout + without.stderr
    assert "import_model" not in without.stdout and not set(names) & missing(without.stderr).keys()

    real = snakemake(project, "--cores", "1", target)
    assert real.returncode != 0 and not (project / "resources").exists()
    assert all(f"error: {line}" in real.stderr for line in told.values())


@pytest.mark.slow
def test_tiny_models_of_others_go_through_every_evaluation_beside_ours_and_stand_on_the_page(project: Path) -> None:
    config = project / "config"
    entries = ""
    for name in NAMES:
        for part in build(name, positions=512):
            part.save_pretrained(project / "models" / name)
        entries += f"  tiny_{name}:\n    path: {project}/models/{name}\n    licence: none\n"
        block = f"data: tiny_{name}\narchitecture: {ARCHITECTURES[name]}\n"
        (config / f"baselines/{name}.yaml").write_text(block, encoding="utf-8")
    main = (config / "config.yaml").read_text(encoding="utf-8")
    (config / "config.yaml").write_text(main.replace("\ndata:\n", f"\ndata:\n{entries}", 1), encoding="utf-8")
    path = config / "experiments/tiny.yaml"
    text = path.read_text(encoding="utf-8")
    runs = "runs:\n  ltg_bert: {model: ltg_tiny}\n"
    text = re.sub(r"(?ms)^runs:.*?^(?=\w)", runs, text) + f"baselines: [{', '.join(NAMES)}]\n"
    # Their tokenizers know only letters, so texts are long, and probes drop texts that are too long.
    text = text.replace("seeds: [4], max_length: 32", "seeds: [4], max_length: 256")
    path.write_text(text, encoding="utf-8")
    with_narrow_figures(project, "tiny")

    made = snakemake(project, "--cores", "1", "results/tiny/index.html", environment=IMPORTED)
    assert made.returncode == 0, made.stdout + made.stderr

    results = project / "results/tiny"
    rows = rows_of(results / "summary.csv")
    suites = {model: {row["suite"] for row in rows if row["model"] == model} for model in ("ltg_bert", *NAMES)}
    for name in NAMES:
        assert suites[name] == suites["ltg_bert"] - {"pretraining"}, name
    assert {"perplexity", "tiny_pairs", "demo_probing"} <= suites["t5"]
    runs_of = {row["run"]: row for row in pq.read_table(results / "runs.parquet").to_pylist()}
    assert set(runs_of) == {"ltg_bert-s42", *NAMES}
    for name in NAMES:
        assert runs_of[name]["parameters"] == build(name, positions=512)[1].num_parameters()
        assert (results / f"baselines/{name}/manifest.json").is_file()
    page = (results / "index.html").read_text(encoding="utf-8")
    assert all(name in page for name in NAMES)
    again = snakemake(project, "-n", "results/tiny/index.html")
    assert "Nothing to be done" in again.stdout + again.stderr
