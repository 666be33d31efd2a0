"""Settings that exclude each other are refused with the reason, and nothing unknown is accepted."""

from collections.abc import Callable
from typing import Any

import pytest

from hatchery.errors import ConfigError
from hatchery.pretraining.settings import pretrain_settings, runtime_settings

Factory = Callable[..., dict[str, Any]]


def test_a_complete_slice_is_understood(pretrain_slice: Factory) -> None:
    settings = pretrain_settings(pretrain_slice(long=(0.9, 4)))
    assert settings.optimizer.name == "lamb" and settings.long_sequence is not None
    assert settings.model["hidden_size"] == 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer__momentum": 0.9}, "optimizer.momentum: unknown key"),
        ({"optimizer__name": "sgd"}, "lamb, adamw"),
        ({"optimizer__beta2": 1.0}, "optimizer.beta2"),
        ({"optimizer__max_gradient_norm": 0.0}, "max_gradient_norm"),
        ({"objective__mask_probability": 1.5}, "mask_probability: got 1.5, expected less than 1"),
        ({"optimizer__head_weight_decay": -1.0}, "head_weight_decay"),
        ({"optimizer__tied_embedding": "both"}, "embedding, output"),
        ({"schedule__warmup_steps_limit": 0}, "warmup_steps_limit"),
        ({"loss_average": "batches"}, "tokens, processes"),
        ({"precision": "int8"}, "allowed are: auto, fp32, bf16, fp16"),
        ({"steps": -1}, "steps: got -1"),
        ({"batch_size": 30, "long": (0.9, 4)}, "multiple of long_sequence.factor"),
        ({"long": (1.1, 4)}, "from_fraction"),
    ],
)
def test_impossible_settings_are_refused_with_the_key(
    pretrain_slice: Factory, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        pretrain_settings(pretrain_slice(**changes))


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_lamb_is_refused_above_zero_stage_0_with_the_reason(runtime_slice: Factory, stage: int) -> None:
    with pytest.raises(ConfigError, match=rf"runtime.zero_stage: got {stage}, only 0 is possible: .*trust ratio"):
        runtime_settings(runtime_slice(zero_stage=stage), "lamb")
    assert runtime_settings(runtime_slice(zero_stage=stage), "adamw").zero_stage == stage
    assert runtime_settings(runtime_slice(zero_stage=0), "lamb").zero_stage == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"keep_checkpoints": 0},
        {"micro_batch_size": 0},
        {"threads": 0},
        {"zero_stage": 4},
        {"device": "tpu"},
        {"speed": 1},
        {"workers": -1},
        {"milestones": [0.0]},
        {"time_limit_minutes": 0},
        {"grace_seconds": -1.0},
        {"sinks": ["wandb"]},
    ],
)
def test_impossible_runtime_settings_are_refused(runtime_slice: Factory, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(changes))):
        runtime_settings(runtime_slice(**changes), "lamb")
