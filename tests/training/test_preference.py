"""Preference training from raw JSON lines to an exported model: words, resumption, refusals."""

import json
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.corpora.settings import ConvertSettings
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.errors import ConfigError, TrainingError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import load_language_model
from hatchery.raw.registration import register_source
from hatchery.runner import Job, run_stage
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.token_shards import TokenShards
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer
from hatchery.training.batches import TrainingBatches
from hatchery.training.curriculum import order_of
from hatchery.training.inputs import Inputs
from hatchery.training.objectives import objective_of, objective_settings
from hatchery.training.settings import TrainingSettings, pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import SINGLE_PROCESS, Topology
from hatchery.training.train_and_export import train_and_export
from hatchery.typed import build

Make = Callable[..., Any]
NOUNS, OTHERS = ("dog", "child", "teacher", "river", "garden", "fox"), ("tree", "ball", "house", "stone")
ROWS = [
    {"before": "look :", "good": f"the {noun} sees a {other} {mark}", "bad": f"the {noun} see a {other} {mark}"}
    for noun in NOUNS
    for other in OTHERS
    for mark in (".", "!")
]
# The words of the held-out pairs occur in training pairs, in other combinations.
HELD_OUT, TRAINING = ROWS[::6], [row for number, row in enumerate(ROWS) if number % 6]
MODEL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CHANGES: dict[str, Any] = {
    "objective": {"task": "preference"},
    "batch_size": 8,
    "steps": 12,
    "sequence_length": 16,
    "optimizer": {"name": "adamw", "learning_rate": 0.01, "weight_decay": 0.0},
    "evaluation_interval_steps": 6,
}


class Data:
    """A corpus of preference pairs, converted from JSON Lines files and encoded."""

    def __init__(
        self,
        folder: Path,
        training: Sequence[Mapping[str, str]],
        held_out: Sequence[Mapping[str, str]],
        columns: tuple[str, str] = ("good", "bad"),
        tokenizer: Path | None = None,
    ) -> None:
        (folder / "raw").mkdir(parents=True)
        for name, rows in (("train", training), ("dev", held_out)):
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / "raw" / f"{name}.jsonl").write_text(text, encoding="utf-8")
        register_source("raw", folder / "raw", folder / "raw.json")
        named = {"chosen": columns[0], "rejected": columns[1], "prompt": "before"}
        options = {"files": {"train": "train.jsonl", "dev": "dev.jsonl"}, **named}
        settings = {"sources": [{"name": "pairs", "reader": "preference_pairs", "options": options}]}
        self.corpus, own, self.tokens = (folder / name / "manifest.json" for name in ("corpus", "tokenizer", "tokens"))
        self.tokenizer = tokenizer or own
        with stage_run(self.corpus, {"stage": "convert_corpus", **settings}) as run:
            convert_corpus(build(ConvertSettings, settings), {"pairs": folder / "raw.json"}, run, workers=1)
        learned = {"kind": "wordpiece", "vocabulary_size": 400, "allow_smaller": True, "min_frequency": 1}
        if tokenizer is None:
            run_stage(train_tokenizer, {"stage": "train_tokenizer", **learned}, own, corpus=[self.corpus])
        read = {"corpus": self.corpus, "tokenizer": self.tokenizer}
        run_stage(encode_corpus, {"stage": "encode_corpus"}, self.tokens, **read)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(tmp_path_factory.mktemp("preferences"), TRAINING, HELD_OUT)


@pytest.fixture
def prefer(
    single_process: None,
    data: Data,
    pretrain_slice: Make,
    runtime_slice: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Manifest]:
    """Train and export a model on the pairs, in this process; returns its manifest."""
    monkeypatch.setattr("hatchery.training.run.process_group", lambda *_: nullcontext())
    monkeypatch.setattr("hatchery.training.run.prepare_device", lambda *_: None)

    def train(name: str, initial: Path | None = None, given: Data = data, **changes: Any) -> Manifest:
        nested = {f"model__{key}": value for key, value in MODEL.items()}
        settings = pretrain_slice(**{**nested, **CHANGES, **changes})
        if "budget" in changes:
            del settings["steps"]
        output, inputs = tmp_path / name / "manifest.json", Inputs(given.tokens, given.tokenizer, initial)
        job = Job(settings, inputs.by_name, output)
        train_and_export(job, pretrain_settings(settings), runtime_slice(), inputs, tmp_path / "checkpoints", name)
        return read_manifest(output)

    return train


