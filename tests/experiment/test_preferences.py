"""Plans of preference training: a corpus of pairs, tokens of the first corpus's words, and suites as training text."""

from pathlib import Path
from typing import Any

import pytest
from shipped import written

from hatchery.errors import ConfigError
from hatchery.experiment.preferences import preference_warnings
from hatchery.experiment.project import Project

PAIRS: dict[str, Any] = {
    "name": "pairs",
    "embedded": "minimal_pairs",
    "reader": "preference_pairs",
    "options": {"files": {"any": "determiner*.jsonl"}},
}
EXPERIMENT: dict[str, Any] = {
    "corpus": {"sources": [PAIRS]},
    "tokenizer": "demo",
    "pretraining": {
        "steps": 10,
        "batch_size": 8,
        "sequence_length": 32,
        "objective": {"task": "preference"},
        "initialise_from": {"experiment": "causal_mini", "run": "causal_zero"},
    },
    "runs": {"before": {"model": "ltg_demo", "pretraining": {"steps": 0}}, "after": {"model": "ltg_demo"}},
    "minimal_pairs": ["demo_pairs", "demo_blimp_filtered"],
}


def project_with(folder: Path, name: str = "mine", **changes: Any) -> Project:
    return written(folder, {f"experiments/{name}": EXPERIMENT | changes})


def test_a_plan_warns_of_suites_on_whose_pairs_a_run_or_its_initial_model_was_trained(configuration: Path) -> None:
    project = project_with(configuration)
    project.check("experiment", "mine")
    (line,) = preference_warnings(["mine", "demo"], project)
    assert line.startswith(
        "experiment 'mine': minimal_pairs: 'demo_pairs' reads the raw input 'embedded_minimal_pairs', on whose pairs "
        "after learned preferences"
    )
    pretraining = {"steps": 1, "batch_size": 8, "objective": {"task": "causal"}}
    later = {
        "corpus": "demo",
        "pretraining": pretraining | {"initialise_from": {"experiment": "mine", "run": "after"}},
        "runs": {"later": {"model": "ltg_demo"}},
    }
    project = project_with(configuration, "next", **later)
    (line,) = preference_warnings(["next"], project)
    assert line.startswith("experiment 'next': minimal_pairs: 'demo_pairs' ") and "later learned" in line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": "demo"}, "corpus: got 'demo', which contains no preference pairs"),
        (
            {"perplexity": {"splits": ["dev"]}},
            "perplexity.splits: got dev, expected none with objective.task preference",
        ),
        (
            {"runs": {"masked": {"model": "ltg_demo", "pretraining": {"objective": {"task": "causal"}}}}},
            "got 'causal', expected preference, because the rejected texts of the corpus of pairs",
        ),
        (
            {"pretraining": EXPERIMENT["pretraining"] | {"initialise_from": {"experiment": "demo", "run": "ltg_bert"}}},
            "initialise_from: 'ltg_bert' of demo is not a causal model, expected a causal or a hybrid model",
        ),
        (
            {"pretraining": EXPERIMENT["pretraining"] | {"objective": {"task": "preference", "end_token": False}}},
            "objective.end_token: expected true, because the training texts of 'causal_zero' of causal_mini ended with",
        ),
        (
            {
                "pretraining": EXPERIMENT["pretraining"]
                | {"objective": {"task": "preference", "initial_task": "hybrid"}}
            },
            "objective.initial_task: expected causal, because 'causal_zero' of causal_mini is causal",
        ),
        (
            {
                "tokenizer": {
                    "corpus": "demo",
                    "kind": "byte_bpe",
                    "vocabulary_size": 500,
                    "special_tokens": "roberta",
                    "encoded_units": "documents",
                },
                "pretraining": EXPERIMENT["pretraining"] | {"initialise_from": None},
            },
            "the first words of a pair's texts would have different tokens",
        ),
    ],
)
def test_plans_that_do_not_fit_are_refused(configuration: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        project_with(configuration, **changes).check("experiment", "mine")


def test_a_tokenizer_that_adds_a_space_before_every_line_may_encode_whole_documents(configuration: Path) -> None:
    own = EXPERIMENT["pretraining"] | {"initialise_from": None}
    project_with(configuration, tokenizer="demo_gpt_bert", pretraining=own).check("experiment", "mine")
    spaced = {"corpus": "demo", "kind": "byte_bpe", "vocabulary_size": 500, "special_tokens": "roberta"}
    spaced |= {"encoded_units": "documents", "add_prefix_space": True}
    project_with(configuration, tokenizer=spaced, pretraining=own).check("experiment", "mine")
