"""Notes below the papers' tables."""

import re
from dataclasses import replace
from typing import Any

import pytest
from paper_table_cases import STRICT, Drawn

from hatchery.typed import build
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.paper_tables.write_all import all_tables, markdown_table
from hatchery.views.score_table import PaperTable


def test_what_is_not_comparable_is_marked_and_its_reason_told(drawn: Drawn) -> None:
    text = markdown_table(drawn[STRICT]["2"])
    assert "| **76.8**† |" in text
    assert (
        "† Not comparable with our numbers: " in text
        and "the five printed cells average 76.2 (LTG-BERT-base, Supp.)" in text
    )


def beginnings(table: PaperTable) -> list[str]:
    return [re.split(r"[;:,(.]", note)[0].strip() for note in table.notes]


def test_the_notes_of_a_table_explain_what_it_has(drawn: Drawn) -> None:
    whole = ["Published", "± is the sample standard deviation over n runs", "For an average over tasks"]
    whole += ["n is the number of runs of a line", "Bold", "† Not comparable with our numbers"]
    assert beginnings(drawn[STRICT]["9"]) == [*whole, "Remarks on printed numbers"]
    # This table has neither deviations nor averages nor bold numbers nor dashes.
    assert beginnings(drawn["gpt_bert", "strict"]["4"]) == ["Published", whole[3], "Models of ours"]
    changes = drawn["ltg_bert", ""]["2"].notes
    assert changes[4].startswith("The first row shows scores. All other rows show the changes")
    block, table = (
        next(note for note in notes if note.startswith("Bold: ")) for notes in (drawn[STRICT]["9"].notes, changes)
    )
    assert block.startswith("Bold: the best number of its block in each of the columns, separately for printed")
    assert "within one standard deviation of the best of the table in each of the columns, separately" in table
    turned = [note for table in drawn["ltg_bert", ""].values() for note in table.notes if "in each of the rows" in note]
    assert turned and all("of the table in each of the rows" in note for note in turned)
    # ELC-BERT, Table 10, has scores of single tasks with deviations, but no average.
    assert "For an average over tasks" not in beginnings(drawn[STRICT]["10"])


@pytest.mark.parametrize(("models", "told"), [(1, False), (2, True)])
def test_a_note_on_single_seeds_needs_several_models(strict: Any, models: int, told: bool) -> None:
    cell = ("babylm_glue", "babylm_wsc", "accuracy_percent")
    rows = [replace(strict.row(f"our_{name}_bert_base", cell, 61.4), seeds=1) for name in ("elc", "ltg")[:models]]
    (table,) = strict.made(rows).values()
    assert any("A claim about models needs several pretraining seeds" in note for note in table.notes) == told


def test_models_of_many_that_are_not_shown_are_counted(strict: Any) -> None:
    settings = strict.settings()
    settings["runs"] += [{"name": f"m{number}-s1", "model": f"m{number}", "seed": 1} for number in range(30)]
    rows = [strict.row("our_elc_bert_base", ("babylm_glue", "babylm_wsc", "accuracy_percent"), 61.4)]
    (table,), _ = all_tables(build(PaperTablesSettings, settings), strict.inputs(rows))
    assert f"24 of our models are shown; {len(strict.rows) + 30 - 24} more are in summary.csv" in table.notes
