from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from hatchery.errors import ConfigError
from hatchery.evaluation import finetuning
from hatchery.evaluation.finetuning.encoding import EncodedExamples
from hatchery.evaluation.finetuning.loop import NotFiniteError, predict, train_classifier
from hatchery.evaluation.finetuning.settings import ProtocolSettings, finetune_settings
from hatchery.modeling.heads.sequence_classifier import SequenceClassifier

CPU = torch.device("cpu")
PAD = 3
PROTOCOL = ProtocolSettings(
    epochs=6,
    batch_size=4,
    learning_rate=1e-2,
    warmup_fraction=0.1,
    schedule="cosine",
    weight_decay=0.1,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    max_gradient_norm=1.0,
    dropout=0.1,
    max_length=16,
    development_fraction=0.1,
    patience_epochs=None,
    selection_metric="accuracy",
)


class MeanOfEmbeddings(nn.Module):
    """The smallest classifier that still reads ids and mask."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(60, 8)
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(8, 2)

    def forward(self, ids, mask):
        weights = mask.unsqueeze(-1) / mask.sum(dim=1)[:, None, None]
        return self.output(self.dropout((self.embedding(ids) * weights).sum(dim=1)))


def examples(n, seed=0):
    """Sequences whose label says whether token 7 occurs."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    bodies = [random.integers(8, 60, size=random.integers(2, 9)) for _ in range(n)]
    for body, label in zip(bodies, labels, strict=True):
        if label:
            body[random.integers(len(body))] = 7
    return EncodedExamples([np.array([1, *body, 2]) for body in bodies], labels, truncated=0)


def scripted(monkeypatch, accuracies, n):
    """Let the development value of each epoch be given, and record the weights of that epoch."""
    seen = []

    def fake(model, rows, pad_id, device):
        predictions = rows.labels.copy()
        wrong = round((1 - accuracies[len(seen)]) * n)
        predictions[:wrong] = 1 - predictions[:wrong]
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return predictions

    monkeypatch.setattr(finetuning, "predict", fake)
    return seen


def test_the_best_epoch_is_restored_and_the_earliest_of_equal_ones(monkeypatch):
    seen = scripted(monkeypatch, [0.5, 0.8, 0.6, 0.8, 0.7, 0.1], n=10)
    model = MeanOfEmbeddings()
    result = train_classifier(model, examples(20), examples(10, seed=1), PROTOCOL, 12, PAD, CPU)
    assert (result.best_epoch, result.development_value, len(seen)) == (2, 0.8, 6)
    assert all(torch.equal(value, seen[1][name]) for name, value in model.state_dict().items())
    assert not torch.equal(seen[1]["output.weight"], seen[5]["output.weight"])


def test_training_stops_after_patience_epochs_without_a_better_value(monkeypatch):
    seen, steps = scripted(monkeypatch, [0.5, 0.8, 0.6, 0.8, 0.9, 0.9], n=10), []
    protocol = replace(PROTOCOL, patience_epochs=2)
    result = train_classifier(
        MeanOfEmbeddings(), examples(20), examples(10, seed=1), protocol, 12, PAD, CPU, steps.append
    )
    assert (result.best_epoch, len(seen)) == (2, 4)
    assert sum(steps) == 6 * 5  # the skipped steps are reported, so progress reaches its total


def test_training_stops_at_a_perfect_value_because_no_epoch_can_be_better(monkeypatch):
    seen, steps = scripted(monkeypatch, [0.5, 1.0, 1.0], n=10), []
    result = train_classifier(
        MeanOfEmbeddings(), examples(20), examples(10, seed=1), PROTOCOL, 12, PAD, CPU, steps.append
    )
    assert (result.best_epoch, len(seen), sum(steps)) == (2, 2, 30)


def test_without_development_rows_the_last_epoch_stays():
    result = train_classifier(MeanOfEmbeddings(), examples(20), None, PROTOCOL, 12, PAD, CPU)
    assert (result.best_epoch, result.development_value) == (6, None)


