"""The loss of the unigram distribution, beside which that of a model is shown."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perplexity_cases import OBJECTIVE, ModelMaker, Text, documents, examples_of, measure

from hatchery.analysis.collect_measurements import UnigramLosses
from hatchery.analysis.measurements import perplexity_measurements
from hatchery.artifacts.manifests import read_manifest
from hatchery.evaluation.trained_objective import objective_of_model
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.tokenization.token_reader import TokenShards

CAUSAL = {"task": "causal", "segments": "packed", "reset_attention": True}


def blind_guesses(text: Text, model: Path, folder: Path, of: Path | None = None) -> dict[tuple[str, str], float | None]:
    measure(model, text, folder)
    made = read_manifest(folder / "manifest.json")
    loss = partial(UnigramLosses(read_manifest(of or text.tokens)).loss, made, objective_of_model(read_manifest(model)))
    found = perplexity_measurements({"model": "m"}, made, loss)
    return {(row["task"], row["metric"]): row["blind_guess"] for row in found}


def mean_loss_of_unigrams(text: Text, model: Path, rounds: int, causal: bool) -> float:
    """Over the labels that the model is asked for, drawn so often, from ids that are counted here."""
    size = int(read_manifest(text.tokens).measures["vocabulary_size"])
    counts = np.ones(size)
    shards = TokenShards.open(text.tokens, "train")
    for document in shards:
        for token in document.ids.tolist():
            counts[token] += causal or token >= len(shards.special.order)
        if causal:
            counts[shards.special.ids[shards.special.sep]] += 1
    examples, _ = examples_of(text, model)
    batches = [examples.batch(seed, 0, np.arange(len(examples)))["labels"].numpy() for seed in range(rounds)]
    labels = np.concatenate([batch[batch != UNLABELLED] for batch in batches])
    return float(-np.log(counts / counts.sum())[labels].mean())


# In texts as short as these, masks choose some tokens more often than others: at least one of each sequence.
@pytest.mark.parametrize(("objective", "rounds", "tolerance"), [(CAUSAL, 1, 1e-9), (OBJECTIVE, 50, 0.05)])
def test_a_blind_guess_of_held_out_text_is_the_unigram_distribution_of_the_training_text(
    *, objective: dict[str, Any], rounds: int, tolerance: float, text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    model = make_model(objective=objective)
    found = blind_guesses(text, model, tmp_path / "measured")
    loss = found["dev", "loss_nats"]
    assert loss == pytest.approx(mean_loss_of_unigrams(text, model, rounds, objective is CAUSAL), abs=tolerance)
    assert found["dev", "perplexity"] == pytest.approx(math.exp(loss or 0.0))
    # Another split has other words.
    assert found["test", "loss_nats"] not in (None, loss)
    assert found["dev", "accuracy_percent"] is None


def test_of_text_that_a_model_was_not_trained_on_no_blind_guess_is_known(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    other = Text(tmp_path / "other", 300, {"train": documents(5), "dev": documents(3), "test": documents(2)})
    assert set(blind_guesses(text, make_model(), tmp_path / "measured", of=other.tokens).values()) == {None}
