"""Measure the speed of Hatchery on a GPU in less than nine minutes, as one table: `make bench-gpu`.

Every part of benchmarks/gpu_parts.py runs in a separate process with a time limit. If a part fails or exceeds its
limit, its row contains the reason, and the other parts still run. On a GPU, the table is written to docs/gpu.md, with
device and date.

    python benchmarks/gpu.py [--parts loop score] [--seconds 520] [--page docs/gpu.md]
    python benchmarks/gpu.py --device cpu --sizes tiny      # tests the parts, measures nothing
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

PAGE = ROOT / "docs" / "gpu.md"
BEGIN, END = "<!-- table of benchmarks/gpu.py -->", "<!-- end of the table -->"
SECONDS = 520.0
"""Time limit of all parts together; with start and end, the benchmark needs less than nine minutes."""
LEAST_SECONDS = 5.0
"""With fewer seconds left, no part is started."""

ROW = "row of the table: "
"""Prefix of the rows in a part's output, because libraries print other lines."""

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--sizes", choices=("base", "tiny"), default="base")
    parser.add_argument("--parts", nargs="+", help="run only these parts")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit of all parts together (seconds)")
    parser.add_argument("--page", type=Path, help="page whose table is replaced; on a GPU docs/gpu.md by default")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        measure(arguments.part, arguments.device, arguments.sizes)
        return
    import torch

    from benchmarks.gpu_parts import PARTS

    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU on this machine; --device cpu --sizes tiny only tests the parts")
    names = arguments.parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"--parts: got {unknown[0]!r}, expected one of: {', '.join(PARTS)}")
    page = arguments.page or (PAGE if arguments.device == "cuda" else None)
    until = time.monotonic() + arguments.seconds
    rows: list[Row] = []
    for name in names:
        limit = until - time.monotonic()
        # The limits of single parts are measured on a GPU.
        if arguments.device == "cuda":
            limit = min(PARTS[name].seconds, limit)
        found = measured_apart(name, arguments.device, arguments.sizes, limit)
        rows += found
        title = surroundings(arguments.device, arguments.sizes)
        peak = specified_peak(arguments.device)
        table = f"{table_of(rows, title, peak)}\n\n{aims(rows, peak)}"
        # Print after each part, so that the results of finished parts are not lost if the benchmark is stopped.
        print("\n".join(table.splitlines()[-len(found) - 2 :]), flush=True)
        if page is not None:
            replace_table(page, table)


def measure(part: str, device: str, sizes: str) -> None:
    """Print the table rows of one part of the benchmark as lines of JSON, each row as soon as it is measured."""
    import torch

    from benchmarks.gpu_parts import PARTS
    from benchmarks.gpu_steps import SIZES, Bench

    for row in PARTS[part].rows(Bench(torch.device(device), SIZES[sizes])):
        print(ROW + json.dumps(dataclasses.asdict(row)), flush=True)


def measured_apart(part: str, device: str, sizes: str, seconds: float) -> list[Row]:
    """Measure one part of the benchmark in a separate process, and return its table rows. If the part does not finish,
    an additional row contains the reason.
    """
    if seconds < LEAST_SECONDS:
        return [_no_row(part, "all", "left out: the time limit of all parts together was reached")]
    command = [sys.executable, str(Path(__file__).resolve())]
    command += ["--part", part, "--device", device, "--sizes", sizes]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        # Start a new session, so that all processes of the part can be stopped together.
        process = subprocess.Popen(command, stdout=out, stderr=log, start_new_session=True)
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end_session(process)
        texts = []
        for file in (out, log):
            file.seek(0)
            texts.append(file.read())
    # Skip incomplete lines, which a killed process may leave.
    said = [line.removeprefix(ROW) for line in texts[0].splitlines() if line.startswith(ROW) and line.endswith("}")]
    rows = [json.loads(line) for line in said]
    if status is None:
        rows.append(_no_row(part, "rest", f"left out: the time limit of this part, {seconds:.0f} s, was exceeded"))
    elif status:
        last = (texts[1].strip().splitlines() or [f"status {status}"])[-1]
        rows.append(_no_row(part, "rest", f"failed: {last[:200]}"))
    return rows


