"""The estimate of costs as a page, as Markdown and as CSV, in readable units."""

import csv
import dataclasses
import io

import pytest
from cost_cases import settings_of
from page_links import Page

from hatchery.units import hours, power, rough_duration, scaled, size
from hatchery.workflow.cost_estimate import (
    ZERO_STAGES,
    RunCost,
    ShardsOnDisk,
    estimate,
    training_bytes,
)
from hatchery.workflow.cost_table import cost_csv, cost_html, cost_markdown


def test_the_csv_has_a_row_for_each_run_in_base_units(pretrain_slice):
    settings = settings_of([pretrain_slice(), pretrain_slice(steps=0)])
    costs = estimate(settings)
    rows = list(csv.DictReader(io.StringIO(cost_csv(settings, costs))))
    assert [row["cell"] for row in rows] == ["run0-s42", "run1-s42"]
    fields = {f.name for f in dataclasses.fields(RunCost)} - {"run"}
    assert set(rows[0]) == {"experiment", "cell", "device", "devices", "mfu", *fields}
    assert int(rows[0]["training_flops"]) == round(costs[0].training_flops)
    assert int(rows[0]["parameters"]) == costs[0].parameters
    assert (rows[0]["precision"], rows[0]["steps"], rows[1]["steps"]) == ("fp32", "20", "0")
    assert rows[0]["device_hours"] == f"{costs[0].wall_seconds / 3600:.4f}"
    assert (rows[0]["experiment"], rows[0]["device"], rows[0]["devices"], rows[0]["mfu"]) == (
        "some",
        "h100",
        "1",
        "0.3",
    )


def test_people_read_the_labels_of_swept_runs_and_programs_their_names(pretrain_slice):
    settings = settings_of([pretrain_slice(), pretrain_slice(steps=0)])
    swept = dataclasses.replace(settings.runs[0], label="run, learning_rate 0.1, seed 42")
    settings = dataclasses.replace(settings, runs=[swept, settings.runs[1]])
    costs = estimate(settings)
    for shown in (cost_markdown(settings, costs), cost_html(settings, costs).replace("<wbr>", "")):
        assert "run, learning_rate 0.1, seed 42" in shown and "run1-s42" in shown and "run0-s42" not in shown
    assert "run0-s42" in cost_csv(settings, costs)


def test_the_page_names_device_mfu_total_and_the_published_yardstick(pretrain_slice):
    settings = settings_of(
        [pretrain_slice(precision="auto"), pretrain_slice(precision="auto")], device="a100", devices=4
    )
    page = cost_markdown(settings, estimate(settings))
    assert "Planned for 4 x a100 at an MFU of 30 %." in page
    assert "| all, one after another |" in page
    assert "312 TFLOP/s in bf16" in page
    assert "took 8 h 13 min on 128 dies of MI250X, at an MFU of 10.7 %" in page
    assert "Evaluations are not included" in page
    assert cost_markdown(settings, estimate(settings)) == page


def test_the_page_says_what_memory_each_zero_stage_asks_for(pretrain_slice):
    slices = [pretrain_slice(optimizer__name=name) for name in ("adamw", "lamb")]
    settings = settings_of(slices, device="a100", devices=4)
    costs = estimate(settings)
    # Value, gradient and two moments have four bytes each. ZeRO keeps a quarter of each sharded tensor, plus a copy of
    # a quarter of the values.
    per_parameter = [training_bytes(costs[0].parameters, 4, stage) / costs[0].parameters for stage in ZERO_STAGES]
    assert per_parameter == pytest.approx([16, 11, 8, 5])
    table = cost_markdown(settings, costs).split("## Memory of each device")[1].split("##")[0]
    adamw, lamb = (line for line in table.splitlines() if line.startswith("| run"))
    assert adamw.count(" - ") == 0 and lamb.count(" - ") == 3
    assert "Memory" not in cost_markdown(settings_of(slices), costs)


def rows_of(page, title):
    """Return the cells of the rows of the table below a title."""
    table = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line]
    return rows[2:]


def test_the_page_has_a_row_for_each_run_and_adds_up_all_runs(pretrain_slice):
    settings = settings_of([pretrain_slice(), pretrain_slice()])
    first = {"parameters": 1_000, "steps": 1_200, "tokens": 20_000, "training_flops": 2e6, "development_flops": 1e6}
    first |= {"paper_flops": 4e6, "precision": "bf16", "wall_seconds": 3600.0, "device_hours": 2.0}
    first |= {"checkpoint_bytes": 1_000, "run_folder_bytes": 3_000, "model_bytes": 400, "export_bytes": 500}
    second = {"parameters": 2_000, "steps": 8, "tokens": 3_000, "training_flops": 5e6, "development_flops": 3e6}
    second |= {"paper_flops": 7e6, "precision": "fp32", "wall_seconds": 1800.0, "device_hours": 1.0}
    second |= {"checkpoint_bytes": 2_000, "run_folder_bytes": 4_000, "model_bytes": 600, "export_bytes": 800}
    whole = zip(estimate(settings), (first, second), strict=True)
    page = cost_markdown(settings, [dataclasses.replace(cost, **values) for cost, values in whole])
    assert rows_of(page, "Pretraining") == [
        ["run0-s42", "1,000", "1,200", "20.0 k", "2.00e6", "1.00e6", "4.00e6", "6 N D", "bf16", "1 h 00 min", "2.0"],
        ["run1-s42", "2,000", "8", "3.00 k", "5.00e6", "3.00e6", "7.00e6", "6 N D", "fp32", "30 min", "1.0"],
        ["all, one after another", "-", "1,208", "23.0 k", "7.00e6", "4.00e6", *"---", "1 h 30 min", "3.0"],
    ]
    assert rows_of(page, "Disk") == [
        ["run0-s42", "1.00 kB", "3.00 kB", "400 B", "500 B"],
        ["run1-s42", "2.00 kB", "4.00 kB", "600 B", "800 B"],
        ["all at once", "-", "7.00 kB", "1.00 kB", "1.30 kB"],
    ]


