"""The printed cells of the papers give their printed averages."""

import csv
from collections import defaultdict
from statistics import fmean

import pytest
from measured_rows import averages_of_cells

from hatchery.analysis.task_averages import (
    AVERAGE,
    LTG_TABLE_3,
    PARADIGMS_OF_PHENOMENON,
    SUPPLEMENT_FILES,
    WITHOUT_WSC,
    dynabench_score,
)

ELC_KEY = ("track", "model", "variant")
LTG_KEY = ("model", "variant")
TOLERANCE = 0.1

# Printed values that do not follow from their cells (docs/papers/babylm-evaluation.md, "Doubtful printed numbers"),
# with the values that follow.
LTG_BASE = ("strict", "LTG-BERT-base", "backbone")
T5_SMALL = ("strict-small", "T5-base", "")
LTG_SMALL = ("strict-small", "LTG-BERT-small", "backbone")
ELC_BASE, ELC_ZERO, ELC_WEIGHTED = (("strict", "ELC-BERT-base", name) for name in ("base", "zero", "weighted_output"))
GLUE_EXCEPTION = {T5_SMALL: (64.7, 64.45)}
# docs/papers/elc-bert.md, "Averages": one value without an explanation (weighted output), and three approximate values.
GLUE_DEVIATION_EXCEPTIONS = {
    ELC_WEIGHTED: (0.6, 1.79),
    LTG_BASE: (1.1, 0.95),
    ELC_BASE: (3.2, 3.09),
    ELC_ZERO: (1.0, 0.84),
}
# docs/papers/elc-bert.md, "Averages": the value follows from sample deviations, although the cells seem to be
# population deviations.
MSGS_DEVIATION_EXCEPTION = {LTG_SMALL: (0.4, 0.34)}

LTG_TASKS = {"MNLI": "glue_mnli", "MRPC": "glue_mrpc", "QNLI": "glue_qnli", "SST-2": "glue_sst2"}
PROBES = {"POS": "probe_pos", "DP": "probe_dp", "SRL": "probe_srl", "NER": "probe_ner", "CR": "probe_coref"}


@pytest.fixture(scope="module")
def published(golden_directory):
    """Return a function that reads a table's means and deviations: model -> (task, metric) -> value."""

    def read(name, key):
        means, deviations = defaultdict(dict), defaultdict(dict)
        path = golden_directory / "published" / f"{name}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                model, cell = tuple(row[column] for column in key), (row["task"], row["metric"])
                if row["mean"]:
                    means[model][cell] = float(row["mean"])
                if row["std"]:
                    deviations[model][cell] = float(row["std"])
        return dict(means), dict(deviations)

    return read


def split(cells, average="average"):
    """Return the printed average, and the tasks' cells by name."""
    (printed,) = [value for (task, _), value in cells.items() if task == average]
    return printed, {task: value for (task, _), value in cells.items() if task != average}


def check(computed, printed, exceptions=None, tolerance=TOLERANCE):
    """Check that computed averages equal the printed averages, except `exceptions` (printed, computed)."""
    exceptions = exceptions or {}
    assert computed and set(exceptions) <= set(computed)
    for model, value in computed.items():
        if model in exceptions:
            assert printed[model] == exceptions[model][0]
            assert abs(value - printed[model]) > tolerance
            assert value == pytest.approx(exceptions[model][1], abs=0.006), model
        else:
            assert value == pytest.approx(printed[model], abs=tolerance), model


def phenomenon_mean(cells):
    return fmean(cells[name] for name in PARADIGMS_OF_PHENOMENON)


def supplement_mean(cells):
    return fmean(cells[name] for name in SUPPLEMENT_FILES)


def test_the_total_of_the_leaderboard_is_that_of_its_parts(published):
    tables = {model: split(cells) for model, cells in published("elc_bert_table1", ELC_KEY)[0].items()}
    assert len(tables) == 10
    computed = {model: dynabench_score(tasks) for model, (_, tasks) in tables.items()}
    check(computed, {model: printed for model, (printed, _) in tables.items()})


def test_leaderboard_blimp_is_the_mean_of_seventeen_files(published):
    blimp = split(published("elc_bert_table7", ELC_KEY)[0][ELC_BASE])[1]
    supplement = split(published("elc_bert_table8", ELC_KEY)[0][ELC_BASE])[1]
    leaderboard = published("elc_bert_table1", ELC_KEY)[0]["strict", "ELC-BERT", "submitted"]
    files = {**blimp, **supplement}
    mean = fmean(files[name] for name in (*PARADIGMS_OF_PHENOMENON, *SUPPLEMENT_FILES))
    assert mean == pytest.approx(leaderboard["blimp", "dynabench_score"], abs=0.06)
    # The mean of both suites' means, and the mean of the phenomena, are different numbers.
    assert abs(phenomenon_mean(blimp) - mean) > 1
    assert abs((phenomenon_mean(blimp) + supplement_mean(supplement)) / 2 - mean) > 1


