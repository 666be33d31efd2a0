"""The tables of a study are those of its experiments below each other, with models that are told apart."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hatchery.analysis.stages.join_experiments import join_experiments
from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, TABLES, write_rows
from hatchery.errors import ConfigError, ManifestError
from hatchery.runner import run_stage

SETTINGS = {"stage": "join_experiments", "stage_version": 1, "experiment": "side", "experiments": ["b", "a"]}


def written(folder: Path, experiment: str, rows: int = 2) -> None:
    same = {"experiment": experiment, "model": "ltg", "run": "ltg-s1", "seed": 1}
    write_rows(folder / experiment / "runs.parquet", RUNS, [same | {"label": "ltg, rate 0.1", "parameters": 7}])
    write_rows(folder / experiment / "curves.parquet", CURVES, [same | {"step": step} for step in range(rows)])
    write_rows(folder / experiment / "measurements.parquet", MEASUREMENTS, [same | {"value": 0.5}])
    write_rows(folder / experiment / "layers.parquet", LAYERS, [])


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    for experiment in ("a", "b"):
        written(tmp_path, experiment)
    return {table.name: {name: tmp_path / name / f"{table.name}.parquet" for name in ("b", "a")} for table in TABLES}


def test_models_of_one_name_are_told_apart_and_experiments_keep_their_order(tables: Any, tmp_path: Path) -> None:
    run_stage(join_experiments, SETTINGS, tmp_path / "side/measurements.parquet", **tables)
    joined = {table.name: pl.read_parquet(table.beside(tmp_path / "side/x")) for table in TABLES}
    assert joined["runs"].select("experiment", "model", "run", "label").rows() == [
        ("b", "b/ltg", "b/ltg-s1", "b/ltg, rate 0.1"),
        ("a", "a/ltg", "a/ltg-s1", "a/ltg, rate 0.1"),
    ]
    assert joined["curves"]["step"].to_list() == [0, 1, 0, 1]
    for table in TABLES:
        assert joined[table.name].columns == table.names
    assert joined["layers"].is_empty()


def test_the_same_tables_give_the_same_bytes(tables: Any, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        run_stage(join_experiments, SETTINGS, tmp_path / folder / "measurements.parquet", **tables)
    for table in TABLES:
        one, two = (table.beside(tmp_path / folder / "x").read_bytes() for folder in ("one", "two"))
        assert one == two


def test_tables_of_another_experiment_or_altered_ones_are_refused(tables: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--measurements: got b, expected b, a"):
        run_stage(
            join_experiments,
            SETTINGS,
            tmp_path / "side/measurements.parquet",
            **tables | {"measurements": {"b": tmp_path / "measurements.parquet"}},
        )
    swapped = {**tables["runs"], "b": tables["runs"]["a"]}
    with pytest.raises(ManifestError, match="rows of other experiments than b"):
        run_stage(join_experiments, SETTINGS, tmp_path / "side/measurements.parquet", **tables | {"runs": swapped})
    tables["curves"]["a"].write_bytes(tables["curves"]["b"].read_bytes())
    with pytest.raises(ManifestError, match="curves"):
        run_stage(join_experiments, SETTINGS, tmp_path / "side/measurements.parquet", **tables)
