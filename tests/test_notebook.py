"""docs/notebook.ipynb runs from its first cell to its last, in a folder without a checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHECKS = """
assert len(plt.get_fignums()) == 3 and (folder / "comparison.svg").stat().st_size > 10_000
development = made.curve["development_loss"].drop_nulls().to_list()
assert development[-1] < development[0] - 0.5 and len(development) == 4
assert found.facts["pairs"] == len(pairs) == 60 and set(found.summary["items"]) != {0}
assert len(words) == 8 and words["surprisal"].min() >= 0
assert len(compared) == 6 and len(runs) == 4
# The difference of the means is the mean of the differences within a seed.
first, second, difference = (row[2] for row in compared[:3])
assert abs(second - first - difference) < 1e-9
print("checked")
"""


def test_the_notebook_trains_evaluates_and_compares(repository: Path, tmp_path: Path) -> None:
    cells = json.loads((repository / "docs/notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    # Use a smaller model, two seeds and fewer steps, because the test checks the cells and not the numbers.
    shorter = {
        '{"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3,': (
            '{"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,'
        ),
        "steps=160": "steps=80",
        "(1, 2, 3)": "(1, 2)",
        "steps=60": "steps=20",
    }
    for long, short in shorter.items():
        assert code.count(long) == 1
        code = code.replace(long, short)
    surroundings = {**os.environ, "PYTHONPATH": str(repository / "scripts"), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", code + CHECKS],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "checked"
