"""Fine-tuning and probing of models of the library transformers, against a training loop with this library alone."""

import csv
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from baseline_cases import ARCHITECTURES, NAMES, imported, transformers
from finetuning_cases import changed, finetuned, results, sentences

from hatchery.errors import EvaluationError
from hatchery.evaluation.draws import derived_seed
from hatchery.evaluation.finetuning.batches import training_batches
from hatchery.evaluation.finetuning.encoding import encode_texts
from hatchery.evaluation.probing.encoding import encode_spans
from hatchery.evaluation.runtime import load_encoder
from hatchery.evaluation.tasks.example import Example, SpanExample, SpanTarget
from hatchery.modeling.heads.registry import build_task_model
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanClassifier
from hatchery.modeling.heads.task_model import HeadContext

SEED, RATE, EPOCHS, BATCH, DECAY = 12, 3e-3, 2, 8, 0.1
PLAIN = {
    "epochs": EPOCHS,
    "batch_size": BATCH,
    "seeds": [SEED],
    "learning_rates": [RATE],
    "warmup_fraction": 0.0,
    "schedule": "constant",
    "weight_decay": DECAY,
    "decay": "weights",
    "dropout": 0.0,
    "max_gradient_norm": None,
    "max_length": 32,
    "selection": "last",
    "development_fraction": 0.0,
    "patience_evaluations": None,
}


def pairs(n, seed):
    """Return pairs of sentences; a pair's label is "good" if both sentences are good."""
    rows = sentences(2 * n, seed)
    found = []
    for first, second in zip(rows[:n], rows[n:], strict=True):
        both = first["label"] == second["label"] == "good"
        found.append({"first": first["sentence"][:9], "second": second["sentence"][:9], "label": ["bad", "good"][both]})
    return found


@pytest.fixture
def tuned(manifest_of, make_source, json_lines, tmp_path):
    def run(name, task, files, **protocol):
        source = make_source({file: json_lines(rows) for file, rows in files.items()})
        settings = changed(task, **{**PLAIN, **protocol})
        sources = {settings["task"]["name"]: source.manifest}
        return finetuned(tmp_path / "out", settings, manifest_of(name), sources, tmp_path / "runs")

    return run


def encoded(tokenizer, name, rows):
    """Return pairs encoded by the library's tokenizer, for GPT-2 with added BOS and EOS."""
    firsts, seconds = ([row[key] for row in rows] for key in ("first", "second"))
    if name != "gpt2":
        return tokenizer(firsts, seconds, padding=True, return_tensors="pt", return_token_type_ids=name == "bert")
    begin, end = [tokenizer.bos_token_id], [tokenizer.eos_token_id]
    both = zip(tokenizer(firsts)["input_ids"], tokenizer(seconds)["input_ids"], strict=True)
    ids = [[*begin, *first, *end, *second, *end] for first, second in both]
    return tokenizer.pad({"input_ids": ids}, return_tensors="pt")


def vector(network, name, inputs):
    """Return the head's input: the first state of a masked model, the last state of a causal model or a decoder."""
    last = inputs["attention_mask"].sum(dim=1) - 1
    rows = torch.arange(len(last))
    match ARCHITECTURES[name]:
        case "masked":
            return network(**inputs).last_hidden_state[:, 0]
        case "causal":
            return network(**inputs).last_hidden_state[rows, last]
    starts = torch.full((len(last), 1), network.config.decoder_start_token_id)
    shifted = torch.cat([starts, inputs["input_ids"][:, :-1]], dim=1)
    return network(**inputs, decoder_input_ids=shifted).last_hidden_state[rows, last]


