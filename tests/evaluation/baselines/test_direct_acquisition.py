"""Age of acquisition in memory, against the stage's bytes, the numbers of BabyLM's pipeline, and sums by hand."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from baseline_cases import imported
from tokenizers import Tokenizer as Backend
from torch import Tensor, nn

import hatchery
from hatchery.artifacts.manifests import MANIFEST, read_manifest, stage_run
from hatchery.evaluation.direct.checkpoints import checkpoints_of
from hatchery.evaluation.stages.measure_acquisition import measure_acquisition
from hatchery.evaluation.surprisal import measure_acquisition as stage_module
from hatchery.evaluation.surprisal.age_of_acquisition import Acquisition
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage
from hatchery.tokenization.tokenizer_file import Tokenizer
from hatchery.training.milestones import milestone_place
from hatchery.training.telemetry import METRICS_FILE

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "babylm_2026"
NOTHING = Acquisition(0.0, None, {})
WORDS = {"chck_1M": 10**6, "chck_5M": 5 * 10**6, "chck_100M": 10**8}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Write words in contexts and children's productions in the format of BabyLM's files."""
    folder = tmp_path / "aoa"
    folder.mkdir()
    contexts = {"dogs": [{"context": "The old"}, {"context": ""}], "cat": [{"context": "She likes a"}]}
    (folder / "cdi_childes.json").write_text(json.dumps(contexts), encoding="utf-8")
    months = ",".join(f"{1 / (1 + math.exp(-(month - 20) / 2)):.3f}" for month in range(16, 25))
    header = f"word,{','.join(map(str, range(16, 25)))}"
    (folder / "cdi_human.csv").write_text(f"{header}\ndogs,{months}\ncat,{months}\n", encoding="utf-8")
    return folder


def test_checkpoints_by_their_words_have_the_bytes_of_the_stage_and_the_numbers_of_the_pipeline(tmp_path: Path) -> None:
    folders = {
        name: shutil.copytree(GOLDEN / "models/causal_bos_aoa" / name, tmp_path / name / "model") for name in WORDS
    }
    checkpoints = {name: imported(folder, "causal", folder.parent / "imported") for name, folder in folders.items()}
    register_source("data", GOLDEN / "data/full/aoa", tmp_path / "data.json")
    settings = {"stage": "measure_acquisition", "stage_version": 1, "words": WORDS}
    settings |= {"contexts": "*cdi_childes.json", "children": "*cdi_human.csv"}
    given = {"model": checkpoints["chck_100M"], "checkpoints": checkpoints, "source": tmp_path / "data.json"}
    run_stage(measure_acquisition, settings, tmp_path / "out" / MANIFEST, runtime={"device": "cpu"}, **given)
    stage = read_manifest(tmp_path / "out" / MANIFEST)
    # Checkpoints in any order: results of Hatchery, and folders of the library transformers.
    models: dict[int, Any] = {WORDS["chck_100M"]: checkpoints["chck_100M"], 5 * 10**6: folders["chck_5M"]}
    models[10**6] = checkpoints["chck_1M"].parent
    for place in (GOLDEN / "data", GOLDEN / "data/full/aoa"):
        found = hatchery.evaluate(models, "acquisition", place, device="cpu")
        assert json.loads(json.dumps(found.facts)) == stage.measures
        assert found.texts == {name: stage.file(name).read_text() for name in ("surprisal.json", "aoa_score.json")}
        ages = np.loadtxt(tmp_path / "out/ages.csv", delimiter=",", skiprows=1, usecols=(1, 2))
        assert found.tables["ages.csv"].select("child_months", "model_log10_words").to_numpy() == pytest.approx(ages)
    row = found.summary.row(0, named=True)
    assert (row["metric"], row["items"]) == ("correlation_percent", len(ages)) and found.model == "3 checkpoints"
    assert row["value"] in (0, pytest.approx(100 * np.corrcoef(ages.T)[0, 1]))
    theirs = json.loads((GOLDEN / "results/causal_bos_aoa/main/zero_shot/causal/AoA_word/surprisal.json").read_text())
    for one, other in zip(json.loads(found.texts["surprisal.json"])["results"], theirs["results"], strict=True):
        assert {**one, "surprisal": 0} == {**other, "surprisal": 0}
        assert one["surprisal"] == pytest.approx(other["surprisal"], abs=1e-5, rel=1e-6)