def rows_of(model: Manifest) -> list[dict[str, float]]:
    return [json.loads(line) for line in model.file("metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def log_probabilities(model: LanguageModel, tokenizer: Tokenizer, prompt: str, text: str) -> np.ndarray:
    """Return the log-probability of each token of a text, its paragraph token and its end token after a prompt."""
    special = SPECIAL_SETS["babylm"].ids
    before, after = (list(ids) for ids in tokenizer.encode_sentences([prompt, text]))
    ids = [special["[CLS]"], *before, *after, special["[PAR]"], special["[SEP]"]]
    with torch.no_grad():
        given = torch.tensor([ids])
        labels, attended = torch.tensor([[*ids[1:], -100]]), torch.ones_like(given, dtype=torch.bool)
        output = model(given, attended, labels, causal=torch.tensor([True]))
    found = torch.log_softmax(output.logits, dim=-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]
    return found[len(before) :].double().numpy()


def test_from_raw_pairs_to_a_model_that_prefers_the_chosen_texts(prefer: Make, data: Data, tmp_path: Path) -> None:
    swapped = Data(tmp_path / "swapped", TRAINING, HELD_OUT, ("bad", "good"), data.tokenizer)
    first = prefer("first", given=swapped, steps=10)
    assert rows_of(first)[-1]["development_preference_accuracy"] == 1
    model = prefer("preferred", first.path, initialise_from={"take": "weights"}, steps=20, batch_size=20)
    rows = rows_of(model)
    assert rows[0]["preference_accuracy"] == 0 and rows[-1]["preference_accuracy"] == 1
    assert rows[0]["preference_margin"] < 0 < 0.5 < rows[-1]["preference_margin"]
    assert rows[-1]["preference_loss"] < rows[0]["preference_loss"]
    measured = [row for row in rows if "development_preference_loss" in row]
    assert [row["step"] for row in measured] == [6, 12, 18, 20]
    last = measured[-1]
    assert last["development_preference_accuracy"] == 1
    folder = model.path.parent
    exported = load_language_model(folder).eval(), load_tokenizer(folder / "tokenizer.json")
    texts = [[log_probabilities(*exported, row["before"], row[side]) for side in ("good", "bad")] for row in HELD_OUT]
    margins = [chosen.mean() - rejected.mean() for chosen, rejected in texts]
    assert min(margins) > 0
    assert last["development_preference_margin"] == pytest.approx(sum(margins) / 8, abs=1e-4)
    losses = [math.log1p(math.exp(1 - 2 * margin)) for margin in margins]
    assert last["development_preference_loss"] == pytest.approx(sum(losses) / 8, abs=1e-4)
    of_chosen = np.concatenate([chosen for chosen, _ in texts])
    assert last["development_loss"] == pytest.approx(-of_chosen.mean(), abs=1e-4)
    assert last["development_perplexity"] == pytest.approx(math.exp(last["development_loss"]))
    assert model.measures["examples"] == {"pairs": 40, "left_out": 0}


def test_words_of_both_texts_and_of_the_prompt_before_each_count_over_two_epochs_and_a_chain(
    prefer: Make, tmp_path: Path
) -> None:
    given = [
        {"before": "one two", "good": "the dog sees .", "bad": "the dog see ."},
        {"before": "", "good": "a child", "bad": "child a now"},
        {"before": "three", "good": "it rains", "bad": "it rain it"},
        {"before": "", "good": "foxes run home", "bad": "foxes runs home"},
    ]
    # By hand: (2 + 4 + 2 + 4) + (2 + 3) + (1 + 2 + 1 + 3) + (3 + 3) = 30 words of an epoch.
    made = Data(tmp_path / "four", given, ROWS[:2])
    first = prefer("first", given=made, steps=4, batch_size=2)
    assert [row["words"] for row in rows_of(first)][1::2] == [30, 60]
    assert (first.measures["words"], first.measures.get("words_seen", 60)) == (60, 60)
    # The remaining budget is 65 words. Two epochs read 60 words, and no two pairs have 5 words or fewer.
    budget = {"words_seen": 125}
    chained = {"given": made, "initialise_from": {"take": "weights"}, "batch_size": 2, "budget": budget}
    second = prefer("second", first.path, checkpoints_at=[90, 120], **chained)
    assert (second.measures["words"], second.measures["words_seen"]) == (60, 120)
    kept = sorted(path.name for path in (second.path.parent / "milestones").iterdir())
    assert kept == ["chck_120", "chck_90"]


@pytest.mark.parametrize("end_token", [True, False])
def test_targets_are_the_tokens_and_ends_of_the_chosen_texts(data: Data, end_token: bool) -> None:
    tokenizer, special = load_tokenizer(data.tokenizer.with_name("tokenizer.json")), SPECIAL_SETS["babylm"].ids
    shards = TokenShards.open(data.tokens, "train")
    expected = np.zeros(shards.vocabulary_size, dtype=np.int64)
    for ids in tokenizer.encode_sentences([row["good"] for row in TRAINING]):
        np.add.at(expected, [*ids, special["[PAR]"]], 1)
        expected[special["[SEP]"]] += end_token
    objective = objective_of(objective_settings({"task": "preference", "end_token": end_token}, ""))
    assert objective.target_counts(shards).tolist() == expected.tolist()
    # The rows of the chosen texts have these targets as labels.
    examples = objective.examples(shards, 64)
    labels = examples.batch(0, 0, np.arange(len(examples)))["labels"][::2].numpy()
    assert np.bincount(labels[labels >= 0], minlength=len(expected)).tolist() == expected.tolist()


def test_the_rows_of_a_later_process_follow_those_of_all_earlier_pairs(data: Data) -> None:
    chosen = objective_settings({"task": "preference"}, "objective")
    plan = StepPlan(TrainingSettings(steps=2, batch_size=6, sequence_length=16, objective=chosen))
    made, shards = objective_of(chosen), TokenShards.open(data.tokens, "train")
    drawn = [
        TrainingBatches(
            plan, 5, Topology(rank, 2, rank, None, None), 3, partial(made.examples, shards), partial(order_of, made)
        ).at(1)
        for rank in range(2)
    ]
    # The three pairs of each process are six rows, and the engine draws dropout by row number.
    assert [batch.first_sequence for batch in drawn] == [0, 6]
    assert [batch.sequences for batch in drawn] == [6, 6]
    alone = TrainingBatches(plan, 5, SINGLE_PROCESS, 3, partial(made.examples, shards), partial(order_of, made)).at(1)
    for whole, part in zip(alone.micro_batches, drawn, strict=True):
        assert torch.equal(whole["input_ids"], part.micro_batches[0]["input_ids"])


@pytest.mark.slow
def test_a_killed_preference_training_ends_with_the_same_bits(make_command: Make, data: Data) -> None:
    def command(runtime: Mapping[str, Any] | None = None) -> Any:
        made = make_command(runtime, **{**CHANGES, "long": None, "early_stopping": {"patience_evaluations": 100}})
        made.tokens, made.tokenizer = data.tokens, data.tokenizer
        return made

    undisturbed, killed = command(), command({"checkpoint_interval_steps": 1})
    undisturbed.finish()
    for wanted, number in ((3, signal.SIGKILL), (8, signal.SIGTERM)):
        process = killed.start()
        killed.wait_for_step(process, max(wanted, killed.finished_steps() + 1))
        process.send_signal(number)
        process.communicate(timeout=60)
    killed.finish()
    assert killed.digests() == undisturbed.digests()
    assert "best_development_preference_loss" in read_manifest(killed.output).measures["early_stopping"]


def test_models_that_are_not_causal_cannot_be_the_initial_model(prefer: Make) -> None:
    masked = prefer("masked", objective={"task": "masked"}, steps=1)
    with pytest.raises(ConfigError, match="the initial model has causal false, this run has causal true"):
        prefer("preferred", masked.path, initialise_from={"take": "weights"})


def test_a_hybrid_model_keeps_both_uses(prefer: Make) -> None:
    first = prefer("hybrid", objective={"task": "hybrid", "causal_share": 0.5}, steps=2)
    objective = {"task": "preference", "initial_task": "hybrid"}
    made = prefer("preferred", first.path, objective=objective, initialise_from={"take": "weights"}, steps=2)
    assert load_language_model(made.path.parent).causal is False
    settings = pretrain_settings(made.settings).objective
    assert (settings.kinds, settings.predicted_before) == (("masked", "causal"), 1)


def test_pairs_that_are_too_long_leave_nothing_to_train_on(prefer: Make) -> None:
    with pytest.raises(TrainingError, match="none of the 40 pairs fits into sequence_length 10"):
        prefer("short", sequence_length=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": {"task": "preference", "mask_probability": 0.3}}, "mask_probability"),
        ({"objective": {"task": "preference", "loss": "simper", "gamma": 0.5}}, "gamma.*cannot be combined"),
        ({"distillation": {"weight": 0.5}}, "expected null with task translation, preference or sentence_pairs"),
        ({"order": {"by": "loss"}}, "another order with task preference"),
    ],
)
def test_keys_that_do_not_fit_are_refused(pretrain_slice: Make, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pretrain_settings(pretrain_slice(**{**CHANGES, **changes}))
