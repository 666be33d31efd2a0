"""`hatchery.train`: the workflow's losses without an experiment, from any texts, with a model of one's own, and on."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hatchery
from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, CorpusError, ManifestError, ModelError
from hatchery.evaluation.direct.checkpoints import checkpoints_of
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training import run
from hatchery.training.objectives import objective_of, objective_settings
from hatchery.training.own_model import OwnModel, may_read, own_model
from hatchery.training.watchers import Watcher

MODEL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "position_bucket_size": 8,
    "max_position_embeddings": 64,
}
TOKENIZER = {"kind": "wordpiece", "vocabulary_size": 300, "allow_smaller": True}
SETTINGS: dict[str, Any] = {"steps": 12, "batch_size": 8, "sequence_length": 16, "evaluation_interval_steps": 4}


def texts(number: int = 60) -> list[str]:
    rng = random.Random(5)
    verbs, nouns = ["sees", "likes", "finds", "carries", "draws"], ["dog", "child", "teacher", "river", "garden"]
    sentence = lambda: f"the {rng.choice(nouns)} {rng.choice(verbs)} a {rng.choice(nouns)} ."  # noqa: E731
    return ["\n".join(sentence() for _ in range(12)) for _ in range(number)]


@pytest.fixture(autouse=True)
def _here(single_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hatchery.training.run.process_group", lambda *_: nullcontext())


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Any]:
    def trained(given: Any = None, into: str = "made", model: Any = MODEL, **changes: Any) -> Any:
        chosen = {"tokenizer": TOKENIZER, "device": "cpu", **SETTINGS, **changes}
        if "budget" in changes:
            del chosen["steps"]
        return hatchery.train(texts() if given is None else given, tmp_path / into, model, **chosen)

    return trained


class Small(nn.Module):
    """Attention over embeddings, whose matrix is the output's as well."""

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, 16)
        self.query, self.out = nn.Linear(16, 16), nn.Linear(16, vocabulary_size)
        self.out.weight = self.embedding.weight
        nn.init.normal_(self.out.weight, std=0.02)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.embedding(input_ids)
        read = F.scaled_dot_product_attention(self.query(states), states, states, attn_mask=attention_mask)
        return self.out(states + read)


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
    losses = [train(given, str(number)).curve["loss"].to_list() for number, given in enumerate((
        None, tmp_path / "folder", str(tmp_path / "folder" / "mine.jsonl"), tmp_path / "0" / "training" / "corpus"
    ))]  # fmt: skip
    assert losses[0] == losses[1] == losses[2] == losses[3]