class Unigram(nn.Module):
    """A module that predicts one distribution over tokens at every position."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        self.logits = torch.randn(size, generator=torch.Generator().manual_seed(seed))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.logits.expand(*input_ids.shape, -1)


def test_modules_of_a_user_have_the_surprisal_of_the_word_alone(tokenizer: Tokenizer, data: Path) -> None:
    models = {1000 * words: Unigram(tokenizer.vocabulary_size, words) for words in (1, 10, 100)}
    found = hatchery.evaluate(models, "acquisition", data, tokenizer=tokenizer, architecture="causal")
    rows = json.loads(found.texts["surprisal.json"])["results"]
    assert [row["step"] for row in rows] == [name for name in ("chck_1K", "chck_10K", "chck_100K") for _ in range(3)]
    for row in rows:
        ids = tokenizer.backend.encode(row["target_word"], add_special_tokens=False).ids
        logits = models[row["word_count"]].logits
        expected = sum((logits.exp().sum().log() - logits[index]).item() for index in ids)
        assert row["surprisal"] == pytest.approx(expected, abs=1e-4)
    # Two words are too few for a correlation.
    assert found.summary["value"].to_list() == [0.0] and found.facts["asked_words"] == 2


def test_a_blind_guess_is_among_the_entries_of_the_vocabulary_without_added_tokens(
    tokenizer: Tokenizer, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Backend.from_str(tokenizer.backend.to_str())
    entries = len(json.loads(backend.to_str())["model"]["vocab"])
    backend.add_tokens(["[ADDED]", "[MORE]"])
    asked: list[tuple[int, str]] = []
    monkeypatch.setattr(
        stage_module, "acquisition", lambda _, learnt, size, rules: asked.append((size, rules)) or NOTHING
    )
    longer = Tokenizer(backend, tokenizer.special, tokenizer.word_mark)
    models = {words: Unigram(longer.vocabulary_size, words) for words in (1, 10)}
    for edition in (2025, 2026):
        hatchery.evaluate(models, "acquisition", data, tokenizer=longer, architecture="causal", edition=edition)
    assert asked == [(entries, "2025"), (entries, "2026")]


def stored(folder: Path, measures: dict[str, Any]) -> Path:
    """Write a training with four checkpoints, and with metrics in which words were counted from step 4 on."""
    with stage_run(folder / MANIFEST, {"stage": "pretrain"}) as run:
        for name in ("step_00000002", "step_00000004", "step_00000008", "chck_900"):
            path = folder / milestone_place(name) / "weights"
            path.parent.mkdir(parents=True)
            path.touch()
            run.add_output(path)
        run.measures.update(measures)
    rows = [{"step": step, "words": 10 * step} for step in (8, 6, 4)] + [{"step": 2}]
    (folder / METRICS_FILE).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder


def test_checkpoints_have_the_words_of_their_names_or_of_the_metrics_of_a_training_from_its_start(
    tmp_path: Path,
) -> None:
    by_step = checkpoints_of(stored(tmp_path / "steps", {}), None, None).words
    assert list(by_step.items()) == [("step_00000004", 40), ("step_00000008", 80)]
    marks = {"marks": {"chck_900": {}, "chck_1K": {}}}
    for name, measures in (("marks", marks), ("continued", {**marks, "initial_model": {}})):
        assert checkpoints_of(stored(tmp_path / name, measures), None, None).words == {"chck_900": 900}
    with pytest.raises(hatchery.HatcheryError, match="no checkpoints with a recorded number of words"):
        checkpoints_of(stored(tmp_path / "later", {"initial_model": {}}), None, None)


def test_what_is_no_training_is_one_line(model_manifest: Path, data: Path, tmp_path: Path) -> None:
    asked: tuple[tuple[Any, str], ...] = (
        (
            tmp_path / "no",
            "model: got .*no', which contains no manifest.json, expected a mapping whose keys are numbers",
        ),
        (
            model_manifest.parent,
            "this training stored no checkpoints with a recorded number of words, expected a mapping",
        ),
        ({}, "model: got an empty mapping"),
        ({"chck_1M": "a"}, "model: got the key 'chck_1M', expected the number of words seen"),
        (nn.Linear(1, 1), "model: got Linear, expected a mapping"),
        ({1: "./no"}, "no: this folder contains no model"),
    )
    for model, message in asked:
        with pytest.raises(hatchery.HatcheryError, match=message) as raised:
            hatchery.evaluate(model, "acquisition", data)
        assert "\n" not in str(raised.value)
    with pytest.raises(
        hatchery.HatcheryError, match="model: got dict, expected a folder, a name on the hub or a torch"
    ):
        hatchery.evaluate({1: model_manifest}, [("a", "b")])
    (data / "cdi_human.csv").unlink()
    with pytest.raises(hatchery.HatcheryError, match=r"expected one file that matches '\*cdi_human.csv', found none"):
        hatchery.evaluate({1: model_manifest}, "acquisition", data)
