"""Views of a large experiment: seconds, bytes and lines of what is made from finished runs.

Writes what single runs would leave behind (synthetic numbers, the files of the stages) for so many models and 40 tasks
of three seeds each, and then calls the commands of the views as their rules do, one after another on one core: the tidy
tables, summary, tables of the paper, cost, analyses, figures, provenance and the page. Baseline: at commit 1e4d00f,
where every view read the outputs of single runs, the summary of 500 models alone took 136 s. The limit for 1,000 models
is 120 seconds and 2 GiB of memory for all views together.
"""

import argparse
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "scripts"))

from hatchery.artifacts.checksums import digest  # noqa: E402
from hatchery.experiment.project import Project  # noqa: E402
from hatchery.workflow.jobs import Jobs  # noqa: E402
from hatchery.workflow.registry import stage_of  # noqa: E402

NAME = "many"
LIMIT_SECONDS, LIMIT_GIB = 120.0, 2.0
SEEDS = (1, 2, 3)
CURVE_ROWS = 200
PAIRS = 1000


def write(
    folder: Path, files: Mapping[str, str | bytes], settings: Any, inputs: Mapping[str, str], measures: Any
) -> str:
    """A result as a stage leaves it; gives the digest of its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    outputs = []
    for name, text in sorted(files.items()):
        content = text if isinstance(text, bytes) else text.encode()
        (folder / name).write_bytes(content)
        outputs.append({"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    stage = {"stage": settings.get("stage", ""), "stage_version": settings.get("stage_version", 1)}
    manifest = {**stage, "settings": settings, "inputs": inputs, "outputs": outputs, "measures": measures}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    found = hashlib.sha256(text.encode()).hexdigest()
    facts = {"manifest_sha256": found, "started": "2026-01-01T00:00:00+00:00", "training_seconds": 1.0}
    (folder / "provenance.json").write_text(json.dumps({**facts, "checksum": digest(facts)}), encoding="utf-8")
    return found


def make_project(folder: Path, models: int, tasks: int) -> Jobs:
    """A project with the experiment `many`; the working directory is its folder from here on."""
    for path in ("scripts", "workflow", "Snakefile"):
        (folder / path).symlink_to(REPOSITORY / path)
    subprocess.run(["cp", "-r", str(REPOSITORY / "config"), str(folder / "config")], check=True)
    block = yaml.safe_load((REPOSITORY / "config/experiments/strict_small.yaml").read_text(encoding="utf-8"))
    names = sorted(path.stem for path in (REPOSITORY / "config/tasks").glob("*.yaml") if "demo" not in path.stem)
    chosen = [*block["finetuning"]["tasks"], *(name for name in names if name.startswith(("glue_", "superglue_")))]
    block["runs"] = {f"m{number}": {"model": "elc_small", "seeds": [1]} for number in range(models)}
    block["finetuning"] = {"protocol": {"base": "elc_bert"}, "tasks": {name: {} for name in chosen[:tasks]}}
    block["published"]["rows"] = {"m0": "ltg_bert_small", "m1": "elc_bert_small_zero"}
    block["perplexity"] = {"splits": ["dev"]}
    block["baselines"] = []
    path = folder / f"config/experiments/{NAME}.yaml"
    path.write_text(yaml.safe_dump(block, sort_keys=False), encoding="utf-8")
    os.chdir(folder)
    return Jobs(Project("config"))


def fill(layout: Jobs) -> None:
    """Write what all runs would have left behind, at its readable places."""
    random.seed(1)
    project = layout.project
    split = {"words": 10_000_000, "tokens": 13_000_000}
    write(Path(layout.results.tokens(NAME)).parent, {}, {}, {}, {"splits": {"train": split}})
    for manifest in layout.results.cards(NAME).values():
        card = {"statistics.csv": "source,split,documents,subwords\n(all),train,40,\n", "card.html": "card"}
        sizes = {"documents": 40, "sentences": 700_000, "words": 10_000_000, "characters": 53_000_000}
        write(Path(manifest).parent, card, {}, {}, {"train": sizes})
    digests: dict[str, str] = {}
    for name, path in layout.results.pretrained(NAME).items():
        settings = json.loads(stage_of("pretrain").canonical_settings(project, experiment=NAME, run=name))
        config = {**settings["model"], "vocab_size": 6144, "sentence_pair_head": False, "vocabulary_bias": True}
        layers = int(config["num_hidden_layers"])
        rows = [
            {"consuming_layer": n, "producing_layer": i, "weight": 1 / n, "scaled_weight": 1.0}
            for n in range(1, layers + 1)
            for i in range(n)
        ]
        step = settings["steps"] // CURVE_ROWS
        curve = [{"step": k * step, "tokens": 1000 * k, "loss": 10 / k + random.random()} for k in range(1, 201)]
        curve[-1] |= {"development_loss": 2 + random.random(), "development_perplexity": 8 + random.random()}
        files = {
            "config.json": json.dumps(config),
            "layer_weights.json": json.dumps({"rows": rows}),
            "metrics.jsonl": "".join(json.dumps(row) + "\n" for row in curve),
        }
        measures = {"parameters": 24_000_000, "steps": curve[-1]["step"], "tokens": 200_000}
        digests[name] = write(Path(path).parent, files, settings, {"tokens": name}, measures)
    answers = [{"text": "sleep", "percent": 40.0}, {"text": "eat", "percent": 1.5}]
    example = {"given": "The dogs ____ near the house.", "original": "sleep", "answers": answers}
    for name, path in layout.results.filled_sentences(NAME).items():
        filled = {"sentences.json": json.dumps({"task": "fill", "examples": [example]})}
        write(Path(path).parent, filled, {}, {"model": digests[name]}, {"split": "dev"})
    for name, path in layout.results.of_kind(NAME, "perplexity").items():
        header = "split,sequences,labelled_tokens,loss_nats,perplexity,accuracy,pseudo_perplexity\n"
        text = f"{header}dev,9,900,2.1,8.2,{random.random()},\n"
        write(Path(path).parent, {"perplexity.csv": text}, {}, {"model": digests[name]}, {})
    for name, path in layout.results.of_kind(NAME, "minimal_pairs").items():
        run, suite = name.split(":")
        text = "level,name,pairs,correct,ties,accuracy,accuracy_ties_correct\n" + "".join(accuracies(suite))
        judged = {"accuracy.csv": text, "scores.parquet": scores(text)}
        write(Path(path).parent, judged, {}, {"model": digests[run]}, {})
    for name, path in layout.results.of_kind(NAME, "finetuning").items():
        run, task = name.split(":")
        block = project.task(task)
        settings = {"task": {"name": task, "suite": block.suite, "metrics": block.metrics[:2]}, "transfer": []}
        header = "rows,seed,learning_rate,metric,value,best_step,development_value,failed\n"
        text = header + "".join(
            f"validation,{seed},5e-05,{metric},{random.random()},30,0.5,"
            f"{'zero_mcc' if random.random() < 0.01 else ''}\n"
            for seed in SEEDS
            for metric in block.metrics[:2]
        )
        write(Path(path).parent, {"results.csv": text}, settings, {"model": digests[run]}, {"scored_validation": 300})


def accuracies(suite: str) -> Iterator[str]:
    """Rows of accuracy.csv: 12 phenomena of BLiMP with 67 paradigms, or the five files of the supplement."""
    from hatchery.analysis.task_averages import PARADIGMS_OF_PHENOMENON, SUPPLEMENT_FILES

    phenomena = PARADIGMS_OF_PHENOMENON if suite.startswith("blimp") else dict.fromkeys(SUPPLEMENT_FILES, 1)
    for phenomenon, paradigms in phenomena.items():
        for number in range(paradigms):
            right = random.randrange(500, 1000)
            yield f"paradigm,{phenomenon}_{number},1000,{right},0,{right / 1000},{right / 1000}\n"
        yield f"phenomenon,{phenomenon},{1000 * paradigms},{700 * paradigms},0,0.7,0.7\n"
    yield f"suite,{suite},67000,46900,0,0.7,0.7\n"


def scores(accuracies: str) -> bytes:
    """scores.parquet for the paradigms of accuracy.csv: which pairs are judged rightly."""
    paradigms = [row.split(",")[1] for row in accuracies.splitlines() if row.startswith("paradigm,")]
    pairs = pl.DataFrame({"paradigm": paradigms}).join(
        pl.DataFrame({"pair_id": [str(number) for number in range(PAIRS)]}), how="cross"
    )
    right = np.random.default_rng(random.randrange(2**32)).random(len(pairs)) < 0.7
    file = io.BytesIO()
    pairs.with_columns(
        outcome=pl.when(pl.Series(right)).then(pl.lit("correct")).otherwise(pl.lit("wrong"))
    ).write_parquet(file)
    return file.getvalue()


def call(layout: Jobs, stage: str, *words: str, **wildcards: str) -> tuple[float, float]:
    """Run a command of the workflow as its rule does; seconds and the most GiB of memory."""
    file = layout.call(stage, **wildcards)
    file.write()
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, "scripts/run.py", stage, f"@{file.path}", *words])
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{stage} failed")
    return time.perf_counter() - started, used.ru_maxrss / 2**20


def views(layout: Jobs) -> Iterator[tuple[str, float, float]]:
    """Make all views; the name, seconds and GiB of each."""
    root = f"results/{NAME}"
    tidy = {name: f"{root}/{name}.parquet" for name in ("measurements", "runs", "curves", "layers")}
    summary = {name: f"{root}/{file}" for name, file in SUMMARY.items()}
    forms = [word for name, path in summary.items() for word in (f"--{name}", path)]
    measured = ("--measurements", tidy["measurements"])
    one = {"experiment": NAME}
    yield "collect_measurements", *call(layout, "collect_measurements", "--output", tidy["measurements"], **one)
    yield "summarise", *call(layout, "summarise", *measured, *forms, **one)
    published = ("--published", layout.results.table_numbers(NAME)[0], "--layout", layout.results.table_layout(NAME)[0])
    sizes = ("--sizes", "config/published/corpora/sizes.csv", "--output", f"{root}/paper_tables/manifest.json")
    layers = ("--summary", summary["parquet"], "--layers", tidy["layers"])
    yield "write_tables", *call(layout, "write_tables", *layers, *measured, *published, *sizes, **one)
    costs = ("--output", f"{root}/cost.csv", "--markdown", f"{root}/cost.md", "--page", f"{root}/cost.html")
    yield "write_cost", *call(layout, "write_cost", *costs, **one)
    for analysis, path in layout.results.analyses(NAME).items():
        yield f"analyse {analysis}", *call(layout, "analyse", "--output", path, analysis=analysis, **one)
    for figure, path in layout.results.figures(NAME).items():
        yield f"draw_figure {figure}", *call(layout, "draw_figure", "--output", path, figure=figure, **one)
    provenance = f"{root}/provenance.html"
    made_from = ("--summary", summary["parquet"], "--output", provenance)
    yield "write_provenance", *call(layout, "write_provenance", *made_from, **one)
    texts = ("--summary", summary["parquet"], "--markdown", summary["markdown"], "--notes", summary["notes"])
    leads_to = ("--provenance", provenance, "--cost", f"{root}/cost.html", "--runs", tidy["runs"])
    drawings = ("--figures", *layout.results.figures(NAME).values(), "--output", f"{root}/index.html")
    yield "write_page", *call(layout, "write_page", *texts, *leads_to, *drawings, **one)


SUMMARY = {
    "output": "summary.csv",
    "parquet": "summary.parquet",
    "markdown": "summary.md",
    "text": "summary.txt",
    "notes": "summary_notes.json",
}


def main(models: int, tasks: int) -> int:
    """Print a line for each view and the sums; the exit status is 1 beyond a limit."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        layout = make_project(Path(folder), models, tasks)
        fill(layout)
        print(f"{models} models x {tasks} tasks written in {time.perf_counter() - started:.0f} s", flush=True)
        seconds, most = 0.0, 0.0
        for view, took, memory in views(layout):
            print(f"{view:32} {took:7.1f} s {memory:6.2f} GiB", flush=True)
            seconds, most = seconds + took, max(most, memory)
        for path in sorted(Path(f"results/{NAME}").glob("*.*")):
            text = path.suffix in (".csv", ".md", ".txt", ".html")
            lines = path.read_text(encoding="utf-8").count("\n") if text else 0
            print(f"{path.name:32} {path.stat().st_size:12,} bytes {lines:9,} lines")
    print(f"all views: {seconds:.0f} s of {LIMIT_SECONDS:.0f}, {most:.2f} GiB of {LIMIT_GIB:.0f}")
    return int(seconds > LIMIT_SECONDS or most > LIMIT_GIB)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=40)
    chosen = parser.parse_args()
    sys.exit(main(chosen.models, chosen.tasks))
