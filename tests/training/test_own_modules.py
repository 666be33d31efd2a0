"""`hatchery.train` with a user's own module: groups, gradients, evaluation, positions, and refused modules."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from direct_cases import Small, Stops
from torch import Tensor, nn

import hatchery
from hatchery.errors import ConfigError, ManifestError, ModelError
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training import run, run_parts
from hatchery.training.objectives import objective_of, objective_settings
from hatchery.training.own_model import OwnModel, check_own_model, described, may_read, own_model
from hatchery.training.settings import pretrain_settings
from hatchery.training.watchers import Watcher


def test_the_names_of_a_module_of_ones_own_decide_its_groups_of_parameters(
    train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Named(Small):
        def __init__(self, vocabulary_size: int) -> None:
            super().__init__(vocabulary_size)
            self.head = nn.Linear(16, vocabulary_size)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            return self.head(self.embedding(input_ids)) + super().forward(input_ids, attention_mask)

    built: list[Any] = []
    make = run.build_optimizer
    monkeypatch.setattr(run, "build_optimizer", lambda *given: built.append(make(*given)) or built[0])
    module = Named(300)
    train(model=module, steps=1, optimizer={"name": "adamw", "weight_decay": 0.3, "head_weight_decay": 0.2})
    decays = {id(p): group["weight_decay"] for group in built[0].param_groups for p in group["params"]}
    assert {name: decays[id(parameter)] for name, parameter in module.named_parameters()} == {
        **{"embedding.weight": 0.0, "query.weight": 0.3, "query.bias": 0.0},
        **{"out.bias": 0.0, "head.weight": 0.2, "head.bias": 0.0},
    }


@pytest.mark.parametrize("task", ["masked", "causal", "hybrid"])
def test_a_module_of_ones_own_trains_in_the_same_loop_and_goes_on(train: Any, task: str) -> None:
    changes: dict[str, Any] = {"objective": {"task": task}, "optimizer": {"name": "adamw", "learning_rate": 0.01}}
    changes |= {"steps": 40, "runtime": {"checkpoint_interval_steps": 10}}
    made = train(model=Small, into=task, **changes)
    losses = made.curve["loss"].to_list()
    assert losses[0] > losses[-1] + 0.5 and isinstance(made.module, Small)
    again = train(model=Small, into=task, **changes)
    assert all(torch.equal(a, b) for a, b in zip(made.module.parameters(), again.module.parameters(), strict=True))
    assert made.module.out.weight is made.module.embedding.weight
    with pytest.raises(KeyboardInterrupt):
        train(model=Small, into="stopped", watchers=[Stops(13)], **changes)
    assert train(model=Small, into="stopped", **changes).curve.equals(made.curve)


def test_the_seed_of_the_run_draws_the_first_weights_of_a_module_of_ones_own(train: Any) -> None:
    made = train(model=Small, steps=1, seed=7, optimizer={"name": "adamw", "learning_rate": 1e-9})
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(7)
        expected = Small(300)
    torch.testing.assert_close(made.module.query.weight, expected.query.weight, rtol=0, atol=1e-7)


@pytest.mark.parametrize("task", ["masked", "causal", "hybrid"])
def test_a_trained_module_is_evaluated_as_what_it_was_trained_as(task: str, train: Any) -> None:
    optimizer = {"name": "adamw", "learning_rate": 0.05}
    made = train(model=Small, objective={"task": task}, optimizer=optimizer, precision="fp32")
    texts = ["the dog sees a child .", "the dog sees child a ."]
    scores = made.model.scores(texts)["score"].to_list()
    pairs = hatchery.evaluate(made.module, [texts], tokenizer=made.folder)
    assert pairs.tables["scores.parquet"].select("score_good", "score_bad").row(0) == tuple(scores)
    assert pairs.facts["architecture"] == ("causal" if task == "causal" else "masked")
    assert made.model.kinds == {"hybrid": ("masked", "causal")}.get(task, (task,))
    words = hatchery.surprisals(made.module, texts, tokenizer=made.folder)
    total = words.filter(sentence=1)["surprisal"].sum() * np.log(2)
    assert total == pytest.approx(-scores[0], rel=1e-5)
    asked = {"masking": "own", "splits": ["dev"], "sequence_length": 16}
    tokens = made.folder / "training/tokens"
    own = hatchery.evaluate(made.module, "perplexity", tokens, tokenizer=made.folder, **asked)
    loss = own.tables["perplexity.csv"]["loss_nats"][0]
    # Evaluation of weights in memory gives the last development loss of their training.
    assert loss == pytest.approx(made.curve["development_loss"].drop_nulls()[-1], rel=1e-5)
    if task != "causal":
        assert made.model.fill("the dog ____ a child .")["rank"].to_list() == [1, 2, 3, 4, 5]
    with pytest.raises(
        ManifestError, match="the model in this folder is the module Small of your own code; pass the module"
    ):
        hatchery.evaluate(made.folder, [texts])
    with pytest.raises(ConfigError, match=f"architecture: got 'x', but .* was trained with task {task}"):
        hatchery.evaluate(made.module, [texts], tokenizer=made.folder, architecture="x")


def test_the_module_and_the_watcher_of_the_documentation_train(train: Any, repository: Path) -> None:
    named: dict[str, Any] = {}
    blocks = (("python", "import torch.nn.functional as F"), ("extending", "from hatchery.training.watchers"))
    for file, first in blocks:
        (code,) = re.findall(rf"```python\n({re.escape(first)}.*?)(?:```|made =)", _text(repository, file), re.DOTALL)
        exec(code, named)
    made = train(model=named["Small"], steps=10, watchers=[named["GradientNoise"]()], precision="fp32")
    assert made.curve["gradient_noise"].drop_nulls().len() == 1
    assert isinstance(made.module, named["Small"])


def _text(repository: Path, name: str) -> str:
    return (repository / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_a_module_of_ones_own_has_the_gradients_and_steps_of_a_loop_of_ten_lines(train: Any) -> None:
    module = Small(300)
    start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    seen: list[dict[str, Tensor]] = []

    class Keeps(Watcher):
        def after_step(self, step: int, model: nn.Module) -> None:
            seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})

    changes: dict[str, Any] = {"objective": {"task": "causal", "segments": "documents"}, "watchers": [Keeps()]}
    schedule = {"name": "constant", "warmup_fraction": 0.0, "final_fraction": 1.0}
    optimizer = {"name": "adamw", "learning_rate": 0.01, "weight_decay": 0.0, "max_gradient_norm": None}
    made = train(model=module, steps=3, optimizer=optimizer, schedule=schedule, **changes)
    shards = TokenShards.open(made.folder / "training/tokens/manifest.json", "train")
    examples = objective_of(objective_settings({"task": "causal", "segments": "documents"}, "")).examples(shards, 16)
    by_hand = Small(300)
    by_hand.load_state_dict(start)
    adam = torch.optim.AdamW(by_hand.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.0)
    order = np.argsort(np.random.Philox(np.random.SeedSequence([42, 0])).random_raw(len(examples)))
    for step in range(3):
        batch = examples.batch(42, 0, order[8 * step : 8 * step + 8])
        ids, labels = batch["input_ids"], batch["labels"]
        mask = torch.ones(ids.shape[1], ids.shape[1]).tril().bool() & batch["attention_mask"][:, None]
        loss = F.cross_entropy(by_hand(ids, mask | torch.eye(ids.shape[1]).bool()).flatten(0, 1), labels.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert made.curve["loss"][step] == pytest.approx(loss.item(), rel=1e-5)
        found = {name.removeprefix("module."): tensor for name, tensor in seen[step].items()}
        torch.testing.assert_close(found["query.weight"], by_hand.query.weight.detach(), rtol=1e-4, atol=1e-5)


def test_a_token_reads_what_the_objective_lets_it_and_itself() -> None:
    ids = torch.zeros(2, 3, dtype=torch.int64)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    found = may_read(ids, mask, torch.tensor([True, False]))
    assert found[0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert found[1].tolist() == [[True] * 3] * 3
    pieces = torch.tensor([[[True, False], [False, False]]])
    assert may_read(ids[:1, :2], pieces, None).tolist() == [[[True, False], [False, True]]]


class Limited(Small):
    """A module with learned positions."""

    longest_input = 16

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__(vocabulary_size)
        self.positions = nn.Embedding(16, vocabulary_size)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask) + self.positions.weight[: input_ids.shape[1]]


def test_a_module_with_learned_positions_trains_on_inputs_that_it_can_hold(train: Any) -> None:
    assert train(model=Limited, steps=2).curve.height == 2
    with pytest.raises(ConfigError, match="sequence_length: got 17, expected at most 16, the longest_input of Limited"):
        train(model=Limited, steps=2, sequence_length=17)
    with pytest.raises(ConfigError, match="sequence_length: got 32, expected at most 16"):
        train(model=Limited, steps=2, long_sequence={"from_fraction": 0.5, "factor": 2})
    module = Limited(300)
    module.longest_input = "16"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="Limited: longest_input: got '16', expected a number of tokens"):
        train(model=module, steps=2)


def test_no_share_of_a_known_peak_is_told_of_a_module_whose_operations_are_not_known(
    train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_parts, "peak_flops_of", lambda *_: 1e12)
    made = train(model=Small, steps=1)
    (speed,) = map(json.loads, (made.folder / "speed.jsonl").read_text().splitlines())
    assert speed["tokens_per_second"] > 0 and speed["mfu"] is None


def test_what_is_no_model_and_what_it_cannot_have_is_refused_in_one_line(train: Any) -> None:
    with pytest.raises(ConfigError, match=r"model: got a function that returns a int, expected a torch\.nn\.Module"):
        own_model(lambda size: size, 5)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match="ReLU has no parameter that can be trained"):
        own_model(nn.ReLU(), 5)
    # Parameters are fp32 in all precisions.
    assert next(own_model(nn.Linear(2, 5).double(), 5).parameters()).dtype == torch.float32
    wrong = OwnModel(nn.Embedding(9, 4), 5)
    wrong.module.forward = lambda ids, mask: torch.zeros(2, 3, 4)  # type: ignore[method-assign]
    with pytest.raises(
        ModelError, match=r"Embedding: its output has the shape \[2, 3, 4\], expected \[2, 3, V\] with V"
    ):
        wrong(torch.zeros(2, 3, dtype=torch.int64), None, torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(
        ConfigError,
        match="divergences: got True, expected the default, because a module of your own code does not support",
    ):
        train(model=Small, divergences=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("objective", {"task": "translation"}),
        ("objective", {"sentence_pairs": "order"}),
        ("initialise_from", {"take": "weights"}),
        ("output_bias", {"report": True}),
        ("output_bias", {"kind": "unigram"}),
        ("output_bias", {"weight_scale": "unit"}),
        ("bias_drift", True),
    ],
)
def test_keys_that_read_parts_of_our_models_are_refused_for_a_module_of_ones_own(
    pretrain_slice: Any, key: str, value: Any
) -> None:
    check_own_model(pretrain_settings(pretrain_slice()))
    with pytest.raises(ConfigError, match=f"^{key}: got .*, expected the default, because a module of your own code"):
        check_own_model(pretrain_settings(pretrain_slice(**{key: value})))


def test_a_run_of_a_module_is_known_by_the_class_and_the_shapes_of_the_module_and_not_by_its_values() -> None:
    first, again, other = (described(nn.Linear(*sizes)) for sizes in ((2, 3), (2, 3), (3, 2)))
    assert first == again and first["module"] == other["module"] == "Linear"
    assert first["tensors"] != other["tensors"]
    assert described(Small) == {"module": "Small"}
