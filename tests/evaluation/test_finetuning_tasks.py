"""All task formats in the fine-tuning stage: choices, three segments, regression, groups, spans."""

from types import SimpleNamespace

import numpy as np
import pytest
from finetuning_cases import PROTOCOL, SETTINGS, finetuned, predictions, results

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.finetuning import finetune_on_task as stage_module
from hatchery.evaluation.finetuning.batches import Predicted
from hatchery.evaluation.finetuning.measurements import settings_text
from hatchery.evaluation.finetuning.scored_sets import label_mapping
from hatchery.evaluation.finetuning.task_data import encode_task, measures
from hatchery.evaluation.tasks.settings import FinetuneSettings, TaskSettings, TransferSettings
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.typed import build

NOUNS = ["dog", "cat", "house"]


def settings(task, **protocol):
    common = {"suite": "demo", "format": "rows", "files": {"train": "train.jsonl", "validation": "validation.jsonl"}}
    values = {
        **{"epochs": 12, "learning_rates": [3e-3], "seeds": [12], "max_length": 32, "dropout": 0.0},
        **{"warmup_fraction": 0.05, "schedule": "linear", "weight_decay": 0.01, "epsilon": 1e-6},
        **{"selection": "last", "development_fraction": 0.0, "max_gradient_norm": None, "patience_evaluations": None},
    }
    return {**SETTINGS, "task": {"name": "demo", **common, **task}, "protocol": {**PROTOCOL, **values, **protocol}}


@pytest.fixture
def run(model_manifest, make_source, json_lines, tmp_path):
    def finetune(configuration, files, name="out", model=model_manifest, **runtime):
        source = make_source({key: rows if isinstance(rows, str) else json_lines(rows) for key, rows in files.items()})
        # Jobs that differ only in their runtime must not share stored runs.
        runs = tmp_path / f"runs of {name}"
        return finetuned(tmp_path / name, configuration, model, {"demo": source.manifest}, runs, **runtime)

    return finetune


def values(folder):
    return {row["metric"]: float(row["value"]) for row in results(folder)}


def test_a_causal_model_learns_from_its_last_token_whatever_the_head_reads(run, make_model_manifest):
    model, files = (
        make_model_manifest(causal=True),
        {"train.jsonl": about_dogs(96, 0), "validation.jsonl": about_dogs(48, 1)},
    )
    found = {}
    for pooling in ("last_token", "first_token"):
        head = {"kind": "sequence_classification", "options": {"pooling": pooling}}
        task = {"fields": ["sentence"], "labels": ["dogs", "none"], "metrics": ["accuracy"], "head": head}
        folder = run(settings(task), files, pooling, model)
        found[pooling] = values(folder)["accuracy"]
        manifest = read_manifest(folder / "manifest.json")
        assert "; last token;" in settings_text(manifest) and "first" not in settings_text(manifest)
    # A causal model's first token sees no text, so its state would give all texts the same label.
    assert found["first_token"] == found["last_token"] > 0.9


def about_dogs(n, seed):
    """Return texts of several lengths, labelled by whether they mention dogs."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        dogs = bool(random.integers(2))
        adjectives = " ".join(["old"] * int(random.integers(1, 4)))
        made.append(
            {"sentence": f"The {adjectives} {'dogs' if dogs else 'house'} .", "label": "dogs" if dogs else "none"}
        )
    return made


def copa(n, seed):
    """Return rows whose right choice names the dogs, at either position and for either question."""
    random = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        label = int(random.integers(2))
        choices = ["The cat sleeps .", "The old dogs sleep ."]
        right, wrong = choices[1], choices[0]
        rows.append(
            {
                "premise": f"She likes the {NOUNS[i % 3]} .",
                "choice1": wrong if label else right,
                "choice2": right if label else wrong,
                "question": ["cause", "effect"][i % 2],
                "label": label,
            }
        )
    return rows


@pytest.mark.parametrize("independent", [True, False])
def test_questions_with_two_choices_are_learnt(run, independent):
    head = {"kind": "multiple_choice", "options": {"independent_choices": independent}}
    task = {"layout": "copa", "metrics": ["accuracy"], "head": head}
    folder = run(settings(task), {"train.jsonl": copa(48, 0), "validation.jsonl": copa(24, 1)})
    assert values(folder) == {"accuracy": 1.0}
    table = predictions(folder)
    assert all(len(row["scores"]) == 2 and row["prediction"] == str(int(np.argmax(row["scores"]))) for row in table)


def multirc(n, seed):
    """Return questions with three answers each. An answer is right if it contains the passage's noun."""
    random = np.random.default_rng(seed)
    rows = []
    for question in range(n):
        noun = NOUNS[random.integers(3)]
        rows += [
            {
                "paragraph": f"The old {noun} sleeps near the house .",
                "question": "She likes what ?",
                "answer": f"the {NOUNS[answer]} {question}",
                "idx": {"paragraph": question, "question": 0, "answer": answer},
                "label": int(NOUNS[answer] == noun),
            }
            for answer in range(3)
        ]
    return rows