def test_a_seed_fixes_every_prediction_and_another_seed_trains_differently():
    def weights(seed):
        model = MeanOfEmbeddings()
        train_classifier(model, examples(40), examples(10, seed=1), PROTOCOL, seed, PAD, CPU)
        return model.output.weight.detach().numpy()

    torch.manual_seed(99)  # what ran before must not matter
    first = weights(12)
    assert np.array_equal(first, weights(12))
    assert not np.array_equal(first, weights(13))


def test_a_run_that_diverges_is_told_apart_from_a_bad_one():
    with pytest.raises(NotFiniteError):
        protocol = replace(PROTOCOL, learning_rate=1e30, max_gradient_norm=None, weight_decay=10.0)
        train_classifier(MeanOfEmbeddings(), examples(20), None, protocol, 12, PAD, CPU)
    model = MeanOfEmbeddings()
    with torch.no_grad():
        model.output.bias[0] = float("nan")
    with pytest.raises(NotFiniteError):
        predict(model, examples(4), PAD, CPU)


def test_gradients_are_clipped_to_the_global_norm(monkeypatch):
    norms = []
    real_step = torch.optim.AdamW.step

    def step(optimizer, *arguments, **keywords):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        norms.append(float(torch.norm(torch.stack([g.norm() for g in gradients]))))
        return real_step(optimizer, *arguments, **keywords)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    train_classifier(MeanOfEmbeddings(), examples(20), None, replace(PROTOCOL, max_gradient_norm=0.01), 12, PAD, CPU)
    assert len(norms) == 30 and max(norms) <= 0.01 * 1.001


def test_predictions_do_not_depend_on_the_order_or_the_company_of_the_rows():
    model, rows = MeanOfEmbeddings(), examples(150)
    order = np.random.default_rng(0).permutation(150).tolist()
    alone = np.array([predict(model, rows.subset([i]), PAD, CPU)[0] for i in range(150)])
    assert np.array_equal(predict(model, rows, PAD, CPU), alone)
    assert np.array_equal(predict(model, rows.subset(order), PAD, CPU), alone[order])


def test_a_real_encoder_learns_32_rows_by_heart_within_100_steps(small_model):
    model = SequenceClassifier(small_model(60).encoder, 2, 0.0, 12)
    protocol = replace(PROTOCOL, epochs=25, batch_size=8, learning_rate=3e-3, dropout=0.0)
    rows = examples(32)
    train_classifier(model, rows, None, protocol, 12, PAD, CPU)
    assert np.array_equal(predict(model, rows, PAD, CPU), rows.labels)


SETTINGS = {
    "stage": "finetune",
    "stage_version": 1,
    "task": {
        "name": "demo",
        "format": "glue_jsonl",
        "files": {"train": "a", "validation": ["b"]},
        "fields": ["sentence"],
        "labels": [0, 1],
        "metrics": ["accuracy", "mcc"],
    },
    "protocol": {name: getattr(PROTOCOL, name) for name in PROTOCOL.__dataclass_fields__},
    "seeds": [12, 642],
}


def changed(path, value):
    *parents, last = path.split(".")
    result = {**SETTINGS, "task": dict(SETTINGS["task"]), "protocol": dict(SETTINGS["protocol"])}
    target = result
    for parent in parents:
        target = target[parent]
    target[last] = value
    return result


def test_settings_of_the_contract_are_accepted():
    assert finetune_settings(SETTINGS).task.label_names == ("0", "1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seeds", []),
        ("seeds", [12, 12]),
        ("task.labels", [0]),
        ("task.labels", [0, "0"]),
        ("task.metrics", []),
        ("task.metrics", ["acuracy"]),
        ("task.files", {"train": "a"}),
        ("task.fields", []),
        ("task.fields", ["a", "b", "c"]),
        ("task.train_limit", 0),
        ("task.spelling", 1),
        ("protocol.epochs", 0),
        ("protocol.learning_rate", 0),
        ("protocol.dropout", 1.0),
        ("protocol.development_fraction", 1.0),
        ("protocol.patience_epochs", 0),
        ("protocol.selection_metric", "loss"),
        ("protocol.schedule", "stairs"),
        ("protocol.max_gradient_norm", 0.0),
        ("protocol.max_length", 4),
    ],
)
def test_impossible_settings_are_named_by_their_key(key, value):
    with pytest.raises(ConfigError, match=rf"finetune\.{key}"):
        finetune_settings(changed(key, value))
