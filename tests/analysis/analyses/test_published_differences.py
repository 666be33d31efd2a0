"""Table 2 of GPT-BERT: models of several experiments, as differences from one of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from summary_text import write_rows_of_summary

from hatchery.analysis.analyses.analysis import Study, analysis_called, settings_of
from hatchery.analysis.settings import PublishedChoice
from hatchery.analysis.stages.analyse import analyse_settings
from hatchery.analysis.summary_rows import SummaryRow
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


def test_in_miniature_every_ablation_of_one_corpus_has_a_model_beside_its_row(repository: Path) -> None:
    settings: Any = analyse_settings(Project(repository / "config"), "gpt_bert_table_2_mini", "table_2")
    parts = ("layer_weights", "gate", "mask_schedule", "batch_schedule")
    whole, without = settings["published"]
    assert whole.rows == {"gpt_bert_mini/gpt_bert": "gpt_bert"}
    assert without.rows == {f"gpt_bert_ablations_mini/without_{part}": f"without_{part}" for part in parts}
