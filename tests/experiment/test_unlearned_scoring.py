"""Scoring methods that need predictions which the models were not trained for."""

from pathlib import Path
from typing import Any

import pytest
from shipped import edit

from hatchery.evaluation.ways_of_scoring import WAYS, never_hidden, unlearned
from hatchery.experiment.project import Project
from hatchery.experiment.run_checks import unlearned_warnings
from hatchery.training.objectives import objective_settings

BOTH = ("masked", "causal")


def test_a_plan_names_models_that_are_asked_for_what_they_never_learned(configuration: Path) -> None:
    assert list(unlearned_warnings(["gpt_bert_ratios"], Project(configuration))) == [
        f"experiment 'gpt_bert_ratios': minimal_pairs: '{suite}', ratio_causal_share_{share}: scoring '{way}' needs "
        f"predictions of {never} tokens, but the model only learned to predict {learned} tokens; "
        "with scoring: auto, each model is scored by the kind of predictions that the model was trained for"
        for suite, share, way, never, learned in (
            ("blimp_2024", 1, "mntp", "masked", "next"),
            ("blimp_2024_causal", 0, "left_to_right", "next", "masked"),
        )
    ]
    assert not list(unlearned_warnings(["gpt_bert_strict", "demo", "causal_mini"], Project(configuration)))
    edit(
        configuration,
        "experiments/real_hybrid.yaml",
        "minimal_pairs:",
        "reading: {data: any, scoring: pll}\nminimal_pairs:",
    )
    (line,) = [line for line in unlearned_warnings(["real_hybrid"], Project(configuration)) if "reading" in line]
    assert line.startswith("experiment 'real_hybrid': reading, share_causal_share_1: scoring 'pll' needs predictions")


def test_a_plan_names_models_whose_training_hid_other_shares_of_tokens(configuration: Path) -> None:
    edit(configuration, "suites/demo_pairs.yaml", "description:", "scoring: diffusion\ndescription:")
    (line,) = unlearned_warnings(["demo"], Project(configuration))
    assert "scoring 'diffusion' masks 0 to 100 % of the tokens, but the model was trained with 40 % masked" in line


@pytest.mark.parametrize(
    ("rates", "trained"),
    [({}, None), ({"weights": "diffusion"}, None), ({"highest": 0.5}, "0 to 50 %, equal weights"), (None, "30 %")],
)
def test_the_bound_of_masked_diffusion_is_for_models_that_saw_all_shares(
    rates: dict[str, Any] | None, trained: str | None
) -> None:
    keys: dict[str, Any] = {"mask_probability": 0.3} if rates is None else {"rates": rates}
    shown = {"kind": "subword", "random_probability": 0.0, "keep_probability": 0.0}
    objective = objective_settings({"task": "masked", **shown, **keys}, "objective")
    reason = None if trained is None else f"was trained with {trained} masked"
    found = never_hidden("diffusion", objective)
    assert found is None if reason is None else found is not None and found.endswith(reason)
    assert never_hidden("pll", objective) is None


def test_what_each_way_of_scoring_asks_for() -> None:
    never = {(way, only): unlearned(way, BOTH, (only,)) is not None for way in ("auto", *WAYS) for only in BOTH}
    assert [way for way in ("auto", *WAYS) if never[way, "causal"]] == [
        "pll",
        "masked",
        "mntp",
        "pll_within_word_l2r",
        "fused",
        "diffusion",
    ]
    assert [way for way in ("auto", *WAYS) if never[way, "masked"]] == ["fused", "left_to_right"]
    assert not any(unlearned(way, BOTH, BOTH) for way in WAYS)
    # If a network supports only one use, another check refuses the scoring methods that do not fit.
    assert unlearned("mntp", ("causal",), ("causal",)) is unlearned("left_to_right", ("masked",), ("masked",)) is None
