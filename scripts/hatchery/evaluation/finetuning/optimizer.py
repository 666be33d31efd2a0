"""AdamW for task models: which parameters decay, and which have the learning rate of what was not pretrained.

Two readings of weight decay: that of the pretraining code of LTG-BERT and ELC-BERT (weight matrices alone), and that
of the trainer behind the official pipeline (all weights but biases and norms, embeddings included). LTG-BERT's code
gives the classifier a rate of its own (evaluation.md 6.5). Frozen parameters are in no group.
"""

from typing import Any

import torch

from hatchery.evaluation.finetuning.settings import ProtocolSettings
from hatchery.modeling.heads.task_model import TaskModel
from hatchery.pretraining.parameter_groups import is_decayed
from hatchery.pretraining.schedules import learning_rate_factor
from hatchery.pretraining.settings import ScheduleSettings

NEVER_DECAYED = ("bias", "norm")


def build_optimizer(model: TaskModel, protocol: ProtocolSettings, learning_rate: float) -> torch.optim.AdamW:
    """The optimiser of `model`, which must already lie on its device; groups keep their peak rate in `peak`."""
    fresh = {id(parameter) for parameter in model.fresh_parameters()}
    head_rate = learning_rate if protocol.head_learning_rate is None else protocol.head_learning_rate
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decay = protocol.weight_decay if decays(name, protocol) else 0.0
            peak = head_rate if id(parameter) in fresh else learning_rate
            groups.setdefault((peak, decay), []).append(parameter)
    described: list[dict[str, Any]] = [
        {"params": parameters, "peak": peak, "weight_decay": decay} for (peak, decay), parameters in groups.items()
    ]
    betas = (protocol.beta1, protocol.beta2)
    return torch.optim.AdamW(described, lr=learning_rate, betas=betas, eps=protocol.epsilon, fused=True)


def decays(name: str, protocol: ProtocolSettings) -> bool:
    """Whether the parameter called `name` gets weight decay under the protocol's reading."""
    if protocol.decay == "matrices":
        return is_decayed(name)
    return not any(part in name for part in NEVER_DECAYED)


def set_rates(optimizer: torch.optim.Optimizer, protocol: ProtocolSettings, step: int, steps: int) -> None:
    """Give all groups their rate for update number `step` (from 0) of `steps`."""
    schedule = ScheduleSettings(protocol.schedule, protocol.warmup_fraction, protocol.final_fraction)
    factor = learning_rate_factor(schedule, step, steps)
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor
