"""The papers' numbers as data: all numbers, each once, under our names, and consistent."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from measured_rows import averages_of_cells
from projects import rows_of

from hatchery.analysis.published_values import (
    MINUS,
    OVER,
    PAPERS,
    PublishedNumber,
)
from hatchery.analysis.task_averages import (
    AVERAGE,
    EDGE_PROBING_TASKS,
    LTG_GLUE_METRICS,
    LTG_TABLE_3,
    PARADIGMS_OF_PHENOMENON,
    SUPPLEMENT_FILES,
    WITHOUT_WSC,
)
from hatchery.evaluation.metrics import METRICS
from hatchery.evaluation.minimal_pairs.measurements import AT_BEST_TEMPERATURE
from hatchery.experiment.project import Project
from hatchery.experiment.written_blocks import WrittenBlocks
from hatchery.views.paper_tables.fact_tables import METRICS as SIZES_OF_TASKS
from hatchery.views.stages.write_tables import tables_settings

BABYLM_MODELS = {
    ("OPT-125M", ""): "opt_125m",
    ("RoBERTa-base", ""): "roberta_base",
    ("T5-base", ""): "t5_base",
    ("LTG-BERT-base", "backbone"): "ltg_bert_base",
    ("LTG-BERT-small", "backbone"): "ltg_bert_small",
    ("ELC-BERT-base", "base"): "elc_bert_base",
    ("ELC-BERT-base", "zero"): "elc_bert_base_zero",
    ("ELC-BERT-base", "normalized"): "elc_bert_base_normalized",
    ("ELC-BERT-base", "weighted_output"): "elc_bert_base_weighted_output",
    ("ELC-BERT-small", "zero"): "elc_bert_small_zero",
    ("ELC-BERT", "submitted"): "elc_bert_submitted",
    ("MLSM", ""): "mslm",
    ("MSLM", ""): "mslm",
    ("Contextualizer", ""): "contextualizer",
    ("Baby Llama", ""): "baby_llama",
    ("Too Much Information", ""): "too_much_information",
    ("BootBERT", ""): "bootbert",
    ("Bad babies", ""): "bad_babies",
}
LTG_VARIANTS = {
    "all improvements": "subword",
    "subword masking": "subword",
    "whole-word masking": "whole_word",
    "span masking": "span",
    "subword + document NSP": "document_nsp",
    "subword + order NSP": "order_nsp",
    "subword + 2x steps": "double_steps",
    "subword + 0.5x steps": "half_steps",
    "subword + 0.25x steps": "quarter_steps",
    "random initialization": "untrained",
    "untrained": "untrained",
    "post-norm": "post_norm",
    "pre-norm": "pre_norm",
    "GELU activation": "gelu",
    "absolute positional embeddings": "absolute_positions",
    "no FF initialization scaling": "no_initial_scaling",
    "learnt FF biases": "feed_forward_biases",
    "weight decay 0.01": "low_weight_decay",
    "linear schedule": "linear_schedule",
    "AdamW": "adamw",
    "model not named in the paper": "unnamed",
}
# LTG-BERT: Table 1 contains corpus sizes, Tables 9 to 11 contain hyperparameters.
LTG_TABLES = (2, 3, 4, 5, 6, 7, 8)
# ELC-BERT: Tables 4 and 5 contain hyperparameters, Table 6 contains corpus sizes.
ELC_TABLES = (1, 2, 3, 7, 8, 9, 10, 11, 12)
# Reduced vocabulary: Table 1 contains data sizes, Table 6 tokenizers. Model sizes are in config/published/models.
REDUCED_COLUMNS = {
    2: ("icer",),
    3: ("flops_1e15", "test_perplexity", "glue_unfiltered", "glue_filtered", "glue_filtered_random_init"),
    4: ("pct_delta_flops", "pct_delta_perplexity", "pct_delta_glue_filtered", "pct_delta_glue_unfiltered"),
    7: ("flops_1e15", "test_perplexity"),
}
# GPT-BERT: Tables 3 and 4 contain hyperparameters.
GPT_BERT_TABLES = ("1", "2", "5", "6", "7", "8", "Figure 2")
LOGGED_COLUMNS = ("gflops_per_sequence_code_formula", "test_loss", "test_perplexity")

# Suites that are not in config/suites or config/tasks: suites of training, and suites that only papers have.
OTHER_SUITES = {
    "pretraining",
    "perplexity",
    "leaderboard",
    "cost_effectiveness",
    "scaling",
    "correlation",
    "settings",
}


def test_each_paper_has_its_file(repository: Path) -> None:
    assert {path.stem for path in (repository / "config/published/values").glob("*.csv")} == set(PAPERS)


def printed(golden_directory: Path, name: str) -> list[dict[str, str]]:
    return rows_of(golden_directory / "published" / f"{name}.csv")


Result = tuple[str, str, Decimal, Decimal | None]
"""Track, row, value and spread."""


def result(track: str, row: str, value: str, spread: str = "", factor: int = 1) -> Iterator[Result]:
    """Yield the result of printed texts in our unit, or no result if no value is printed."""
    if value:
        yield track, row, Decimal(value) * factor, Decimal(spread) * factor if spread else None


def of_elc_bert(row: dict[str, str]) -> Iterator[Result]:
    model = BABYLM_MODELS[row["model"], row["variant"]]
    factor = 100 if row["metric"] in ("lbs", "mcc") else 1
    yield from result(row["track"].replace("-", "_"), model, row["mean"], row["std"], factor)


def of_ltg_bert(row: dict[str, str]) -> Iterator[Result]:
    if row["table"] == "4":
        name = "task_sizes"
    elif row["model"] == "BERT base cased":
        name = "bert_base_cased_literature" if row["variant"] == "published reference" else "bert_base_cased"
    elif "subset" in row["model"] or row["section"] == "Wikipedia + BookCorpus (100M words)":
        name = "ltg_bert_base_wikipedia_bookcorpus"
    else:
        name = f"ltg_bert_base_{LTG_VARIANTS[row['variant']]}"
    yield from result("", name, row["mean"], row["std"])


def of_reduced_vocabulary(table: int, row: dict[str, str]) -> Iterator[Result]:
    shape = "rv_" + "_".join(row[letter] for letter in "EHILA")
    for column in REDUCED_COLUMNS[table]:
        variant = "_unconstrained" if table == 4 else "_untrained" if column.endswith("random_init") else ""
        yield from result("", shape + variant, row[column])


def of_logged_runs(row: dict[str, str]) -> Iterator[Result]:
    for column in LOGGED_COLUMNS:
        yield from result("", row["run"].replace("-", "_"), row[column])


GPT_BERT_ROWS = {
    "Encoder-only baseline": "encoder_baseline",
    "Decoder-only baseline": "decoder_baseline",
    "ELC-BERT (2023)": "elc_bert",
    "LTG-BERT (2023)": "ltg_bert",
    "GPT-BERT": "gpt_bert",
    "without layer weights": "without_layer_weights",
    "without attention gate": "without_gate",
    "without mask scheduling": "without_mask_schedule",
    "without batch scheduling": "without_batch_schedule",
    "BabyLM corpus only": "babylm_only",
    "FineWeb-Edu only": "fineweb_only",
    "Cosmopedia only": "cosmopedia_only",
    "causal-only": "causal_only",
    "masked-only": "masked_only",
}


def of_gpt_bert(table: str, row: dict[str, str]) -> Iterator[Result]:
    if row["table"].removeprefix("Table ") == table:
        name = row["row"].partition(" [")[0].partition(",")[0].removeprefix("causal:masked ")
        model = GPT_BERT_ROWS.get(name) or "causal_{}_masked_{}".format(*name.split(":"))
        yield from result(row["track"].replace("-", "_"), model, row["value"])


def of_baselines_of_2025(row: dict[str, str]) -> Iterator[Result]:
    model = row["row"].lower().replace("-", "_").replace(" ", "_")
    yield from result(row["track"].replace("-", "_"), model, row["value"])


def of_official_baselines(row: dict[str, str]) -> Iterator[Result]:
    model = {"OPT": "opt_125m", "RoBERTa": "roberta_base", "T5": "t5_base"}[row["model"]]
    track = {"100M": "strict", "10M": "strict_small"}[row["words"]]
    yield from result(track, model, row["value"], factor=100 if row["suite"] == "msgs" else 1)


# The file of tests/golden/published with the printed values of each table.
PRINTED: dict[tuple[str, str], tuple[str, Callable[[dict[str, str]], Iterator[Result]]]] = {
    **{("elc_bert", str(table)): (f"elc_bert_table{table}", of_elc_bert) for table in ELC_TABLES},
    ("elc_bert", "text"): ("elc_bert_text", of_elc_bert),
    **{("ltg_bert", str(table)): (f"ltg_bert_table{table}", of_ltg_bert) for table in LTG_TABLES},
    **{
        ("reduced_vocabulary", str(table)): (f"reduced_vocabulary_table{table}", partial(of_reduced_vocabulary, table))
        for table in REDUCED_COLUMNS
    },
    ("reduced_vocabulary", "repository of January 2023"): ("reduced_vocabulary_repo_runs_jan2023", of_logged_runs),
    **{("gpt_bert", table): ("gpt_bert", partial(of_gpt_bert, table)) for table in GPT_BERT_TABLES},
    ("babylm_2025", "README"): ("babylm_2025_readme", of_baselines_of_2025),
    ("babylm_pipeline", "README"): ("babylm_pipeline_readme", of_official_baselines),
}


@pytest.mark.parametrize(("paper", "table"), PRINTED)
def test_every_printed_result_stands_in_our_table_once(
    numbers: list[PublishedNumber], golden_directory: Path, paper: str, table: str
) -> None:
    name, results = PRINTED[paper, table]
    expected = Counter(each for row in printed(golden_directory, name) for each in results(row))
    ours = Counter(
        (
            number.track,
            number.row,
            Decimal(str(number.value)),
            None if number.spread is None else Decimal(str(number.spread)),
        )
        for number in numbers
        # Values of a constant prediction are computed, not printed.
        if (number.paper, number.table) == (paper, table) and number.row != "majority_label"
    )
    assert ours == expected and expected


def test_the_fits_and_correlations_of_the_reduced_vocabulary_study_are_those_of_its_text(
    numbers: list[PublishedNumber], golden_directory: Path
) -> None:
    found = {
        (number.task, number.metric): number.value
        for number in numbers
        if (number.paper, number.table) in {("reduced_vocabulary", "text"), ("reduced_vocabulary", "Figure 1")}
    }
    read = printed(golden_directory, "reduced_vocabulary_text")
    assert found == {(row["task"], row["metric"]): float(row["value"]) for row in read}
    assert len(found) == 12


def test_no_table_of_ours_is_left_unchecked_by_the_tests_above(numbers: list[PublishedNumber]) -> None:
    fits = {("reduced_vocabulary", table) for table in ("text", "Figure 1")}
    settings = {("gpt_bert", "3"), ("gpt_bert", "4")}
    assert {(number.paper, number.table) for number in numbers} == PRINTED.keys() | fits | settings


@pytest.mark.parametrize(
    ("experiment", "track"), [("gpt_bert_strict", "strict"), ("gpt_bert_strict_small", "strict_small")]
)
def test_our_gpt_bert_has_every_hyperparameter_that_the_paper_prints(
    numbers: list[PublishedNumber], repository: Path, experiment: str, track: str
) -> None:
    ours = tables_settings(Project(repository / "config"), experiment)["hyperparameters"]
    printed = {n.task: n.value for n in numbers if n.suite == "settings" and n.track == track}
    assert ours == {"gpt_bert": printed} and len(printed) == 19 + 4 * 5


def test_the_page_of_elc_bert_tells_every_number_of_its_text_and_the_papers_own_error(
    numbers: list[PublishedNumber], repository: Path
) -> None:
    page = (repository / "docs/papers/elc-bert.md").read_text(encoding="utf-8")
    section = page.partition("## Numbers of the text\n")[2].partition("\n## ")[0]
    told = re.findall(
        r"(?<![\d.])-?\d+(?:\.\d+)?", " ".join(line.split("|")[1] for line in section.splitlines() if "|" in line)
    )
    of_the_text = [number for number in numbers if (number.paper, number.table) == ("elc_bert", "text")]
    assert Counter(map(float, told)) == Counter(number.value for number in of_the_text)
    assert "76.6 - 42.4 = 34.2 (the printed 24.4 is an error)" in section


def test_suites_tasks_and_metrics_have_the_names_of_the_configuration(
    numbers: list[PublishedNumber], repository: Path
) -> None:
    written = WrittenBlocks(repository / "config")
    configured = {name: written.read("task", name)["suite"] for name in written.names("task")}
    pairs = set(written.names("suite"))
    suites = pairs | set(configured.values())
    assert {number.suite for number in numbers} <= suites | OTHER_SUITES
    for number in numbers:
        name = number.metric.partition(MINUS)[0]
        if number.suite in OTHER_SUITES or name.startswith(OVER):
            continue
        if number.suite in pairs:
            averages = {"phenomenon_average", "paradigm_average"}
            files = SUPPLEMENT_FILES if "supplement" in number.suite else tuple(PARADIGMS_OF_PHENOMENON)
            assert number.task in {*files, *averages} or "ewok" in number.suite
            assert name == "accuracy_percent" or (name == AT_BEST_TEMPERATURE and number.suite.startswith("blimp_2024"))
        elif number.task in (AVERAGE, WITHOUT_WSC, LTG_TABLE_3):
            assert name in ("score_percent", "score_relative_change_percent")
        elif not name.startswith("layer_"):
            assert configured[number.task.removesuffix("_mismatched")] == number.suite
            assert name.removesuffix("_percent") in METRICS or (number.row == "task_sizes" and name in SIZES_OF_TASKS)


def test_every_number_has_a_source_and_a_reason_where_it_cannot_be_compared(numbers: list[PublishedNumber]) -> None:
    assert all(number.source.startswith(PAPERS[number.paper]) for number in numbers)
    assert {number.source for number in numbers if number.paper == "elc_bert"} == {
        *(f"ELC-BERT Table {table}" for table in ELC_TABLES),
        "ELC-BERT, text",
    }
    assert all(number.note for number in numbers if not number.comparable)


def cells(numbers: list[PublishedNumber], paper: str, track: str, row: str, suite: str) -> dict[Any, PublishedNumber]:
    """Return single numbers by (task, metric), without numbers of the text and of overview tables."""
    overviews = ("1", "2", "3", "text")
    return {
        (number.task, number.metric): number
        for number in numbers
        if (number.paper, number.track, number.row, number.suite) == (paper, track, row, suite)
        and number.table not in overviews
    }


def means(found: dict[Any, PublishedNumber]) -> dict[str, float]:
    return {task: number.value for (task, _), number in found.items()}


def average_of(suite: str, found: dict[Any, PublishedNumber]) -> float | None:
    """Return the summary's average of a suite of fine-tuned tasks with these numbers."""
    values = {(task, metric.removesuffix("_percent")): number.value for (task, metric), number in found.items()}
    averages = averages_of_cells(suite, values)
    return averages[AVERAGE].mean if AVERAGE in averages else None


