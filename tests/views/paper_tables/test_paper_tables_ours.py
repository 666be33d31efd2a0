"""Our numbers in the papers' tables: rows, runs, names and files."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paper_table_cases import STRICT, Drawn
from summary_text import cells_of, write_rows_of_summary

from hatchery.analysis.published_values import MINUS, OVER, read_numbers
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.analysis.tidy_tables import LAYERS, MEASUREMENTS, write_rows
from hatchery.artifacts.checksums import write_checksums
from hatchery.experiment.project import Project
from hatchery.runner import run_stage
from hatchery.typed import build
from hatchery.views.paper_tables.fact_tables import read_card_sizes
from hatchery.views.paper_tables.scored_table import _transposed
from hatchery.views.paper_tables.settings import PaperTablesSettings, TableInputs
from hatchery.views.paper_tables.write_all import (
    all_tables,
    latex_table,
    markdown_table,
    read_views,
    view,
    views_json,
)
from hatchery.views.score_table import OURS, PUBLISHED, Line, PaperTable, Score
from hatchery.views.stages.write_tables import tables_settings, write_tables


def test_changes_are_taken_from_our_own_reference_model(bnc: Any) -> None:
    rows = [
        bnc.row("our_ltg_bert_base_subword", ("glue", "glue_mnli", "accuracy_percent"), 80.0, 0.3),
        bnc.row("our_ltg_bert_base_gelu", ("glue", "glue_mnli", "accuracy_percent"), 79.46, 0.2),
        bnc.row("our_ltg_bert_base_adamw", ("glue", "glue_mnli", "accuracy_percent"), 80.26, 0.1),
        bnc.row("our_ltg_bert_base_adamw", ("blimp", "paradigm_average", "accuracy_percent"), 60.0),
    ]
    assert [line[3:] for line in cells_of(markdown_table(bnc.made(rows)["2"]), OURS)] == [
        ["80.0 ± 0.3", "-", "-", "-"],
        ["-0.5 ± 0.2", "-", "-", "-"],
        # The reference row has no BLiMP score, so no change is shown.
        ["**+0.3** ± 0.1", "-", "-", "-"],
    ]


def test_the_leaderboard_is_half_blimp_over_seventeen_files_and_the_rest_glue_and_msgs(drawn: Drawn) -> None:
    line = cells_of(markdown_table(drawn[STRICT]["1"]), OURS)
    # BLiMP is 1406.8 / 17 = 82.75 over the printed files, GLUE is 78.3, and MSGS is -26, the mean of the six biases.
    assert [cell.partition(" ±")[0] for cell in line[0][3:]] == ["82.8", "78.3", "-26.0", "59.7"]
    assert len(line) == 1


def test_a_model_that_repeats_no_row_stands_below_the_rows_of_its_track(strict: Any) -> None:
    del strict.rows["our_elc_bert_base_zero"]
    settings = strict.settings()
    settings["runs"] += [{"name": "mine-s1", "model": "mine", "seed": 1}]
    rows = [strict.row("mine", ("blimp_filtered", "ellipsis", "accuracy_percent"), 71.25)]
    tables, without = all_tables(build(PaperTablesSettings, settings), strict.inputs(rows))
    assert [table.number for table in tables] == ["7"]
    assert without == ["1", "2", "3", "8", "9", "10", "11", "12"]
    last = tables[0].blocks[0].lines[-1]
    assert (last.label, last.source, last.runs) == ("mine", OURS, "5")
    assert [line.source for line in tables[0].blocks[1].lines] == [PUBLISHED] * 4


def test_a_model_that_repeats_no_row_stands_in_the_last_block_of_several(bnc: Any) -> None:
    settings = bnc.settings()
    settings["runs"] += [{"name": "mine-s1", "model": "mine", "seed": 1}]
    rows = [bnc.row("mine", ("blimp", "paradigm_average", "accuracy_percent"), 60.0)]
    tables, _ = all_tables(build(PaperTablesSettings, settings), bnc.inputs(rows))
    (table,) = (table for table in tables if table.number == "3")
    assert [[line.label for line in block.lines if line.source == OURS] for block in table.blocks] == [[], [], ["mine"]]


def test_of_many_models_those_that_repeat_a_row_are_shown(strict: Any) -> None:
    settings = strict.settings()
    others = [{"name": f"m{number}-s1", "model": f"m{number}", "seed": 1} for number in range(24)]
    settings["runs"] = [*others, *settings["runs"]]
    kept = [other["model"] for other in others[: 24 - len(strict.rows)]]
    assert build(PaperTablesSettings, settings).shown == [*kept, *strict.rows]


def test_a_hyperparameter_with_several_values_is_in_no_table(configuration: Path) -> None:
    path = configuration / "experiments/gpt_bert_strict.yaml"
    several = path.read_text().replace("{base: gpt_bert}", "{base: gpt_bert, learning_rates: [1.0e-5, 2.0e-5]}")
    path.write_text(several)
    shown = tables_settings(Project(configuration), "gpt_bert_strict")["hyperparameters"]["gpt_bert"]
    assert shown["finetuning.babylm_qqp.batch_size"] and "finetuning.babylm_qqp.learning_rates" not in shown


def test_a_printed_row_that_the_paper_lacks_has_room_for_ours_alone(small: Any) -> None:
    rows = [small.row("our_ltg_bert_small", ("blimp_filtered", "ellipsis", "accuracy_percent"), 88.0)]
    table = next(iter(small.made(rows).values()))
    lines = [line for line in table.lines if line.label == "LTG-BERT-small"]
    assert [(line.source, line.model) for line in lines] == [(OURS, "our_ltg_bert_small")]


def test_failed_runs_and_differing_numbers_of_runs_are_told(strict: Any) -> None:
    rows = [
        strict.row("our_ltg_bert_base", ("babylm_glue", "babylm_wsc", "accuracy_percent"), 61.4, 0.0, n=5, n_failed=1),
        strict.row("our_ltg_bert_base", ("babylm_glue", "babylm_rte", "accuracy_percent"), None, None, 0, 0, 3),
        strict.row("our_ltg_bert_base", ("babylm_glue", "babylm_sst2", "accuracy_percent"), 92.0, None, n=1),
    ]
    text = markdown_table(next(iter(strict.made(rows).values())))
    [line] = cells_of(text, OURS)
    assert line[2:] == [
        "0-5",
        "-",
        "92.0",
        *["-"] * 5,
        "- (3 without a number)",
        "-",
        "-",
        "61.4 ± 0.0 (1 failed)",
        "-",
    ]
    assert "one of the n runs failed" in text


def test_a_twin_has_its_prefix_taken_off_and_no_number_comparable(strict: Any) -> None:
    rows = [strict.row("our_ltg_bert_base", ("demo_babylm_glue", "demo_babylm_wsc", "accuracy_percent"), 50.0)]
    [table] = strict.made(rows, prefix="demo_", caveat="generated data").values()
    text = markdown_table(table)
    assert cells_of(text, OURS)[0][-2] == "50.0"
    assert all(cell.endswith("†") for line in cells_of(text, PUBLISHED) for cell in line[3:])
    assert "None of our numbers is comparable with a printed number: generated data" in text


def test_the_files_are_the_same_bytes_again_and_those_of_another_run_are_removed(strict: Any) -> None:
    given, output = vars(strict.inputs()), strict.folder / "tables" / "manifest.json"
    settings = {"stage": "write_tables", "stage_version": 1, **strict.settings()}
    contents = []
    for _ in range(2):
        run_stage(write_tables, settings, output, **given)
        files = {path.name: path.read_bytes() for path in output.parent.iterdir() if path.name != "provenance.json"}
        contents.append(files)
        (output.parent / "elc_bert_table_04.md").write_text("of an earlier layout", encoding="utf-8")
    assert contents[0] == contents[1]
    assert "elc_bert_table_04.md" not in contents[1]
    names = {
        f"elc_bert_table_{int(n):02d}.{kind}" for n in ("1", "2", "3", "7", "8", "9", "10") for kind in ("md", "tex")
    }
    assert contents[0].keys() == names | {"tables.md", "tables.tex", "tables.html", "tables.json", "manifest.json"}
    assert {entry["path"] for entry in json.loads(contents[0]["manifest.json"])["outputs"]} == names | {
        *("tables.md", "tables.tex", "tables.html", "tables.json"),
    }
    assert (
        b"Tables that were not written, because the experiment has no numbers for them: 11, 12."
        in contents[0]["tables.md"]
    )
    assert contents[0]["tables.tex"].count(b"\\input{elc_bert_table_") == 7
    page = contents[0]["tables.html"].decode()
    assert "because the experiment has no numbers for them: 11, 12." in page
    assert "The tables of the ELC-BERT paper, with the numbers of toy next to the printed numbers" in page


def test_layers_and_sizes_of_ours_stand_below_the_printed_ones(drawn: Drawn) -> None:
    layers, sizes = (markdown_table(drawn["ltg_bert", ""][number]) for number in ("5", "1"))
    ours = cells_of(layers, "ours: our_ltg_bert_base_unnamed")
    assert [line[3] for line in ours] == [line[3].rstrip("†") for line in cells_of(layers, PUBLISHED)]
    assert {len(line) for line in ours} == {16}
    slopes = zip(ours, cells_of(layers, PUBLISHED), strict=True)
    assert all(abs(float(one[-1]) - float(other[-1].rstrip("†"))) < 0.011 for one, other in slopes)
    assert cells_of(sizes, PUBLISHED)[0][3:] == ["4,014", "8,501,376", "115,870,549", "131,392,103"]
    assert [line[3:] for line in cells_of(sizes, OURS)] == [["4,013", "-", "-", "-"], ["-"] * 4]


def test_sizes_of_tasks_are_those_of_their_fine_tuning_and_long_inputs_the_ones_that_are_cut(drawn: Drawn) -> None:
    text = markdown_table(drawn["ltg_bert", ""]["4"])
    published, ours = cells_of(text, PUBLISHED), cells_of(text, OURS)
    assert [line[3:] for line in ours] == [line[3:] for line in published] and len(ours) == 14
    named = {line[0]: line[3:] for line in published}
    assert named["MultiRC"] == ["27,243", "4,848", "27.68"] and named["ReCoRD"] == ["1,179,400", "113,236", "0.30"]
    assert "more than 512 subwords, including [CLS] and [SEP]" in text
    assert "400 questions for training have 800 answers" in text


def test_a_miniature_has_the_sizes_of_its_own_tasks_with_the_limit_that_cut_them(bnc: Any) -> None:
    printed = {"train_rows": 60, "validation_rows": 20, "at_least_512_subwords_percent": 12.5}
    tasks = {"demo_glue_rte": bnc.tuned("demo_glue_rte", printed, 128), "probe_pos": bnc.folder / "of no table"}
    settings = build(PaperTablesSettings, bnc.settings(prefix="demo_", caveat="generated"))
    tables, _ = all_tables(settings, replace(bnc.inputs(), tasks=tasks))
    text = markdown_table(next(table for table in tables if table.number == "4"))
    assert [line[3:] for line in cells_of(text, OURS)] == [["60", "20", "12.50"]]
    assert "more than 128 subwords" in text
    assert all(cell.endswith("†") for line in cells_of(text, PUBLISHED) for cell in line[3:])


def test_table_2_alone_is_one_that_the_page_adds_our_training_times_to(drawn: Drawn) -> None:
    tables = list(drawn["ltg_bert", ""].values())
    assert [table.number for table in tables if table.with_times] == ["2"]
    views = read_views(views_json([view(table) for table in tables]))
    assert [shown.heading for shown in views if shown.with_times] == ["LTG-BERT, Table 2"]


def test_a_model_of_another_depth_has_columns_of_its_own(bnc: Any) -> None:
    inputs = bnc.inputs()
    shares = {("our_ltg_bert_base_span", "probe_pos", layer): 100 / 14 for layer in range(1, 15)}
    write_rows(inputs.layers, LAYERS, bnc.probes(shares))
    tables, _ = all_tables(build(PaperTablesSettings, bnc.settings()), inputs)
    table = next(table for table in tables if table.number == "5")
    assert table.headings == (*(str(layer) for layer in range(1, 15)), "slope")
    published, ours = table.lines[:2]
    assert [value is None for value in published.values] == [False] * 12 + [True] * 2 + [False]
    assert all(ours.values)


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


def test_if_models_are_columns_the_first_of_ours_shares_the_column_of_its_row_and_others_have_their_own() -> None:
    def line(label: str, source: str, first: float, model: str = "") -> Line:
        return Line(label, source, (Score(first), Score(first + 10)), model)

    lines = [line("P", PUBLISHED, 1), line("P", OURS, 2, "m1"), line("P", OURS, 3, "m2"), line("Q", OURS, 4, "m3")]
    headings, turned, named = _transposed(lines, ("one", "two"), {"m1": "M1", "m2": "M2"})
    assert headings == ("P", "ours: M2", "ours: m3") and named == "P is M1"
    numbers = [
        (each.label, each.source, [None if value is None else value.mean for value in each.values]) for each in turned
    ]
    assert numbers == [
        ("one", PUBLISHED, [1, None, None]),
        ("one", OURS, [2, 3, 4]),
        ("two", PUBLISHED, [11, None, None]),
        ("two", OURS, [12, 13, 14]),
    ]


def test_the_sizes_of_a_corpus_are_those_of_its_card_under_the_name_in_the_paper(bnc: Any) -> None:
    card = bnc.inputs().cards["bnc"]
    expected = {("100m", "total", "train", "documents"): 4013, ("100m", "bnc", "train", "documents"): 4013}
    assert read_card_sizes({"mine": card}, {"mine": "100m"}) == expected
    assert {corpus for corpus, *_ in read_card_sizes({"mine": card}, {})} == {"mine"}


# Tables in which the papers print rows of these baselines. LTG-BERT's Table 2 has no row for BERT.
PRINTED = {"strict": ["2", "7", "8", "9", "10"], "strict_small": ["2", "7", "8", "9", "10"], "bnc": ["3"]}


def tables_with_baselines_alone(repository: Path, folder: Path, experiment: str) -> dict[str, PaperTable]:
    """Return the tables of an experiment in which only imported models have scores, which are invented."""
    settings = build(PaperTablesSettings, tables_settings(Project(repository / "config"), experiment))
    chosen = settings.published
    published = repository / f"config/published/values/{chosen.paper}.csv"
    found = {}
    for number in read_numbers(published):
        for model in settings.baselines:
            is_theirs = chosen.rows[model] == number.row and number.track in ("", chosen.track)
            if is_theirs and MINUS not in number.metric and OVER not in number.metric and number.suite != "leaderboard":
                measure = (number.suite, number.task, number.metric)
                runs = (number.value + 0.5, 0.25, 5, 0, None, 0)
                found[model, *measure] = SummaryRow(experiment, model, *measure, *runs, None, None, "", None, "", "")
    summary = write_rows_of_summary(folder, [found[key] for key in sorted(found)])
    write_checksums([summary])
    measurements, layers = folder / "measurements.parquet", folder / "layers.parquet"
    write_rows(measurements, MEASUREMENTS, [])
    write_rows(layers, LAYERS, [])
    layout = repository / f"config/paper_tables/{chosen.paper}.yaml"
    sizes = repository / "config/published/corpora/sizes.csv"
    tables, _ = all_tables(settings, TableInputs(summary, published, layout, measurements, layers, sizes))
    return {table.number: table for table in tables}


@pytest.mark.parametrize("experiment", PRINTED)
def test_measured_baselines_fill_their_rows_wherever_a_paper_prints_them(
    experiment: str, repository: Path, tmp_path: Path
) -> None:
    tables = tables_with_baselines_alone(repository, tmp_path, experiment)
    baselines = list(Project(repository / "config").experiment(experiment).baselines)
    filled = {}
    for number, table in tables.items():
        for above, line in zip(table.lines, table.lines[1:], strict=False):
            if line.source == OURS:
                assert above.source == PUBLISHED and line.label == above.label
                filled.setdefault(number, []).append(line.model)
                for printed, ours in zip(above.values, line.values, strict=True):
                    assert (printed is None) == (ours is None)
                    if printed is not None and ours is not None:
                        assert ours.mean == pytest.approx(printed.mean + 0.5) and ours.deviation == 0.25
    assert sorted(filled, key=int) == PRINTED[experiment]
    assert all(models == baselines for models in filled.values())
