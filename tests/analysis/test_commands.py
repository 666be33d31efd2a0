"""The commands, called like Snakemake calls them."""

import os
import subprocess
from pathlib import Path
from typing import Any

from stage_command import stage_command


def run(hash_seed: str, *given: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        stage_command(*given, **more),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )


def test_summarise_writes_the_same_five_files_whatever_the_hash_seed(two_models: Any, tmp_path: Path) -> None:
    for cell in two_models.pretraining:
        two_models.add_perplexity(cell, {"dev": (2.0, 7.4, 0.5)})
    two_models.add_minimal_pairs("gpt", "blimp", {"agreement": {"gender": (9, 10)}, "ellipsis": {"n": (9, 10)}})
    contents = []
    for seed in ("1", "2"):
        folder = tmp_path / seed / "results/demo"
        table = tmp_path / f"tables {seed}/measurements.parquet"
        result = run(seed, "collect_measurements", two_models.collect_settings(), table, **two_models.inputs)
        assert result.returncode == 0, result.stderr
        forms = {"parquet": "summary.parquet", "markdown": "summary.md", "text": "summary.txt"}
        written = {form: folder / name for form, name in forms.items()}
        settings = two_models.summary_settings()
        result = run(seed, "summarise", settings, folder / "summary.csv", measurements=table, **written)
        assert result.returncode == 0, result.stderr
        contents.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert list(contents[0]) == ["summary.csv", "summary.md", "summary.parquet", "summary.sha256", "summary.txt"]
    assert contents[0] == contents[1]
