"""The program `hatchery`: what its commands print is what the functions return, and help comes at once."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from baseline_cases import build
from typer.testing import CliRunner

import hatchery
from hatchery.commands import app

COMMANDS = sorted(path.stem.rstrip("_") for path in Path(hatchery.__path__[0], "commands").glob("[a-z]*.py"))
SENTENCES = ["the dog sleeps", "an old house"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model of the library transformers with random weights."""
    found = tmp_path_factory.mktemp("gpt2")
    for part in build("gpt2"):
        part.save_pretrained(found)
    return found


def ran(*words: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app(), [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_help_names_every_command_in_a_line_and_loads_nothing_large(repository: Path) -> None:
    program = (
        "import sys\nfrom hatchery.commands import app\ntry:\n    app()(['--help'])\nexcept SystemExit:\n    pass\n"
    )
    program += "large = {'torch', 'polars', 'pyarrow', 'transformers', 'pandas', 'snakemake'} & set(sys.modules)\n"
    program += "assert not large, large\n"
    surroundings = {**os.environ, "PYTHONPATH": str(repository / "scripts"), "COLUMNS": "100"}
    before = os.times().children_user
    done = subprocess.run([sys.executable, "-c", program], env=surroundings, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert os.times().children_user - before < 1
    listed = done.stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.strip().splitlines()] == COMMANDS
    assert "..." not in listed and "workflow" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_and_fits_on_a_screen(name: str) -> None:
    printed = ran(name, "--help")
    assert f"hatchery {name} " in printed and len(printed.splitlines()) <= 40


def test_evaluate_prints_the_numbers_of_the_function(folder: Path, tmp_path: Path) -> None:
    pairs = [{"sentence_good": "the dog sleeps", "sentence_bad": "dog the sleeps", "UID": "order"}] * 3
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    asked = ("evaluate", folder, "--suite", "blimp", "--data", tmp_path, "--set", "expected=null")
    expected = hatchery.evaluate(folder, "blimp", tmp_path, expected=None)
    assert ran(*asked) == f"{expected}\n"
    found = json.loads(ran(*asked, "--json", "--rows", tmp_path / "rows.csv"))
    assert pl.DataFrame(found["summary"])["value"].to_list() == expected.summary["value"].to_list()
    assert found["facts"] == dict(expected.facts)
    assert pl.read_csv(tmp_path / "rows.csv")["value"].to_list() == expected.rows["value"].to_list()


def test_surprisal_prints_a_table_with_the_columns_of_the_file(folder: Path, tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 2], "sentence": SENTENCES})
    frame.write_csv(tmp_path / "sentences.csv")
    printed = ran("surprisal", folder, tmp_path / "sentences.csv", "--column", "sentence")
    rows = list(csv.DictReader(io.StringIO(printed)))
    expected = hatchery.surprisals(folder, frame, column="sentence")
    assert [float(row["surprisal"]) for row in rows] == expected["surprisal"].to_list()
    assert [row["id"] for row in rows] == ["1", "1", "1", "2", "2", "2"]
    (tmp_path / "lines.txt").write_text("\n".join(SENTENCES))
    listed = json.loads(ran("surprisal", folder, tmp_path / "lines.txt", "--json"))
    assert [row["surprisal"] for row in listed] == expected["surprisal"].to_list()


def test_a_mistake_is_one_line_and_a_wrong_option_is_the_librarys(repository: Path, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        surroundings = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
        command = [sys.executable, "-m", "hatchery", *words]
        done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=100)
        return done.returncode, done.stderr

    status, line = run("evaluate", "no/such/model", "--suite", "blimp")
    assert status == 1 and line.startswith("error: no/such/model: there is no model here") and line.count("\n") == 1
    status, line = run("evaluate", "x", "--suite", "blimp", "--set", "a")
    assert (status, line) == (1, "error: --set: got 'a', expected KEY=VALUE, such as pairs_per_paradigm=100\n")
    assert run("evaluate", "x", "--suit", "blimp")[0] == 2