def test_the_notes_name_runs_whose_cost_is_not_that_of_their_table_alone(pretrain_slice):
    slices = [
        pretrain_slice(initialise_from={"take": "weights"}),
        pretrain_slice(early_stopping={"patience_evaluations": 2}),
        *[pretrain_slice()] * 9,
    ]
    settings = settings_of(slices)
    costs = estimate(settings)

    def notes(*taught: int) -> str:
        runs = list(settings.runs)
        for number in taught:
            runs[number] = dataclasses.replace(runs[number], teachers=(slices[0]["model"],))
        return cost_markdown(dataclasses.replace(settings, runs=runs), costs).partition("## Notes")[2]

    assert "- run0-s42 start from a trained model, whose steps, tokens and FLOPs are not included." in notes()
    assert "- run1-s42 may stop early; the table states the cost of all steps, an upper bound." in notes()
    assert "learn from teachers" not in notes()
    assert "- run2-s42, run4-s42 learn from teachers; FLOPs and time include" in notes(2, 4)
    eight = ", ".join(f"run{number}-s42" for number in range(3, 11))
    assert f"- {eight} learn from teachers" in notes(*range(3, 11))
    assert "- 9 models, such as run2-s42, learn from teachers" in notes(*range(2, 11))


def test_the_page_adds_up_operations_by_set_of_a_grid(pretrain_slice):
    settings = settings_of([pretrain_slice(steps=steps) for steps in (8, 0, 16)])
    assert "## By grid set" not in cost_markdown(settings, estimate(settings))
    runs = [dataclasses.replace(run, set=name) for run, name in zip(settings.runs, "aab", strict=True)]
    flops = [(2e6, 1e6), (0.0, 0.0), (4e6, 3e6)]
    costs = [
        dataclasses.replace(cost, training_flops=training, development_flops=evaluations)
        for cost, (training, evaluations) in zip(estimate(settings), flops, strict=True)
    ]
    page = cost_markdown(dataclasses.replace(settings, runs=runs), costs)
    expected = [["a", "2", "1", "3.00e6"], ["b", "1", "1", "7.00e6"], ["all", "3", "2", "1.00e7"]]
    assert [row[:4] for row in rows_of(page, "By grid set")] == expected


def test_the_page_says_what_the_text_says(pretrain_slice):
    settings = settings_of([pretrain_slice(steps=8)])
    costs = estimate(settings)
    text, page = cost_markdown(settings, costs), Page(cost_html(settings, costs))
    titles = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert len(page.levels()) == len(titles) and all(title in page.text for title in titles)
    row = next(line for line in text.splitlines() if line.startswith("| run"))
    assert " ".join(cell.strip() for cell in row.strip("|").split("|")) in page.text


def test_the_page_shows_token_shards_and_passes_where_they_are_there(pretrain_slice):
    # Ten steps of eight sequences with 16 tokens are 1,280 tokens; the other run has half of them.
    settings = settings_of([pretrain_slice(steps=steps, batch_size=8, sequence_length=16) for steps in (10, 5)])
    page = cost_markdown(settings, estimate(settings), ShardsOnDisk(bytes=2_500_000, training_tokens=640))
    assert rows_of(page, "Disk")[-1] == ["token shards, on disk", "-", "-", "-", "2.50 MB"]
    assert "640 training subwords, so the longest run makes at most 2.0 passes" in page


def test_numbers_are_shown_in_units_that_one_can_grasp():
    assert [scaled(value) for value in (0, 950, 9_994, 98_229_760, 131_072_000_000)] == [
        "-",
        "950",
        "9.99 k",
        "98.2 M",
        "131 G",
    ]
    assert [size(value) for value in (0, 999, 999_600, 1_178_757_120)] == ["-", "999 B", "1.00 MB", "1.18 GB"]
    assert [rough_duration(value) for value in (0, 0.2, 34, 59.7, 29_580, 100 * 3600)] == [
        "-",
        "< 1 s",
        "34 s",
        "1 min",
        "8 h 13 min",
        "4 d 04 h",
    ]
    assert [power(value) for value in (0, 5e6, 7.7255e19)] == ["-", "5.00e6", "7.73e19"]
    assert [hours(value) for value in (0, 0.0436, 33.46, 1203.4)] == ["-", "0.044", "33.5", "1,203"]
