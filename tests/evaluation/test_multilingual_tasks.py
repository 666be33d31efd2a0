"""Fine-tuning on BabyLM's multilingual track: labels of training rows, errors of the official trainer, treebanks."""

import json
import random

import numpy as np
import pytest
import torch
from finetuning_cases import PROTOCOL, SETTINGS, finetuned, predictions, results, rows_task

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.finetuning.measurements import NO_SLIPS, SLIPS, settings_text
from hatchery.evaluation.finetuning.task_data import encode_task
from hatchery.evaluation.metrics.classification import accuracy_or_f1
from hatchery.evaluation.metrics.scored import Scored
from hatchery.evaluation.tasks.checks import check_task
from hatchery.evaluation.tasks.settings import FinetuneSettings, ProtocolSettings
from hatchery.evaluation.tasks.task_rows import read_task, read_through
from hatchery.experiment.project import Project
from hatchery.modeling.heads.registry import build_task_model
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.modeling.heads.word_classifiers import mean_of_pieces
from hatchery.typed import build

SENTENCES = ["De hond slaapt .", "De kat slaapt .", "Een hond eet ."]
NAMES = {"sorted_labels": True, "labels": (), "files": {"train": "t.jsonl", "validation": "v.jsonl"}}


def lines(labels, start=0):
    rows = [{"idx": n, "sentence": f"{SENTENCES[n % 3]} {n + start}", "label": one} for n, one in enumerate(labels)]
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["B", "A", "C", "A"], ("A", "B", "C")),
        (["neutraal", "entailment", "tegenspraak"], ("entailment", "neutraal", "tegenspraak")),
        (["蕴含", "中立", "矛盾"], ("中立", "矛盾", "蕴含")),
        # Labels sort as texts, so 10 comes before 9.
        ([9, 10, 0], ("0", "10", "9")),
    ],
)
def test_labels_are_those_of_the_training_rows_sorted_as_texts(make_source, labels, expected):
    task = rows_task(**NAMES)
    check_task(task)
    data = read_task(make_source({"t.jsonl": lines(labels), "v.jsonl": lines(labels[::-1])}), task)
    assert data.labels == expected
    assert [data.labels[row.label] for row in data.train] == [str(label) for label in labels]
    assert [row.label for row in data.scored["validation"]] == [row.label for row in data.train][::-1]


def test_spellings_of_a_label_are_one_label(make_source):
    source = make_source({"t.jsonl": lines(["x", "B", "A"]), "v.jsonl": lines(["A", "x"])})
    data = read_task(source, rows_task(**NAMES, label_values={"x": "A"}))
    assert (data.labels, [row.label for row in data.train]) == (("A", "B"), [0, 1, 0])


def test_a_label_that_no_training_row_has_is_named(make_source):
    source = make_source({"t.jsonl": lines("AB"), "v.jsonl": lines("AC")})
    with pytest.raises(EvaluationError, match=r"v.jsonl:2: the label 'C' in 'label' is unknown"):
        read_task(source, rows_task(**NAMES))
    # If only some rows are read, the unread training rows may have the label.
    read_through(source, rows_task(**NAMES), lambda name: 1)
    with pytest.raises(EvaluationError, match=r"t.jsonl:1: got the label None, expected a text or a whole number"):
        read_task(make_source({"t.jsonl": lines([None, "A"])}), rows_task(**NAMES))


def test_sorted_labels_exclude_labels():
    with pytest.raises(ConfigError, match="sorted_labels"):
        check_task(rows_task(sorted_labels=True))


def test_f1_stands_for_two_labels_and_accuracy_for_more():
    labels, guesses = np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1])
    two = Scored(labels, guesses, np.zeros((4, 2)), label_names=("a", "b"))
    three = Scored(labels, guesses, np.zeros((4, 3)), label_names=("a", "b", "c"))
    # For the second label, 2 of 2 predictions are right and 3 rows have it: F1 = 2 * 2 / (2 + 3).
    assert (accuracy_or_f1(two), accuracy_or_f1(three)) == (0.8, 0.75)


TRACK = {"edition": 2026, "track": "multilingual", "selection": "scored", "development_fraction": 0.0, "seeds": [12]}
TRACK |= {"learning_rates": [3e-3], "epochs": 4, "patience_evaluations": None, "selection_metric": "accuracy"}


