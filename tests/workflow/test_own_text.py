"""A user's own text and pairs become a page with one command, and changes of the files are noticed."""

import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from projects import configure, make_project, planned_rules, rows_of, snakemake, with_narrow_figures

pytestmark = pytest.mark.slow

PARAGRAPH = (
    "The {0} dogs of the village ran after {0} cats. Why did they run?\nNobody knew, and {0} children laughed.\n\n"
)


SPREADSHEET = """description: Pairs from a spreadsheet.
data: my_pairs
format: rows
files: "*.csv"
columns: {good: right, bad: wrong}
"""
ZORRO = """description: Pairs in the form of Zorro.
data: my_pairs
format: alternating_lines
files: "*.txt"
good_line: second
"""
# More rows than planning reads.
MANY = 30_000


def give_pairs(folder: Path, home: Path) -> Path:
    """Add the two suites to the experiment; the last row of the spreadsheet lacks a sentence."""
    pairs = home / "pairs"
    pairs.mkdir()
    (pairs / "agreement-number.txt").write_text("The dogs runs.\nThe dogs run.\n" * 3, encoding="utf-8")
    (pairs / "order.csv").write_text(
        "right,wrong\n" + "The dogs of the village ran.,Ran village the of dogs the.\n" * MANY + "The dogs ran.,\n",
        encoding="utf-8",
    )
    for name, text in (("spreadsheet", SPREADSHEET), ("zorro", ZORRO)):
        (folder / f"config/suites/{name}.yaml").write_text(text, encoding="utf-8")
    config = folder / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("\ndata:\n", "\ndata:\n  my_pairs: {path: ~/pairs}\n", 1), encoding="utf-8")
    with (folder / "config/experiments/my_text.yaml").open("a", encoding="utf-8") as handle:
        handle.write("\nminimal_pairs: [spreadsheet, zorro]\n")
    return pairs


def test_one_big_file_in_a_zip_becomes_a_page_without_any_other_data(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ../shared of this folder does not exist.
    folder = make_project(tmp_path / "alone" / "project", repository)
    monkeypatch.setenv("HOME", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "letters.zip", "w") as archive:
        archive.writestr("letters.txt", "".join(PARAGRAPH.format(number) for number in range(400)))
    config = folder / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"(\n  my_text:\n    path: )null", r"\1~/letters.zip", text), encoding="utf-8")
    experiment = folder / "config/experiments/my_text.yaml"
    text = experiment.read_text(encoding="utf-8")
    for name, value in (("steps", 6), ("batch_size", 4), ("evaluation_interval_steps", 3)):
        text = re.sub(rf"^  {name}: .*$", f"  {name}: {value}", text, count=1, flags=re.MULTILINE)
    experiment.write_text(text.replace("_mini}", "_tiny}").replace("ltg_mini,", "ltg_tiny,"), encoding="utf-8")
    configure(folder, "compute", device="cpu")
    with_narrow_figures(folder, "my_text")
    pairs = give_pairs(folder, tmp_path)
    result = snakemake(folder, "--cores", "2", "results/my_text/index.html")
    assert result.returncode != 0
    wrong = f"config/suites/spreadsheet.yaml: order.csv:{MANY + 2}: the field 'wrong' must be a non-empty text, got ''"
    assert wrong in result.stdout + result.stderr
    assert not (folder / "results/models").exists()
    (pairs / "order.csv").write_text("right,wrong\nThe dogs ran.,Dogs the ran.\n", encoding="utf-8")
    result = snakemake(folder, "--cores", "2", "results/my_text/index.html")
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    assert (folder / "results/my_text/index.html").is_file()
    rows = rows_of(folder / "results/my_text/summary.csv")
    measured = {row["model"] for row in rows if (row["suite"], row["metric"]) == ("perplexity", "perplexity")}
    assert measured == {"random", "ltg_bert", "elc_bert"}
    accuracies = {(row["model"], row["suite"]) for row in rows if row["task"] == "paradigm_average"}
    assert accuracies == {(model, suite) for model in measured for suite in ("spreadsheet", "zorro")}


