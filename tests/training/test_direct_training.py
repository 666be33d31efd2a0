"""`hatchery.train` gives the workflow's losses without an experiment, reads any texts, and resumes after a stop."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from direct_cases import MODEL, SETTINGS, TOKENIZER, Small, Stops, texts

import hatchery
from hatchery.artifacts.manifests import read_manifest, volatile_facts
from hatchery.errors import ConfigError, CorpusError
from hatchery.evaluation.direct.checkpoints import checkpoints_of


def test_texts_become_a_model_that_can_be_asked_and_a_curve(train: Any, tmp_path: Path) -> None:
    threads, debug, state = torch.get_num_threads(), torch.get_deterministic_debug_mode(), torch.random.get_rng_state()
    made = train(title for title in texts())
    assert made.folder == tmp_path / "made"
    assert made.curve["step"].to_list() == list(range(1, 13))
    assert made.curve.filter(pl.col("development_loss").is_not_null())["step"].to_list() == [4, 8, 12]
    assert made.model.fill("the dog ____ a child .")["rank"].to_list() == [1, 2, 3, 4, 5]
    manifest = read_manifest(made.folder / "manifest.json")
    assert manifest.stage == "pretrain" and manifest.measures["steps"] == 12
    assert (torch.get_num_threads(), torch.get_deterministic_debug_mode()) == (threads, debug)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_file_a_folder_and_a_corpus_of_ours_are_texts_too(train: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with (tmp_path / "folder" / "mine.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts())
    losses = [train(given, str(number), steps=4).curve["loss"].to_list() for number, given in enumerate((
        None, tmp_path / "folder", str(tmp_path / "folder" / "mine.jsonl"), tmp_path / "0" / "training" / "corpus"
    ))]  # fmt: skip
    assert losses[0] == losses[1] == losses[2] == losses[3]


def test_losses_and_weights_are_those_of_the_workflow(
    train: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare with an experiment whose jobs run as `hatchery.job` returns them, in a folder with a configuration."""
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    Path("texts/mine.txt").write_text("\n\n".join(texts()), encoding="utf-8")
    blocks = {
        "config": {"experiments": ["mine"], "data": {"mine": {"path": "texts"}}},
        "corpora/mine": {"languages": [], "sources": [{"name": "texts", "data": "mine", "reader": "plain_text"}]},
        "tokenizers/mine": {"corpus": "mine", **TOKENIZER},
        "models/mine": MODEL,
        "experiments/mine": {
            "corpus": "mine",
            "tokenizer": "mine",
            "pretraining": {**SETTINGS, "early_stopping": {"patience_evaluations": 2}},
            "runs": {"run": {"model": "mine", "seeds": [42]}},
        },
    }
    for name, block in blocks.items():
        path = Path("config") / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"description": "A test.", **block} if "/" in name else block))
    jobs = {
        "resources/sources": ("register_source", {"source": "mine"}),
        "results/corpora/mine": ("convert_corpus", {"corpus": "mine"}),
        "results/tokenizers/mine": ("train_tokenizer", {"tokenizer": "mine"}),
        "results/tokens/mine/mine": ("encode_corpus", {"corpus": "mine", "tokenizer": "mine"}),
        "results/model": ("pretrain", {"experiment": "mine", "run": "run-s42"}),
    }
    for folder, (stage, names) in jobs.items():
        made = hatchery.job(stage, **names).run(into=folder)
    workflow = read_manifest(made)
    corpus = {"languages": []}
    ours = train("texts", corpus=corpus, early_stopping={"patience_evaluations": 2}).folder
    for name in ("metrics.jsonl", "model.safetensors", "tokenizer.json", "config.json"):
        assert workflow.file(name).read_bytes() == (ours / name).read_bytes(), name
    assert workflow.settings == read_manifest(ours / "manifest.json").settings


def test_the_same_call_takes_what_is_finished_and_other_settings_train_anew(train: Any) -> None:
    first = train()
    corpus = (first.folder / "training/corpus/manifest.json").stat().st_mtime_ns
    weights = (first.folder / "model.safetensors").stat().st_mtime_ns
    again = train()
    assert (again.folder / "model.safetensors").stat().st_mtime_ns == weights
    assert train(steps=16).curve["step"].to_list()[-1] == 16
    assert (first.folder / "training/corpus/manifest.json").stat().st_mtime_ns == corpus


def test_ctrl_c_saves_a_checkpoint_from_which_the_same_call_goes_on(train: Any, capfd: Any) -> None:
    with pytest.raises(KeyboardInterrupt, match="stopped by SIGINT after step 7 of 12; a checkpoint is saved"):
        train(watchers=[Stops(7)])
    found = train()
    assert "continues after step 7" in capfd.readouterr().err
    assert volatile_facts(found.folder / "manifest.json")["resumed_from_step"] == 7
    assert found.curve.equals(train(into="whole").curve)