def of_tasks(suite, cells, name=lambda task, metric: (task, metric)):
    """Return the summary's averages of the tasks' cells by model."""
    means, deviations = ({model: renamed(table, name) for model, table in tables.items()} for tables in cells)
    return {model: averages_of_cells(suite, means[model], deviations.get(model)) for model in means}


def renamed(table, name):
    return {key: value for cell, value in table.items() if (key := name(*cell)) is not None}


def babylm_task(task, metric):
    return None if task == "average" else (f"babylm_{task.replace('-', '_')}", metric)


def test_babylm_glue_is_the_mean_of_eleven_runs_but_for_one_copied_cell(published):
    means, deviations = published("elc_bert_table9", ELC_KEY)
    assert len(means) == 13
    found = {
        model: table[AVERAGE] for model, table in of_tasks("babylm_glue", (means, deviations), babylm_task).items()
    }
    printed = {model: split(cells)[0] for model, cells in means.items()}
    check({model: average.mean for model, average in found.items()}, printed, GLUE_EXCEPTION)
    # Rounding to one decimal changes cells, and so their root mean square, by up to 0.05, and the printed average, too.
    spreads = {model: split(cells)[0] for model, cells in deviations.items()}
    check({model: found[model].std for model in spreads}, spreads, GLUE_DEVIATION_EXCEPTIONS, tolerance=0.1)


def test_babylm_glue_without_wsc_agrees_with_the_text(published):
    found = of_tasks("babylm_glue", published("elc_bert_table9", ELC_KEY), babylm_task)
    text = published("elc_bert_text", ELC_KEY)[0]
    for model in (LTG_BASE, ELC_BASE):
        printed = text[model]["glue_without_wsc", "glue_score_pct"]
        assert found[model][WITHOUT_WSC].mean == pytest.approx(printed, abs=TOLERANCE)


def test_msgs_is_the_mean_bias_score_of_the_six_ambiguous_tasks(published):
    means, deviations = published("elc_bert_table10", ELC_KEY)
    printed_means: dict = defaultdict(dict)
    printed_deviations: dict = defaultdict(dict)
    for table in ("elc_bert_table2", "elc_bert_table3"):
        for target, source in zip((printed_means, printed_deviations), published(table, ELC_KEY), strict=True):
            for model, cells in source.items():
                target[model].update(cells)
    assert len(means) == 13

    def task(name, metric):
        return (f"msgs_{name}", metric) if metric == "lbs" else None

    found = {model: table[AVERAGE] for model, table in of_tasks("msgs", (means, deviations), task).items()}
    printed = {model: printed_means[model]["msgs", "lbs"] for model in found}
    check({model: average.mean for model, average in found.items()}, printed, tolerance=0.0055)
    spreads = {model: printed_deviations[model]["msgs", "lbs"] for model in deviations}
    # Half a unit of the cells' second decimal plus half a unit of the printed first decimal.
    check({model: found[model].std for model in spreads}, spreads, MSGS_DEVIATION_EXCEPTION, tolerance=0.055)


def test_edge_probing_is_the_mean_of_five_tasks_with_their_root_mean_square(published):
    means, deviations = published("ltg_bert_table7", LTG_KEY)
    found = of_tasks(
        "probing", (means, deviations), lambda task, metric: (PROBES[task], "f1") if task in PROBES else None
    )
    for tables, computed in (
        (means, {model: table[AVERAGE].mean for model, table in found.items()}),
        (deviations, {model: found[model][AVERAGE].std for model in deviations}),
    ):
        check(computed, {model: split(cells, "Average")[0] for model, cells in tables.items()}, tolerance=0.011)


def test_the_glue_of_ltg_bert_s_table_3_is_the_mean_of_four_accuracies(published):
    # Models with the same name were pretrained on two corpora; the column `section` separates these models.
    means, deviations = published("ltg_bert_table3", ("section", *LTG_KEY))
    found = {
        model: table[LTG_TABLE_3]
        for model, table in of_tasks(
            "glue", (means, deviations), lambda task, metric: (LTG_TASKS[task], metric) if task in LTG_TASKS else None
        ).items()
    }
    assert len(found) == 12
    printed = {model: cells["GLUE-4", "average"] for model, cells in means.items()}
    check({model: average.mean for model, average in found.items()}, printed)
    spreads = {
        model: cells["GLUE-4", "average"] for model, cells in deviations.items() if ("GLUE-4", "average") in cells
    }
    assert len(spreads) == 11
    check({model: found[model].std for model in spreads}, spreads)
