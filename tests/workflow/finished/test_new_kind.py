"""Add a kind of evaluation with its own data, a figure with its own settings, and an analysis.

The kind is two files of the library, the figure two files, the analysis one file. All are planned, checked, run and
shown.
"""

import shutil
from pathlib import Path

import polars as pl
import pytest
from projects import changed, rows_of, snakemake, with_narrow_figures

pytestmark = pytest.mark.slow

STAGE = '''"""The stage `count_words`: how many words of a list are one entry of a model's vocabulary."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.atomic import write_json
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import EvaluationError
from hatchery.evaluation.evaluation import DataCheck, Evaluated, Evaluation, MostRows, ReadData, TidyRow, measured
from hatchery.raw.registration import RawSource, open_source
from hatchery.settings.base import Settings
from hatchery.stage import StoredByDigest, Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


@dataclass(frozen=True)
class ListSettings(Settings):
    """How a list is read."""

    files: str = "*.txt"


def lists_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the lists of an experiment."""
    for name, data in project.experiment(experiment).word_lists.items():
        yield ReadData(f"{project.place('experiment', experiment)}: word_lists.{name}", data, ListSettings())


def read_list(source: RawSource, settings: ListSettings, rows: MostRows) -> list[str]:
    """Return the words, a line each. Raises EvaluationError naming file and line for a line of several words."""
    name = source.one_name(settings.files)
    with source.open(name) as lines:
        words = [line.decode("utf-8").strip() for line in lines]
    for number, word in enumerate(words, 1):
        if " " in word:
            raise EvaluationError(f"{name}:{number}: got {word!r}, expected one word")
    return words


def check_list(source: RawSource, settings: ListSettings, rows: MostRows) -> Iterable[str]:
    """Read the list, and note words that it has twice."""
    words = read_list(source, settings, rows)
    return [f"{len(words) - len(set(words))} words stand twice"] if len(set(words)) < len(words) else []


def word_rows(evaluated: Evaluated) -> list[TidyRow]:
    """The share of the words, in percent."""
    share = json.loads(evaluated.manifest.file("share.json").read_text())["share"]
    return [measured("word_lists", evaluated.name, "task", "share_percent", 100 * share)]


@Stage(
    version=1,
    settings=lambda project, words: {},
    inputs=lambda of, project, experiment, words: {
        "source": of("register_source", source=project.experiment(experiment).word_lists[words])
    },
    shared=StoredByDigest("word_lists", ("words",)),
    evaluation=Evaluation(
        place=50,
        title="Words of lists in the vocabulary",
        note="Percent of the words.",
        asked=lambda experiment, run: experiment.word_lists,
        rows=word_rows,
        data=DataCheck(settings=ListSettings, reads=lists_read, check=check_list),
    ),
    environment="evaluation",
    runs_on="cpu",
    memory_mb=500,
    minutes=1,
)
def count_words(settings: ListSettings, model: Path, source: Path, run: StageRun) -> None:
    """Write `share.json`."""
    entries = json.loads((model.parent / "tokenizer.json").read_text())["model"]["vocab"]
    words = read_list(open_source(source), settings, lambda name: None)
    known = {entry.removeprefix("\u0120") for entry in entries}
    write_json(run.add_output(run.folder / "share.json"), {"share": sum(word in known for word in words) / len(words)})
'''
KEY = '''    word_lists: dict[BlockName, DataName] = field(default_factory=dict)
    """Lists of words by names of your choice: raw inputs with a word on each line."""
'''
FIGURE = '''"""The share of each list's words that are one entry of a vocabulary."""

from matplotlib.figure import Figure

from hatchery.analysis.read_tables import read_measurements
from hatchery.views.figures.needs import ListsFigure
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Words of lists in the vocabulary", needs=("word_lists",), version=1, caption="Percent of the words."
)


def draw(settings: ListsFigure, tables: Tables) -> Figure:
    """The figure."""
    shares = {row["task"]: row["value"] for row in read_measurements(tables["measurements"], settings.runs).to_dicts()}
    figure = Figure(figsize=(settings.style.width_inches, 2), layout="constrained")
    figure.subplots().bar(settings.lists, [shares[name] for name in settings.lists])
    return figure
'''
CLASS = '''@dataclass(frozen=True)
class ListsFigure(FigureSettings):
    """Settings of a figure of lists of words, in the order of the configuration."""

    lists: tuple[str, ...] = ()


'''
NEED = """    "word_lists": Need(
        "measurements",
        "lists under `word_lists`",
        lambda project, experiment: project.experiment(experiment).word_lists,
        asks=Asks(
            ListsFigure,
            values=lambda project, experiment, runs: {"lists": list(project.experiment(experiment).word_lists)},
        ),
    ),
"""
ANALYSIS = '''"""How long are the words of the lists?"""

from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import Analysis, AnalysisSettings, Findings, Study
from hatchery.raw.listings import source_manifest
from hatchery.raw.registration import open_source

if TYPE_CHECKING:
    from hatchery.workflow.result_paths import ResultPaths


def lists(results: "ResultPaths", name: str, settings: AnalysisSettings) -> dict[str, str]:
    """Return the registered sources of the lists."""
    asked = results.project.experiment(name).word_lists
    return {f"list/{key}": source_manifest(data) for key, data in asked.items()}


def lengths(settings: AnalysisSettings, study: Study) -> Findings:
    """A row for each list."""
    words = {name: open_source(path).open("words.txt").read().split() for name, path in study.manifests("list").items()}
    return Findings([{"list": name, "letters": sum(map(len, one)) / len(one)} for name, one in words.items()])


ANALYSIS = Analysis(
    title="Length of the words",
    version=1,
    settings=AnalysisSettings,
    run=lengths,
    needs=(lists,),
    own=lambda experiment: {} if experiment.word_lists else None,
)
'''
NEW = {
    "evaluation/stages/count_words.py": STAGE,
    "views/figures/words_in_vocabulary.py": FIGURE,
    "analysis/analyses/word_lengths.py": ANALYSIS,
}
TOUCHED = {
    "experiment/experiment_file.py": (
        ("    baselines: Annotated[tuple[BaselineName", KEY),
        ("    Reference,\n", "    DataName,\n"),
    ),
    "views/figures/needs.py": (("def regularised_starts", CLASS), ('    "sweeps": Need(', NEED)),
}
ASKED = "word_lists: {own: my_words}\nminimal_pairs:"


