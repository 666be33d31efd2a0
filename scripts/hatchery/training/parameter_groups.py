"""Which parameters get weight decay, and with it LAMB's trust ratio.

The default is the reading of the BabyLM code (ELC-BERT): every weight matrix is decayed; biases, layer norms,
embeddings, layer weights and learned scales are not, and a word embedding that is tied to the output layer counts as an
embedding.
LTG-BERT's BNC code reaches the tied matrix through the output layer and decays it with the head
(docs/papers/ltg-bert.md, "Optimiser"); the reduced-vocabulary study decays every parameter
(docs/papers/reduced-vocabulary.md, "Differences").
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from hatchery.training.lamb import Lamb
from hatchery.training.optimizers import AdamW
from hatchery.training.settings import OptimizerSettings

UNDECAYED_NAMES = ("bias", "norm", "embedding", "layer_weights", "head_scale", "residual_scale")
# Names in models of all families; the sentence-pair head ("pair_head.") belongs to the body.
HEAD, OUTPUT_MATRIX, WORD_EMBEDDING = "head.", "head.vocabulary_weight", "word_embedding.weight"

GroupName = Literal["body", "head", "undecayed"]


@dataclass(frozen=True)
class Grouping:
    """What decides the group of a parameter besides its name; the defaults are those of `OptimizerSettings`."""

    decays_all: bool = False
    # A tied word embedding is the matrix of the output layer.
    embedding_is_output: bool = False
    # The language-model head has a group of its own.
    has_head_group: bool = False

    def group_of(self, name: str) -> GroupName:
        """The group of the parameter called `name`."""
        is_tied_output = self.embedding_is_output and name.endswith(WORD_EMBEDDING)
        if not (self.decays_all or is_tied_output or is_decayed(name)):
            return "undecayed"
        return "head" if self.has_head_group and (is_tied_output or name.startswith(HEAD)) else "body"


def is_decayed(name: str) -> bool:
    """Whether the parameter called `name` is one that gets weight decay where not all do."""
    return not any(part in name for part in UNDECAYED_NAMES)


def parameter_groups(model: nn.Module, settings: OptimizerSettings | float) -> list[dict[str, Any]]:
    """Optimiser groups over all trainable parameters, each in the model's order; empty groups are left out.

    They are: the decayed parameters; those of the language-model head, if `settings.head_weight_decay` is given; and
    the undecayed ones. A number instead of settings is the weight decay of the default grouping. Tied parameters
    appear once, under their first name. In an untied model the output matrix is decayed in every reading, and
    `tied_embedding` has nothing to decide.
    """
    names = {name for name, _ in model.named_parameters()}
    if isinstance(settings, OptimizerSettings):
        weight_decay, head_weight_decay = settings.weight_decay, settings.head_weight_decay
        grouping = Grouping(
            decays_all=settings.decay == "all",
            embedding_is_output=settings.tied_embedding == "output" and OUTPUT_MATRIX not in names,
            has_head_group=head_weight_decay is not None,
        )
    else:
        weight_decay, head_weight_decay, grouping = settings, None, Grouping()
    members: dict[GroupName, list[nn.Parameter]] = {"body": [], "head": [], "undecayed": []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            members[grouping.group_of(name)].append(parameter)
    decays = {"body": weight_decay, "head": head_weight_decay, "undecayed": 0.0}
    return [{"params": found, "weight_decay": decays[group]} for group, found in members.items() if found]


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimiser over the parameter groups of `model`, which must already lie on its device."""
    groups = parameter_groups(model, settings)
    betas = (settings.beta1, settings.beta2)
    if settings.name == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    return AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, foreach=True)
