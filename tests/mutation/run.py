"""Mutation run of one module: put one mistake at a time into its code, run its tests, print the unnoticed mistakes.

mutmut makes the mutants and chooses the tests of each by the functions that they call. It counts the calls of a shared
fixture for the first of its tests alone; therefore all tests of the package run on each survivor. They also run, in a
new process, on each mutant that timed out, because Polars hangs in the processes that mutmut forks. `accepted.yaml`
lists survivors that users cannot see. Two kinds of mutants are left out: changed texts change messages, and
`name = None` ends in an exception.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / ".mutants"
ACCEPTED = Path(__file__).with_name("accepted.yaml")
# The score that CONTRIBUTING.md asks of each module.
WANTED = 0.9
MARKERS = "not slow and not gpu and not slurm and not real_data"

CONFIGURATION = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["{pattern}"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-m", "{markers}"]
do_not_mutate_patterns = ['^\\s*raise ', 'Error\\(']
timeout_multiplier = 3.0
timeout_constant = 10.0
use_git_change_detection = false
"""

# This script runs in a separate process, in the folder of the mutants.
MUTMUT = """
from mutmut.mutation import mutators
left_out = (mutators.operator_string, mutators.operator_assignment)
mutators.mutation_operators[:] = [pair for pair in mutators.mutation_operators if pair[1] not in left_out]
from mutmut.__main__ import cli
cli(["run", "--max-children", "1"])
"""


def lay_out(module: str, tests: list[str]) -> None:
    """Copy the tracked files to FOLDER, with the library in `src`, where mutmut expects it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        if not os.path.lexists(CHECKOUT / name):
            continue
        target = FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, target, follow_symlinks=False)
    (FOLDER / "scripts").rename(FOLDER / "src")
    (FOLDER / "scripts").symlink_to("src")
    mutants = FOLDER / "mutants"
    mutants.mkdir()
    # mutmut copies the tests and src. All other files are links, so that tests find them next to the mutants.
    for path in sorted(FOLDER.iterdir()):
        if path.name == "scripts":
            (mutants / path.name).symlink_to("src")
        elif path.name not in ("src", "tests", "mutants", "pyproject.toml"):
            (mutants / path.name).symlink_to(f"../{path.name}")
    pattern = f"src/hatchery/{module}.py"
    if not (FOLDER / pattern).is_file():
        pattern = f"src/hatchery/{module}/*"
    # JSON and TOML have the same syntax for a list of strings.
    text = CONFIGURATION.format(pattern=pattern, tests=json.dumps(tests), markers=MARKERS)
    with (FOLDER / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(text)


def run_mutmut(seconds: float) -> bool:
    """Run mutmut for at most `seconds`, and return whether it ended by itself.

    Raises SystemExit if mutmut fails, as it does if a test fails without a mutant.
    """
    process = subprocess.Popen([sys.executable, "-c", MUTMUT], cwd=FOLDER, start_new_session=True)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            # mutmut waits for the tests of the current mutant, which may take longer.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return False
    if status != 0:
        raise SystemExit(f"error: mutmut ended with status {status}; its last lines above say why")
    return True


def outcomes() -> dict[str, tuple[Path, str]]:
    """Return, by mutant, its file and mutmut's word for its outcome."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.stats import status_by_exit_code
    from mutmut.utils.file_utils import walk_mutatable_files

    found = {}
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            found[name] = (path, status_by_exit_code[code])
    return found


def is_noticed(name: str, tests: list[str], seconds: float) -> bool | None:
    """Whether any test of `tests` fails with the mutant `name`; None if the tests take more than `seconds`.

    Raises SystemExit if pytest runs no test.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", MARKERS, *tests]
    surroundings = {**os.environ, "MUTANT_UNDER_TEST": name}
    try:
        run = subprocess.run(
            command, cwd=FOLDER / "mutants", env=surroundings, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return None
    if run.returncode in (4, 5):
        raise SystemExit(f"error: pytest ran no test of {' '.join(tests)}:\n{run.stdout}{run.stderr}")
    return run.returncode != 0


def changed_lines(name: str, path: Path) -> tuple[str, str]:
    """Return the lines of the original and of the mutant that differ, without indentation."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    lines = [line for line in get_diff_for_mutant(name, path=path).splitlines() if not line.startswith(("---", "+++"))]
    removed, added = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return removed, added


def function_name(name: str) -> str:
    """Return the dotted name of the mutated function, such as `objectives.blocks.Packer.pack`."""
    module, _, function = name.partition("__mutmut_")[0].rpartition(".")
    return f"{module.removeprefix('hatchery.')}.{function.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def main() -> None:
    """Mutate the module that the command line names, and print its survivors and its score."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("module", help="a module or package of scripts/hatchery, such as objectives/blocks")
    parser.add_argument("--minutes", type=float, default=15, help="time for all (default: 15)")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run (default: the folder of the package)")
    arguments = parser.parse_args()
    module = arguments.module.removeprefix("scripts/hatchery/").removesuffix(".py").rstrip("/")
    source = CHECKOUT / "scripts/hatchery" / module
    if not module or not (source.is_dir() or source.with_suffix(".py").is_file()):
        raise SystemExit(
            f"error: MODULE={arguments.module}: no module or package of scripts/hatchery; expected one such as"
            " objectives/blocks"
        )
    tests = arguments.tests or [f"tests/{module.split('/')[0]}"]
    end = time.monotonic() + 60 * arguments.minutes
    lay_out(module, tests)
    # The rest of the time is for the tests of the survivors.
    finished = run_mutmut(0.7 * 60 * arguments.minutes)
    os.chdir(FOLDER)
    accepted = {(one["function"], one["line"], one["mutant"]) for one in yaml.safe_load(ACCEPTED.read_text())}
    counts = dict.fromkeys(("noticed", "survived", "accepted", "not checked"), 0)
    for name, (path, outcome) in outcomes().items():
        if outcome in ("not checked", "check was interrupted by user"):
            counts["not checked"] += 1
            continue
        key = (function_name(name), *changed_lines(name, path))
        if outcome not in ("survived", "no tests", "timeout"):
            counts["noticed"] += 1
        elif key in accepted:
            counts["accepted"] += 1
        elif (noticed := is_noticed(name, tests, max(0.0, end - time.monotonic()))) is None:
            counts["not checked"] += 1
        elif noticed:
            counts["noticed"] += 1
        else:
            counts["survived"] += 1
            print(f"\n{key[0]}\n  - {key[1]}\n  + {key[2]}", flush=True)
    judged = counts["noticed"] + counts["survived"]
    score = counts["noticed"] / judged if judged else 0.0
    print(f"\n{module}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    print(
        f"{score:.0%} of {judged} mutants noticed" + ("" if finished else "; the time was over before all were tried")
    )
    raise SystemExit(score < WANTED)


if __name__ == "__main__":
    main()
