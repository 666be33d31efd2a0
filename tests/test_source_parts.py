"""A job depends only on the files of a raw input that it reads."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.experiment.project import Project
from hatchery.provenance.chain import ManifestIndex, follow
from hatchery.raw.listings import source_manifest
from hatchery.raw.registration import RawSource, open_source, present, register_source
from hatchery.runner import run_stage
from hatchery.source_parts import digest_read, is_what_was_read, part_read
from hatchery.stage import function_of
from hatchery.workflow.raw_files import RawFiles
from hatchery.workflow.registry import STAGES
from hatchery.workflow.stale_results import stale_lines

MADE = Path("results/corpora/my_text/manifest.json")
SOURCE = Path(source_manifest("my_text"))


def settings_of(project: Project, stage: str, **wildcards: str) -> dict[str, Any]:
    return json.loads(STAGES[stage].canonical_settings(project, **wildcards))


def register(folder: Path) -> None:
    register_source("my_text", folder, SOURCE)


@pytest.fixture
def converted(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Project, Path]:
    """A corpus of forty texts, from a folder that also contains a program."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.txt").write_text(f"A text with the number {number}.\n", encoding="utf-8")
    (folder / "surp.py").write_text("print(1)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    register(folder)
    project = Project(repository / "config", {"data": {"my_text": {"path": str(folder)}}})
    settings = settings_of(project, "convert_corpus", corpus="my_text")
    (name,) = (source["name"] for source in settings["sources"])
    run_stage(function_of("convert_corpus"), settings, MADE, source={name: SOURCE})
    return project, folder


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "a program that is edited": (lambda folder: (folder / "surp.py").write_text("print(12)\n"), True),
    "a program that is removed": (lambda folder: (folder / "surp.py").unlink(), True),
    "a note that is added": (lambda folder: (folder / "README.md").write_text("What this is\n"), True),
    "a text that is touched": (lambda folder: os.utime(folder / "7.txt", (1_000_000, 1_000_000)), True),
    "a text that is edited": (lambda folder: (folder / "7.txt").write_text("A text with the number 8.\n"), False),
    "a text that is longer": (lambda folder: (folder / "7.txt").write_text("A longer text.\n"), False),
    "a text that is added": (lambda folder: (folder / "more.txt").write_text("One more text.\n"), False),
    "a text that is removed": (lambda folder: (folder / "7.txt").unlink(), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_no_pattern_takes_changes_nothing_before_and_after_it_is_registered(
    change: str, converted: tuple[Project, Path]
) -> None:
    project, folder = converted
    made = read_manifest(MADE)
    assert RawFiles(project).changed(str(SOURCE), MADE) is None
    act, is_the_same = CHANGES[change]
    act(folder)
    for _ in ("before", "after"):
        changed = RawFiles(project).changed(str(SOURCE), MADE)
        assert changed is not None and changed[0] == folder
        assert is_what_was_read(MADE, str(SOURCE), present(SOURCE, *changed)) == is_the_same
        register(folder)
    ((name, digest),) = made.inputs.items()
    assert (digest_read(made.settings, name, SOURCE) == digest) == is_the_same
    job = type("Job", (), {"rule": type("Rule", (), {"name": "convert_corpus"}), "output": [str(MADE)]})
    assert (list(stale_lines([job])) == []) == is_the_same
    chain = follow(ManifestIndex(), [made.digest], "here")
    assert (chain.problems == []) == is_the_same
    sources = [node.source for node in chain.nodes.values() if node.source is not None]
    assert [len(source.files) for source in sources] == ([40] if is_the_same else [])


def test_a_vocabulary_stays_what_it_is_beside_a_new_file(converted: tuple[Project, Path], repository: Path) -> None:
    folder, made = converted[1], Path("results/vocabularies/aochildes_released/manifest.json")
    (folder / "words.csv").write_text("word,frequency\ndog,3\ncat,2\n")
    register(folder)
    settings = settings_of(Project(repository / "config"), "build_vocabulary", vocabulary="aochildes_released")
    run_stage(function_of("build_vocabulary"), settings, made, source=SOURCE)
    (folder / "surp.py").write_text("print(12)\n")
    register(folder)
    assert is_what_was_read(made, str(SOURCE), open_source(SOURCE))
    (folder / "words.csv").write_text("word,frequency\ndog,3\ncow,2\n")
    register(folder)
    assert not is_what_was_read(made, str(SOURCE), open_source(SOURCE))


def test_where_all_files_are_read_the_digest_is_that_of_the_source_manifest(converted: tuple[Project, Path]) -> None:
    _, folder = converted
    (folder / "surp.py").unlink()
    made = read_manifest(MADE)
    register(folder)
    whole = open_source(SOURCE)
    assert list(made.inputs.values()) == [whole.digest] == [digest_read({}, "source", SOURCE)]


def source_with(*names: str) -> RawSource:
    return RawSource(Path("x.json"), "x", "folder", Path("x"), dict.fromkeys(sorted(names), (1, "0" * 64)))


@pytest.mark.parametrize("suite", ["blimp", "demo_pairs"])
def test_a_suite_reads_the_files_that_its_pattern_takes(suite: str, repository: Path) -> None:
    settings = settings_of(Project(repository / "config"), "score_minimal_pairs", suite=suite)
    chosen = part_read(settings, "source", source_with("a.jsonl", "notes.txt"))
    assert list(chosen.files) == ["a.jsonl"]


PUNKT = ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab")
READ = {
    "vocabulary": ("build_vocabulary", {"vocabulary": "demo"}, "source", ["age_1.csv"]),
    "dictionary": ("build_vocabulary", {"vocabulary": "aochildes"}, "dictionary", ["en"]),
    "selection": ("select_text", {"selection": "bookcorpus_sentences"}, "source", ["1.txt", "2.txt.gz"]),
    "sentence model of a selection": ("select_text", {"selection": "c4_sentences"}, "sentence model", [*PUNKT]),
    "sentence model of a corpus": ("convert_corpus", {"corpus": "my_text"}, "sentence model", [*PUNKT]),
    "reading times": (
        "measure_reading",
        {"experiment": "babylm_mini"},
        "source",
        ["full_eval/reading/reading_data.csv"],
    ),
    "reading times of any readers": (
        "measure_reading_times",
        {"reading_table": "demo_reading_times"},
        "source",
        ["self_paced.csv"],
    ),
    "children": (
        "measure_acquisition",
        {"experiment": "babylm_mini", "run": "gpt_bert-s42"},
        "source",
        ["full_eval/aoa/cdi_childes.json", "full_eval/aoa/cdi_human.csv"],
    ),
    "model of others": (
        "import_model",
        {"baseline": "bert_base_cased"},
        "source",
        ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"],
    ),
    "morphemes": ("select_tokenizer", {"sweep": "demo"}, "morphemes", ["words.csv"]),
    "reference tokenizer": ("select_tokenizer", {"sweep": "demo"}, "reference bpe", ["tokenizer.json"]),
}


@pytest.mark.parametrize("what", READ)
def test_what_lies_beside_the_files_of_an_input_is_not_read(what: str, repository: Path) -> None:
    """All files of a dictionary contain words, except for files called README."""
    stage, wildcards, name, read = READ[what]
    settings = settings_of(Project(repository / "config"), stage, **wildcards)
    chosen = part_read(settings, name, source_with(*read, "README.md", *([] if what == "dictionary" else ["surp.py"])))
    assert list(chosen.files) == sorted(read)


def test_a_task_reads_its_files_and_those_of_the_tasks_that_it_is_transferred_to(repository: Path) -> None:
    project = Project(repository / "config")
    experiment, task = "demo", "demo_entailment"
    settings = settings_of(project, "finetune", experiment=experiment, task=task)
    there = [
        name for names in settings["task"]["files"].values() for name in ([names] if isinstance(names, str) else names)
    ]
    source = source_with(*there, "notes.txt")
    assert set(part_read(settings, f"source {task}", source).files) == set(there)
    several = {"stage": "finetune_tasks", "tasks": {task: settings}}
    assert set(part_read(several, f"source {task}", source).files) == set(there)


def test_what_cannot_be_told_is_all(repository: Path) -> None:
    source = source_with("notes.txt")
    settings = settings_of(Project(repository / "config"), "score_minimal_pairs", suite="blimp")
    for unknown in (settings, {"stage": "train_tokenizer"}, {"stage": "nothing"}, {}):
        assert part_read(unknown, "source", source) == source
