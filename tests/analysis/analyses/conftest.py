"""A study as its analyses read it: invented tables of twelve models with a known power law, and the published files."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from summary_text import write_rows_of_summary

from hatchery.analysis.analyses.analysis import Findings, Study, analysis_called, settings_of
from hatchery.analysis.settings import PublishedChoice
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.tidy_tables import CURVES, MEASUREMENTS, RUNS, write_rows
from hatchery.experiment.project import Project
from hatchery.modeling.roberta.config import RobertaConfig
from hatchery.modeling.roberta.encoder import roberta_parameters
from hatchery.workflow.result_paths import ResultPaths

ROWS, BATCH, LENGTH, STEPS, EVERY = 2000, 32, 64, 400, 20
ENDS = {"model": "", "run": "-s1", "manifest": ""}
SUITES = ("rv_glue", "rv_glue_filtered")


def loss_after(parameters: int, tokens: float) -> float:
    return 2 + 40 * parameters**-0.3 + 9 * tokens**-0.2


def invented(experiment: str, untrained: bool = False) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of `runs` and `curves` for hidden sizes 16 to 128 and 1 to 4 layers."""
    noise, runs, curves = np.random.default_rng(len(experiment)), [], []
    for hidden in (16, 32, 64, 128):
        for layers in (1, 2, 4):
            sizes = {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers}
            untied = {"vocab_size": ROWS, "embedding_size": hidden, "tie_word_embeddings": False}
            parameters = roberta_parameters(RobertaConfig(**sizes, **untied, num_attention_heads=4))
            model = f"{experiment}/m_{hidden}_{layers}"
            place = {"experiment": experiment, "model": model, "run": f"{model}-s1", "seed": 1}
            each = 3.0 * (2 * LENGTH * hidden * ROWS + layers * LENGTH * (24 * hidden**2 + 4 * LENGTH * hidden))
            steps = 0 if untrained else STEPS
            tokens = steps * BATCH * LENGTH
            loss = loss_after(parameters, max(tokens, 1))
            runs.append(
                place
                | {"label": model, "parameters": parameters, "layers": layers, "embedding_size": hidden}
                | {"hidden_size": hidden, "intermediate_size": 4 * hidden, "attention_heads": 4}
                | {"vocabulary_rows": ROWS, "tied": False, "sequence_length": LENGTH, "sequences": steps * BATCH}
                | {"steps": steps, "planned_steps": STEPS, "tokens": tokens, "training_flops": each * steps * BATCH}
                | {"development_loss": loss, "development_perplexity": math.exp(loss), "initial": "", "manifest": model}
            )
            for step in range(0, steps + 1, EVERY):
                seen = step * BATCH * LENGTH
                # The loss of step 0 is not on the law.
                measured = loss_after(parameters, seen) + float(noise.normal(0, 0.004)) if step else 11.0
                curves.append(
                    place | {"step": step, "tokens": seen, "flops": each * step * BATCH, "development_loss": measured}
                )
    return runs, curves


def summary_row(run: Mapping[str, Any], suite: str, task: str, metric: str, mean: float) -> SummaryRow:
    key = (run["experiment"], run["model"], suite, task, metric)
    return SummaryRow(*key, mean, None, 1, 0, None, 0, None, None, "", None, "", "")


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Study:
    """Experiments `one` and `two`, whose scores are worse, and models of `one` without pretraining."""
    folder = tmp_path_factory.mktemp("study")
    runs, curves = [], []
    for experiment in ("one", "two"):
        more_runs, more_curves = invented(experiment)
        runs += more_runs
        curves += more_curves
    unpretrained = [
        {**run, **{key: f"{run['model']}_untrained{end}" for key, end in ENDS.items()}}
        for run in invented("one", untrained=True)[0]
    ]
    write_rows(folder / "runs.parquet", RUNS, runs + unpretrained)
    write_rows(folder / "curves.parquet", CURVES, curves)
    write_rows(folder / "measurements.parquet", MEASUREMENTS, [])
    lines = []
    for run in runs + unpretrained:
        worse = 1.25 if run["experiment"] == "two" else 1.0
        lines.append(summary_row(run, "perplexity", "test", "perplexity", worse * run["development_perplexity"]))
        for place, suite in enumerate(SUITES):
            score = 80 - 5 * run["development_loss"] * (1 if run["steps"] else 1.2) + place
            lines.append(summary_row(run, suite, "average", "score_percent", score / worse))
            # Two further averages, which analyses must not read.
            lines.append(summary_row(run, suite, "average_without_wsc", "score_percent", run["layers"]))
            lines.append(summary_row(run, suite, "average", "run_score_percent", run["hidden_size"]))
    summary = write_rows_of_summary(folder, lines)
    tables = {name: folder / f"{name}.parquet" for name in ("runs", "curves", "measurements")}
    published = repository / "config" / "published"
    files = {path.relative_to(published).with_suffix("").as_posix(): path for path in published.rglob("*.csv")}
    choices = (
        PublishedChoice("reduced_vocabulary", {"one/m_16_1": "rv_32_32_64_1_1", "one/m_128_4": "rv_256_256_1024_8_8"}),
        PublishedChoice("reduced_vocabulary", {"one/m_128_4_untrained": "rv_256_256_1024_8_8_untrained"}),
        PublishedChoice("reduced_vocabulary", {"two/m_16_1": "rv_32_32_64_1_1_unconstrained"}),
    )
    sets = {run["model"]: "set_1" if run["layers"] < 4 else "larger" for run in runs}
    return Study("invented", (), sets, choices, tables | {"summary": summary}, files)


@pytest.fixture(scope="session")
def analysed(study: Study, repository: Path) -> Callable[..., Findings]:
    """Return a function that runs an analysis on the study with given settings."""
    paths = ResultPaths(Project(repository / "config"))

    def run(name: str, **settings: Any) -> Findings:
        analysis = analysis_called(name)
        chosen = settings_of(name, settings)
        assert set(analysis.published(chosen)) <= set(study.files)
        needed = [need(paths, "reduced_vocabulary", chosen) for need in analysis.needs]
        tables = {table: study.tables[table] for need in needed for table in need}
        files = {file: study.files[file] for file in analysis.published(chosen)}
        # Pass only the inputs that the analysis declares.
        return analysis.run(chosen, replace(study, tables=tables, files=files))

    return run
