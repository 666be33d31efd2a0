"""Every trainable parameter is in exactly one group, and only weight matrices are decayed."""

import pytest
import torch
from torch import nn

from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.masked_language_model import MaskedLanguageModel
from hatchery.pretraining.lamb import Lamb
from hatchery.pretraining.parameter_groups import build_optimizer, is_decayed, parameter_groups
from hatchery.pretraining.settings import OptimizerSettings


@pytest.mark.parametrize(
    ("name", "decayed"),
    [
        ("encoder.layers.0.attention.query_key.weight", True),
        ("encoder.layers.0.attention.query_key.bias", False),
        ("encoder.layers.3.mlp.up.weight", True),
        ("encoder.layers.0.attention.post_layer_norm.weight", False),
        ("encoder.layers.0.feed_forward_norm.weight", False),
        ("embedding.word_embedding.weight", False),
        ("embedding.relative_embedding", False),
        ("encoder.prev_layer_weights", False),
        ("head.dense.weight", True),
    ],
)
def test_the_name_decides_the_group(name: str, decayed: bool) -> None:
    assert is_decayed(name) == decayed


@pytest.mark.parametrize(
    ("sizes", "values"), [((16384, 768, 2048, 12, 12), 85_524_480), ((6144, 384, 1024, 12, 6), 21_381_120)]
)
def test_elc_bert_has_the_groups_of_the_published_code(sizes: tuple[int, ...], values: int) -> None:
    with torch.device("meta"):
        model = MaskedLanguageModel(LtgBertConfig(*sizes, layer_weighting="biased"))
    decayed, undecayed = parameter_groups(model, 0.1)
    assert len(decayed["params"]) == 61 and len(undecayed["params"]) == 78
    assert sum(parameter.numel() for parameter in decayed["params"]) == values


class _Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.dense = nn.Linear(4, 4)
        self.layer_norm = nn.LayerNorm(4)
        self.output = nn.Linear(4, 7)
        self.output.weight = self.embedding.weight
        self.frozen = nn.Parameter(torch.zeros(2), requires_grad=False)


def test_every_trainable_parameter_is_in_one_group_and_tied_ones_count_as_embeddings() -> None:
    model = _Tied()
    decayed, undecayed = parameter_groups(model, 0.4)
    assert [id(parameter) for parameter in decayed["params"]] == [id(model.dense.weight)]
    assert decayed["weight_decay"] == 0.4 and undecayed["weight_decay"] == 0.0
    together = [id(parameter) for group in (decayed, undecayed) for parameter in group["params"]]
    assert sorted(together) == sorted({id(parameter) for parameter in model.parameters() if parameter.requires_grad})


@pytest.mark.parametrize(("name", "kind"), [("lamb", Lamb), ("adamw", torch.optim.AdamW)])
def test_the_optimizer_has_the_settings_of_the_run(name: str, kind: type) -> None:
    settings = OptimizerSettings(name, 0.02, 0.3, 0.8, 0.95, 1e-5, 2.0)
    optimizer = build_optimizer(_Tied(), settings)
    assert isinstance(optimizer, kind)
    for group, decay in zip(optimizer.param_groups, (0.3, 0.0), strict=True):
        assert group["lr"] == 0.02 and group["betas"] == (0.8, 0.95) and group["eps"] == 1e-5
        assert group["weight_decay"] == decay
