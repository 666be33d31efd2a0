"""Experiments with a base: their keys replace keys of the base, and null removes a key."""

from pathlib import Path

import pytest
from shipped import written

from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import ExperimentFile
from hatchery.experiment.written_blocks import merged, misnamed_file


def test_runs_and_tasks_of_the_base_that_are_null_are_left_out(configuration: Path) -> None:
    other = {"base": "demo", "runs": {"random": None}, "finetuning": {"tasks": {"demo_entailment": None}}}
    experiment = written(configuration, {"experiments/less": other}).experiment("less")
    assert (list(experiment.runs), list(experiment.finetuning.tasks)) == (
        ["ltg_bert", "elc_bert"],
        ["demo_acceptability"],
    )
    # Null is an error if the base does not have the name, or if there is no base.
    for base in ({"base": "demo"}, {}):
        project = written(configuration, {"experiments/less": {**other, **base, "runs": {"randm": None}}})
        document = {**project.written.read("experiment", "demo"), **base, "runs": {"randm": None}}
        with pytest.raises(ConfigError, match=r"less\.yaml: runs\.randm: got null, expected keys with values"):
            written(configuration, {"experiments/less": document}).experiment("less")


@pytest.mark.parametrize(
    ("place", "of_base", "own", "expected"),
    [
        (
            "reading",
            {"embedded": "babylm_evaluation", "folder": "a"},
            {"data": "times"},
            {"data": "times", "folder": "a"},
        ),
        ("acquisition", {"data": "words"}, {"embedded": "babylm_evaluation"}, {"embedded": "babylm_evaluation"}),
        ("surprisal.mine", {"data": "words"}, {"embedded": "minimal_pairs"}, {"embedded": "minimal_pairs"}),
        ("pretraining.budget", {"words_seen": "1M"}, {"minutes": 5}, {"minutes": 5}),
        ("pretraining.budget", {"minutes": 5}, {"words_seen": 9}, {"words_seen": 9}),
        ("pretraining.budget", {"words_seen": 9, "epochs": 2}, {"epochs": None}, {"words_seen": 9, "epochs": None}),
        ("pretraining", {"steps": 5, "seed": 1}, {"steps": None}, {"seed": 1}),
        ("pretraining", {"budget": {"minutes": 1}}, {"steps": None, "budget": None}, {"steps": None, "budget": None}),
        ("pretraining", {"steps": 5}, {"steps": None, "budget": {"minutes": 1}}, {"budget": {"minutes": 1}}),
        ("pretraining", {"steps": 5}, {"budget": None}, {"steps": 5, "budget": None}),
        ("pretraining.initialise_from", {"run": "a", "seed": 1, "take": "training"}, {"path": "b"}, None),
        ("pretraining.initialise_from", {"run": "a", "experiment": "c", "step": 5}, {"path": "b"}, {"path": "b"}),
        ("pretraining.initialise_from", {"path": "b"}, {"run": "a"}, {"run": "a"}),
        ("pretraining", {"budget": {"words_seen": 9}, "checkpoints_at": [3]}, {"steps": 5}, {"steps": 5}),
        ("pretraining", {"steps": 5, "milestones": [3]}, {"budget": {"minutes": 1}}, {"budget": {"minutes": 1}}),
        (
            "pretraining.schedule",
            {"warmup_fraction": 0.1, "warmup_steps_limit": 9},
            {"warmup_steps": 4},
            {"warmup_steps": 4},
        ),
        ("pretraining.schedule", {"warmup_steps": 4}, {"warmup_fraction": 0.1}, {"warmup_fraction": 0.1}),
        # An objective without `task` is masked; an objective of another task keeps nothing of the base's objective.
        ("pretraining.objective", {"mask_probability": 0.4}, {"task": "causal"}, {"task": "causal"}),
        (
            "pretraining.objective",
            {"mask_probability": 0.4},
            {"task": "masked"},
            {"mask_probability": 0.4, "task": "masked"},
        ),
        ("runs.a.pretraining.budget", {"words_seen": "1M"}, {"minutes": 5}, {"minutes": 5}),
        ("corpus", {"sources": [{"name": "a"}], "languages": ["en"]}, {"sample": {"corpus": "b"}}, None),
        ("corpus.sample", {"corpus": "b", "size_of": "c"}, {"characters": 5}, {"corpus": "b", "characters": 5}),
        ("tokenizer", {"corpus": "a", "kind": "bpe"}, {"corpora": ["a"]}, {"kind": "bpe", "corpora": ["a"]}),
        ("tokenizer", {"corpus": "a", "kind": "bpe"}, {"kind": "unigram"}, {"corpus": "a", "kind": "unigram"}),
        ("tokenizer", {"corpus": "a", "kind": "bpe"}, {"path": "b"}, {"path": "b"}),
    ],
)
def test_a_key_takes_the_place_of_the_keys_that_exclude_it(place, of_base, own, expected) -> None:
    if expected is None:
        expected = {
            "corpus": {"languages": ["en"], "sample": {"corpus": "b"}},
            "pretraining.initialise_from": {"path": "b", "take": "training"},
        }[place]
    documents = []
    for keys in (of_base, own, expected):
        for key in reversed(place.split(".")):
            keys = {key: keys}
        documents.append(keys)
    assert merged(documents[0], documents[1], ExperimentFile) == documents[2]


def test_a_tokenizer_of_an_experiment_is_trained_on_its_corpus_unless_it_is_read_from_a_file(
    configuration: Path,
) -> None:
    own = {"kind": "byte_bpe", "vocabulary_size": 400}
    for tokenizer, corpora in ((own, ("demo",)), ({"path": "mine.json", "vocabulary_size": 400}, ())):
        project = written(configuration, {"experiments/less": {"base": "demo", "tokenizer": tokenizer}})
        assert project.tokenizer("less").trained_on == corpora


def test_a_file_whose_allowed_name_is_taken_is_not_renamed_to_that_name(tmp_path: Path) -> None:
    (tmp_path / "my-runs.yaml").touch()
    for taken, end in (({"my_runs"}, "rename the file (my_runs.yaml is taken)"), ((), "the file to my_runs.yaml")):
        message = misnamed_file(tmp_path, "my-runs", taken)
        assert message is not None and message.endswith(end)
