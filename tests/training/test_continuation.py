"""Starts from another model: inherited state, exact continuation, and starts that are refused before training."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.export.published_checkpoint import import_checkpoint
from hatchery.modeling.ltg.published_names import to_published
from hatchery.modeling.relative_positions import RelativePositions

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
# A learning rate that does not depend on the number of steps, so a longer run has the first steps of a shorter one.
CONSTANT = {"name": "constant", "warmup_fraction": 1.0, "final_fraction": 0.1, "warmup_steps_limit": 4}
PLAIN: dict[str, Any] = {"long": None, "schedule": CONSTANT, "evaluation_interval_steps": 5}


@pytest.fixture(scope="module")
def first(make_command: Make) -> Any:
    """A finished run of 10 steps whose optimiser was kept."""
    command = make_command(steps=10, keep_training_state=True, **PLAIN)
    command.finish()
    return command


def refusal(command: Any) -> str:
    (line,) = command.fail().strip().splitlines()
    assert not command.run_folder
    return str(line)


def test_going_on_with_the_optimiser_ends_with_the_bits_of_a_run_that_was_planned_so_long(
    make_command: Make, first: Any
) -> None:
    whole = make_command(steps=16, **PLAIN)
    whole.finish()
    second = make_command(steps=16, initialise_from={"take": "training"}, initial=first.output, **PLAIN)
    second.finish()
    for name in ("model.safetensors", "metrics.jsonl"):
        assert (second.output.parent / name).read_bytes() == (whole.output.parent / name).read_bytes(), name
    measures = read_manifest(second.output).measures
    assert measures["steps"] == 16
    assert measures["initial_model"] == {
        "take": "training",
        "earlier_steps": 10,
        "earlier_tokens": read_manifest(first.output).measures["tokens"],
    }


def test_weights_alone_start_a_new_run_from_step_0(make_command: Make, first: Any) -> None:
    untouched = make_command(steps=0, initialise_from={"take": "weights"}, initial=first.output, **PLAIN)
    untouched.finish()
    assert read_manifest(untouched.output).inputs["initial_model"] == read_manifest(first.output).digest
    assert all(torch.equal(tensor, first.weights()[name]) for name, tensor in untouched.weights().items())
    command = make_command(steps=4, initialise_from={"take": "weights"}, initial=first.output, seed=7, **PLAIN)
    command.finish()
    rows = command.rows()
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert rows[0]["loss"] < first.rows()[0]["loss"] - 0.1
    measures = read_manifest(command.output).measures
    assert measures["steps"] == 4 and measures["initial_model"]["earlier_steps"] == 10


def test_a_milestone_is_the_model_of_a_run_that_ended_there(make_command: Make) -> None:
    """The manifest lists the milestone as an output, so a run of 0 steps can load and evaluate it."""
    whole = make_command(steps=10, milestones=[5], **PLAIN)
    whole.finish()
    manifest = read_manifest(whole.output)
    manifest.verify()
    kept = whole.output.parent / "milestones/step_00000005/model.safetensors"
    assert kept in {file.path for file in manifest.outputs}
    shorter = make_command(steps=5, **PLAIN)
    shorter.finish()
    taken = make_command(steps=0, initialise_from={"step": 5}, initial=whole.output, **PLAIN)
    taken.finish()
    assert all(torch.equal(tensor, taken.weights()[name]) for name, tensor in shorter.weights().items())
    assert any(not torch.equal(tensor, taken.weights()[name]) for name, tensor in whole.weights().items())
    tokens = read_manifest(shorter.output).measures["tokens"]
    found = read_manifest(taken.output).measures["initial_model"]
    assert found == {"take": "weights", "earlier_steps": 5, "earlier_tokens": tokens}
    text = refusal(make_command(steps=0, initialise_from={"step": 8}, initial=whole.output, **PLAIN))
    assert (
        "initialise_from.step: got 8" in text
        and "trained for 10 steps, has no milestone of this step; expected the step of a milestone" in text
    )


def test_steps_before_add_up_along_a_chain(make_command: Make, first: Any) -> None:
    second = make_command(steps=2, initialise_from={}, initial=first.output, **PLAIN)
    second.finish()
    third = make_command(steps=2, initialise_from={}, initial=second.output, **PLAIN)
    third.finish()
    assert read_manifest(third.output).measures["initial_model"]["earlier_steps"] == 12


def test_an_imported_model_is_a_start_too_and_what_it_saw_is_not_known(make_command: Make, tmp_path: Path) -> None:
    plain = make_command(steps=0, model__layer_weighting="none", **PLAIN)
    plain.finish()
    # Use the tensor names of the authors' code.
    published = to_published(plain.weights(), RelativePositions(8, 64).rows(64))
    torch.save(published, tmp_path / "published.bin")
    output = tmp_path / "imported" / "manifest.json"
    tokenizer = plain.output.parent / "tokenizer.json"
    config = plain.output.parent / "config.json"
    import_checkpoint(tmp_path / "published.bin", config, tokenizer, output, position_head_layout="babylm")
    command = make_command(steps=0, model__layer_weighting="none", initialise_from={}, initial=output, seed=3, **PLAIN)
    command.finish()
    assert all(torch.equal(tensor, plain.weights()[name]) for name, tensor in command.weights().items())
    assert read_manifest(command.output).measures["initial_model"] == {
        "take": "weights",
        "earlier_steps": None,
        "earlier_tokens": None,
    }


def test_another_architecture_is_refused_with_the_key_that_differs(make_command: Make, first: Any) -> None:
    command = make_command(initialise_from={}, initial=first.output, model__hidden_size=64, **PLAIN)
    assert (
        "the initial model has hidden_size 32, this run has hidden_size 64; training continues only with equal "
        "configurations" in refusal(command)
    )


def test_another_vocabulary_is_refused_with_the_token_that_differs(
    make_command: Make, first: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    shutil.copytree(first.output.parent, folder)
    document = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = document["model"]["vocab"]
    last = max(vocabulary, key=vocabulary.get)
    vocabulary["zzzz"] = vocabulary.pop(last)
    (folder / "tokenizer.json").write_text(json.dumps(document))
    with stage_run(folder / "manifest.json", read_manifest(first.output).settings) as run:
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            run.add_output(folder / name)
    text = refusal(make_command(initialise_from={}, initial=folder / "manifest.json", **PLAIN))
    assert "the initial model has another vocabulary than" in text and "use the tokenizer of the initial model" in text


def test_a_model_whose_optimiser_was_not_kept_says_what_to_do(make_command: Make) -> None:
    plain = make_command(steps=2, **PLAIN)
    plain.finish()
    text = refusal(make_command(initialise_from={"take": "training"}, initial=plain.output, **PLAIN))
    assert "the optimiser of this model was not kept; set `keep_training_state: true`" in text


def test_as_many_steps_as_are_done_are_refused(make_command: Make, first: Any) -> None:
    text = refusal(make_command(steps=10, initialise_from={"take": "training"}, initial=first.output, **PLAIN))
    assert (
        "pretraining.steps: got 10, expected more than 10, the number of finished steps in the training state" in text
    )


def test_a_run_that_goes_on_and_is_killed_ends_with_the_same_bits(make_command: Make, first: Any) -> None:
    changes = {"steps": 60, "initialise_from": {"take": "training"}, "initial": first.output, **PLAIN}
    whole = make_command(**changes)
    whole.finish()
    command = make_command(**changes)
    command.kill_after(27)
    assert "continues after step" in command.finish()
    assert command.digests() == whole.digests()
