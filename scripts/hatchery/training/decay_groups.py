"""Select the parameters with weight decay, as groups of the optimiser.

The default, `decay: matrices`, follows the code of the BabyLM models (ELC-BERT): weight decay applies to weight
matrices, but not to biases, layer norms, embeddings, learned weights of layer outputs and learned scales. A word
embedding that is tied to the output layer counts as an embedding. In LTG-BERT's BNC code, the tied matrix counts as
part of the head and has weight decay (docs/papers/ltg-bert.md, "Optimiser"). In GPT-BERT's code, all parameters except
biases and norms have weight decay (docs/papers/gpt-bert.md, "Training"). In the reduced-vocabulary study, all
parameters have weight decay (docs/papers/reduced-vocabulary.md, "Differences").
"""

from typing import Any, Literal

from torch import nn

from hatchery.training.optimizer_settings import OptimizerSettings

# Parameters whose names contain these parts get weight decay only with `decay: all`.
BIASES_AND_NORMS = ("bias", "norm")
UNDECAYED_NAMES = ("bias", "norm", "embedding", "layer_weights", "head_scale", "residual_scale")
# Prefixes of the heads in all model families. The sentence-pair head ("pair_head.") belongs to the group "body".
HEADS = ("head.", "pair_head.")
HEAD, OUTPUT_MATRIX, WORD_EMBEDDING = "head.", "head.vocabulary_weight", "word_embedding.weight"

GroupName = Literal["body", "head", "undecayed"]


def is_decayed(name: str) -> bool:
    """Return whether the parameter `name` gets weight decay with `decay: matrices`."""
    return not any(part in name for part in UNDECAYED_NAMES)


def is_hidden_matrix(name: str, parameter: nn.Parameter) -> bool:
    """Return whether the parameter `name` is a weight matrix of a hidden layer, not of an embedding or a head."""
    return parameter.ndim == 2 and is_decayed(name) and not name.startswith(HEADS)


def parameter_groups(model: nn.Module, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Return the optimiser's groups of all trainable parameters; empty groups are left out.

    The groups are: decayed parameters; decayed parameters of the language-model head, if `settings.head_weight_decay`
    is set; and undecayed parameters. A tied parameter appears once, under its first name. In an untied model the output
    matrix is always decayed, and `tied_embedding` has no effect.
    """
    parameters = dict(model.named_parameters())
    embedding_is_output = settings.tied_embedding == "output" and OUTPUT_MATRIX not in parameters

    def group_of(name: str) -> GroupName:
        is_tied_output = embedding_is_output and name.endswith(WORD_EMBEDDING)
        if settings.decay == "weights":
            decayed = not any(part in name for part in BIASES_AND_NORMS)
        else:
            decayed = settings.decay == "all" or is_tied_output or is_decayed(name)
        if not decayed:
            return "undecayed"
        of_head = is_tied_output or name.startswith(HEAD)
        return "head" if of_head and settings.head_weight_decay is not None else "body"

    members: dict[GroupName, list[nn.Parameter]] = {"body": [], "head": [], "undecayed": []}
    for name, parameter in parameters.items():
        if parameter.requires_grad:
            members[group_of(name)].append(parameter)
    decays = {"body": settings.weight_decay, "head": settings.head_weight_decay, "undecayed": 0.0}
    return [
        {"params": parameters, "weight_decay": decays[group]} for group, parameters in members.items() if parameters
    ]