@pytest.mark.parametrize("official", [False, True])
def test_the_slips_drop_the_last_rows_and_keep_the_last_epoch(
    model_manifest, make_source, tmp_path, official, monkeypatch
):
    """With the trainer's errors, 16 of 19 rows and the last of four epochs count; by default all rows and the best
    epoch."""
    from hatchery.evaluation.finetuning import finetune_on_task

    values, asked = iter([0.2, 0.6, 0.5, 0.6]), list[float]()

    def value_of(settings, development):
        own = original(settings, development)

        def value(predicted):
            asked.append(own(predicted))
            return next(values)

        return value

    original = finetune_on_task.development_value
    monkeypatch.setattr(finetune_on_task, "development_value", value_of)
    validation = lines((["good", "bad", "bad"] * 7)[:19], 50)
    source = make_source({"train.jsonl": lines(["good", "bad"] * 12), "validation.jsonl": validation})
    protocol = {**PROTOCOL, **TRACK, **({"official": True} if official else {})}
    folder = finetuned(
        tmp_path / "out",
        {**SETTINGS, "protocol": protocol},
        model_manifest,
        {"agreement": source.manifest},
        tmp_path / "runs",
    )
    rows = predictions(folder)
    assert [row["scored"] for row in rows] == [True] * 16 + [not official] * 3
    counted = [row for row in rows if row["scored"]]
    right = sum(row["label"] == row["prediction"] for row in counted)
    row = next(row for row in results(folder) if row["metric"] == "accuracy")
    assert float(row["value"]) == right / (16 if official else 19)
    # 24 rows in batches of 8 give three steps per epoch. The second epoch is the first of the best epochs.
    assert int(row["best_step"]) == (12 if official else 6)
    manifest = read_manifest(folder / "manifest.json")
    assert manifest.measures["scored_validation"] == (16 if official else 19)
    assert (SLIPS if official else NO_SLIPS) in settings_text(manifest)
    assert not (folder / "predictions.json").exists()
    # Each epoch's accuracy is computed over the scored rows only.
    n_rows = 16 if official else 19
    assert [value * n_rows for value in asked] == pytest.approx([round(value * n_rows) for value in asked])


@pytest.mark.parametrize(
    ("rules", "in_front"),
    [({}, False), ({"edition": 2025}, False), ({"edition": 2026}, True), (TRACK, False)],
)
def test_padding_is_in_front_by_the_rules_of_2026_but_not_on_the_track(tokenizer, make_source, rules, in_front):
    source = make_source({"t.jsonl": lines("AB"), "v.jsonl": lines("AB", 9)})
    task = rows_task(files=NAMES["files"], labels=("A", "B"))
    settings = FinetuneSettings(task, build(ProtocolSettings, {**PROTOCOL, **rules}))
    encoded = encode_task(settings, {task.name: source}, None, tokenizer)
    assert [part.data.arrays.pads_in_front for part in (encoded.train, *encoded.sets)] == [in_front] * 2


def test_fewer_rows_than_a_batch_are_refused_with_the_slips(model_manifest, make_source, tmp_path):
    source = make_source(
        {"train.jsonl": lines(["good", "bad"] * 12), "validation.jsonl": lines(["good", "bad"] * 3, 50)}
    )
    settings = {**SETTINGS, "protocol": {**PROTOCOL, **TRACK, "official": True}}
    with pytest.raises(EvaluationError, match="'validation' has 6 rows, expected at least 8"):
        finetuned(tmp_path / "out", settings, model_manifest, {"agreement": source.manifest}, tmp_path / "runs")


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"edition": 2023}, "track: got 'multilingual'"), ({"track": None, "official": True}, "official: got true")],
)
def test_a_protocol_that_does_not_fit_is_refused(changed, message):
    with pytest.raises(ConfigError, match=message):
        build(ProtocolSettings, {**PROTOCOL, **TRACK, **changed})


def test_new_keys_at_their_defaults_change_no_settings(repository):
    project = Project(repository / "config")
    stated = project.task("babylm_2026_mnli").settings("babylm_2026_mnli")
    assert stated.sorted_labels is False and project.task("multilingual_arc_nl").sorted_labels


def conllu(sentences):
    def line(number, word):
        return "\t".join((str(number), word, "_", "X" if word.startswith("w") else "NOUN", *"__", "0", "root", *"__"))

    return "".join("\n".join(line(n, word) for n, word in enumerate(one, 1)) + "\n\n" for one in sentences)


def test_treebanks_are_pooled_shuffled_and_divided_anew(repository, make_source):
    """Expected by hand: shuffled with seed 42, split into 80, 10 and 10 %, training rows cut to the smallest
    language's."""
    sizes = {"en": (17, 8), "nl": (40, 0), "zh": (30, 3)}
    files, pooled = {}, {}
    stems = {"en": "en_ewt", "nl": "nl_alpino", "zh": "zh_gsdsimp"}
    for language, (train, dev) in sizes.items():
        sentences = [(f"w{language}{n}", f"x{n}") for n in range(train + dev)]
        # Files are read in alphabetical order: dev before train.
        parts = {"dev": sentences[:dev], "train": sentences[dev:]}
        files |= {f"{stems[language]}-ud-{part}.conllu": conllu(rows) for part, rows in parts.items() if rows}
        pooled[language] = sentences
    data = read_task(make_source(files), Project(repository / "config").task("multilingual_pos").settings("pos"))
    expected, train = {}, {}
    for language, sentences in pooled.items():
        random.Random(42).shuffle(sentences)
        tenth = len(sentences) // 10
        train[language] = sentences[: len(sentences) - 2 * tenth]
        expected[language] = sentences[len(sentences) - 2 * tenth : len(sentences) - tenth]
        expected[f"test_{language}"] = sentences[len(sentences) - tenth :]
    least = min(map(len, train.values()))
    together = [one for sentences in train.values() for one in sentences[:least]]
    random.Random(42).shuffle(together)
    assert [row.words for row in data.train] == together
    assert {name: [row.words for row in rows] for name, rows in data.scored.items()} == {
        "validation": [*expected["en"], *expected["nl"], *expected["zh"]],
        **expected,
    }
    assert data.labels == ("NOUN", "X") and least == 21


