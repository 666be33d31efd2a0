"""Words and tokens of earlier trainings, counted by hand over chains of two and three trainings."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hatchery.artifacts.manifests import stage_run
from hatchery.training.continuation import initial_measures, words_before


def settings(take: str, step: int | None = None) -> Any:
    return SimpleNamespace(initialise_from=SimpleNamespace(take=take, step=step))


def made(folder: Path, **measures: Any) -> Path:
    """Write a training's manifest with 20 steps, 900 tokens and 300 words, and metrics after steps 5 and 6."""
    with stage_run(folder / "manifest.json", {}) as run:
        run.measures.update(steps=20, tokens=900, words=300, **measures)
        rows = [{"step": 5, "tokens": 200, "words": 70}, {"step": 6, "tokens": 240, "words": 80}]
        (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        run.add_output(folder / "metrics.jsonl")
    return folder / "manifest.json"


BEFORE = {"earlier_steps": 10, "earlier_tokens": 400}
LEFT_OUT = {"left_out_steps": 3, "left_out_tokens": 70}


@pytest.mark.parametrize(
    ("before", "step", "steps", "tokens"),
    [
        ({}, None, 20, 900),
        ({"take": "weights", **BEFORE}, None, 20 + 10, 900 + 400),
        # The 20 steps of a continued training include the 10 earlier steps, but not the steps before those 10.
        ({"take": "training", **BEFORE}, None, 20, 900),
        ({"take": "training", **BEFORE, **LEFT_OUT}, None, 20 + 3, 900 + 70),
        ({"take": "weights", **BEFORE}, 5, 5 + 10, 200 + 400),
        ({"take": "training", **BEFORE, **LEFT_OUT}, 5, 5 + 3, 200 + 70),
    ],
)
def test_steps_and_tokens_of_all_earlier_trainings_add_up_once(
    tmp_path: Path, before: dict[str, Any], step: int | None, steps: int, tokens: int
) -> None:
    initial = made(tmp_path, **({"initial_model": before} if before else {}))
    found = initial_measures(settings("weights", step), initial)
    assert found == {"take": "weights", "earlier_steps": steps, "earlier_tokens": tokens}


@pytest.mark.parametrize(
    ("take", "step", "seen", "words"),
    [
        ("weights", None, None, 300),
        # All trainings together read 500 words, this training 300 of them.
        ("weights", None, 500, 500),
        ("training", None, 500, 200),
        ("training", None, None, 0),
        ("weights", 5, 500, 200 + 70),
        ("weights", 7, 500, None),
    ],
)
def test_words_before_a_training_are_those_that_its_own_count_leaves_out(
    tmp_path: Path, take: str, step: int | None, seen: int | None, words: int | None
) -> None:
    initial = made(tmp_path, **({} if seen is None else {"words_seen": seen}))
    assert words_before(settings(take, step), initial) == words
    assert words_before(settings(take, step), None) == 0