MULTIRC = {
    "layout": "multirc",
    "labels": [0, 1],
    "group_fields": ["idx.paragraph", "idx.question"],
    "metrics": ["answer_f1", "question_exact_match"],
}


def test_answers_of_a_question_stay_together_and_are_judged_together(run, monkeypatch):
    seen = []
    real = stage_module.split

    def spy(configuration, task, seed):
        kept, development = real(configuration, task, seed)
        seen.append(({task.train.groups[item] for item in kept}, set(development.groups)))
        return kept, development

    monkeypatch.setattr(stage_module, "split", spy)
    protocol = {"selection": "held_out", "development_fraction": 0.2, "selection_metric": "question_exact_match"}
    configuration = settings(MULTIRC, epochs=2, seeds=[1, 2], **protocol)
    folder = run(configuration, {"train.jsonl": multirc(20, 0), "validation.jsonl": multirc(8, 1)})
    assert [len(held) for _, held in seen] == [4, 4]
    assert all(kept.isdisjoint(held) for kept, held in seen) and seen[0][1] != seen[1][1]
    table = predictions(folder)
    right = {}
    for row in table:
        if row["seed"] == 2:
            right.setdefault(row["group"], []).append(row["label"] == row["prediction"])
    assert len(right) == 8
    assert values(folder)["question_exact_match"] == pytest.approx(sum(map(all, right.values())) / 8)


def test_three_segments_leave_the_question_and_the_answer_whole(run):
    rows = multirc(6, 0)
    for row in rows:
        row["paragraph"] *= 6
    folder = run(settings(MULTIRC, epochs=1, max_length=40), {"train.jsonl": rows, "validation.jsonl": rows})
    assert read_manifest(folder / "manifest.json").measures["truncated_train_rows"] == len(rows)


def test_a_regression_reports_correlations_of_numbers(run):
    random = np.random.default_rng(0)
    rows = [
        {"sentence1": f"The old {NOUNS[i]} .", "sentence2": f"The old {NOUNS[j]} .", "label": 4.5 if i == j else 0.5}
        for i, j in random.integers(3, size=(48, 2)).tolist()
    ]
    task = {
        "fields": ["sentence1", "sentence2"],
        "metrics": ["pearson", "spearman"],
        "head": {"kind": "regression", "options": {}},
    }
    folder = run(settings(task, epochs=25, output_bias="prior"), {"train.jsonl": rows, "validation.jsonl": rows})
    assert values(folder)["pearson"] > 0.9
    measures = read_manifest(folder / "manifest.json").measures
    assert "majority_accuracy_validation" not in measures
    row = predictions(folder)[0]
    assert row["label"] in ("4.5", "0.5") and float(row["prediction"]) == pytest.approx(row["scores"][0])


