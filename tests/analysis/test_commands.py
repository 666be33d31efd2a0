"""The commands, run as Snakemake runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(repository: Path, command: str, *arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(repository / "scripts" / "run.py"), command, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )


def named(flag: str, paths: dict[str, Path]) -> list[str]:
    return [part for name, path in paths.items() for part in (flag, f"{name}={path}")]


def test_summarise_writes_the_same_five_files_whatever_the_hash_seed(
    two_models: Any, tmp_path: Path, repository: Path
) -> None:
    for cell in two_models.pretraining:
        two_models.add_perplexity(cell, {"dev": (2.0, 7.4, 0.5)})
    two_models.add_minimal_pairs("gpt", "blimp", {"agreement": {"gender": (9, 10)}, "ellipsis": {"n": (9, 10)}})
    given = two_models.inputs
    inputs = [*named("--model", given["model"]), *named("--evaluation", given["evaluation"])]
    contents = []
    for seed in ("1", "2"):
        folder = tmp_path / seed / "results/demo"
        table = str(tmp_path / f"tables {seed}/measurements.parquet")
        result = run(
            repository,
            "collect_measurements",
            *("--settings", json.dumps(two_models.collect_settings()), *inputs),
            *("--output", table),
            hash_seed=seed,
        )
        assert result.returncode == 0, result.stderr
        result = run(
            repository,
            "summarise",
            *("--settings", json.dumps(two_models.summary_settings()), "--measurements", table),
            *("--output", str(folder / "summary.csv"), "--parquet", str(folder / "summary.parquet")),
            *("--markdown", str(folder / "summary.md"), "--text", str(folder / "summary.txt")),
            hash_seed=seed,
        )
        assert result.returncode == 0, result.stderr
        contents.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert list(contents[0]) == ["summary.csv", "summary.md", "summary.parquet", "summary.sha256", "summary.txt"]
    assert contents[0] == contents[1]
