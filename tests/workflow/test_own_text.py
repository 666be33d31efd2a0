"""A text of one's own, in a folder with nothing beside it: one command makes the page, from one big file in a zip."""

import csv
import re
import zipfile
from pathlib import Path

import pytest
from projects import configure, make_project, snakemake

pytestmark = pytest.mark.slow

PARAGRAPH = (
    "The {0} dogs of the village ran after {0} cats. Why did they run?\nNobody knew, and {0} children laughed.\n\n"
)


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
    result = snakemake(folder, "--cores", "2", "results/my_text/index.html")
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    assert (folder / "results/my_text/index.html").is_file()
    with (folder / "results/my_text/summary.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    measured = {row["model"] for row in rows if (row["suite"], row["metric"]) == ("perplexity", "perplexity")}
    assert measured == {"random", "ltg_bert", "elc_bert"}
