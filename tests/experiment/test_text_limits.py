"""Text before it is read: what text of one's own needs, whether it can be split, and how much there is."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped import REPOSITORY, edit

from hatchery.corpora.readers.babylm import NORMALISERS
from hatchery.errors import ConfigError
from hatchery.experiment.held_out_text import held_out_splits
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources, raw_inputs
from hatchery.experiment.text_limits import check_own_text, epochs_to_tell, unread_to_tell
from hatchery.settings.problems import Problems
from hatchery.workflow.jobs import Jobs
from hatchery.workflow.plan_checks import collect_problems


def project_with(folder: Path, path: Path | str, **corpus: Any) -> Project:
    shutil.copytree(REPOSITORY / "config", folder / "config")
    file = folder / "config/experiments/my_text.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    block = document["corpus"]
    block["sources"][0]["options"] = corpus.pop("options", {})
    block["split"].update(corpus.pop("split", {}))
    block.update(corpus)
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return Project(folder / "config", {"data": {"my_text": {"path": str(path)}}})


def test_the_experiment_needs_no_data_but_the_text_itself() -> None:
    project = Project(REPOSITORY / "config")
    block = project.experiment("my_text")
    jobs = Jobs(project)
    assert {source["name"] for source in raw_inputs(project, block.corpus)} == {"my_text"}
    assert project.tokenizer(block.tokenizer).corpus == "my_text"
    assert block.minimal_pairs == block.baselines == ()
    assert block.finetuning.tasks == {}
    assert jobs.results.of_kind("my_text", "perplexity")
    assert project.config.data["my_text"].path is None


def test_blimp_is_one_line_away() -> None:
    text = (REPOSITORY / "config/experiments/my_text.yaml").read_text(encoding="utf-8")
    added = yaml.safe_load(re.sub(r"^# (minimal_pairs:)", r"\1", text, flags=re.MULTILINE))
    assert added["minimal_pairs"] == ["blimp_sample"]
    assert "github.com/alexwarstadt/blimp" in Project(REPOSITORY / "config").config.data["blimp"].obtain


def test_a_tilde_in_the_path_of_data_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "letters").mkdir()
    project = project_with(tmp_path / "project", "~/letters")
    assert project.raw_input("my_text").path == str(tmp_path / "letters")
    assert f'"path":"{tmp_path}/letters"' in Jobs(project).settings("register_source", source="my_text")


@pytest.mark.parametrize("form", ["file", "folder", "zip"])
@pytest.mark.parametrize(
    ("bytes_", "corpus", "told"),
    [
        (3_000, {}, True),
        (90_000, {}, False),
        (90_000, {"options": {"cut_files": "never"}}, True),
        (90_000, {"options": {"cut_files": "never", "lines_per_document": 9}}, False),
        (3_000, {"split": {"development_fraction": 0.0}}, False),
        (3_000, {"split": {"development_documents": 1}}, True),
    ],
)
def test_a_text_that_is_one_document_is_told_before_anything_runs(
    form: str, bytes_: int, corpus: dict[str, Any], told: bool, tmp_path: Path
) -> None:
    root = tmp_path / "note"
    root.mkdir()
    (root / "a.txt").write_text("word " * (bytes_ // 5))
    (root / "b.docx").write_text("not read")
    path = root / "a.txt" if form == "file" else root
    if form == "zip":
        path = tmp_path / "note.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(root / "a.txt", "a.txt")
    project = project_with(tmp_path, path, **corpus)
    if not told:
        check_own_text(project, "my_text")
        return
    with pytest.raises(
        ConfigError, match=r"experiments/my_text\.yaml: corpus: split: .* is one document.*lines_per_document"
    ):
        project.check("experiment", "my_text")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("letters.zip", "unpack the archive, or give its own path"),
        ("letter.docx", "save documents as plain text (.txt)"),
        ("paper.pdf", "save documents as plain text (.txt)"),
    ],
)
@pytest.mark.parametrize("form", ["folder", "file"])
def test_a_path_without_text_is_told_before_anything_runs(name: str, remedy: str, form: str, tmp_path: Path) -> None:
    root = tmp_path / "raw"
    root.mkdir()
    (root / name).write_bytes(b"not looked into")
    if name.endswith((".zip", ".docx")):
        with zipfile.ZipFile(root / name, "w") as archive:
            archive.writestr("word/document.xml", "x")
    path = root if form == "folder" else root / name
    if form == "file" and name.endswith(".tar.gz"):
        # It is unpacked when it is registered.
        project_with(tmp_path, path).check("corpus", "my_text")
        return
    with pytest.raises(ConfigError) as caught:
        project_with(tmp_path, path).check("corpus", "my_text")
    (line,) = str(caught.value).splitlines()
    assert (
        f"/config/experiments/my_text.yaml: corpus: sources.0: data.my_text.path: {path}: no file matches *.txt, "
        in line
    )
    assert form == "file" or (f"; there are: {name}; " in line and line.endswith(remedy))


def test_the_splits_of_a_release_are_those_of_the_files_that_lie_here(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    release = tmp_path / "babylm_data"

    def splits() -> set[str]:
        return held_out_splits(Project(tmp_path / "config", {"data": {"babylm": {"path": str(release)}}}), "babylm_10M")

    assert splits() == {"dev", "test"}  # nothing is known
    for folder, suffix, expected in (
        ("10M", "train", {"dev"}),
        ("test", "test", {"dev", "test"}),
        ("dev", "dev", None),
    ):
        (release / f"babylm_{folder}").mkdir(parents=True)
        for corpus in NORMALISERS:
            (release / f"babylm_{folder}" / f"{corpus}.{suffix}").write_text("x")
        assert splits() == (expected or {"dev", "test"})
    shutil.rmtree(release / "babylm_test")
    assert splits() == {"dev"}


def test_every_missing_file_of_a_release_is_told_before_anything_runs(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    release = tmp_path / "babylm_data/babylm_10M"
    release.mkdir(parents=True)
    for corpus in list(NORMALISERS)[:4]:
        (release / f"{corpus}.train").write_text("x")
    with pytest.raises(ConfigError) as caught:
        Project(tmp_path / "config", {"data": {"babylm": {"path": str(release.parent)}}}).check("corpus", "babylm_10M")
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    for corpus, line in zip(list(NORMALISERS)[4:], lines, strict=True):
        assert "config/corpora/babylm_10M.yaml: sources." in line and f"{corpus}.train" in line


def test_text_most_of_which_is_not_read_is_told_with_names_and_the_cure(tmp_path: Path) -> None:
    root = tmp_path / "raw"
    (root / "data").mkdir(parents=True)
    (root / "a.txt").write_text("word " * 100)
    project = project_with(tmp_path, root)
    assert list(unread_to_tell(["my_text"], project)) == []
    for number in range(5):
        (root / f"data/{number}.arrow").write_bytes(bytes(200 + number))
    (line,) = unread_to_tell(["my_text"], project)
    assert line == (
        f"corpus 'my_text': 1.01 kB of the 1.51 kB at {root} lie in files that are not read: data/4.arrow (204 B), "
        "data/3.arrow (203 B), data/2.arrow (202 B) and 2 more; set the option `files`, or save them as .txt, .csv, "
        ".jsonl or .parquet"
    )


def test_what_cannot_be_told_at_once_is_left_to_the_stages(tmp_path: Path) -> None:
    root = tmp_path / "raw"
    root.mkdir()
    project = project_with(tmp_path, root)
    check_own_text(project, "my_text")
    (root / "a.csv").write_text("text\nx\n")
    check_own_text(project, "my_text")
    (root / "a.txt").write_text("x")
    check_own_text(project, "my_text")
    check_own_text(project, "babylm_10M")
    check_own_text(project, "demo")
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK\x03\x04")
    check_own_text(project_with(tmp_path / "other", damaged), "my_text")
    check_own_text(project_with(tmp_path / "third", tmp_path / "missing"), "my_text")


def test_markdown_is_text_too(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("A note.")
    project = project_with(tmp_path, tmp_path / "note.md")
    with pytest.raises(ConfigError, match="is one document"):
        check_own_text(project, "my_text")


def test_languages_change_the_conversion_of_own_text_alone_and_only_where_no_option_speaks(tmp_path: Path) -> None:
    told = {
        name: Jobs(project_with(tmp_path / name, "x", **corpus)).settings("convert_corpus", corpus="my_text")
        for name, corpus in {
            "unknown": {},
            "german": {"languages": ["de"]},
            "said": {"languages": ["de"], "options": {"sentences": "line"}},
        }.items()
    }
    assert '"languages":[]' in told["unknown"] and '"languages":["de"]' in told["german"]
    assert "languages" not in told["said"]
    card = Jobs(project_with(tmp_path / "card", "x", languages=["de"])).settings("describe_corpus", corpus="my_text")
    assert '"languages":["de"]' in card
    for corpus in ("bnc", "babylm_10M", "real_small", "child_directed", "c4_en", "demo_parallel_english"):
        assert "languages" not in Jobs(Project(REPOSITORY / "config")).settings("convert_corpus", corpus=corpus)


def test_no_card_says_a_language_that_nobody_named_or_what_we_call_a_text(tmp_path: Path) -> None:
    exported = json.loads(
        Jobs(project_with(tmp_path, "x")).settings("export_model", experiment="my_text", run="ltg_bert-s42")
    )
    assert exported["languages"] == []
    assert (exported["corpus_description"], exported["sources"][0]["obtain"]) == ("", "")
    assert "yours" not in json.dumps(exported)
    assert not re.search(r"\([a-z]+_[a-z_]+\)", exported["model_description"])


UNCONSTRAINED = "reduced_vocabulary_unconstrained"
CORPUS = f"corpora/{UNCONSTRAINED}.yaml"


def take_documents(folder: Path, number: int | None) -> None:
    text = (folder / "config.yaml").read_text(encoding="utf-8")
    (shipped,) = re.findall(r"documents: \d{6,}", text)
    edit(folder, "config.yaml", shipped, f"documents: {'null' if number is None else number}")


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        (1_000_000, "got 7,480,000, but this selection can have 4,000,000 texts at most; raise data.c4.hub.documents"),
        (1_869_999, "(1,869,999) in "),
        (1_870_000, None),
        (None, None),
    ],
)
def test_a_quota_of_windows_is_compared_with_the_documents_that_are_taken(
    documents: int | None, told: str | None, configuration: Path
) -> None:
    take_documents(configuration, documents)
    if told is None:
        Project(configuration).check("corpus", UNCONSTRAINED)
        return
    with pytest.raises(ConfigError) as caught:
        Project(configuration).check("corpus", UNCONSTRAINED)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{configuration / CORPUS}: sequences.groups.0.quotas.c4_windows: got 7,480,000, but ")
    assert told in line and "to 1,870,000 at least" in line


def test_files_at_a_path_are_not_counted(configuration: Path, tmp_path: Path) -> None:
    take_documents(configuration, 1_000_000)
    project = Project(configuration, {"data": {"c4": {"path": str(tmp_path)}}})
    project.check("corpus", UNCONSTRAINED)
    assert project.corpus(UNCONSTRAINED).sequences.groups[0].quotas["c4_windows"] == 7_480_000


def test_a_corpus_that_is_read_as_one_text_has_the_windows_that_are_drawn(configuration: Path) -> None:
    edit(configuration, CORPUS, "cbt_windows: 32000", "cbt_windows: 80002")
    with pytest.raises(
        ConfigError, match=r"cbt_windows: got 80,002, .* have 80,001 texts at most; raise windows_per_text"
    ):
        Project(configuration).check("corpus", UNCONSTRAINED)


def test_held_out_numbers_leave_something_for_training(configuration: Path) -> None:
    edit(configuration, CORPUS, "set_aside: 200000", "set_aside: 9281490")
    with pytest.raises(
        ConfigError, match=r"groups\.0: got set_aside 9,281,490 of 9,281,490 sequences at most, which leaves none"
    ):
        Project(configuration).check("corpus", UNCONSTRAINED)


def test_what_is_shipped_reads_no_text_twice_as_far_as_that_is_known(repository: Path) -> None:
    project = Project(repository / "config")
    assert list(epochs_to_tell(project.names("experiment"), project)) == []


def test_a_training_that_reads_more_than_there_can_be_is_told_in_epochs(configuration: Path) -> None:
    edit(configuration, CORPUS, "maximum_sequences: 9281490", "maximum_sequences: 4740745")
    (line,) = epochs_to_tell([UNCONSTRAINED, "reduced_vocabulary_constrained"], Project(configuration))
    assert line == (
        f"experiment '{UNCONSTRAINED}': a training reads 9,081,600 sequences, and its corpus '{UNCONSTRAINED}' "
        "can have 4,540,745 at most: 2.0 epochs or more"
    )


def check(folder: Path, name: str = "my_text") -> list[str]:
    problems = Problems()
    collect_problems(Project(folder), [("experiment", name)], problems)
    return problems.lines


def edited(folder: Path, file: str, **keys: Any) -> None:
    document = yaml.safe_load((folder / file).read_text(encoding="utf-8"))
    for key, value in keys.items():
        document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
    (folder / file).write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.mark.parametrize(
    ("words_seen", "keys", "expected"),
    [
        # 1,000 lines of two words and a blank line: 9,000 bytes, at most 4,500 words and 45,000 in ten epochs.
        (47_368, {"epochs": 10}, None),
        (47_369, {"epochs": 10}, "got 47,369, expected at most 45,000: 10 epochs of the corpus 'my_text', whose files"),
        (10_000_000, {}, None),
    ],
)
def test_a_budget_that_the_files_cannot_fill_is_refused(
    words_seen: int, keys: dict[str, Any], expected: str | None, configuration: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.mkdir()
    (text / "a.txt").write_bytes(b"one two\n\n" * 1_000)
    edited(configuration, "config.yaml", data={"my_text": {"path": str(text)}})
    file = "experiments/my_text.yaml"
    edited(configuration, file, pretraining={"budget": {"words_seen": words_seen, **keys}})
    document = yaml.safe_load((configuration / file).read_text(encoding="utf-8"))
    document["pretraining"].pop("steps", None)
    (configuration / file).write_text(yaml.safe_dump(document), encoding="utf-8")
    lines = [line for line in check(configuration) if "words_seen" in line]
    assert bool(lines) == (expected is not None) and all(expected in line for line in lines)


def test_a_folder_without_files_is_missing_data(configuration: Path, tmp_path: Path) -> None:
    (tmp_path / "empty/inside").mkdir(parents=True)
    (tmp_path / "empty/.git").mkdir()
    for hidden in ("inside/.hidden", ".git/config"):
        (tmp_path / "empty" / hidden).write_text("x", encoding="utf-8")
    edited(configuration, "config.yaml", data={"my_text": {"path": str(tmp_path / "empty")}})
    (line,) = missing_sources(Project(configuration), ["my_text"])
    assert f"source 'my_text' lies at {tmp_path / 'empty'}, a folder without files: set data.my_text.path" in line
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.txt").write_text("x", encoding="utf-8")
    (tmp_path / "empty/linked").symlink_to(tmp_path / "elsewhere")
    linked = {"my_text": {"path": str(tmp_path / "empty"), "follow_links": True}}
    edited(configuration, "config.yaml", data=linked)
    assert missing_sources(Project(configuration), ["my_text"]) == []
    (tmp_path / "empty/linked").unlink()
    (tmp_path / "empty/inside/a.txt").write_text("x", encoding="utf-8")
    assert missing_sources(Project(configuration), ["my_text"]) == []


def test_a_folder_that_is_no_model_and_a_missing_package_are_told_before_anything_runs(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    edited(configuration, "config.yaml", data={"bert_base_cased": {"path": str(model)}}, compute={"sinks": ["wandb"]})
    edited(configuration, "experiments/demo.yaml", baselines=["bert_base_cased"])
    monkeypatch.setattr("hatchery.workflow.plan_checks.find_spec", lambda name: None)
    for name, lacks in (
        ("readme.txt", "config.json"),
        ("config.json", "weights (*.safetensors or *.bin)"),
        ("model.safetensors", "a tokenizer (tokenizer.json, vocab.* or *.model)"),
        ("vocab.txt", None),
    ):
        (model / name).write_text("{}", encoding="utf-8")
        lines = check(configuration, "demo")
        assert [line for line in lines if "has no" in line] == (
            []
            if lacks is None
            else [
                f"{configuration}/baselines/bert_base_cased.yaml: data.bert_base_cased.path: {model} has no {lacks}, "
                "expected the folder of a model with all of its files"
            ]
        )
        assert [line for line in lines if "compute.sinks: 'wandb' needs the package wandb" in line]
    (model / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert any("merge it into its model" in line for line in check(configuration, "demo"))
    # Jobs with conda have packages that nobody here knows.
    problems = Problems()
    collect_problems(Project(configuration), [("experiment", "demo")], problems, is_own_environment=False)
    assert not any("wandb" in line for line in problems.lines)
    monkeypatch.setattr("hatchery.workflow.plan_checks.find_spec", lambda name: name)
    assert not any("wandb" in line for line in check(configuration, "demo"))
