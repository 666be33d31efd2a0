"""Run the demo and small experiments on a GPU and compare the results with a CPU's results, to test every GPU code
path.

In a separate folder, with links to this checkout's code and a copy of its configuration, Snakemake makes the summary
and the exported models of each experiment on the device.

With `--models cpu`, all results up to the pretrained models are copied from the CPU's checkout, so that both devices
evaluate the same weights. Perplexities may then differ by 1 %, and accuracies of minimal pairs by one percentage point
(`compare_results`). Without `--models cpu`, models are also trained on the device, in another precision, so single
values are not comparable, but averages are.

A second call continues where the first call was stopped. The exit status is 1 if an experiment did not finish, or if a
value is missing, or if a difference exceeds its limit.

    python benchmarks/on_device.py --cpu CHECKOUT [--models cpu] [--experiments demo gpt_bert_mini] [--minutes 9]
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.compare_results import compared_summaries

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = {
    "demo": "masked models, classification",
    "causal_mini": "causal models",
    "gpt_bert_mini": "hybrid models",
    "natural_bias_mini": "translation",
    "strict_small_mini": "MSGS, tasks of BabyLM",
    "bnc_mini": "sentence pairs, edge probing",
}
"""Experiments, most important first, each with the features that no earlier experiment has."""
CODE = ("Snakefile", "scripts", "workflow", "envs", "profiles", "slurm", "gpus", ".venv")
BEFORE = ("corpora", "samples", "selections", "sequences", "vocabularies", "tokenizers", "tokenizer_sweeps", "tokens",
          "models", "cards")  # fmt: skip
"""Folders of results/ that evaluations read; all other results are made again."""


def make_folder(folder: Path, cpu: Path | None) -> None:
    """Make a project in `folder`, unless it exists. If `cpu` is a checkout, copy its resources, its models, and the
    results of all stages before the models.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in CODE:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(ROOT / name)
    if not (folder / "config").exists():
        shutil.copytree(ROOT / "config", folder / "config")
    if cpu is None or (folder / "results").exists():
        return
    shutil.copytree(cpu / "resources", folder / "resources", symlinks=True)
    for name in BEFORE:
        if (cpu / "results" / name).is_dir():
            shutil.copytree(cpu / "results" / name, folder / "results" / name, symlinks=True)


def targets(experiment: str) -> list[str]:
    """Return the files of an experiment that Snakemake makes: the summary and the exported models."""
    return [f"results/{experiment}/summary.csv", f"results/{experiment}/export/README.md"]


def ended(folder: Path, experiment: str, device: str, cores: int, seconds: float) -> str:
    """Run an experiment; return an empty string, or the reason why the run did not finish."""
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--config", f"compute={{device: {device}}}"]
    process = subprocess.Popen(
        [*command, "--", *targets(experiment)],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        start_new_session=True,
    )
    try:
        code = process.wait(timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired:
        # Stop the run as Ctrl-C in a terminal does: jobs keep their partial results, and the next call continues.
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        return "the time limit was reached; run the same command again to continue"
    return "" if code == 0 else f"Snakemake ended with status {code}; its last lines above state the reason"


def devices(folder: Path) -> Counter[tuple[str, str]]:
    """Return the number of results that each stage made on each device, as recorded in `provenance.json`."""
    found = Counter[tuple[str, str]]()
    for path in (folder / "results").rglob("provenance.json"):
        about = json.loads(path.read_text(encoding="utf-8"))
        if "device" in about:
            found[str(about["command"][1]), str(about["device"])] += 1
    return found


def beside(folder: Path, cpu: Path, experiment: str, failed: str) -> Iterator[tuple[str, bool]]:
    """Yield the report on an experiment as pairs (text, False if the text reports a problem, otherwise True).

    The texts are a heading, the reason why the run did not finish, if there is one, and the table of compared values.
    If a summary is missing, a message replaces the table.
    """
    yield f"\n## {experiment}: {EXPERIMENTS.get(experiment, '')}\n", True
    if failed:
        yield failed, False
    own, theirs = (place / "results" / experiment / "summary.csv" for place in (folder, cpu))
    if not own.is_file() or not theirs.is_file():
        yield f"not compared: {theirs if own.is_file() else own} is missing", False
        return
    table, within = compared_summaries(theirs, own)
    yield table.markdown(), within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", type=Path, required=True, help="another checkout, with the results of a CPU")
    parser.add_argument(
        "--models",
        choices=("cpu", "own"),
        default="own",
        help="models to evaluate: trained on the CPU (cpu) or on the device (own)",
    )
    parser.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("on_device"),
        help="folder of the results; a second call continues in this folder",
    )
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=60.0, help="time limit of all experiments together (minutes)")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    folder, cpu = arguments.folder.resolve(), arguments.cpu.resolve()
    make_folder(folder, cpu if arguments.models == "cpu" else None)
    good = True
    for experiment in arguments.experiments:
        failed = ended(folder, experiment, arguments.device, arguments.cores, end - time.monotonic())
        for line, fits in beside(folder, cpu, experiment, failed):
            print(line, flush=True)
            good &= fits
    print("\n| stage | device | number of results |\n|---|---|---:|")
    for (stage, device), number in sorted(devices(folder).items()):
        print(f"| {stage} | {device} | {number} |")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
