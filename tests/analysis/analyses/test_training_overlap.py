"""Sentences of suites that occur in the training text."""

from pathlib import Path

import polars as pl

from hatchery.analysis.analyses.analysis import Study
from hatchery.analysis.analyses.training_overlap import ANALYSIS, TrainingOverlapSettings
from hatchery.artifacts.manifests import stage_run
from hatchery.corpora.corpus_writer import CorpusWriter, document_row
from hatchery.experiment.seeded_run import SeededRun
from hatchery.raw.registration import register_source

PAIRS = [
    ("The dogs sleep.", "The dogs sleeps."),
    ("A cat sees him now.", "A cat see him now."),
    ("Go away.", "Go aways."),
    ("She was here.", "She were here."),
    ("No one knows it.", "No one know it."),
    ("Both stand here.", "Both stands here."),
    # The first three words are those of another sentence.
    ("A cat sees him again.", "A cat sees he again."),
]
TRAINING = [
    "Then\nThe dogs sleep.",
    'He said: A cat sees him now. And then "Go away." he said.',
    "She were here.\nGo away.",
    "Both stand here.\nBoth stands here.",
    "A cat sees him again.",
]


def test_sentences_count_where_they_stand_in_lines_of_the_training_text(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("good,bad\n" + "".join(f"{good},{bad}\n" for good, bad in PAIRS))
    register_source("own", tmp_path / "own.csv", tmp_path / "own.json")
    columns = {"good": "good", "bad": "bad"}
    settings = {"stage": "score_minimal_pairs", "suite": "own", "format": "rows", "columns": columns, "files": "*.csv"}
    with stage_run(tmp_path / "scores/manifest.json", settings) as run:
        scores = {"outcome": ["correct"] * len(PAIRS), "score_good": [0.0] * len(PAIRS)}
        pl.DataFrame(scores).write_parquet(run.add_output(run.folder / "scores.parquet"))
    # Items with several wrong candidates have other columns and are ignored.
    with stage_run(tmp_path / "several/manifest.json", {**settings, "suite": "several"}) as run:
        pl.DataFrame({"outcome": ["correct"]}).write_parquet(run.add_output(run.folder / "scores.parquet"))
    for corpus, texts in (("corpus", TRAINING), ("small", TRAINING[:1])):
        with (
            stage_run(tmp_path / corpus / "manifest.json", {"stage": "convert_corpus"}) as run,
            CorpusWriter(run, ["text"], 2) as writer,
        ):
            for index, text in enumerate(texts):
                writer.write(document_row(f"{index}", "text", "train", text))
            writer.write(document_row("held out", "text", "dev", "No one knows it."))
    tables = {
        "minimal_pairs/ltg-s1:own": tmp_path / "scores/manifest.json",
        "minimal_pairs/ltg-s1:several": tmp_path / "several/manifest.json",
        "pair_files/own": tmp_path / "own.json",
        "corpus/mine": tmp_path / "corpus/manifest.json",
    }
    found = ANALYSIS.run(TrainingOverlapSettings(), Study("mine", (SeededRun.from_seed("ltg", 1),), tables=tables))
    # The training text has four good sentences without the bad sentence, one bad sentence without the good sentence,
    # and both sentences of one pair.
    assert found.rows == [{"experiment": "mine", "suite": "own", "pairs": 7, "good": 5, "bad": 2, "good_alone": 4}]
    (row,) = found.tables[0].rows
    assert [str(cell) for cell in row.cells] == ["own", "7", "5 (71.4 %)", "2 (28.6 %)", "4 (57.1 %)"]
    # A study has a row for the corpus of each experiment, even if experiments have the same corpus.
    tables["corpus/tiny"] = tables["corpus/mine"]
    same = ANALYSIS.run(TrainingOverlapSettings(), Study("both", (SeededRun.from_seed("ltg", 1),), tables=tables))
    assert [row.cells[:2] for row in same.tables[0].rows] == [["mine", "own"], ["tiny", "own"]]
    tables["corpus/tiny"] = tmp_path / "small/manifest.json"
    both = ANALYSIS.run(TrainingOverlapSettings(), Study("both", (SeededRun.from_seed("ltg", 1),), tables=tables))
    assert [(row["experiment"], row["good"]) for row in both.rows] == [("mine", 5), ("tiny", 1)]
    assert [row.cells[0] for row in both.tables[0].rows] == ["mine", "tiny"]
