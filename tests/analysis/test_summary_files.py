"""The four forms of the summary."""

import csv
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hatchery.analysis.summary_tables import write_csv
from hatchery.analysis.write_summary import write_summary
from hatchery.errors import ConfigError, ManifestError

PUBLISHED = (
    "model,suite,task,metric,mean,std,source,comparable,note\n"
    "plain,finetuning,cola,accuracy_percent,60.0,1.5,Table 1,yes,printed in bold\n"
    "plain,blimp,agreement,accuracy_percent,73.0,,Table 2,yes,\n"
    "plain,blimp,binding,accuracy_percent,73.0,,Table 2,yes,\n"
)
NAMES = ("summary.csv", "summary.parquet", "summary.md", "summary.txt")


def write(experiment: Any, folder: Path, published: Path | None = None, backwards: bool = False) -> list[Path]:
    inputs = [experiment.pretraining, experiment.minimal_pairs, experiment.finetuning]
    if backwards:
        inputs = [dict(reversed(paths.items())) for paths in inputs]
    paths = [folder / name for name in NAMES]
    settings = experiment.summary_settings(None if published is None else "paper")
    csv_path, parquet, markdown, text = paths
    write_summary(settings, *inputs, published, csv_path, parquet, markdown, text)
    return paths


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "paper.csv"
    path.write_text(PUBLISHED)
    return path


def test_the_same_work_gives_the_same_bytes_in_whatever_order_inputs_come(
    two_models: Any, tmp_path: Path, published: Path
) -> None:
    first = write(two_models, tmp_path / "first", published)
    second = write(two_models, tmp_path / "second", published, backwards=True)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_csv_numbers_have_four_decimals_and_absent_ones_are_empty(
    two_models: Any, tmp_path: Path, published: Path
) -> None:
    path = write(two_models, tmp_path, published)[0]
    with path.open(newline="") as handle:
        rows = {(r["model"], r["suite"], r["task"], r["metric"]): r for r in csv.DictReader(handle)}
    cola = rows["plain", "finetuning", "cola", "accuracy_percent"]
    assert [cola[c] for c in ("mean", "std", "n", "n_failed")] == ["72.0000", "2.0000", "3", "1"]
    assert [cola[c] for c in ("published_mean", "published_std", "difference", "verdict")] == [
        *("60.0000", "1.5000", "12.0000", "above")
    ]
    elc = rows["elc", "blimp", "agreement", "accuracy_percent"]
    assert [elc[c] for c in ("mean", "std", "published_mean", "verdict")] == ["77.5000", "", "", ""]
    assert b"\r" not in path.read_bytes()


def test_parquet_holds_the_rows_of_the_csv(two_models: Any, tmp_path: Path, published: Path) -> None:
    csv_path, parquet, *_ = write(two_models, tmp_path, published)
    table = pq.read_table(parquet)
    with csv_path.open(newline="") as handle:
        reader = csv.DictReader(handle)
        rows = list(reader)
    assert table.column_names == reader.fieldnames
    for mine, theirs in zip(table.to_pylist(), rows, strict=True):
        texts = {k: "" if v is None else f"{v:.4f}" if isinstance(v, float) else str(v) for k, v in mine.items()}
        assert texts == theirs


def test_markdown_has_models_as_rows_and_says_what_a_reader_must_know(
    two_models: Any, tmp_path: Path, published: Path
) -> None:
    text = write(two_models, tmp_path, published)[2].read_text(encoding="utf-8")
    assert "| plain | 72.0 ± 2.0 (n=3, 1 failed) | 20.0 ± 10.0 (n=3, 1 failed) | 53.0 ± 2.6 (n=4) |" in text
    assert "| elc | 77.5 (n=1) | 75.0 (n=1) |" in text
    assert "divided by n - 1" in text
    assert "Failed run: plain-s2, cola, seed 13: majority class." in text
    assert "| +12.0 | above | Table 1 | printed in bold |" in text
    assert "In all: 1 within, 1 above." in text
    assert "1 published values have no counterpart here: plain, blimp, binding, accuracy_percent." in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_markdown_keeps_bars_in_names_out_of_its_columns(experiment: Any, tmp_path: Path) -> None:
    cell = experiment.add_model("a|b", 1, [])
    experiment.add_finetuning(cell, "cola", ("accuracy",), {12: ((0.7,), "")})
    assert "| a\\|b | 70.0 (n=1) |" in write(experiment, tmp_path)[2].read_text(encoding="utf-8")


def test_text_is_ascii_aligned_and_fits_the_terminal(two_models: Any, tmp_path: Path, published: Path) -> None:
    lines = write(two_models, tmp_path, published)[3].read_text(encoding="ascii").splitlines()
    assert max(map(len, lines)) <= 100
    header = next(line for line in lines if line.split() == ["plain", "elc"])
    agreement = next(line for line in lines if line.strip().startswith("agreement"))
    assert agreement.split() == ["agreement", "72.5", "+-3.5", "77.5"]
    assert header.index("plain") + len("plain") >= agreement.index("+-3.5") + len("+-3.5")
    assert any(line.split() == ["cola", "accuracy", "72.0", "+-2.0*", "81.0", "+-1.4"] for line in lines)
    assert "  plain-s2, cola, seed 13: majority class" in lines


def test_text_continues_in_a_further_block_when_the_models_do_not_fit(experiment: Any, tmp_path: Path) -> None:
    names = [f"model_with_quite_a_long_name_{index}" for index in range(7)] + ["m" * 120]
    for name in names:
        cell = experiment.add_model(name, 1, [])
        experiment.add_finetuning(cell, "cola", ("accuracy",), {12: ((0.7,), "")})
    text = write(experiment, tmp_path)[3].read_text(encoding="ascii")
    assert max(map(len, text.splitlines())) <= 100
    assert all(name[:60] in text for name in names)
    assert text.count("cola accuracy") > 1


def test_nothing_is_written_when_an_input_is_damaged(two_models: Any, tmp_path: Path) -> None:
    (two_models.finetuning["elc-s1:rte"].parent / "results.csv").write_text("")
    with pytest.raises(ManifestError):
        write(two_models, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_table_of_published_values_must_be_handed_in_exactly_when_the_settings_name_one(
    two_models: Any, tmp_path: Path, published: Path
) -> None:
    inputs = (two_models.pretraining, two_models.minimal_pairs, two_models.finetuning)
    for name, path in ((None, published), ("paper", None)):
        with pytest.raises(ConfigError, match="--published"):
            write_summary(two_models.summary_settings(name), *inputs, path, tmp_path / "summary.csv")


def test_an_experiment_without_evaluations_still_has_a_header(tmp_path: Path) -> None:
    write_csv(tmp_path / "summary.csv", [])
    assert (tmp_path / "summary.csv").read_text().startswith("experiment,model,suite,task,metric,mean")