def _end_session(process: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _no_row(part: str, what: str, reason: str) -> Row:
    return {"part": part, "what": what, "remark": reason}


def surroundings(device: str, sizes: str) -> str:
    """Return one line with the name of the device, the versions of PyTorch and Python, the name of the sizes, and the
    date.
    """
    import platform

    import torch

    name = torch.cuda.get_device_name() if device == "cuda" and torch.cuda.is_available() else device
    date = datetime.datetime.now(datetime.UTC).date()
    return f"{name}, PyTorch {torch.__version__}, Python {platform.python_version()}, sizes {sizes}, {date}"


def specified_peak(device: str) -> float | None:
    """Return the dense bf16 operations per second in the data sheet of the GPU; None if unknown."""
    import torch

    from hatchery.training.speed import peak_flops

    return peak_flops(torch.cuda.get_device_name(), "bf16") if device == "cuda" else None


AUTHORS = {
    ("ltg_short", "as shipped"): 158.2,
    ("ltg_short", "as shipped, with clipping and LAMB"): 199.5,
    ("ltg_long", "as shipped"): 436.9,
    ("gpt_short", "as shipped"): 264.0,
}
"""Milliseconds of the code of LTG-BERT's and GPT-BERT's authors, as they run it, 32,768 tokens in bf16, measured on an
H100 on 28 November 2026.
"""


def table_of(rows: list[Row], title: str, peak: float | None = None) -> str:
    """Return the rows as Markdown.

    Two columns contain operations per second in percent of a reference speed. In the column MFU, the reference is
    `peak`, the peak speed in the GPU's data sheet. In the next column, the reference is the speed of a large matrix
    product that the same run of the benchmark has measured.
    """
    rates = [row["flops_per_second"] for row in rows if row["part"] == "product" and row.get("flops_per_second")]
    lines = [f"Measured on: {title}.", ""]
    lines += [
        "| part | case | ms | authors' code, ms, H100 | tokens/s | MFU | of product's speed | peak GiB | remark |"
    ]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        flops = row.get("flops_per_second")
        shares = (flops / whole if flops and whole else None for whole in (peak, rates[0] if rates else None))
        cells = [
            row["part"],
            row["what"],
            _number(row.get("milliseconds"), ",.1f"),
            _number(AUTHORS.get((row["part"], row["what"])), ",.1f"),
            _number(row.get("tokens_per_second"), ",.0f"),
            *("" if share is None else f"{100 * share:.0f} %" for share in shares),
            _number(row.get("peak_gib"), ".1f"),
            row.get("remark", "").replace("|", "/").replace("\n", " "),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def aims(rows: list[Row], peak: float | None = None) -> str:
    """Return one line with the measured times and speeds for which there is a goal on an H100. Each number is followed
    by its goal in brackets. `peak` is the peak speed in the GPU's data sheet.
    """
    took = {(row["part"], row["what"]): row.get("milliseconds") for row in rows}
    rates = {(row["part"], row["what"]): row.get("flops_per_second") for row in rows}
    plain, whole = "as shipped", "as shipped, with clipping and LAMB"
    large = next((row.get("flops_per_second") for row in rows if row["part"] == "product"), None)
    short = took.get(("ltg_short", plain))

    def over(part: str) -> float | None:
        milliseconds = took.get((part, plain))
        return milliseconds / short if milliseconds and short else None

    def of_blimp(what: str) -> float | None:
        milliseconds = took.get(("score", what))
        pairs = next((row.get("pairs") for row in rows if row["part"] == "score"), None)
        return milliseconds / 1000 * 67_000 / pairs if milliseconds and pairs else None

    rate = rates.get(("ltg_short", plain))
    share = 100 * rate / large if rate and large else None
    utilisation = 100 * rate / peak if rate and peak else None
    said = [
        f"a step with clipping and LAMB takes "
        f"{_or_not(took.get(('ltg_short', whole)), '.0f')} ms at the short length (66)",
        f"{_or_not(took.get(('ltg_long', whole)), '.0f')} ms at the long length (120)",
        f"a forward and backward pass at the short length reaches {_or_not(share, '.0f')} % of the "
        "product's speed (35)",
        f"its MFU is {_or_not(utilisation, '.0f')} % (27)",
        f"ELC-BERT needs {_or_not(over('elc_short'), '.2f')} times LTG-BERT's time (1.15)",
        f"GPT-BERT needs {_or_not(over('gpt_short'), '.2f')} times LTG-BERT's time (1.3)",
        f"scoring all of BLiMP takes {_or_not(of_blimp('fp32, as the stage'), '.0f')} s in fp32 (60)",
        f"scoring all of BLiMP takes {_or_not(of_blimp('TensorFloat-32'), '.0f')} s in TensorFloat-32 (40)",
    ]
    return f"Measured, each with the goal for an H100 in brackets: {'; '.join(said)}."


def _or_not(value: float | None, form: str) -> str:
    return _number(value, form) or "unmeasured"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def replace_table(page: Path, table: str) -> None:
    """Write `table` between the lines BEGIN and END of the file `page`. Raises ValueError if one of these lines is
    missing.
    """
    text = page.read_text(encoding="utf-8")
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise ValueError(f"{page}: expected the lines {BEGIN} and {END} around the table")
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