@pytest.mark.parametrize("kept", ["marks", "milestones"])
def test_the_age_of_acquisition_is_measured_of_what_a_training_kept(kept: str, train: Any, tmp_path: Path) -> None:
    data = tmp_path / "aoa"
    data.mkdir()
    (data / "cdi_childes.json").write_text('{"dog": [{"context": "the child sees a"}]}', encoding="utf-8")
    (data / "cdi_human.csv").write_text("word,16,20,24\ndog,0.1,0.5,0.9\n", encoding="utf-8")
    settings: dict[str, Any] = {"objective": {"task": "hybrid"}, "milestones": [4, 8]}
    if kept == "marks":
        settings = {"objective": {"task": "hybrid"}, "budget": {"words_seen": 3000}}
        settings["checkpoints_at"] = [900, 1000, 3000]
    made = train(**settings)
    checkpoints = checkpoints_of(made, None, None)
    # In the order of names, `chck_900` is the last checkpoint.
    expected = {"chck_900": 900, "chck_1K": 1000, "chck_3K": 3000}
    if kept == "milestones":
        rows = {row["step"]: row["words"] for row in made.curve.iter_rows(named=True)}
        expected = {f"step_0000000{step}": rows[step] for step in (4, 8)}
    assert list(checkpoints.words.items()) == list(expected.items())
    found = hatchery.evaluate(made, "acquisition", data)
    surprisals = {row["step"]: row for row in json.loads(found.texts["surprisal.json"])["results"]}
    assert {name: row["word_count"] for name, row in surprisals.items()} == expected
    for name, opened in checkpoints:
        # A hybrid model predicts a masked token at the position before it; the word has one token.
        tokenizer = opened.tokenizer
        ids = tokenizer.encode_sentences(["the child sees a dog"])[0]
        hidden = torch.tensor([[tokenizer.cls_id, *ids[:-1], tokenizer.mask_id, *tokenizer.end_ids]])
        with torch.no_grad():
            states = opened.network.eval().encoder.hidden_at(hidden, None, torch.tensor([len(ids) - 1]), causal=False)
            logits = opened.network.logits_at(states)[0]
        assert len(ids) == 5 and tokenizer.encode_sentences(["dog"])[0] == ids[-1:]
        assert surprisals[name]["surprisal"] == pytest.approx(-logits.log_softmax(-1)[ids[-1]].item(), abs=1e-4)


def test_one_short_text_trains_without_development_text_and_says_so(train: Any, tmp_path: Path, capfd: Any) -> None:
    short = "the dog sees a child .\n\n" * 3
    (tmp_path / "short.txt").write_text(short, encoding="utf-8")
    for given in ([short], tmp_path / "short.txt"):
        made = train(given)
        assert made.curve.height == 12 and "development_loss" not in made.curve.columns
        assert "so no text is held out for a development loss" in capfd.readouterr().err
    # The training is finished, so the same call does not train again.
    weights = (made.folder / "model.safetensors").stat().st_mtime_ns
    assert train(tmp_path / "short.txt").folder.joinpath("model.safetensors").stat().st_mtime_ns == weights
    with pytest.raises(CorpusError, match="only one document, so no document can be held out"):
        train([short], corpus={"split": {"development_fraction": 0.1}})
    with pytest.raises(ConfigError, match=r"early_stopping: expected a development split"):
        train([short], early_stopping={"patience_evaluations": 2})


def test_one_long_text_is_divided_as_a_file_is(train: Any, tmp_path: Path) -> None:
    whole = "\n\n".join(texts())
    (tmp_path / "whole.txt").write_text(whole, encoding="utf-8")
    made = train([whole])
    assert made.curve["loss"].to_list() == train(tmp_path / "whole.txt", into="file").curve["loss"].to_list()
    corpus = read_manifest(made.folder / "training/corpus/manifest.json")
    documents = {split: sum(pl.read_parquet(path).height for path in corpus.files(".parquet", split)) for split in (
        "dev", "train",
    )}  # fmt: skip
    assert documents["dev"] == 1 and documents["train"] > 3
    assert "development_loss" in made.curve.columns


def test_what_train_returns_is_a_model_of_the_other_functions(train: Any, tmp_path: Path) -> None:
    pair = [("the dog sees a child .", "the dog a child sees .")]
    made = train()
    expected = hatchery.evaluate(made.folder, pair).tables["scores.parquet"]
    assert hatchery.evaluate(made, pair).tables["scores.parquet"].equals(expected)
    assert hatchery.surprisals(made, pair[0]).equals(hatchery.surprisals(made.folder, pair[0]))
    assert hatchery.model(made).scores(pair[0])["score"].to_list() == [
        *expected.select("score_good", "score_bad").row(0)
    ]
    assert tmp_path / "exported/config.json" in hatchery.export(made, tmp_path / "exported")
    module = train(model=Small, into="module")
    expected = hatchery.evaluate(module.module, pair, tokenizer=module.folder).tables["scores.parquet"]
    assert hatchery.evaluate(module, pair).tables["scores.parquet"].equals(expected)
    assert hatchery.surprisals(module, pair[0]).height == 12


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        (["one", None, "three"], {}, "texts: text 2: got None of type NoneType, expected text"),
        ([], {}, "texts: got no text"),
        (["one", "\ud800"], {}, "texts: text 2 contains a lone surrogate"),
        ("no/such/file.txt", {}, "texts: got 'no/such/file.txt', expected a file or folder; to pass a text"),
        (None, {"stepz": 3}, "stepz.*did you mean.*steps"),
        (None, {"model": "ltg_mimi"}, "model: got 'ltg_mimi'; did you mean 'ltg_mini'"),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest_match(train: Any, given: Any, changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        train(given, **changes)
    assert "\n" not in str(caught.value)


def test_a_folder_with_other_files_is_left_alone(train: Any, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "letter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="contains other files"):
        train()
