"""Bold numbers, rounding and escaping, and refused layouts and summaries."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from summary_text import write_summary

from hatchery.analysis.aggregates import Aggregate
from hatchery.analysis.tidy_tables import LAYERS, MEASUREMENTS, write_rows
from hatchery.errors import ConfigError, EvaluationError, HatcheryError
from hatchery.typed import build
from hatchery.views.paper_tables.printed import remarks
from hatchery.views.paper_tables.scored_table import LEADERBOARD_FILES, leaderboard_scores
from hatchery.views.paper_tables.settings import PaperTablesSettings, TableInputs
from hatchery.views.paper_tables.write_all import all_tables, latex_table, markdown_table
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score, with_best


def line(source: str, *means: float | None, **more: Any) -> Line:
    values = (None if mean is None else Score(mean, Digits(), **more) for mean in means)
    return Line("model", source, tuple(values))


def bold(lines: list[Line]) -> list[list[str]]:
    return [[value.mean_text for value in line.values if value is not None and value.best] for line in with_best(lines)]


def test_the_best_of_every_column_is_bold_among_the_printed_and_among_ours() -> None:
    lines = [line(PUBLISHED, 80.0, 3.0), line(OURS, 70.0, 9.0), line(PUBLISHED, 79.0, 4.0), line(OURS, 71.0, 8.0)]
    assert bold(lines) == [["80.0"], ["9.0"], ["4.0"], ["71.0"]]


def test_numbers_that_look_the_same_are_all_bold() -> None:
    assert bold([line(OURS, 70.04), line(OURS, 69.96), line(OURS, 69.94)]) == [["70.0"], ["70.0"], []]


def test_a_number_without_rivals_is_not_bold_and_a_gap_is_no_rival() -> None:
    assert bold([line(OURS, 70.0, None), line(PUBLISHED, 80.0, 1.0)]) == [[], []]


def test_where_less_is_better_the_lowest_is_bold() -> None:
    lines = [line(OURS, -22.0, lower_is_better=True), line(OURS, -136.0, lower_is_better=True)]
    assert bold(lines) == [[], ["-136.0"]]


@pytest.mark.parametrize(
    ("seeds", "marked"), [((2, 2, 1), [True, True, False]), ((2, 1, 2), [False] * 3), ((1, 1, 2), [False] * 3)]
)
def test_of_ours_that_tie_for_the_best_none_is_bold_where_one_has_a_single_seed(
    seeds: tuple[int, ...], marked: list[bool]
) -> None:
    lines = [line(OURS, mean, seeds=of) for mean, of in zip((70.0, 70.0, 60.0), seeds, strict=True)]
    # Numbers of seeds do not affect the bold face of printed numbers.
    assert [bool(texts) for texts in bold([*lines, line(PUBLISHED, 50.0), line(PUBLISHED, 40.0)])] == [
        *marked,
        *(True, False),
    ]


def test_a_best_number_of_zero_is_not_bold_where_its_model_has_a_single_seed() -> None:
    assert bold([line(OURS, 0.0, seeds=1), line(OURS, -5.0, seeds=2)]) == [[], []]
    assert bold([line(OURS, 0.0, seeds=2), line(OURS, -5.0, seeds=1)]) == [["0.0"], []]


def test_what_is_within_one_deviation_of_the_best_is_bold_where_the_caption_says_so() -> None:
    lines = [
        Line("model", OURS, (Score(mean, Digits(), deviation),))
        # Two models tie for the best. The larger deviation of these two counts, and no other deviation.
        for mean, deviation in ((92.8, 0.4), (92.8, 0.5), (92.3, 0.1), (92.2, 0.9), (92.4, None))
    ]
    marked = [[value.mean_text for value in line.values if value and value.best] for line in lines_of(lines)]
    assert marked == [["92.8"], ["92.8"], ["92.3"], [], ["92.4"]]
    assert [bool(texts) for texts in bold(lines)] == [True, True, False, False, False]


def lines_of(lines: list[Line]) -> list[Line]:
    return with_best(lines, within_deviation=True)


def test_the_row_that_others_are_changes_from_competes_as_a_change_of_zero() -> None:
    reference = Line("all", OURS, (Score(95.3, Digits(), 0.1, reference=True),))
    changes = [Line("one", OURS, (Score(change, Digits(signed=True), 0.1),)) for change in (0.0, -0.1, -0.2)]
    assert [line.values[0].best for line in lines_of([reference, *changes]) if line.values[0]] == [
        *(True, True, True, False)
    ]


@pytest.mark.parametrize(
    ("digits", "value", "text"),
    [
        (Digits(), 84.949, "84.9"),
        (Digits(), 84.951, "85.0"),
        (Digits(), -0.04, "0.0"),
        (Digits(decimals=2, scale=0.01), -64.0, "-0.64"),
        (Digits(decimals=2, scale=0.01), -0.4, "0.00"),
        (Digits(signed=True), 0.62, "+0.6"),
        (Digits(signed=True), 0.04, "0.0"),
        (Digits(signed=True), -0.5, "-0.5"),
        (Digits(decimals=0, grouped=True), 131392103.0, "131,392,103"),
        (Digits(decimals=0), 100.0, "100"),
    ],
)
def test_numbers_are_rounded_to_their_digits_and_zero_has_no_sign(digits: Digits, value: float, text: str) -> None:
    assert digits.mean(value) == text


def test_a_table_of_names_full_of_markup_keeps_its_columns() -> None:
    lines = (Line("a|b_c&d", PUBLISHED, (Score(1.0, Digits()),)), Line("a|b_c&d", OURS, (None,), "x|y"))
    table = PaperTable("50% & more", "model", ("h|1",), (Block("", lines),), paper="elc_bert", number="2")
    assert markdown_table(table).splitlines()[4:] == [
        r"| model | numbers | n | h\|1 |",
        "| :-- | :-- | --: | --: |",
        r"| a\|b_c&d | published |  | 1.0 |",
        r"|  | ours: x\|y |  | - |",
    ]
    assert r"a\textbar{}b\_c\&d & published &  & 1.0 \\" in latex_table(table)
    assert r"\caption{50\% \& more (ELC-BERT, Table 2).}" in latex_table(table)


def test_up_to_three_places_of_a_remark_are_named_and_remarks_in_common_are_printed_once() -> None:
    def shown(numbers: int, comparable: bool) -> list[str]:
        notes = ["alone; common", *["common"] * (numbers - 1)]
        values = tuple(Score(1.0, Digits(), note=note, comparable=comparable) for note in notes)
        return remarks([Line("m", PUBLISHED, values)], "abcd"[:numbers], comparable=True)

    assert shown(3, comparable=True) == ["alone (m, a)", "common (m, a; m, b; m, c)"]
    assert shown(4, comparable=True) == ["alone (m, a)", "common (4 numbers)"]
    assert shown(4, comparable=False) == []


def seventeen(value: float) -> dict[tuple[str, str, str], Aggregate]:
    return {(suite, name, "accuracy_percent"): Aggregate(value, None, 1, 0) for suite, name in LEADERBOARD_FILES}


def test_a_leaderboard_without_an_ingredient_has_no_total() -> None:
    glue = {("babylm_glue", "average", "score_percent"): Aggregate(70.0, 1.0, 5, 2)}
    msgs = {("msgs", "average", "score_percent"): Aggregate(-20.0, 4.0, 9, 1)}
    whole = leaderboard_scores({**seventeen(80.0), **glue, **msgs})
    assert whole["leaderboard", "average", "score_percent"] == Aggregate(57.0, None, 1, 3)
    assert leaderboard_scores({**seventeen(80.0), **glue}).keys() == {
        ("leaderboard", "blimp", "score_percent"),
        ("leaderboard", "glue", "score_percent"),
    }
    sixteen = dict(list(seventeen(80.0).items())[1:])
    assert leaderboard_scores(sixteen) == {}


@pytest.fixture
def layout(repository: Path) -> dict[str, Any]:
    """The layout of the ELC-BERT paper's Table 3 alone; tests may change it."""
    document = yaml.safe_load((repository / "config/paper_tables/elc_bert.yaml").read_text(encoding="utf-8"))
    return {"paper": "elc_bert", "tables": {"3": document["tables"]["3"]}}