def test_a_table_of_two_columns_becomes_a_model_that_translates(tmp_path: Path, repository: Path) -> None:
    folder = make_project(tmp_path / "project", repository)
    table = tmp_path / "mine.tsv"
    table.write_text(
        "".join(f"Das sind {number} Hunde.\tThese are {number} dogs.\n" for number in range(300)), encoding="utf-8"
    )
    config = folder / "config/config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"(\n  my_translations:\n    path: )null", rf"\1{table}", text), encoding="utf-8")
    experiment = folder / "config/experiments/my_translations.yaml"
    text = experiment.read_text(encoding="utf-8").replace("nmt_128", "nmt_demo")
    for name, value in (("steps", 6), ("alc_steps", 6), ("batch_size", 200), ("evaluation_interval_steps", 3)):
        text, count = re.subn(rf"^  {name}: .*$", f"  {name}: {value}", text, count=1, flags=re.MULTILINE)
        assert count == 1
    experiment.write_text(text.replace("warmup_steps: 100", "warmup_steps: 2"), encoding="utf-8")
    configure(folder, "compute", device="cpu")
    with_narrow_figures(folder, "my_translations")
    result = snakemake(folder, "--cores", "2", "results/my_translations/index.html")
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    assert (folder / "results/my_translations/index.html").is_file()
    rows = rows_of(folder / "results/my_translations/summary.csv")
    measured = {(row["task"], row["metric"]) for row in rows}
    assert {("held_out", "bleu"), ("held_out", "chrf")} <= measured


CORPUS = "results/corpora/my_text/manifest.json"


def set_path(project: Path, data: Path) -> None:
    path = project / "config/config.yaml"
    head, rest = path.read_text(encoding="utf-8").split("\n  my_text:\n", 1)
    lines = rest.split("\n")
    lines[0] = f"    path: {data}"
    path.write_text(f"{head}\n  my_text:\n" + "\n".join(lines), encoding="utf-8")


def test_an_edited_file_is_converted_again_and_a_moved_or_touched_one_is_not(tmp_path: Path, repository: Path) -> None:
    project, data = make_project(tmp_path / "project", repository), tmp_path / "texts"
    data.mkdir()
    for number in range(40):
        (data / f"{number}.txt").write_text(f"A text with the number {number}.\n", encoding="utf-8")
    set_path(project, data)

    def run() -> bytes:
        result = snakemake(project, "--cores", "1", CORPUS)
        assert result.returncode == 0, result.stdout + result.stderr
        assert planned_rules(project, CORPUS) == {}
        return (project / CORPUS).read_bytes()

    first = run()
    # No pattern of the source matches this file.
    (data / "surp.py").write_text("print(1)\n", encoding="utf-8")
    os.utime(data / "8.txt", (1_000_000, 1_000_000))
    assert planned_rules(project, CORPUS) == {"register_source": 1}
    assert run() == first
    (data / "surp.py").unlink()
    (data / "more.txt").write_text("One more text.\n", encoding="utf-8")
    assert planned_rules(project, CORPUS) == {"register_source": 1, "convert_corpus": 1}
    (data / "more.txt").unlink()
    (data / "7.txt").write_text("A text with the number 8.\n", encoding="utf-8")
    assert planned_rules(project, CORPUS) == {"register_source": 1, "convert_corpus": 1}
    second = run()
    assert second != first
    os.utime(data / "9.txt", (1_000_000, 1_000_000))
    assert planned_rules(project, CORPUS) == {"register_source": 1}
    shutil.move(data, tmp_path / "moved")
    set_path(project, tmp_path / "moved")
    assert planned_rules(project, CORPUS) == {"register_source": 1}
    made = (project / CORPUS).stat().st_mtime_ns
    assert run() == second
    assert (project / CORPUS).stat().st_mtime_ns == made
    (tmp_path / "moved/7.txt").write_text("A text with the number 7.\n", encoding="utf-8")
    assert run() == first