def test_elc_berts_averages_follow_from_their_cells(numbers: list[PublishedNumber]) -> None:
    models = {(n.track, n.row) for n in numbers if (n.paper, n.table) == ("elc_bert", "9")}
    checked = 0
    for track, row in sorted(models):
        for suite, parts in (
            ("blimp_filtered", PARADIGMS_OF_PHENOMENON),
            ("supplement_filtered", SUPPLEMENT_FILES),
            ("babylm_glue", None),
            ("msgs", None),
        ):
            found = cells(numbers, "elc_bert", track, row, suite)
            task = "phenomenon_average" if suite.endswith("filtered") else AVERAGE
            said = next(
                n
                for n in numbers
                if (n.paper, n.track, n.row, n.suite, n.task) == ("elc_bert", track, row, suite, task)
                and not n.metric.startswith(OVER)
                and MINUS not in n.metric
            )
            if not found:
                assert row == "ltg_bert_small"
                continue
            average = average_of(suite, found) if parts is None else fmean(means(found)[part] for part in parts)
            assert average is not None
            off = abs(average - said.value)
            assert (off <= said.rounding + 0.06) == said.comparable
            checked += 1
    assert checked == 13 * 4 - 2


def test_gpt_berts_averages_follow_from_their_cells(numbers: list[PublishedNumber]) -> None:
    for track in ("strict", "strict_small"):
        said = {
            n.suite: n.value
            for n in numbers
            if (n.paper, n.table, n.track, n.row) == ("gpt_bert", "1", track, "gpt_bert")
        }
        own = {suite: cells(numbers, "gpt_bert", track, "gpt_bert", suite) for suite in said}
        phenomena = means(own["blimp_2024"])
        paradigms = [phenomena[name] for name, number in PARADIGMS_OF_PHENOMENON.items() for _ in range(number)]
        assert fmean(paradigms) == pytest.approx(said["blimp_2024"], abs=0.16)
        assert fmean(means(own["supplement_2024"]).values()) == pytest.approx(said["supplement_2024"], abs=0.06)
        # CoLA counts with its Matthews correlation.
        assert fmean(means(own["babylm_glue"]).values()) == pytest.approx(said["babylm_glue"], abs=0.06)
        # The paper's EWoK mean is over rows, not over domains.
        assert abs(fmean(means(own["ewok_2024"]).values()) - said["ewok_2024"]) < 0.6