def test_a_kind_that_reads_data_a_figure_with_settings_and_an_analysis_are_five_files(
    finished_project: Path, tmp_path: Path, repository: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(finished_project, folder, symlinks=True)
    (folder / "scripts").unlink()
    shutil.copytree(repository / "scripts", folder / "scripts")
    shutil.copy(repository / "CITATION.cff", folder)
    library = folder / "scripts/hatchery"
    for name, text in NEW.items():
        (library / name).write_text(text, encoding="utf-8")
    for name, places in TOUCHED.items():
        text = (library / name).read_text(encoding="utf-8")
        for anchor, added in places:
            assert text.count(anchor) == 1, (name, anchor)
            text = text.replace(anchor, added + anchor)
        (library / name).write_text(text, encoding="utf-8")
    (folder / "words.txt").write_text("the\ntwo words\nthe\n", encoding="utf-8")
    config, experiment = folder / "config/config.yaml", folder / "config/experiments/tiny.yaml"
    config.write_text(
        config.read_text(encoding="utf-8").replace("\ndata:\n", "\ndata:\n  my_words: {path: words.txt}\n", 1)
    )

    # All figures are drawn again.
    with_narrow_figures(folder, "tiny")
    table = folder / "results/tiny/measurements.parquet"
    earlier = pl.read_parquet(table)
    models = {path: path.stat().st_mtime_ns for path in (folder / "results/models").glob("*/manifest.json")}
    with changed(experiment, "minimal_pairs:", ASKED):
        refused = snakemake(folder, "-n", "--", "results/tiny/index.html", forked=False)
        wrong = "config/experiments/tiny.yaml: word_lists.own: words.txt:2: got 'two words', expected one word"
        assert refused.returncode == 1 and f"error: {wrong}" in refused.stderr, refused.stderr[-3000:]
        (folder / "words.txt").write_text("the\nunheard-of\nthe\n", encoding="utf-8")
        done = snakemake(folder, "--cores", "2", "--", "results/tiny/index.html", forked=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "note: config/experiments/tiny.yaml: word_lists.own: 1 words stand twice" in done.stderr
    assert len(list((folder / "results/word_lists").glob("tiny-*/*-*/manifest.json"))) == 4
    assert (folder / "results/tiny/word_lists/elc_bert-s42/own/share.json").is_file()
    assert models and all(path.stat().st_mtime_ns == modified for path, modified in models.items())
    found = pl.read_parquet(table)
    assert found.filter(pl.col("kind") != "word_lists").equals(earlier)
    counted = found.filter(pl.col("kind") == "word_lists")
    assert counted["run"].to_list() == ["random-s42", "ltg_bert-s42", "elc_bert-s42", "roberta-s42"]
    shares = {
        row["model"]: float(row["mean"])
        for row in rows_of(folder / "results/tiny/summary.csv")
        if row["suite"] == "word_lists"
    }
    assert shares == dict.fromkeys(("random", "ltg_bert", "elc_bert", "roberta"), pytest.approx(200 / 3, abs=0.01))
    assert "## Words of lists in the vocabulary\n\nPercent of the words." in (
        folder / "results/tiny/summary.md"
    ).read_text(encoding="utf-8")
    assert (folder / "results/tiny/analyses/word_lengths/numbers.csv").read_text() == (
        f"list,letters\nown,{(3 + 10 + 3) / 3}\n"
    )
    page = (folder / "results/tiny/index.html").read_text(encoding="utf-8")
    assert "66.7" in page and "figures/words_in_vocabulary.svg" in page and "Length of the words" in page
