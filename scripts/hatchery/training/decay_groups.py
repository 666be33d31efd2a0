"""Select the parameters with weight decay, as groups of the optimiser.

The default follows the BabyLM code (ELC-BERT): every weight matrix is decayed; biases, layer norms, embeddings, layer
weights and learned scales are not decayed, and a word embedding that is tied to the output layer counts as an
embedding. LTG-BERT's BNC code reaches the tied matrix through the output layer and decays it with the head
(docs/papers/ltg-bert.md, "Optimiser"); GPT-BERT's code decays all but biases and norms, its mixing weights too
(docs/papers/gpt-bert.md, "Training"); the reduced-vocabulary study decays every parameter
(docs/papers/reduced-vocabulary.md, "Differences").
"""

from typing import Any, Literal

from torch import nn

from hatchery.training.optimizer_settings import OptimizerSettings

# Parts of names of parameters that are decayed only if all parameters are.
BIASES_AND_NORMS = ("bias", "norm")
UNDECAYED_NAMES = ("bias", "norm", "embedding", "layer_weights", "head_scale", "residual_scale")
# Names in models of all families; the sentence-pair head ("pair_head.") counts as body.
HEADS = ("head.", "pair_head.")
HEAD, OUTPUT_MATRIX, WORD_EMBEDDING = "head.", "head.vocabulary_weight", "word_embedding.weight"

GroupName = Literal["body", "head", "undecayed"]


def is_decayed(name: str) -> bool:
    """Return whether the parameter called `name` gets weight decay, if not all parameters do."""
    return not any(part in name for part in UNDECAYED_NAMES)


def is_hidden_matrix(name: str, parameter: nn.Parameter) -> bool:
    """Return whether the parameter called `name` is a weight matrix between hidden layers: no embedding, vector or
    head."""
    return parameter.ndim == 2 and is_decayed(name) and not name.startswith(HEADS)


def parameter_groups(model: nn.Module, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Return optimiser groups of all trainable parameters, each in the model's order; empty groups are omitted.

    The groups are: the decayed parameters; the decayed parameters of the language-model head, if
    `settings.head_weight_decay` is set; and the undecayed ones. Tied parameters appear once, under their first name. In
    an untied model the output matrix is decayed with every setting, and `tied_embedding` has no effect.
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
