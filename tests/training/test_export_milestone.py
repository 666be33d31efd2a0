"""The manifest of an exported milestone lists the milestone's files and repeats the training's settings and inputs."""

from pathlib import Path

import pytest

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.errors import ManifestError
from hatchery.runner import run_stage
from hatchery.training.milestones import milestone_place, step_name
from hatchery.training.stages.export_milestone import export_milestone


def training(folder: Path, *steps: int) -> Path:
    """Write the manifest of a training of 9 steps that kept milestones after `steps`."""
    for name in ("tokens", "tokenizer"):
        write_text(folder / f"{name}.json", name)
    settings = {"stage": "pretrain", "stage_version": 1, "objective": {"task": "causal"}}
    inputs = {name: folder / f"{name}.json" for name in ("tokens", "tokenizer")}
    with stage_run(folder / "manifest.json", settings, inputs) as run:
        run.measures |= {"steps": 9, "parameters": 5}
        for place in (".", *map(milestone_place, map(step_name, steps))):
            (folder / place).mkdir(parents=True, exist_ok=True)
            write_text(run.add_output(folder / place / "model.safetensors"), f"weights of {place}")
    return folder / "manifest.json"


def exported(pretraining: Path, step: int) -> Path:
    output = pretraining.parent / milestone_place(step_name(step)) / "manifest.json"
    settings = {"stage": "export_milestone", "stage_version": 1, "model": "tiny", "milestone": output.parent.name}
    read = {name: pretraining.with_name(f"{name}.json") for name in ("tokens", "tokenizer")}
    run_stage(export_milestone, settings, output, pretraining=pretraining, **read)
    return output


def test_it_has_the_settings_and_inputs_of_the_training_and_its_own_files_and_steps(tmp_path: Path) -> None:
    pretraining = training(tmp_path, 3, 6)
    whole, made = read_manifest(pretraining), read_manifest(exported(pretraining, 6))
    assert [path.relative_to(tmp_path).as_posix() for path in made.files()] == [
        f"{milestone_place(step_name(6))}/model.safetensors"
    ]
    assert made.settings == {**whole.settings, "milestone": 6}
    assert made.inputs == {**whole.inputs, "pretraining": whole.digest}
    assert made.measures == {"steps": 6, "parameters": 5}
    # The training's own manifest is unchanged.
    assert read_manifest(pretraining).digest == whole.digest


def test_a_word_milestone_has_its_own_step_and_words_and_the_rule_that_counts_them(tmp_path: Path) -> None:
    pretraining = training(tmp_path)
    with stage_run(pretraining, read_manifest(pretraining).settings) as run:
        run.measures |= {"steps": 9, "parameters": 5, "words": 3_100, "words_seen": 8_100, "word_count": "adjusted"}
        run.measures["marks"] = {"chck_1K": {"step": 4, "words": 1_010}, "chck_2K": {"step": 7, "words": 2_020}}
        for name in run.measures["marks"]:
            write_text(run.add_output(tmp_path / milestone_place(name) / "model.safetensors"), name)
    output = tmp_path / milestone_place("chck_2K") / "manifest.json"
    settings = {"stage": "export_milestone", "stage_version": 1, "model": "tiny", "milestone": "chck_2K"}
    read = {name: tmp_path / f"{name}.json" for name in ("tokens", "tokenizer")}
    run_stage(export_milestone, settings, output, pretraining=pretraining, **read)
    made = read_manifest(output)
    assert made.settings["milestone"] == "chck_2K"
    assert made.measures == {"steps": 7, "parameters": 5, "words_seen": 2_020, "word_count": "adjusted"}


def test_a_milestone_that_the_training_did_not_reach_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="there is no model step_00000006; the run was trained for 9 steps"):
        exported(training(tmp_path, 3), 6)


def test_an_altered_model_is_refused(tmp_path: Path) -> None:
    pretraining = training(tmp_path, 3)
    write_text(tmp_path / milestone_place(step_name(3)) / "model.safetensors", "other weights")
    with pytest.raises(ManifestError, match=r"step_00000003/model\.safetensors: "):
        exported(pretraining, 3)
