"""Papers' tables with our models: below the rows that they repeat, and as differences from a reference row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scaling_study import PAPER, Analysed, altered, cells, rows
from summary_text import write_rows_of_summary

from hatchery.analysis.analyses.analysis import Study, analysis_called, settings_of
from hatchery.analysis.settings import PublishedChoice
from hatchery.analysis.stages.analyse import analyse_settings
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.tidy_tables import RUNS, read_frame
from hatchery.experiment.project import Project

NO_SETTINGS = {"analysis", "title"}


def test_models_of_other_experiments_are_differences_from_the_row_that_the_table_names(
    study: Study, repository: Path, tmp_path: Path
) -> None:
    (entry,) = Project(repository / "config").study("gpt_bert").analyses.values()
    settings = settings_of("published_table", {key: value for key, value in entry.items() if key not in NO_SETTINGS})
    best = ("blimp_2024", "paradigm_average", "best_temperature_accuracy_percent")
    scores = {("one", "one/m_16_1"): 80.0, ("two", "two/m_16_1"): 78.5}
    rows = [
        SummaryRow(*model, *best, mean, None, 1, 0, None, 0, None, None, "", None, "", "")
        for model, mean in scores.items()
    ]
    repeated = {"one/m_16_1": "gpt_bert"}, {"two/m_16_1": "without_layer_weights"}
    changed = replace(
        study,
        published=tuple(PublishedChoice("gpt_bert", rows) for rows in repeated),
        tables={**study.tables, "summary": write_rows_of_summary(tmp_path, rows)},
    )
    found = analysis_called("published_table").run(settings, changed)
    lines = [[cell if isinstance(cell, str) else cell.text for cell in row.cells] for row in found.tables[0].rows]
    assert lines[:4] == [
        ["gpt bert", "printed", "10.8", "81.2", "80.1", "54.6"],
        ["gpt bert", "one", "-", "80.00", "-", "-"],
        ["without layer weights", "printed", "+0.4", "-1.3", "+0.2", "+0.6"],
        ["without layer weights", "two", "-", "-1.50", "-", "-"],
    ]
    assert ["cosmopedia only", "printed", "-", "-7.1", "+0.0", "-0.6"] in lines
    assert found.tables[0].columns[0].heading == "model" and not any("FLOPs" in note for note in found.notes)
    assert found.notes[1] == "The row 'gpt_bert' shows scores; all other rows show differences from this row."


def test_in_miniature_every_ablation_of_one_corpus_has_a_model_beside_its_row(repository: Path) -> None:
    settings: Any = analyse_settings(Project(repository / "config"), "gpt_bert_table_2_mini", "table_2")
    parts = ("layer_weights", "gate", "mask_schedule", "batch_schedule")
    assert settings["title"] == "Ablations (Table 2)"
    own: Any = analyse_settings(Project(repository / "config"), "demo", "misjudged_pairs")
    assert own["title"] == "Which minimal pairs are misjudged, and which are biased?"
    whole, without = settings["published"]
    assert whole.rows == {"gpt_bert_mini/gpt_bert": "gpt_bert"}
    assert without.rows == {f"gpt_bert_ablations_mini/without_{part}": f"without_{part}" for part in parts}


COLUMNS = [
    {"heading": "size", "suite": "size", "task": "parameters", "metric": "million"},
    {"heading": "FLOPs", "suite": "pretraining", "task": "cost", "metric": "flops_1e15", "decimals": 6},
    {"heading": "ppl", "suite": "perplexity", "task": "test", "metric": "perplexity"},
    {"heading": "GLUE", "suite": "rv_glue", "task": "average", "metric": "score_percent"},
    {
        **{"heading": "not pretrained", "suite": "rv_glue_filtered", "task": "average", "metric": "score_percent"},
        "variant": "_untrained",
    },
]


def test_table_3_has_our_models_below_the_rows_that_they_repeat(analysed: Analysed, study: Study) -> None:
    options = {"flops": "products", "remark": "A remark."}
    found = analysed("published_table", table="3", columns=COLUMNS, **options, **PAPER)
    lines = cells(found)
    assert len([line for line in lines if line[1] == "printed"]) == 19
    anchor = [line for line in lines if line[0] == "(256, 256, 1024, 8, 8)"]
    assert anchor[0] == ["(256, 256, 1024, 8, 8)", "printed", "16.24", "110", "4.80", "51.73", "40.24"]
    runs = {run["model"]: run for run in read_frame(study.tables["runs"], RUNS).to_dicts()}
    run, untrained = runs["one/m_128_4"], runs["one/m_128_4_untrained"]
    sizes = [run["parameters"] / 1e6, run["training_flops"] / 1e15, run["development_perplexity"]]
    # The study's fixture computes these scores from losses.
    ours = [*sizes, 80 - 5 * run["development_loss"], 80 - 6 * untrained["development_loss"] + 1]
    digits = [f"{value:.{decimals}f}" for value, decimals in zip(ours, (2, 6, 2, 2, 2), strict=True)]
    assert anchor[1] == ["(256, 256, 1024, 8, 8)", "one", *digits]
    name = "rv_256_256_1024_8_8"
    assert rows(found, of="printed", row=name, metric="million")[0]["value"] == 16.24
    values = [row["value"] for row in rows(found, of="one") if row["row"].startswith(name)]
    assert values == pytest.approx(ours, abs=1e-6)
    assert [row["row"] for row in found.rows if row["suite"] == "rv_glue_filtered"][:2] == 2 * [f"{name}_untrained"]
    assert found.tables[0].caption == "Table 3 of the paper" and found.notes[1:] == ["A remark."]
    assert "Our FLOPs (1e15): matrix products." in found.notes[0]
    assert found.tables[0].columns[0].heading == "model (E, H, I, L, A)"
    # Of two models of one row, the first is shown.
    second = PublishedChoice("reduced_vocabulary", {"one/m_16_1": name})
    again = analysis_called("published_table").run(
        settings_of("published_table", {"table": "3", "columns": COLUMNS, **options, **PAPER}),
        replace(study, published=(*study.published, second)),
    )
    assert again.rows == found.rows
    # The study has the scores of a suite under another name.
    other = analysed("published_table", table="3", columns=COLUMNS, suites={"rv_glue": "rv_glue_filtered"}, **PAPER)
    (line,) = [line for line in cells(other) if line[:2] == ["(256, 256, 1024, 8, 8)", "one"]]
    assert line[5] == f"{80 - 5 * run['development_loss'] + 1:.2f}"
    # The smallest model has no untrained counterpart.
    assert [line[1:] for line in lines if line[0] == "(32, 32, 64, 1, 1)"][1][-1] == "-"


def test_table_4_has_changes_between_two_experiments(analysed: Analysed, study: Study, tmp_path: Path) -> None:
    change = "relative_change_percent"
    columns = [
        COLUMNS[0],
        {"heading": "FLOPs", "suite": "pretraining", "task": "cost", "metric": f"flops_{change}"},
        {"heading": "ppl", "suite": "perplexity", "task": "test", "metric": f"perplexity_{change}"},
        {"heading": "GLUE", "suite": "rv_glue", "task": "average", "metric": f"score_{change}"},
    ]
    found = analysed("published_table", table="4", columns=columns, change_from="_unconstrained", **PAPER)
    lines = [line for line in cells(found) if line[0] == "(32, 32, 64, 1, 1)"]
    assert lines == [
        ["(32, 32, 64, 1, 1)", "printed", "0.65", "52.07", "14.78", "-2.05"],
        ["(32, 32, 64, 1, 1)", "two", "0.00", "0.00", "25.00", "-20.00"],
    ]
    assert "Our FLOPs (1e15): the study's code." in found.notes[0]
    assert found.notes[1].startswith("Changes of scores are in percent")
    # Sizes are differences in millions. The change is from a model of another experiment.
    larger = altered(
        study,
        tmp_path,
        lambda run: [run | {"parameters": run["parameters"] + 650_000 * (run["model"] == "two/m_16_1")}],
    )
    first = PublishedChoice("reduced_vocabulary", {"two/m_32_1": "rv_32_32_64_1_1"})
    settings = {"table": "4", "columns": columns, "change_from": "_unconstrained", **PAPER}
    found = analysis_called("published_table").run(
        settings_of("published_table", settings), replace(larger, published=(first, *larger.published))
    )
    assert ["(32, 32, 64, 1, 1)", "two", "0.65", "0.00", "25.00", "-20.00"] in cells(found)


def test_table_7_has_printed_rows_alone_where_nothing_repeats_them(analysed: Analysed) -> None:
    found = analysed("published_table", table="7", columns=COLUMNS[:3], caption="A caption", **PAPER)
    assert found.tables[0].caption == "A caption"
    lines = cells(found)
    assert lines[0][2:] == ["16.24", "110", "4.67"]
    assert {line[1] for line in lines} == {"printed"} and len(lines) == 8
