import pytest

from hatchery.errors import ConfigError
from hatchery.evaluation.tasks.checks import check_task
from hatchery.evaluation.tasks.settings import HeadSettings, TaskSettings, TransferSettings, VocabularyFilter
from hatchery.typed import build


def task(**changes):
    values = {
        "name": "mine",
        "suite": "glue",
        "format": "rows",
        "files": {"train": "train.json", "validation": "dev.json"},
        "labels": (0, 1),
        "metrics": ("accuracy",),
        "fields": ("sentence",),
    }
    return build(TaskSettings, {**values, **changes}, "task 'mine'")


CHOICE = {"layout": "copa", "fields": (), "labels": (), "head": HeadSettings("multiple_choice")}
TRANSFER = TransferSettings({"0": (0,), "1": (1, 2)})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fields": ("Question: {question} Answer: {answer}", "paragraph")},
        {"labels": (), "head": HeadSettings("regression"), "metrics": ("pearson", "spearman")},
        CHOICE,
        {"layout": "record", "fields": (), "metrics": ("record_f1",)},
        {"files": {"validation": "dev.json"}, "transfer": TRANSFER},
        {"files": {"train": "t.json"}},
        {"format": "rte_xml", "fields": ()},
        {"format": "labelled_lines", "fields": (), "files": {"0": "a", "1": "b"}},
        {"format": "conllu", "fields": (), "labels": (), "head": HeadSettings("span_classification")},
        {"label_values": {"no": 0, "yes": 1}, "expected_rows": {"train": 5}},
    ],
)
def test_settings_that_fit_together_are_accepted(changes):
    check_task(task(**changes))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"files": {}}, "files"),
        ({"files": {"validation": "dev.json"}}, "files"),
        ({"files": {"train": "a", "mismatched": "b"}}, "files"),
        ({"format": "labelled_lines", "files": {"0": "a"}}, "files"),
        ({"expected_rows": {"test": 3}}, "expected_rows"),
        ({"files": {"train": "a"}, "scored_rows": {"condition": "test"}}, "scored_rows"),
        ({"head": HeadSettings("span_classification")}, "head.kind"),
        ({"head": HeadSettings("multiple_choice")}, "head.kind"),
        ({**CHOICE, "head": HeadSettings()}, "head.kind"),
        ({"format": "jiant"}, "head.kind"),
        ({**CHOICE, "labels": (0, 1)}, "labels"),
        ({"labels": (0, 1), "head": HeadSettings("regression")}, "labels"),
        ({"labels": ()}, "labels"),
        ({"labels": (1,)}, "labels"),
        ({"labels": (1, "1")}, "labels"),
        ({"layout": "record", "fields": (), "labels": (0, 1, 2)}, "labels"),
        ({"label_values": {"x": 2}}, "label_values"),
        ({"transfer": TransferSettings({"0": (0,)})}, "transfer.labels"),
        ({"layout": "wic"}, "fields"),
        ({"head": HeadSettings("marked_words_classification")}, "head.kind"),
        ({"layout": "wic", "fields": (), "normalisation": "ltg"}, "normalisation"),
        ({"layout": "wic", "fields": (), "format": "rte_xml"}, "format"),
        ({"fields": ()}, "fields"),
        ({"fields": ("a", "b", "c", "d")}, "fields"),
        ({"fields": ("Question: {question",)}, "fields"),
        ({"fields": ("{}",)}, "fields"),
        ({"layout": "wic", "fields": (), "vocabulary": VocabularyFilter(("a",))}, "vocabulary"),
    ],
)
def test_settings_that_exclude_each_other_are_refused_with_task_and_key(changes, key):
    with pytest.raises(ConfigError, match=rf"^task 'mine'(: |\.){key}(\.\w+)?: .*(expected|allowed)") as caught:
        check_task(task(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"metrics": ()}, "metrics"),
        ({"metrics": ("accuracy", "accuracy")}, "metrics"),
        ({"metrics": ("speed",)}, r"metrics\.0"),
        ({"files": {}}, "files"),
        ({"files": {"train": (), "validation": "b"}}, r"files\.train"),
        ({"transfer": TransferSettings({"0": (0,), "1": ()})}, r"transfer\.labels\.1"),
        ({"vocabulary": VocabularyFilter(())}, r"vocabulary\.fields"),
        ({"train_limit": 1}, "train_limit"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
    ],
)
def test_a_value_that_no_task_can_have_is_refused_with_its_key(changes, key):
    with pytest.raises(ConfigError, match=rf"^task 'mine'\.{key}: (got .*|expected .*)") as caught:
        build(TaskSettings, vars(task(**changes)), "task")
    assert "\n" not in str(caught.value)
