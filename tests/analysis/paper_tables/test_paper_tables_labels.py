"""Runs of a sweep are called by what differs in every form of a paper's tables, and by no short name."""

import re
from typing import Any

import pytest
from measured_rows import frame

from hatchery.typed import build
from hatchery.views.paper_tables.order_table import lists_of_models
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.paper_tables.views import latex_table, markdown_table, read_views, view, views_json


@pytest.mark.parametrize("paper", ["strict", "bnc"])
def test_every_form_of_every_table_has_the_labels_alone(paper: str, request: pytest.FixtureRequest) -> None:
    toy: Any = request.getfixturevalue(paper)
    plain = toy.settings()
    runs = [{**run, "label": f"sweep, rate 0.{number:02d}"} for number, run in enumerate(plain["runs"])]
    toy.settings = lambda: {**plain, "runs": runs}
    labels = {run["model"]: run["label"] for run in runs}
    present, shown = set(), set()
    for table in toy.tables().values():
        present |= {labels[line.model] for line in table.lines if line.model}
        (read,) = read_views(views_json([view(table)]))
        for text in (markdown_table(table), latex_table(table), *map(str, _page(read))):
            assert not re.search(r"our\\?_", text), f"Table {table.number}"
            shown |= {label for label in labels.values() if label in text}
    assert present and present <= shown


def _page(read: Any) -> list[str]:
    return [read.shown.html(), *read.table.notes]


def test_what_an_order_leaves_out_has_its_label(strict: Any) -> None:
    settings = strict.settings()
    for run in settings["runs"]:
        run["label"] = f"label of {run['seed']}"
    model, *_ = strict.rows
    built = build(PaperTablesSettings, settings)
    measured = frame([{"model": model, "task": "msgs_a", "value": 1.0}])
    _, left_out = lists_of_models(measured, built, ("msgs_a", "msgs_b"))
    assert left_out == {model: "label of 42 was not run on msgs_b"}