def probe_rows(n, seed):
    """Return words labelled by part of speech or by noun; some targets have two labels."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        noun = NOUNS[random.integers(3)]
        targets = [
            {"span1": [0, 1], "label": "DET"},
            {"span1": [1, 2], "label": ["ADJ", "WORD"]},
            {"span1": [2, 3], "label": noun.upper()},
        ]
        rows.append({"text": f"The old {noun} sleeps .", "targets": targets})
    return rows


PROBE = {"format": "jiant", "metrics": ["micro_f1"], "head": {"kind": "span_classification", "options": {}}}


def probe(run, name, mib=16, options=None, **protocol):
    head = {"kind": "span_classification", "options": options or {}}
    configuration = settings({**PROBE, "head": head}, **{"epochs": 8, "learning_rates": [1e-2, 2e-2], **protocol})
    files = {"train.jsonl": probe_rows(40, 0), "validation.jsonl": probe_rows(20, 1)}
    return run(configuration, files, name, frozen_layers_mib=mib)


def test_a_probe_learns_from_layers_that_are_computed_once_for_all_runs(run):
    folder = probe(run, "kept")
    assert values(folder)["micro_f1"] > 0.95
    weights = results(folder, "layer_weights.csv")
    assert [(row["learning_rate"], row["span"], row["layer"]) for row in weights] == [
        (rate, "1", layer) for rate in ("0.01", "0.02") for layer in ("1", "2")
    ]
    assert sum(float(row["weight"]) for row in weights) == pytest.approx(2)
    measures = read_manifest(folder / "manifest.json").measures
    assert measures["validation_rows"] == 60 and measures["dropped_validation_sentences"] == 0
    assert 0 < measures["majority_micro_f1_validation"] < 0.5
    labels = {row["label"] for row in predictions(folder)}
    assert {"DET", "ADJ WORD"} <= labels


@pytest.mark.parametrize("reading", ["differences", "outputs"])
def test_kept_layers_change_a_probe_by_rounding_alone(run, reading):
    kept, computed = (
        predictions(probe(run, name, mib, {"layer_reading": reading}, epochs=1, learning_rates=[1e-2]))
        for name, mib in (("kept", 16), ("computed", 0))
    )
    for one, other in zip(kept, computed, strict=True):
        np.testing.assert_allclose(one["scores"], other["scores"], atol=1e-3)


def test_a_probe_holds_sentences_out_with_all_their_targets(run):
    rows = [{**row, "text": row["text"].replace("sleeps", f"sleeps{i}")} for i, row in enumerate(probe_rows(30, 0))]
    configuration = settings(PROBE, epochs=1, selection="held_out", development_fraction=0.1)
    validation = probe_rows(5, 1)
    for row in validation[:3]:
        del row["targets"][1]
    folder = run(configuration, {"train.jsonl": rows, "validation.jsonl": validation})
    measures = read_manifest(folder / "manifest.json").measures
    assert measures["development_rows"] == 3
    # ADJ is the first of the most frequent training labels. Of the 12 validation targets with 14 labels, 2 have ADJ.
    assert measures["majority_accuracy_validation"] == pytest.approx(2 / 12)
    assert measures["majority_micro_f1_validation"] == pytest.approx(2 * 2 / (12 + 14))


def test_a_probe_by_the_rules_of_2026_writes_no_file_for_the_server(run):
    folder = probe(run, "out", epochs=1, learning_rates=[1e-2], edition=2026)
    assert len(results(folder)) == 1 and not (folder / "predictions.json").exists()


def test_groups_and_numbers_are_those_of_the_sentences_that_are_kept(make_source, json_lines, tokenizer):
    # A sentence of more than 32 tokens is dropped. The second and the last sentence are equal.
    long = {"text": " ".join(["old"] * 40), "targets": [{"span1": [0, 1], "label": "DET"}]}
    train, validation = probe_rows(2, 0), probe_rows(3, 1)
    train = [long, train[0], {**train[1], "text": "A cat sleeps ."}, train[0]]
    source = make_source({"train.jsonl": json_lines(train), "validation.jsonl": json_lines([*validation, long, long])})
    given = settings(PROBE)
    chosen = build(FinetuneSettings, {key: given[key] for key in ("task", "protocol")})
    task = encode_task(chosen, {"demo": source}, None, tokenizer)
    assert task.groups == [0, 1, 0]
    found = measures(task)
    assert [found[f"{name}_rows"] for name in ("train", "validation")] == [9, 9]
    assert [found[f"dropped_{name}_sentences"] for name in ("train", "validation")] == [1, 2]


def marked_rows():
    return [
        {
            "word": "dogs",
            "sentence1": "The old dogs sleep .",
            "sentence2": "A cat chases the dogs .",
            "start1": 8,
            "end1": 12,
            "start2": 17,
            "end2": 21,
            "label": bool(i % 2),
        }
        for i in range(4)
    ]


def test_marked_words_are_classified_by_a_head_that_reads_them(run):
    head = {"kind": "marked_words_classification", "options": {}}
    task = {"layout": "wic", "labels": [False, True], "metrics": ["accuracy"], "head": head}
    folder = run(settings(task), {"train.jsonl": marked_rows(), "validation.jsonl": marked_rows()})
    rows = predictions(folder)
    assert {row["label"] for row in rows} == {"false", "true"}
    assert {len(row["scores"]) for row in rows} == {2}


def test_the_same_rows_are_classified_by_a_head_that_reads_the_first_token_alone(run):
    task = {"layout": "wic", "labels": [False, True], "metrics": ["accuracy"]}
    folder = run(settings(task), {"train.jsonl": marked_rows(), "validation.jsonl": marked_rows()})
    first, other = (row["scores"] for row in predictions(folder)[:2])
    # Rows that differ only in their label are the same input.
    assert len(first) == 2 and first == other


@pytest.mark.parametrize(("edition", "dropout"), [(2023, 0.5), (2025, 0.25), (2026, 0.25)])
def test_since_2025_the_encoder_keeps_its_dropout_and_a_fresh_head_depends_on_the_seed(small_model, edition, dropout):
    task = {"labels": [0, 1], "fields": ["sentence"], "metrics": ["accuracy"]}
    given = settings(task, edition=edition, dropout=0.5)
    chosen = build(FinetuneSettings, {key: given[key] for key in ("task", "protocol")})
    encoder, encoded = small_model(60).encoder, SimpleNamespace(n_labels=2, pad_id=3)
    encoder.set_dropout(0.25)

    def made(seed, labels=(0, 1)):
        return stage_module.make_model(chosen, encoded, encoder, SimpleNamespace(labels=np.array(labels)), seed)

    first, again, other = (made(seed).output_layer.weight for seed in (1, 1, 2))
    assert first.equal(again) and not first.equal(other)
    assert {part.probability for part in made(1).encoder.modules() if isinstance(part, Dropout)} == {dropout}
    with pytest.raises(EvaluationError, match="demo: a training row has a label that is not among the labels"):
        made(1, labels=(0, -1))


MNLI = ("entailment", "neutral", "contradiction")
COMMON = {"entailment": ("entailment",), "non-entailment": ("neutral", "contradiction")}
PUBLISHED = {"entailment": ("entailment", "neutral"), "non-entailment": ("contradiction",)}


def hans(labels, rule="most_probable"):
    transfer = TransferSettings(labels, rule)
    return TaskSettings(
        name="hans",
        suite="hans",
        format="rows",
        files={"validation": "a"},
        metrics=("accuracy",),
        labels=tuple(COMMON),
        transfer=transfer,
    )


def answers(probabilities, labels, rule):
    scores = np.log(np.array(probabilities, dtype=np.float32))
    return label_mapping(hans(labels, rule), MNLI).apply(Predicted(scores.argmax(axis=1), scores))


@pytest.mark.parametrize(
    ("labels", "rule", "expected"),
    [
        (COMMON, "most_probable", [0, 1, 1]),
        (COMMON, "summed_probabilities", [1, 1, 1]),
        (PUBLISHED, "most_probable", [0, 0, 1]),
        (PUBLISHED, "summed_probabilities", [0, 0, 0]),
    ],
)
def test_both_mappings_under_both_rules(labels, rule, expected):
    found = answers([[0.4, 0.3, 0.3], [0.1, 0.5, 0.4], [0.3, 0.3, 0.4]], labels, rule)
    assert found.predictions.tolist() == expected
    np.testing.assert_allclose(found.scores.sum(axis=1), 1, atol=1e-6)
    first = 0.4 if labels is COMMON else 0.7
    assert found.scores[0, 0] == pytest.approx(first)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"entailment": ("entailment",)}, "got entailment, expected the task's labels entailment, non-entailment"),
        (
            {**COMMON, "entailment": ("entails",)},
            "labels.entailment: got 'entails', expected a label of the fine-tuned model: entailment, neutral",
        ),
        ({**COMMON, "non-entailment": ("neutral",)}, "the model's label 'contradiction' is listed 0 times"),
        ({**COMMON, "entailment": ("entailment", "neutral")}, "the model's label 'neutral' is listed 2 times"),
    ],
)
def test_a_mapping_that_leaves_a_class_open_is_refused(labels, message):
    with pytest.raises(ConfigError, match=message):
        label_mapping(hans(labels), MNLI)


def test_a_task_that_does_not_say_how_labels_correspond_is_refused():
    task = TaskSettings(
        name="hans", suite="hans", format="rows", files={"validation": "a"}, metrics=("accuracy",), labels=("a", "b")
    )
    with pytest.raises(ConfigError, match=r"finetune.transfer.hans: the task has no key `transfer`"):
        label_mapping(task, MNLI)
