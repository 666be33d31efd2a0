"""A new metric of a language model is two places: what measures it, and its field in a row of `perplexity.csv`."""

import csv
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from perplexity_cases import ModelMaker, Text

BITS = '    bits: Annotated[float | None, Metric("bits per token", better=-1)] = None\n'
LAST_FIELD = '    pseudo_perplexity: Annotated[Perplexity | None, Metric("pseudo-perplexity")] = None\n'
LAST_VALUE = "int(correct) / labelled if labelled else math.nan\n"
PROGRAM = """
import sys
from pathlib import Path
from types import SimpleNamespace

from perplexity_cases import measure

from hatchery.analysis.measurements import perplexity_measurements
from hatchery.analysis.tidy_tables import MEASUREMENTS, write_rows
from hatchery.artifacts.manifests import read_manifest
from hatchery.runner import run_stage
from hatchery.views.stages.summarise import summarise

model, tokens, folder = map(Path, sys.argv[1:])
measure(model, SimpleNamespace(tokens=tokens), folder)
run = {"name": "m-s1", "model": "m", "seed": 1}
place = {"experiment": "demo", "model": "m", "run": "m-s1", "seed": 1}
table = folder / "measurements.parquet"
write_rows(table, MEASUREMENTS, perplexity_measurements(place, read_manifest(folder / "manifest.json")))
settings = {"experiment": "demo", "runs": [run], "suites": [], "tasks": [], "published": None, "baselines": []}
forms = {"output": folder / "summary.csv", "markdown": folder / "summary.md"}
run_stage(summarise, {"stage": "summarise", "stage_version": 5, **settings}, measurements=table, published=[], **forms)
"""


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_new_metric_is_its_field_and_what_measures_it(
    text: Text, make_model: ModelMaker, tmp_path: Path, repository: Path
) -> None:
    scripts = shutil.copytree(
        repository / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__")
    )
    perplexity, out = scripts / "hatchery" / "evaluation" / "perplexity", tmp_path / "out"
    edited(perplexity / "rows.py", LAST_FIELD, LAST_FIELD + BITS)
    edited(perplexity / "scoring.py", LAST_VALUE, f"{LAST_VALUE.rstrip()}, bits=loss / math.log(2)\n")
    search = os.pathsep.join([str(scripts), str(Path(__file__).parent.parent)])
    subprocess.run(
        [sys.executable, "-c", PROGRAM, make_model(), text.tokens, out],
        check=True,
        env={**os.environ, "PYTHONPATH": search},
    )
    measured = {row["split"]: row for row in csv.DictReader((out / "perplexity.csv").read_text().splitlines())}
    bits = float(measured["dev"]["bits"])
    assert bits == pytest.approx(float(measured["dev"]["loss_nats"]) / math.log(2))
    summary = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
    (found,) = (row for row in summary if (row["task"], row["metric"]) == ("dev", "bits"))
    assert float(found["mean"]) == pytest.approx(bits, abs=1e-4)
    assert "dev bits per token" in (out / "summary.md").read_text()