def test_ltg_berts_averages_follow_from_their_cells(numbers: list[PublishedNumber]) -> None:
    for row in sorted({n.row for n in numbers if (n.paper, n.table) == ("ltg_bert", "6")}):
        phenomena = means(cells(numbers, "ltg_bert", "", row, "blimp"))
        paradigms = [phenomena[name] for name, number in PARADIGMS_OF_PHENOMENON.items() for _ in range(number)]
        assert fmean(paradigms) == pytest.approx(phenomena["paradigm_average"], abs=0.025)
        probes = cells(numbers, "ltg_bert", "", row, "probing")
        assert average_of("probing", probes) == pytest.approx(means(probes)[AVERAGE], abs=0.015)
        glue = cells(numbers, "ltg_bert", "", row, "glue")
        average = average_of("glue", glue)
        if row == "ltg_bert_base_order_nsp":
            # One cell is not printed, so this average does not exist.
            assert average is None
        else:
            tolerance = 0.1 if row == "ltg_bert_base_half_steps" else 0.02
            assert average == pytest.approx(glue[AVERAGE, "score_percent"].value, abs=tolerance)
    assert sum(map(len, LTG_GLUE_METRICS)) + 2 == len(cells(numbers, "ltg_bert", "", row, "glue"))
    assert set(EDGE_PROBING_TASKS) < {n.task for n in numbers if n.suite == "probing"}
