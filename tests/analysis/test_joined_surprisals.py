"""One table of the words of all texts under all models, including imported models, for readers and for the figure."""

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import hatchery
from hatchery.analysis.stages.join_surprisals import join_surprisals
from hatchery.artifacts.checksums import verified_view
from hatchery.errors import ManifestError
from hatchery.runner import run_stage


def joined(experiment: Any) -> Path:
    settings = {**experiment.collect_settings(), "stage": "join_surprisals", "stage_version": 1}
    words = {f"surprisal:{name}": path for name, path in experiment.surprisal.items()}
    output = experiment.folder / "surprisals.parquet"
    run_stage(join_surprisals, settings, output, words=words, model=experiment.inputs["model"])
    return Path(output)


OWN = {"item": "007", "rt": "312.5"}


@pytest.fixture
def measured(experiment: Any) -> Any:
    run = experiment.add_model("mine", 7, [{"step": 1, "tokens": 10, "loss": 3.0}])
    experiment.add_baseline("theirs")
    experiment.add_surprisal(run, "read", {"The": 2.0, "NA": 8.5}, OWN)
    experiment.add_surprisal("theirs", "read", {"The": 1.0, "NA": 4.25}, OWN)
    experiment.add_surprisal(run, "other", {"=cat": 3.0})
    return experiment


def test_all_words_of_all_models_are_one_table_with_the_columns_of_the_user(measured: Any) -> None:
    joined(measured)
    (measured.folder / "measurements.parquet").touch()
    frame = hatchery.results(measured.folder).surprisals
    chosen = frame.select("experiment", "model", "run", "seed", "texts", "word", "surprisal", "item", "rt")
    assert chosen.rows() == [
        ("demo", "mine", "mine-s7", 7, "read", "The", 2.0, "007", "312.5"),
        ("demo", "mine", "mine-s7", 7, "read", "NA", 8.5, "007", "312.5"),
        ("demo", "theirs", "theirs", None, "read", "The", 1.0, "007", "312.5"),
        ("demo", "theirs", "theirs", None, "read", "NA", 4.25, "007", "312.5"),
        ("demo", "mine", "mine-s7", 7, "other", "=cat", 3.0, None, None),
    ]
    with (measured.folder / "surprisals.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["word"] for row in rows] == ["The", "NA", "The", "NA", "'=cat"]
    assert [row["surprisal"] for row in rows] == ["2.0", "8.5", "1.0", "4.25", "3.0"]
    for file in ("surprisals.csv", "surprisals.parquet"):
        assert verified_view(measured.folder / file).is_file()
    # As in docs/surprisal.md, an empty cell is missing, and NA is a word.
    read = pl.read_csv(measured.folder / "surprisals.csv", null_values=[""])
    assert read["word"][1] == "NA" and read["item"].null_count() == 1


def test_words_of_another_model_or_that_were_altered_are_no_part_of_the_table(measured: Any) -> None:
    own, theirs = measured.surprisal["mine-s7:read"], measured.surprisal["theirs:read"]
    measured.surprisal["mine-s7:read"] = theirs
    with pytest.raises(ManifestError, match="not an evaluation of the model"):
        joined(measured)
    measured.surprisal["mine-s7:read"] = own
    (own.parent / "surprisal.parquet").write_bytes(b"PAR1")
    with pytest.raises(ManifestError, match=r"surprisal\.parquet"):
        joined(measured)
    assert not (measured.folder / "surprisals.csv").exists()


def test_where_there_is_no_table_of_words_is_said(tmp_path: Path) -> None:
    (tmp_path / "measurements.parquet").touch()
    with pytest.raises(
        ManifestError, match=r"the table of words does not exist; .*snakemake results/.*/surprisals\.csv"
    ):
        hatchery.results(tmp_path).surprisals  # noqa: B018
