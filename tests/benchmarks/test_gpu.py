"""`make bench-gpu` with tiny sizes on a CPU: every part runs with only the packages of a deep learning machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu

ROOT = Path(__file__).parents[2]
# Packages that suffice according to docs/gpu.md, with their own requirements.
ALLOWED = (
    *("torch", "torchgen", "functorch", "numpy", "safetensors", "tokenizers", "pyarrow", "psutil", "tqdm"),
    *("deepspeed", "hjson", "cpuinfo", "einops", "msgpack", "ninja", "packaging"),
    *("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"),
    # Requirements of PyTorch and of tokenizers.
    *("sympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock", "fsspec", "huggingface_hub", "setuptools"),
)
BLOCKING = f"""
import sys
from importlib.machinery import PathFinder

ALLOWED = {ALLOWED!r}
OWN = ("hatchery", "benchmarks", "plain_attention")

class Fewer(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        first = name.partition(".")[0]
        if first in ALLOWED + OWN or first in sys.stdlib_module_names or first.startswith("_"):
            return super().find_spec(name, path, target)
        return None

sys.meta_path[sys.meta_path.index(PathFinder)] = Fewer
"""

# Only the first part runs in a separate process, as all parts do for a user; the other parts share their imports.
IN_ONE_PROCESS = """
import contextlib, io, json
from benchmarks import gpu

def measured(part, device, sizes, seconds):
    if part == "product":
        return apart(part, device, sizes, seconds)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        gpu.measure(part, device, sizes)
    lines = (line for line in said.getvalue().splitlines() if line.startswith(gpu.ROW))
    return [json.loads(line.removeprefix(gpu.ROW)) for line in lines]

apart, gpu.measured_apart = gpu.measured_apart, measured
gpu.main()
"""


@pytest.mark.slow
def test_every_kind_of_part_runs_on_a_cpu_without_the_packages_of_the_workflow(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKING, encoding="utf-8")
    page = tmp_path / "gpu.md"
    page.write_text(gpu.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-c", IN_ONE_PROCESS, "--device", "cpu", "--sizes", "tiny", "--seconds", "850"]
    # The other parts with training steps differ only in length, and time fewer variants.
    parts = ["product", "elc_short", "gpt_short", "score", "finetune", "resume", "loop", "others_long"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--page", str(page), "--parts", *parts],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.strip("|").split(" | ") for line in page.read_text().splitlines() if line.count("|") == 10][2:]
    reasons = {row[1].strip(): row[-1].strip() for row in rows if "failed" in row[-1] or "left out" in row[-1]}
    expected = {
        "FlexAttention, layers compiled, no attention dropout": "FlexAttention does not support backward on CPU",
        "waits for the device": "left out: a CPU needs no synchronisation",
    }
    assert reasons.keys() == expected.keys(), reasons
    assert all(text in reasons[what] for what, text in expected.items()), reasons
    assert list(dict.fromkeys(row[0].strip() for row in rows)) == parts
    text = page.read_text()
    assert "weights equal to those of an undisturbed run" in text and "two undisturbed runs are equal" in text
    assert "Unmeasured" not in text


def test_a_part_that_ends_early_leaves_its_rows_and_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "part.py"
    row = gpu.ROW + json.dumps({"part": "a", "what": "b", "remark": "measured"})
    program.write_text(f"import sys\nprint({row!r})\nsys.exit('it broke')\n")
    monkeypatch.setattr(gpu, "__file__", str(program))
    rows = gpu.measured_apart("a", "cpu", "tiny", 30)
    assert [row["remark"] for row in rows] == ["measured", "failed: it broke"]


def test_a_part_that_takes_too_long_is_ended_and_keeps_its_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "part.py"
    row = gpu.ROW + json.dumps({"part": "a", "what": "b", "remark": "measured"})
    program.write_text(f"import time\nprint({row!r}, flush=True)\ntime.sleep(60)\n")
    monkeypatch.setattr(gpu, "__file__", str(program))
    monkeypatch.setattr(gpu, "LEAST_SECONDS", 0.1)
    rows = gpu.measured_apart("a", "cpu", "tiny", 0.5)
    assert [row["remark"] for row in rows] == ["measured", "left out: the time limit of this part, 0 s, was exceeded"]
    assert (
        gpu.measured_apart("a", "cpu", "tiny", 0.0)[0]["remark"]
        == "left out: the time limit of all parts together was reached"
    )


def test_operations_are_a_share_of_the_data_sheet_s_and_of_the_product_of_the_same_run() -> None:
    rows = [
        {"part": "product", "what": "large", "flops_per_second": 4e12, "milliseconds": 2.0},
        {
            "part": "ltg_long",
            "what": "as shipped",
            "flops_per_second": 2e12,
            "tokens_per_second": 1234.5,
            "peak_gib": 1.25,
        },
        {"part": "steps", "what": "plain", "remark": "failed: a | b"},
    ]
    table = gpu.table_of(rows, "a device", peak=5e12).splitlines()
    assert table[4:] == [
        "| product | large | 2.0 |  |  | 80 % | 100 % |  |  |",
        "| ltg_long | as shipped |  | 436.9 | 1,234 | 40 % | 50 % | 1.2 |  |",
        "| steps | plain |  |  |  |  |  |  | failed: a / b |",
    ]
    assert "| 1,234 |  | 50 % |" in gpu.table_of(rows, "a device of unknown speed")


def test_aims_are_answered_by_the_rows_or_called_unmeasured() -> None:
    rows = [
        {"part": "product", "what": "large", "flops_per_second": 4e12},
        {"part": "ltg_short", "what": "as shipped", "milliseconds": 50.0, "flops_per_second": 1e12},
        {"part": "ltg_short", "what": "as shipped, with clipping and LAMB", "milliseconds": 60.0},
        {"part": "elc_short", "what": "as shipped", "milliseconds": 55.0},
        {"part": "score", "what": "TensorFloat-32", "milliseconds": 3000.0, "pairs": 6700},
    ]
    found = gpu.aims(rows, peak=5e12)
    assert "its MFU is 20 % (27)" in found and "its MFU is unmeasured % (27)" in gpu.aims(rows)
    assert "takes 60 ms at the short length (66)" in found and "25 % of the product's speed (35)" in found
    assert "ELC-BERT needs 1.10 times" in found
    assert "takes 30 s in TensorFloat-32 (40)" in found and found.count("unmeasured") == 3
    assert gpu.aims([]).count("unmeasured") == 8


def test_only_the_table_of_the_page_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "gpu.md"
    page.write_text(f"before\n{gpu.BEGIN}\n\nold\n\n{gpu.END}\nafter\n")
    gpu.replace_table(page, "new")
    gpu.replace_table(page, "newer")
    assert page.read_text() == f"before\n{gpu.BEGIN}\n\nnewer\n\n{gpu.END}\nafter\n"
    assert gpu.BEGIN in gpu.PAGE.read_text() and gpu.END in gpu.PAGE.read_text()