def tables_of(layout: dict[str, Any], repository: Path, folder: Path, **more: Any) -> list[PaperTable]:
    path = folder / "elc_bert.yaml"
    path.write_text(yaml.safe_dump(layout, sort_keys=False), encoding="utf-8")
    summary = write_summary(folder, ["toy,mine,blimp_filtered,phenomenon_average,accuracy_percent,80.0,,1,0,80.0,0"])
    settings = {
        "experiment": "toy",
        "runs": [{"name": "mine-s1", "model": "mine", "seed": 1}],
        "published": {"paper": "elc_bert", "track": "strict", "rows": {"mine": "elc_bert_base"}},
    }
    tidy = {table.name: folder / f"{table.name}.parquet" for table in (MEASUREMENTS, LAYERS)}
    for table in (MEASUREMENTS, LAYERS):
        write_rows(tidy[table.name], table, [])
    sizes = repository / "config/published/corpora/sizes.csv"
    inputs = TableInputs(summary, repository / "config/published/values/elc_bert.csv", path, sizes=sizes, **tidy)
    return all_tables(build(PaperTablesSettings, {**settings, **more}), inputs)[0]


def test_the_undamaged_layout_is_accepted(layout: dict[str, Any], repository: Path, tmp_path: Path) -> None:
    [table] = tables_of(layout, repository, tmp_path)
    assert table.lines[1].values[0] == Score(80.0, Digits(1, 1), n=1, seeds=1)


