"""The import seconds of each stage, from logs that were written by hand."""

from pathlib import Path

import pytest

from benchmarks.stage_imports import rows

LOGS = {
    "pretrain/a.log": "step 1\nimport time:   1500000 | 2500000 |  torch\nimport time: 1000000 | 1000000 |   numpy\n",
    "pretrain/b.log": "import time:    500000 |     500000 | torch\n",
    "summarise/demo.log": "import time: self [us] | cumulative | imported package\nimport time: 200 | 90000 | polars\n",
    "generate.log": "",
}


def test_stages_have_the_mean_of_their_jobs_without_nested_imports(tmp_path: Path) -> None:
    for name, text in LOGS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert list(rows(tmp_path)) == [
        ("pretrain", 2, pytest.approx((2.5 + 0.5) / 2), True),
        ("summarise", 1, pytest.approx(0.0002), False),
        ("generate", 1, 0.0, False),
    ]