def test_the_english_treebank_itself_is_read_beside_others(real_data, repository, make_source):
    """Expected words and parts of speech by splitting the ten columns. Ids of ranges and empty nodes are not words."""
    written = (real_data / "ud_english_ewt" / "en_ewt-ud-dev.conllu").read_text(encoding="utf-8")
    sentences = []
    for block in written.strip().split("\n\n"):
        cells = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        sentences.append([(one[1], one[3]) for one in cells if one[0].isdecimal()])
    # The release states these counts for its development file.
    assert (len(sentences), sum(map(len, sentences))) == (2001, 25147)
    numbers = {line.split("\t")[0] for line in written.split("\n") if "\t" in line}
    assert any("-" in number for number in numbers) and any("." in number for number in numbers)
    files = {"en_ewt-ud-dev.conllu": written}
    files |= {f"{stem}-ud-train.conllu": conllu([("wa", "x")] * 2000) for stem in ("nl_alpino", "zh_gsdsimp")}
    data = read_task(make_source(files), Project(repository / "config").task("multilingual_pos").settings("pos"))
    random.Random(42).shuffle(sentences)
    for name, part in (("en", sentences[1601:1801]), ("test_en", sentences[1801:])):
        found = [
            [(word, data.labels[target.labels[0]]) for word, target in zip(row.words, row.targets, strict=True)]
            for row in data.scored[name]
        ]
        assert found == [[(word.replace(" ", ""), tag) for word, tag in one] for one in part]
    assert len(data.train) == 3 * 1600 and data.labels == (
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT"),
        *("SCONJ", "SYM", "VERB", "X"),
    )


def test_at_most_4000_sentences_of_a_treebank_count(make_source, repository):
    counts = {"en": 4010, "nl": 20, "zh": 9}
    sentences = {name: [(f"w{name}{n}", "x") for n in range(count)] for name, count in counts.items()}
    stems = {"en": "en_ewt", "nl": "nl_alpino", "zh": "zh_gsdsimp"}
    files = {f"{stems[name]}-ud-train.conllu": conllu(rows) for name, rows in sentences.items()}
    task = Project(repository / "config").task("multilingual_pos").settings("pos")
    with pytest.raises(EvaluationError, match="zh: 9 sentences, expected at least 10"):
        read_task(make_source(files), task)
    files["zh_gsdsimp-ud-dev.conllu"] = conllu([("wzh", "x")])
    data = read_task(make_source(files), task)
    assert [len(data.scored[name]) for name in ("en", "nl", "zh", "test_en")] == [400, 2, 1, 400]
    assert len(data.train) == 3 * 8


def test_a_word_is_the_mean_of_its_pieces_before_a_linear_layer(small_model):
    states = torch.arange(24.0).view(2, 4, 3)
    spans, sentences = torch.tensor([[1, 3], [0, 1], [2, 4]]), torch.tensor([0, 1, 1])
    means = mean_of_pieces(states, sentences, spans)
    assert means.tolist() == [[4.5, 5.5, 6.5], [12.0, 13.0, 14.0], [19.5, 20.5, 21.5]]
    model = build_task_model("word_classification", small_model(60).encoder, HeadContext(3, 0.1, 12, 3)).eval()
    ids = torch.tensor([[1, 7, 8, 2]])
    with torch.no_grad():
        hidden = model.encoder(ids)[-1][0]
        scores = model(ids, spans=torch.tensor([[[1, 3]]]), sentences=torch.tensor([0]))
        by_hand = ((hidden[1] + hidden[2]) / 2) @ model.output_layer.weight.T + model.output_layer.bias
    assert torch.allclose(scores[0], by_hand, atol=1e-6)
    assert [type(step).__name__ for step in model.head.children()] == ["Dropout", "Linear"] and model.head.steps == (
        "dropout",
    )


def test_each_task_reads_the_files_of_its_language(repository):
    project = Project(repository / "config")
    for path in sorted((repository / "config/tasks").glob("multilingual_*.yaml")):
        if path.stem != "multilingual_pos":
            name = path.stem
            assert project.task(name).files["train"] == f"*{name.removeprefix('multilingual_')}.train.*"
            check_task(project.task(name).settings(name))
