"""Orders by a model's loss and by a table of words: difficulties by hand, every sequence once, inputs of the job."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import ConfigError
from hatchery.modeling.store import load_language_model
from hatchery.raw.registration import register_source
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.training.curriculum import Curriculum
from hatchery.training.measured_difficulty import ModelLoss, WordValues, words_of
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.causal import CausalSettings
from hatchery.training.settings import TrainingSettings
from hatchery.training.step_plan import StepPlan
from hatchery.typed import build

Train = Callable[..., Manifest]


def examples_of(tokens: Path, length: int = 24) -> Any:
    objective = objective_of(CausalSettings(segments="packed"))
    return objective.examples(TokenShards.open(tokens, "dev"), length)


def loss_by_hand(folder: Path, ids: list[int], labels: list[int]) -> float:
    """Mean negative log-probability of each label after its prefix."""
    network, losses = load_language_model(folder).eval(), []
    for place, label in enumerate(labels):
        if label >= 0:
            with torch.no_grad():
                states = network.encoder(torch.tensor([ids[: place + 1]]), causal=True)[-1][0, -1]
                losses.append(-float(network.logits_at(states).double().log_softmax(-1)[label]))
    return float(np.mean(losses))


def test_the_order_by_loss_is_that_of_losses_by_hand(token_data: Any, train_here: Train) -> None:
    small = train_here("small", steps=3, objective={"task": "causal", "segments": "packed"}, sequence_length=24)
    examples = examples_of(token_data.tokens)
    found = ModelLoss(small.folder)(examples)
    drawn = [(index, examples.example(0, 0, index)) for index in range(len(examples))]
    whole = [(index, one) for index, one in drawn if one.piece_lengths is None or len(one.piece_lengths) == 1]
    assert len(whole) > 1
    for index, example in (whole[0], whole[-1]):
        by_hand = loss_by_hand(small.folder, example.input_ids.tolist(), example.labels.tolist())
        assert found[index] == pytest.approx(by_hand, abs=2e-4)
    plan = StepPlan(
        build(
            TrainingSettings,
            {"steps": 2, "batch_size": len(examples), "sequence_length": 24, "order": {"by": "loss", "spread": 0.0}},
        )
    )
    assert plan.settings.order is not None
    order = Curriculum(plan.settings.order, plan, 5, lambda _: examples, ModelLoss(small.folder))
    (part,) = order(plan.at(1))
    assert part.indices.tolist() == np.argsort(found, kind="stable").tolist() and part.epoch == 1


def test_a_run_ordered_by_loss_names_its_model_and_differs_from_a_shuffled_run(train_here: Train) -> None:
    small = train_here("small", steps=2, seed=7)
    keys: dict[str, Any] = {"steps": 2, "order_model": small.path, "order": {"by": "loss"}}
    ordered, plain = train_here("ordered", **keys), train_here("plain", steps=2)
    assert ordered.inputs["order_model"] == small.digest
    weights = [made.file("model.safetensors").read_bytes() for made in (ordered, plain, train_here("again", **keys))]
    assert weights[0] != weights[1] and weights[0] == weights[2]
    with pytest.raises(ConfigError, match=r"order\.by: got 'length' with the input .*; by: loss requires this input"):
        train_here("unasked", steps=2, order_model=small.path, order={"by": "length"})


def test_the_order_by_words_has_the_mean_ages_of_the_words(token_data: Any, tmp_path: Path) -> None:
    examples = examples_of(token_data.tokens)
    tokenizer = load_tokenizer(token_data.tokenizer.parent / "tokenizer.json")
    texts = [
        " ".join(tokenizer.decode(part.tokens.tolist(), skip_special_tokens=True) for part in examples.texts(0, 0, i))
        for i in range(len(examples))
    ]
    # The two words of the first sequence that the fewest sequences contain: some sequences have neither.
    words = [set(re.findall(r"[a-z'’]+", text.lower())) for text in texts]
    rare = sorted(filter(str.isalpha, words[0]), key=lambda one: (sum(one in of for of in words), one))
    word, other = rare[:2]
    (tmp_path / "ages").mkdir()
    table = tmp_path / "ages" / "ages.csv"
    table.write_text(f"Word,age\n{word.upper()},3.5\n{other},8\nnowhere,1\n{word},99\nunknown,\n", encoding="utf-8")
    register_source("ages", tmp_path / "ages", tmp_path / "ages.json")
    of = WordValues(tmp_path / "ages.json", token_data.tokenizer.parent / "tokenizer.json", "Word", "age")
    found = of(examples)
    ages = {word: 3.5, other: 8.0}
    known = [[ages[one] for one in re.findall(r"[a-z'’]+", text.lower()) if one in ages] for text in texts]
    means = [sum(of) / len(of) for of in known if of]
    expected = [sum(of) / len(of) if of else sum(means) / len(means) for of in known]
    assert found == pytest.approx(expected) and 1 < len(means) < len(texts)
    assert words_of("The dog’s 3 toys, o'er_x") == ["the", "dog's", "toys", "o'er", "x"]
    with pytest.raises(ConfigError, match=r"order\.value_column: got 'years', the columns of ages\.csv are: Word, age"):
        WordValues(of.source, of.tokenizer, "Word", "years")(examples)


def test_keys_of_a_measure_that_is_not_chosen_are_refused() -> None:
    from hatchery.training.start_settings import CurriculumChoice

    for order, message in (
        ({"by": "loss"}, "model: got null, expected a value with by: loss"),
        ({"by": "length", "model": {"run": "a"}}, "expected a value with by: loss, and no such key"),
        ({"by": "words"}, "words: got null, expected a value with by: words"),
        ({"by": "length", "value_column": "age"}, "value_column: got 'age', expected no such key with by: length"),
    ):
        with pytest.raises(ConfigError) as refused:
            build(CurriculumChoice, json.loads(json.dumps(order)))
        assert message in str(refused.value)
