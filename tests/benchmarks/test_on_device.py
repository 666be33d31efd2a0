"""Experiments on a GPU compared with a CPU's results: copied files, and failures. Here both results are a CPU's."""

import sys
from pathlib import Path

import polars as pl
import pytest

from benchmarks import on_device

PAIRS = {"model": "ltg_bert", "suite": "blimp", "task": "binding", "metric": "accuracy_percent"}
SUMMARY = f"{','.join(PAIRS)},mean\n{','.join(PAIRS.values())},{{}}\n"


@pytest.fixture
def cpu(tmp_path: Path) -> Path:
    """A checkout with the results that the benchmark reads."""
    files = {
        "resources/sources/a.json": "{}",
        "results/models/m/manifest.json": "{}",
        "results/minimal_pairs/m/manifest.json": "{}",
        "results/demo/summary.csv": SUMMARY.format(80.0),
    }
    for name, text in files.items():
        path = tmp_path / "cpu" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    pl.DataFrame({"kind": ["minimal_pairs"], **{key: [value] for key, value in PAIRS.items()}}).write_parquet(
        tmp_path / "cpu/results/demo/measurements.parquet"
    )
    return tmp_path / "cpu"


def test_of_the_cpu_s_results_everything_up_to_the_models_is_copied_once(cpu: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    on_device.make_folder(folder, cpu)
    assert sorted(path.name for path in (folder / "results").iterdir()) == ["models"]
    assert (folder / "resources/sources/a.json").is_file() and (folder / "Snakefile").is_file()
    (folder / "results/models/m/manifest.json").write_text("own")
    on_device.make_folder(folder, cpu)
    assert (folder / "results/models/m/manifest.json").read_text() == "own", "a second call goes on"
    on_device.make_folder(tmp_path / "anew", None)
    assert not (tmp_path / "anew/results").exists()


@pytest.mark.parametrize(("value", "failed", "status"), [(80.5, "", 0), (82.0, "", 1), (80.5, "out of time", 1)])
def test_it_ends_with_1_where_a_value_is_beyond_its_limit_or_an_experiment_did_not_end(
    cpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, failed: str, status: int
) -> None:
    asked = []

    def ended(folder: Path, experiment: str, device: str, cores: int, seconds: float) -> str:
        asked.append((experiment, device, cores))
        made = folder / "results" / experiment
        made.mkdir(parents=True, exist_ok=True)
        (made / "summary.csv").write_text(SUMMARY.format(value))
        (made / "provenance.json").write_text('{"command": ["run.py", "finetune"], "device": "cpu"}')
        return failed

    monkeypatch.setattr(on_device, "ended", ended)
    options = ["--cpu", str(cpu), "--folder", str(tmp_path / "run"), "--device", "cpu", "--cores", "1"]
    monkeypatch.setattr(sys, "argv", ["on_device.py", *options, "--experiments", "demo"])
    with pytest.raises(SystemExit) as left:
        on_device.main()
    assert left.value.code == status and asked == [("demo", "cpu", 1)]
    assert on_device.devices(tmp_path / "run") == {("finetune", "cpu"): 1}


def test_an_experiment_that_the_cpu_did_not_run_is_told(cpu: Path, tmp_path: Path) -> None:
    lines = list(on_device.beside(tmp_path, cpu, "causal_mini", ""))
    assert [fits for _, fits in lines] == [True, False] and "summary.csv is missing" in lines[1][0]