def trained_with_the_library(folder, name, head, train, validation):
    """Return scores of the validation rows after EPOCHS epochs of AdamW, with a fresh `head` and without dropout."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    epsilon = head.layer_norm_eps

    def scores(rows):
        found = F.layer_norm(vector(network, name, encoded(tokenizer, name, rows)), (16,), eps=epsilon)
        found = F.layer_norm(F.gelu(head.linear(found)), (16,), eps=epsilon)
        return head.output(found)

    norms = {
        id(parameter)
        for module in network.modules()
        if "Norm" in type(module).__name__
        for parameter in module.parameters()
    }
    groups: dict[float, list] = {0.0: [], DECAY: []}
    for part in (network, head):
        for label, parameter in part.named_parameters():
            groups[0.0 if "bias" in label or id(parameter) in norms else DECAY].append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": found, "weight_decay": decay} for decay, found in groups.items()], lr=RATE, eps=1e-8
    )
    lengths = np.array([int(encoded(tokenizer, name, [row])["attention_mask"].sum()) for row in train])
    for epoch in range(1, EPOCHS + 1):
        for items in training_batches(lengths, BATCH, SEED, epoch):
            rows = [train[item] for item in items]
            labels = torch.tensor([["bad", "good"].index(row["label"]) for row in rows])
            optimizer.zero_grad()
            F.cross_entropy(scores(rows), labels).backward()
            optimizer.step()
    with torch.no_grad():
        return scores(validation)


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "t5", "bart"])
def test_fine_tuning_is_that_of_a_loop_over_the_library_alone(tuned, stored, manifest_of, name):
    train, validation = pairs(24, 0), pairs(10, 1)
    out = tuned(name, {"fields": ["first", "second"]}, {"train.jsonl": train, "validation.jsonl": validation})
    encoder, tokenizer = load_encoder(manifest_of(name))
    context = HeadContext(2, 0.0, derived_seed(SEED, "head"), tokenizer.pad_id)
    head = build_task_model("sequence_classification", encoder, context).head
    expected = trained_with_the_library(stored(name), name, head, train, validation)
    found = [row["scores"] for row in pq.read_table(out / "predictions.parquet").to_pylist()]
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert np.ptp(found, axis=0).max() > 1e-3


WORDS = (("The", "old", "dogs", "sleep"), ("Cats", "sleep", "near", "houses"), ("A", "dog", "sleeps"))
SPANS = {0: ((0, 1), (2, 4)), 1: ((1, 3), (3, 4)), 2: ((0, 1), (1, 3))}


@pytest.mark.parametrize("name", NAMES)
def test_a_probe_reads_the_layers_of_the_library_at_the_tokens_of_words(stored, manifest_of, name):
    encoder, tokenizer = load_encoder(manifest_of(name))
    examples = [SpanExample(words, (SpanTarget(SPANS[row], (0,)),)) for row, words in enumerate(WORDS)]
    data = encode_spans(examples, tokenizer, 64, 2, True)
    probe = SpanClassifier(encoder, HeadContext(2, 0.0, 1, 3), ProbeOptions(n_spans=2, probe_size=16)).eval()
    batch = data.batch(np.arange(3))
    library = transformers.AutoTokenizer.from_pretrained(stored(name))
    network = transformers.AutoModel.from_pretrained(stored(name)).eval()
    begin, end = tokenizer.cls_id, tokenizer.sep_id
    for row, words in enumerate(WORDS):
        text = " ".join(words)
        plain = library(text, add_special_tokens=False, return_offsets_mapping=True)
        framed = [*([] if begin is None else [begin]), *plain["input_ids"], end]
        body = network.get_encoder() if ARCHITECTURES[name] == "encoder_decoder" else network
        states = body(torch.tensor([framed]), output_hidden_states=True).hidden_states[1:]
        spans = []
        for first, last in SPANS[row]:
            start = len(" ".join(words[:first])) + (first > 0)
            stop = len(" ".join(words[:last]))
            touched = [i for i, (a, b) in enumerate(plain["offset_mapping"]) if a < stop and b > start]
            spans.append([touched[0] + (begin is not None), touched[-1] + 1 + (begin is not None)])
        expected = probe.head(torch.stack(states), torch.zeros(1, dtype=torch.int64), torch.tensor([spans]))
        with torch.no_grad():
            found = probe(**batch.inputs)[row]
        torch.testing.assert_close(found, expected[0].detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_a_probe_is_trained_on_frozen_layers_and_says_how_it_weighs_them(tuned, name):
    rows = [
        {"text": " ".join(words), "targets": [{"span1": [0, 1], "label": "first"}, {"span1": [2, 3], "label": "later"}]}
        for words in WORDS
    ]
    task = {
        "format": "jiant",
        "fields": None,
        "layout": None,
        "labels": ["first", "later"],
        "head": {"kind": "span_classification", "options": {"multi_label": False, "probe_size": 16}},
        "metrics": ["accuracy"],
    }
    task = {key: value for key, value in task.items() if value is not None}
    out = tuned(name, task, {"train.jsonl": rows, "validation.jsonl": rows}, dropout=0.1, epochs=3)
    shares = [float(row["weight"]) for row in results(out, "layer_weights.csv")]
    assert len(shares) == 2 and sum(shares) == pytest.approx(1)
    assert {row["metric"] for row in results(out)} == {"accuracy"}


@pytest.mark.parametrize(
    ("name", "epsilon"), [("bert", 1e-12), ("roberta", 1e-12), ("gpt2", 1e-5), ("opt", 1e-5), ("t5", 1e-6)]
)
def test_the_norms_of_a_head_have_the_epsilon_of_the_model_or_the_usual_one(manifest_of, name, epsilon):
    encoder, _ = load_encoder(manifest_of(name))
    assert encoder.config.layer_norm_eps == epsilon


def test_a_third_text_has_the_last_token_type_of_the_model(manifest_of, monkeypatch):
    encoder, tokenizer = load_encoder(manifest_of("bert"))
    seen = []
    forward = encoder.body.forward
    monkeypatch.setattr(
        encoder.body, "forward", lambda **given: seen.append(given["token_type_ids"].tolist()) or forward(**given)
    )
    data = encode_texts([Example((("old", "dog", "cat near"),), 0), Example((("old",),), 0)], tokenizer, 32)
    inputs = data.batch(np.arange(2)).inputs
    encoder(inputs["input_ids"], inputs["attention_mask"])
    # [CLS] old [SEP] dog [SEP] cat near [SEP]; the second row is padded.
    assert seen[0][0] == [0, 0, 0, 1, 1, 1, 1, 1] and seen[0][1][:3] == [0, 0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_sets_every_dropout_of_the_library(manifest_of, name):
    encoder, _ = load_encoder(manifest_of(name))
    ids = torch.tensor([[5, 6, 7, 3]])
    expected = encoder(ids)[-1]
    encoder.train()
    assert not torch.allclose(encoder(ids)[-1], expected, atol=1e-6)
    encoder.set_dropout(0.0)
    torch.testing.assert_close(encoder(ids)[-1], expected)


def test_inputs_that_are_too_long_for_a_model_are_told_before_the_first_step(tuned):
    files = {"train.jsonl": sentences(8, 0), "validation.jsonl": sentences(4, 1)}
    with pytest.raises(
        EvaluationError, match="max_length: got 64, expected at most 32, the longest input of the model"
    ):
        tuned("bert", {}, files, max_length=64)


def test_no_pad_token_and_padding_on_the_left_change_no_fine_tuning_and_long_pairs_are_cut(
    stored, manifest_of, make_source, json_lines, tmp_path
):
    folder = tmp_path / "stripped" / "model"
    shutil.copytree(stored("gpt2"), folder)
    for path in (folder / "tokenizer_config.json", folder / "special_tokens_map.json"):
        if path.exists():
            kept = {key: value for key, value in json.loads(path.read_text()).items() if key != "pad_token"}
            path.write_text(json.dumps({**kept, "padding_side": "left"}))
    library = transformers.AutoTokenizer.from_pretrained(folder)
    assert library.pad_token is None and library.padding_side == "left"
    train, validation = pairs(24, 0), pairs(10, 1)
    train[3]["first"], validation[4]["second"] = train[3]["first"] * 6, validation[4]["second"] * 6
    files = {"train.jsonl": train, "validation.jsonl": validation}
    source = make_source({file: json_lines(rows) for file, rows in files.items()})
    settings = changed({"fields": ["first", "second"]}, **PLAIN)
    scores = []
    for name, manifest in (
        ("whole", manifest_of("gpt2")),
        ("stripped", imported(folder, ARCHITECTURES["gpt2"], tmp_path / "imported")),
    ):
        sources = {settings["task"]["name"]: source.manifest}
        out = finetuned(tmp_path / name, settings, manifest, sources, tmp_path / f"runs_{name}")
        scores.append([row["scores"] for row in pq.read_table(out / "predictions.parquet").to_pylist()])
        measures = json.loads((out / "manifest.json").read_text())["measures"]
        assert (measures["truncated_train_rows"], measures["truncated_validation_rows"]) == (1, 1)
        # Every row of the table has the reason of the failure.
        rows = list(csv.DictReader((out / "results.csv").read_text(encoding="utf-8").splitlines()))
        assert (measures["failed_runs"], {row["failed"] for row in rows}) == (1, {"majority_class"})
    assert np.isfinite(scores).all() and len(scores[0]) == len(validation)
    np.testing.assert_allclose(*scores, atol=1e-6)
    # With few training rows, the model always predicts one class, but the scores still depend on the texts.
    assert np.ptp(np.array(scores[0]), axis=0).min() > 1e-4
