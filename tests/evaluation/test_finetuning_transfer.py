import numpy as np
import pytest

from hatchery.errors import ConfigError
from hatchery.evaluation.finetuning.batches import Predicted
from hatchery.evaluation.finetuning.scored_sets import label_mapping
from hatchery.evaluation.tasks.settings import TaskSettings, TransferSettings

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


def test_a_uniform_distribution_separates_the_two_rules():
    uniform = [[1 / 3, 1 / 3, 1 / 3]]
    assert answers(uniform, COMMON, "most_probable").predictions.tolist() == [0]
    assert answers(uniform, COMMON, "summed_probabilities").predictions.tolist() == [1]


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
        ({**COMMON, "entailment": ("entails",)}, "labels.entailment: got 'entails', the model has entailment, neutral"),
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
    with pytest.raises(ConfigError, match=r"finetune.transfer.hans: the task has no transfer"):
        label_mapping(task, MNLI)