def damaged(layout: dict[str, Any], how: str) -> None:
    table = layout["tables"]["3"]
    match how:
        case "unknown row":
            table["blocks"][0]["rows"].append({"row": "elc_bert_base_zer", "heading": "Z"})
        case "missing row":
            table["blocks"][0]["rows"].pop()
        case "unknown column":
            table["columns"][0]["task"] = "phenomenon_averge"
        case "row twice":
            table["blocks"][0]["rows"].append(table["blocks"][0]["rows"][0])
        case "too few digits":
            table["columns"][2]["decimals"] = 1
        case "no suite":
            del table["columns"][0]["suite"]
        case "unknown table":
            layout["tables"]["4"] = table
        case "change from nothing":
            table["change_from"] = "elc_bert"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            "unknown row",
            "for the row strict elc_bert_base_zer of the layout; did you mean 'elc_bert_base_zero'?",
        ),
        (
            "missing row",
            "table 3: the layout has no cell for the published number of strict, elc_bert_base_weighted_output",
        ),
        (
            "unknown column",
            "table 3: the layout has no cell for the published number of strict, elc_bert_base, blimp_filtered",
        ),
        ("row twice", "tables.3.blocks: strict, elc_bert_base appears twice"),
        ("too few digits", "decimals: strict, elc_bert_base, msgs, average, score_percent is printed as -0.26"),
        ("no suite", "tables.3.columns: BLiMP: suite or metric is missing"),
        ("unknown table", "table 4: the published table has no number for the row strict elc_bert_base of the layout"),
        ("change from nothing", "change_from: got 'elc_bert', expected a printed row"),
    ],
)
def test_a_layout_that_does_not_fit_the_printed_table_is_refused_in_one_line(
    how: str, message: str, layout: dict[str, Any], repository: Path, tmp_path: Path
) -> None:
    damaged(layout, how)
    with pytest.raises(ConfigError) as error:
        tables_of(layout, repository, tmp_path)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"published": {"paper": "elc_bert", "track": "strict", "rows": {"m": "elc_bert_base"}}},
            "got 'm', expected",
        ),
        ({"published": {"paper": "ltg_bert", "rows": {}}}, "the layout: got the paper elc_bert, expected ltg_bert"),
        ({"experiment": "other"}, "got the model 'mine' of 'toy', expected a model of 'other'"),
        (
            {"runs": [{"name": "x-s1", "model": "x", "seed": 1}], "published": {"paper": "elc_bert", "rows": {}}},
            "'mine'",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    settings: dict[str, Any], message: str, layout: dict[str, Any], repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(HatcheryError) as error:
        tables_of(layout, repository, tmp_path, **settings)
    assert isinstance(error.value, ConfigError | EvaluationError) and message in str(error.value)
