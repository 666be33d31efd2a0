"""The program `hatchery`: its commands print the functions' results, and help comes at once."""

import csv
import io
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from baseline_cases import build
from typer.testing import CliRunner

import hatchery
from hatchery.artifacts.manifests import read_manifest
from hatchery.commands import app, main
from hatchery.commands._options import print_json, settings_in
from hatchery.direct_training import TOKENIZER
from hatchery.errors import ConfigError, HatcheryError
from hatchery.rendering.table import table

COMMANDS = sorted(path.stem.rstrip("_") for path in Path(hatchery.__path__[0], "commands").glob("[a-z]*.py"))
SENTENCES = ["the dog sleeps", "an old house"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model of transformers with random weights."""
    found = tmp_path_factory.mktemp("gpt2")
    for part in build("gpt2"):
        part.save_pretrained(found)
    return found


def ran(*words: object) -> str:
    """Return the output of a command."""
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


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_file_of_pairs_is_a_suite(folder: Path, tmp_path: Path, ending: str) -> None:
    pairs = pl.DataFrame({"sentence_good": ["the dog sleeps", "1"], "sentence_bad": ["dog the sleeps", "2"]})
    path = tmp_path / f"mine.{ending}"
    if ending in ("csv", "tsv"):
        pairs.write_csv(path, separator="\t" if ending == "tsv" else ",")
    else:
        getattr(pairs, f"write_{ending.replace('jsonl', 'ndjson')}")(path)
    found = json.loads(ran("evaluate", folder, "--suite", path, "--json"))
    expected = hatchery.evaluate(folder, pairs)
    assert [row["value"] for row in found["summary"]] == expected.summary["value"].to_list()
    assert {row["suite"] for row in found["summary"]} == {"mine"}
    path.write_bytes(b"\xff\x00,")
    with pytest.raises(
        HatcheryError, match=r"^columns: got a table with|mine\.\w+: cannot be read as a table of pairs"
    ):
        hatchery.evaluate(folder, path)


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


def test_a_mistake_is_one_line_and_a_wrong_option_is_the_librarys(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["hatchery", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    command = [sys.executable, "-m", "hatchery", "evaluate", "no/such/model", "--suite", "blimp", "--data", "x"]
    surroundings = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: no/such/model: this folder contains no model")
    status, line = run("evaluate", "x", "--suite", "blimp", "--set", "a")
    assert (status, line) == (1, "error: --set: got 'a', expected KEY=VALUE, such as pairs_per_paradigm=100\n")
    assert run("evaluate", "x", "--suit", "blimp")[0] == 2
    status, line = run("try", "no/such/model")
    assert (
        status == 1 and line.startswith("error: no/such/model: this folder contains no model") and line.count("\n") == 1
    )
    status, line = run("job", "draw_figure", "experiment=demo", "figure=phenomena")
    assert status == 1 and line.startswith(
        "error: job draw_figure: there is no folder config; run the job in a checkout"
    )
    (tmp_path / "config/suites").mkdir(parents=True)
    (tmp_path / "config/config.yaml").write_text("data: {mine: {path: nowhere}}\n", encoding="utf-8")
    (tmp_path / "config/suites/my_pairs.yaml").write_text("description: d\ndata: mine\n", encoding="utf-8")
    status, line = run("evaluate", "x", "--suite", "my_pairs")
    assert (status, line.count("\n")) == (1, 1)
    assert line.startswith("error: data: got none, and data.mine.path in config.yaml is nowhere, which does not exist")


@pytest.mark.slow
def test_train_makes_a_model_of_a_file_and_prints_its_last_losses(repository: Path, tmp_path: Path) -> None:
    def train(*more: str) -> str:
        """Train in a new process, because other tests of this session have opened a process group."""
        command = [sys.executable, "-m", "hatchery", *map(str, asked), *more]
        surroundings = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=200, check=True).stdout

    rng = random.Random(5)
    words = ["dog", "child", "river", "sees", "finds", "the", "a", "old"]
    letters = ("\n".join(" ".join(rng.choices(words, k=7)) + "." for _ in range(9)) for _ in range(90))
    (tmp_path / "letters.txt").write_text("\n\n".join(letters))
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    sizes |= {"position_bucket_size": 8, "max_position_embeddings": 64}
    (tmp_path / "small.yaml").write_text(json.dumps(sizes))
    words_file = {"kind": "wordpiece", "vocabulary_size": 300, "allow_smaller": True}
    (tmp_path / "words.yaml").write_text(json.dumps(words_file))
    asked = ["train", tmp_path / "letters.txt", tmp_path / "made", "--model", tmp_path / "small.yaml"]
    asked += ["--tokenizer", tmp_path / "words.yaml", "--steps", 3, "--batch-size", 8, "--objective", "causal"]
    asked += ["--set", "sequence_length=16", "--device", "cpu"]
    asked += ["--set", "optimizer={name: adamw, learning_rate: 0.001}"]
    printed = train()
    settings = read_manifest(tmp_path / "made" / "manifest.json").settings
    assert settings["objective"]["task"] == "causal" and settings["optimizer"]["learning_rate"] == 0.001
    rows = [json.loads(line) for line in (tmp_path / "made" / "metrics.jsonl").read_text().splitlines()]
    assert f"3 steps, loss {rows[-1]['loss']:.4g}, development_loss" in printed
    # The command takes the finished training unchanged.
    assert json.loads(train("--json"))["loss"] == rows[-1]["loss"]
    assert hatchery.model(tmp_path / "made").continues


def test_job_shows_and_runs_a_job(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    shown = json.loads(ran("job", "draw_figure", "experiment=demo", "figure=phenomena"))
    assert shown["settings"]["stage"] == "draw_figure" and shown["outputs"]["figure"] == "phenomena.svg"
    assert shown["inputs"] == {"tables": {"measurements": "results/demo/measurements.parquet"}}
    printed = ran("job", "write_cost", "experiment=demo", "--into", tmp_path)
    assert Path(printed.strip()).parent == tmp_path and Path(printed.strip()).is_file()


def test_every_option_of_train_is_a_setting_and_an_interruption_has_its_own_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def train(*places: Path, **settings: object) -> SimpleNamespace:
        seen.append((places, settings))
        return SimpleNamespace(curve=pl.DataFrame({"loss": [3.0, 2.0], "development_loss": [None, 2.5]}))

    monkeypatch.setattr(hatchery, "train", train)
    asked = ["train", "letters.txt", "made", "--minutes", "1.5", "--batch-size", "8", "--seed", "7", "--device", "cpu"]
    named = ["--model", "m", "--tokenizer", "t", "--objective", "hybrid", "--set", "sequence_length=16"]
    lines = ["made: 2 steps, loss 2, development_loss 2.5", "to query the model: hatchery try made"]
    assert ran(*asked, *named).splitlines() == lines
    settings = {"objective": {"task": "hybrid"}, "tokenizer": "t", "model": "m", "batch_size": 8, "seed": 7}
    settings |= {"device": "cpu", "sequence_length": 16, "budget": {"minutes": 1.5}}
    assert seen.pop() == ((Path("letters.txt"), Path("made")), settings)
    assert json.loads(ran("train", "x", "made", "--steps", 3, "--json")) == {
        **{"folder": "made", "loss": 2.0, "development_loss": 2.5}
    }
    defaults = {"objective": {"task": "masked"}, "tokenizer": TOKENIZER, "model": "ltg_mini", "batch_size": 32}
    assert seen.pop()[1] == {**defaults, "seed": 42, "device": "auto", "steps": 3}

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hatchery, "train", interrupted)
    done = CliRunner().invoke(app(), asked)
    assert (done.exit_code, done.stderr) == (75, "interrupted; run the same command again to continue\n")


def test_options_of_evaluate_and_surprisal_reach_their_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def recorded(*given: object, **named: object) -> pl.DataFrame:
        seen.append((given, named))
        return pl.DataFrame({"word": ["a"]})

    monkeypatch.setattr(hatchery, "evaluate", recorded)
    monkeypatch.setattr(hatchery, "surprisals", recorded)
    options = ("--architecture", "causal", "--device", "cpu", "--set", "batch_size=5")
    named = {"architecture": "causal", "device": "cpu", "batch_size": 5}
    ran("evaluate", "m", "--suite", "s", "--data", "d", *options)
    assert ran("surprisal", "m", "t.csv", "--column", "c", *options) == "word\na\n"
    assert seen == [(("m", "s", Path("d")), named), (("m", Path("t.csv"), "c"), named)]


def test_compare_and_export_pass_their_arguments_and_print_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def side_by_side(*given: object) -> object:
        seen.append(given)
        return table(["", "one"], [["rate", "1"]])

    monkeypatch.setattr("hatchery.experiment.shipped.open_project", lambda folder: folder)
    monkeypatch.setattr("hatchery.views.side_by_side.side_by_side", side_by_side)
    assert "| rate |   1 |" in ran("compare", "a", "b", "--project", "p")
    printed = json.loads(ran("compare", "a", "b", "--all", "--json"))
    assert printed == {"rows": [{"group": "", "": "rate", "one": "1"}], "notes": []}
    assert seen == [
        (Path("p/config"), ("a", "b"), Path("p/results"), False),
        (Path("config"), ("a", "b"), Path("results"), True),
    ]
    monkeypatch.setattr("hatchery.export.direct.export", lambda model, folder: [folder / model, folder / "b"])
    assert ran("export", "m", "f") == "f: m, b\n"
    assert json.loads(ran("export", "m", "f", "--json")) == {"folder": "f", "files": ["m", "b"]}


def test_settings_are_yaml_and_json_has_no_infinite_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    found = settings_in(["a=1", "b=x=y", "c={d: [1, null]}", "e=[", "f="])
    assert found == {"a": 1, "b": "x=y", "c": {"d": [1, None]}, "e": "[", "f": None}
    with pytest.raises(ConfigError, match="got suite, which is an argument of the command"):
        settings_in(["suite=x"], ("model", "suite"))
    print_json({"a": math.nan, "b": [math.inf, (1, -math.inf)], "é": Path("x"), "z": 1.5})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"a": None, "b": [None, [1, None]], "é": "x", "z": 1.5} and "é" in printed
