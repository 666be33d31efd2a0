"""Settings that exclude each other are refused with the reason, and nothing unknown is accepted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hatchery.errors import ConfigError
from hatchery.settings.base import RefusedError
from hatchery.training.milestones import words_seen
from hatchery.training.objectives.hybrid import HybridSettings
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.training.objectives.preference import PreferenceSettings
from hatchery.training.objectives.translation import TranslationSettings
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.runtime_settings import runtime_settings
from hatchery.training.settings import LongSequenceSettings, TrainingSettings, pretrain_settings
from hatchery.training.start_settings import BudgetSettings, OutputBiasSettings, WeightAverageSettings

Factory = Callable[..., dict[str, Any]]
LAMB = TrainingSettings(steps=4, batch_size=8)
ADAMW = replace(LAMB, optimizer=OptimizerSettings(name="adamw"))


@pytest.mark.parametrize("scale", ["unit", 0.1, 1])
def test_settings_are_understood_and_a_scale_may_be_a_name_or_a_number(pretrain_slice: Factory, scale: object) -> None:
    settings = pretrain_settings(pretrain_slice(long=(0.9, 4), output_bias__weight_scale=scale))
    assert settings.optimizer.name == "lamb" and settings.long_sequence is not None
    assert settings.model["hidden_size"] == 32
    assert settings.output_bias.weight_scale == scale


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output_bias__counts": "larger_corpus"}, "larger_corpus: got null, expected a corpus"),
        ({"output_bias__weight_scale": "frobenius"}, "got 'frobenius', expected own, unit, unit_uniform or a number"),
        ({"output_bias__kind": "none", "bias_drift": True}, "bias_drift: got true, which cannot be combined with"),
        ({"schedule": {"warmup_steps": 4, "warmup_steps_limit": 9}}, "warmup_steps_limit: got 9, which cannot be"),
        ({"milestones": [7]}, "milestones: got 7, expected a multiple of `evaluation_interval_steps`"),
        ({"batch_size": 30, "long": (0.9, 4)}, "multiple of long_sequence.factor"),
    ],
)
def test_impossible_settings_are_refused_with_the_key(
    pretrain_slice: Factory, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        pretrain_settings(pretrain_slice(**changes))


def test_a_batch_of_an_objective_with_two_kinds_of_sequences_has_both() -> None:
    long = LongSequenceSettings(from_fraction=0.5, factor=4)
    for too_small, fits, changes in ((1, 2, {}), (4, 8, {"long_sequence": long})):
        with pytest.raises(RefusedError, match=rf"at least {fits}, because every batch has a sequence of each kind"):
            TrainingSettings(steps=4, batch_size=too_small, objective=HybridSettings(), **changes)
        for objective in (HybridSettings(), MaskedSettings()):
            TrainingSettings(steps=4, batch_size=fits, objective=objective, **changes)
    TrainingSettings(steps=4, batch_size=1)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_zero_shares_adamw_alone(runtime_slice: Factory, stage: int) -> None:
    zero = rf"runtime.zero_stage: got {stage}, expected 0"
    for name in ("lamb", "muon"):
        training = replace(LAMB, optimizer=replace(LAMB.optimizer, name=name))
        reason = f"{zero} with optimizer.name {name}: .* {name} would lose the norm or shape of each tensor"
        with pytest.raises(ConfigError, match=reason):
            runtime_settings(runtime_slice(zero_stage=stage), training)
    cautious = replace(ADAMW, optimizer=replace(ADAMW.optimizer, cautious_decay=True))
    with pytest.raises(ConfigError, match=f"{zero} with cautious_decay"):
        runtime_settings(runtime_slice(zero_stage=stage), cautious)
    assert runtime_settings(runtime_slice(zero_stage=stage), ADAMW).zero_stage == stage
    assert runtime_settings(runtime_slice(zero_stage=0), LAMB).zero_stage == 0
    # Nothing is sharded in a run without steps.
    assert runtime_settings(runtime_slice(zero_stage=stage), replace(LAMB, steps=0)).zero_stage == stage


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objective": TranslationSettings()}, "because beam search needs unsharded weights"),
        ({"divergences": True}, "read the unsharded output layer"),
        ({"bias_drift": True}, "read the unsharded output layer"),
        ({"weight_average": WeightAverageSettings()}, "stage 3 distributes the averaged parameters"),
    ],
)
def test_what_looks_at_whole_layers_is_refused_at_zero_stage_3(
    runtime_slice: Factory, changes: dict[str, Any], reason: str
) -> None:
    settings = replace(ADAMW, **changes)
    assert runtime_settings(runtime_slice(zero_stage=2), settings).zero_stage == 2
    with pytest.raises(ConfigError, match=f"runtime.zero_stage: got 3, expected at most 2 with .*{reason}"):
        runtime_settings(runtime_slice(zero_stage=3), settings)


def test_translation_has_no_phase_of_longer_sequences_and_alone_counts_in_a_larger_corpus() -> None:
    larger = OutputBiasSettings(kind="unigram", counts="larger_corpus", larger_corpus="c")
    assert replace(LAMB, objective=TranslationSettings(), output_bias=larger)
    with pytest.raises(RefusedError, match="larger_corpus is allowed only for the task translation"):
        replace(LAMB, output_bias=larger)
    with pytest.raises(RefusedError, match="no change of length with the task translation"):
        replace(LAMB, objective=TranslationSettings(), long_sequence=LongSequenceSettings(0.9, 2))


def test_the_likely_steps_of_a_budget_of_words_are_those_of_its_mean_batch() -> None:
    # With 1.62 tokens per word and batches from 60 to 100 sequences of 128 tokens, the budget lasts 158.2 steps.
    growing = TrainingSettings(
        budget=BudgetSettings(words_seen=1_000_000), batch_size=100, sequence_length=128, initial_batch_fraction=0.6
    )
    assert growing.planned().steps == 158
    assert replace(growing, initial_batch_fraction=1.0).planned().steps == 127
    # A pair of texts has twice as many tokens. A batch of 8,000 target tokens has as many source tokens.
    pairs = replace(growing, initial_batch_fraction=1.0, objective=PreferenceSettings())
    assert pairs.planned().steps == 63
    assert replace(pairs, batch_size=8_000, objective=TranslationSettings()).planned().steps == 101
    minutes = replace(growing, budget=BudgetSettings(minutes=2.0))
    assert minutes.planned().steps == 120


def test_word_milestones_are_in_ascending_order_and_end_with_the_budget() -> None:
    settings = TrainingSettings(budget=BudgetSettings(words_seen=60), batch_size=8, checkpoints_at=(60, 7, 20))
    assert settings.marks == (7, 20, 60)
    with pytest.raises(RefusedError, match="got 61, expected at most the 60 words of the budget"):
        replace(settings, checkpoints_at=(7, 61))
    # A run without steps may inherit the key, but keeps no milestone.
    assert replace(settings, steps=0).marks == ()


def test_a_growing_batch_is_large_enough_at_its_beginning() -> None:
    """Half of 100 sequences is the first batch of the budget, and half of 3 sequences has no sequence of each kind."""
    budget = {"batch_size": 100, "initial_batch_fraction": 0.5}
    TrainingSettings(budget=BudgetSettings(words_seen=50), **budget)
    with pytest.raises(RefusedError, match="got 49, expected at least 50 words"):
        TrainingSettings(budget=BudgetSettings(words_seen=49), **budget)
    hybrid = {"steps": 4, "objective": HybridSettings(), "initial_batch_fraction": 0.5}
    TrainingSettings(batch_size=4, **hybrid)
    with pytest.raises(RefusedError, match="got 3, expected at least 4, because every batch has a sequence of each"):
        TrainingSettings(batch_size=3, **hybrid)


def test_changes_of_the_sequence_length_are_in_the_order_of_the_steps() -> None:
    for fractions in ((0.5, 0.25), (0.5, 0.5)):
        changes = tuple(LongSequenceSettings(fraction, 2) for fraction in fractions)
        with pytest.raises(RefusedError, match="expected different values of `from_fraction` in ascending order"):
            replace(LAMB, length_schedule=changes)
    changes = (LongSequenceSettings(0.25, 2), LongSequenceSettings(0.5, 4))
    assert replace(LAMB, length_schedule=changes).length_schedule == changes
    with pytest.raises(RefusedError, match="because each of the two keys changes the sequence length"):
        replace(LAMB, length_schedule=changes[:1], long_sequence=changes[1])


@pytest.mark.parametrize(
    ("measures", "seen"),
    [({"words": 5}, 5), ({"words": 5, "words_seen": 9}, 9), ({"words": 5, "initial_model": {}}, None), ({}, None)],
)
def test_words_seen_are_those_of_all_trainings_where_all_were_counted(measures: dict[str, Any], seen: int) -> None:
    assert words_seen(measures) == seen


@pytest.mark.parametrize(
    ("early", "interval", "steps"), [(2, 1000, (0, 500, 250)), (0, 1000, ()), (1, 7, (0, 3)), (5, 3, (0, 1))]
)
def test_early_evaluations_halve_the_interval_and_precede_the_first_step(
    early: int, interval: int, steps: tuple[int, ...]
) -> None:
    assert TranslationSettings(early_evaluations=early).early_evaluations_at(interval) == steps