def test_losses_and_weights_are_those_of_the_workflow(
    train: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job of an experiment runs as `hatchery.job` hands it out, in a checkout with a configuration."""
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


class Stops(Watcher):
    def __init__(self, step: int) -> None:
        self.left = step

    def after_step(self, model: nn.Module) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_saves_a_checkpoint_from_which_the_same_call_goes_on(train: Any, capfd: Any) -> None:
    with pytest.raises(KeyboardInterrupt, match="stopped by SIGINT after step 7 of 12; a checkpoint is saved"):
        train(watchers=[Stops(7)])
    found = train()
    assert "continues after step 7" in capfd.readouterr().err
    assert found.curve.equals(train(into="whole").curve)


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
def test_a_module_of_ones_own_trains_in_the_same_loop_and_goes_on(train: Any, task: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("task", ["masked", "causal", "hybrid"])
def test_a_trained_module_is_evaluated_as_what_it_was_trained_as(task: str, train: Any, tmp_path: Path) -> None:
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
    # Weights in memory have the last development loss of their training.
    assert loss == pytest.approx(made.curve["development_loss"].drop_nulls()[-1], rel=1e-5)
    if task != "causal":
        assert made.model.fill("the dog ____ a child .")["rank"].to_list() == [1, 2, 3, 4, 5]
    with pytest.raises(ManifestError, match="its model is the module Small, whose code is yours: pass the module"):
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


def test_a_module_of_ones_own_has_the_gradients_and_steps_of_a_loop_of_ten_lines(train: Any, tmp_path: Path) -> None:
    module = Small(300)
    start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    seen: list[dict[str, Tensor]] = []

    class Keeps(Watcher):
        def after_step(self, model: nn.Module) -> None:
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


@pytest.mark.parametrize("kept", ["marks", "milestones"])
def test_the_age_of_acquisition_is_measured_of_what_a_training_kept(kept: str, train: Any, tmp_path: Path) -> None:
    data = tmp_path / "aoa"
    data.mkdir()
    (data / "cdi_childes.json").write_text('{"dog": [{"context": "the child sees a"}]}', encoding="utf-8")
    (data / "cdi_human.csv").write_text("word,16,20,24\ndog,0.1,0.5,0.9\n", encoding="utf-8")
    settings: dict[str, Any] = {"objective": {"task": "hybrid"}, "milestones": [4, 8]}
    if kept == "marks":
        settings = {"objective": {"task": "hybrid"}, "budget": {"words_seen": 3000}}
        settings["checkpoints_at"] = [1000, 2000, 3000]
    made = train(**settings)
    checkpoints = checkpoints_of(made, None, None)
    expected = {f"chck_{number}K": 1000 * number for number in (1, 2, 3)}
    if kept == "milestones":
        rows = {row["step"]: row["words"] for row in made.curve.iter_rows(named=True)}
        expected = {f"step_0000000{step}": rows[step] for step in (4, 8)}
    assert dict(checkpoints.words) == expected
    found = hatchery.evaluate(made, "acquisition", data)
    surprisals = {row["step"]: row for row in json.loads(found.texts["surprisal.json"])["results"]}
    assert {name: row["word_count"] for name, row in surprisals.items()} == expected
    for name, opened in checkpoints:
        # A hybrid model is asked for a hidden token, at the position before it; the word is one token.
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
        assert "of which no text is held out for a development loss" in capfd.readouterr().err
    # It is finished, and stays so.
    weights = (made.folder / "model.safetensors").stat().st_mtime_ns
    assert train(tmp_path / "short.txt").folder.joinpath("model.safetensors").stat().st_mtime_ns == weights
    with pytest.raises(CorpusError, match="one document only, so there is none to hold out"):
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
    module = Limited(300)
    module.longest_input = "16"  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="Limited: longest_input: got '16', expected a count of tokens"):
        train(model=module, steps=2)


def test_what_is_no_model_and_what_it_cannot_have_is_refused_in_one_line(train: Any) -> None:
    with pytest.raises(ConfigError, match=r"model: got a function that returns a int, expected a torch\.nn\.Module"):
        own_model(lambda size: size, 5)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match="ReLU has no parameter that can be trained"):
        own_model(nn.ReLU(), 5)
    wrong = OwnModel(nn.Embedding(9, 4), 5)
    wrong.module.forward = lambda ids, mask: torch.zeros(2, 3, 4)  # type: ignore[method-assign]
    with pytest.raises(
        ModelError, match=r"Embedding: its output has the shape \[2, 3, 4\], expected \[2, 3, V\] with V"
    ):
        wrong(torch.zeros(2, 3, dtype=torch.int64), None, torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(ConfigError, match="divergences: got True, which a module of your own does not have"):
        train(model=Small, divergences=True)


@pytest.mark.parametrize(
    ("given", "changes", "message"),
    [
        (["one", None, "three"], {}, "texts: text 2 is None, of the type NoneType"),
        ([], {}, "texts: got no text"),
        (["one", "\ud800"], {}, "texts: text 2 has half of a surrogate pair"),
        ("no/such/file.txt", {}, "texts: got 'no/such/file.txt', which is no file or folder; to pass a text"),
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
    with pytest.raises(ConfigError, match="the folder holds other files"):
        train()


@pytest.mark.slow
def test_a_kill_changes_no_bit(train: Any, tmp_path: Path, repository: Path) -> None:
    (tmp_path / "texts.json").write_text(json.dumps(texts()))
    given: dict[str, Any] = {"steps": 400, "runtime": {"checkpoint_interval_steps": 5}}
    chosen = {"tokenizer": TOKENIZER, "device": "cpu", **SETTINGS, **given}
    program = (
        "import json, sys, hatchery\n"
        f"texts = json.load(open({str(tmp_path / 'texts.json')!r}))\n"
        f"hatchery.train(texts, {str(tmp_path / 'killed')!r}, {MODEL!r}, **{chosen!r})\n"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(repository / "scripts")})
    deadline = time.monotonic() + 100
    while not list((tmp_path / "killed/training").glob("checkpoints/*/step_*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    found = train(into="killed", **given)
    assert found.curve.equals(train(into="whole", steps=400).curve)
