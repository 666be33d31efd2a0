"""Settings put every parameter into exactly one group, as in the published codes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.training.decay_groups import is_decayed, parameter_groups
from hatchery.training.lamb import Lamb
from hatchery.training.optimizer_settings import OptimizerSettings
from hatchery.training.optimizers import build_optimizer

SETTINGS = OptimizerSettings()
# The BNC code: docs/papers/ltg-bert.md, "Optimiser".
AS_BNC = replace(SETTINGS, tied_embedding="output", head_weight_decay=0.1)
WORD_EMBEDDING = "encoder.embedding.word_embedding.weight"
SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}


def make_model(**fields: Any) -> LanguageModel:
    """Return a model on the meta device, because only names and shapes matter here."""
    with torch.device("meta"):
        return LanguageModel(model_config({**SIZES, **fields}))


def names_of(model: nn.Module, groups: list[dict[str, Any]]) -> list[list[str]]:
    """Return the parameter names of each group, in the group's order."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [[names[id(parameter)] for parameter in group["params"]] for group in groups]


def values_of(group: dict[str, Any]) -> int:
    """Return the number of values in a group."""
    return sum(parameter.numel() for parameter in group["params"])


@pytest.mark.parametrize(
    ("sizes", "values"), [((16384, 768, 2048, 12, 12), 85_524_480), ((6144, 384, 1024, 12, 6), 21_381_120)]
)
def test_elc_bert_has_the_groups_of_the_published_code(sizes: tuple[int, ...], values: int) -> None:
    keys = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    with torch.device("meta"):
        config: Any = dict(zip(keys, sizes, strict=True))
        model = LanguageModel(LtgBertConfig(**config, layer_weighting="biased"))
    decayed, undecayed = parameter_groups(model, SETTINGS)
    assert len(decayed["params"]) == 61 and len(undecayed["params"]) == 78
    assert values_of(decayed) == values
    names = names_of(model, [decayed, undecayed])
    assert all(name.endswith("weight") and "norm" not in name for name in names[0])
    assert sum("layer_weights" in name for name in names[1]) == 12 and WORD_EMBEDDING in names[1]


def test_ltg_bert_base_has_the_groups_of_the_bnc_code() -> None:
    with torch.device("meta"):
        model = LanguageModel(
            LtgBertConfig(
                vocab_size=16384,
                hidden_size=768,
                intermediate_size=2048,
                num_hidden_layers=12,
                num_attention_heads=12,
            )
        )
    body, head, undecayed = parameter_groups(model, AS_BNC)
    names = names_of(model, [body, head, undecayed])
    assert names[1] == [WORD_EMBEDDING, "head.linear.weight"]
    # Each of the twelve layers has five matrices. The other reading also counts the head's matrix: 61.
    assert len(names[0]) == 60 and all(".layers." in name and name.endswith("projection.weight") for name in names[0])
    assert values_of(body) + 768 * 768 == 85_524_480 and values_of(head) == 768 * 768 + 16384 * 768
    assert [group["weight_decay"] for group in (body, head, undecayed)] == [0.1, 0.1, 0.0]
    assert "encoder.embedding.relative_embedding" in names[2] and "head.vocabulary_bias" in names[2]
    # Each layer has three projection biases and a layer norm's weight and bias. The rest are the position table, its
    # layer norm's weight and bias, and two biases.
    assert len(names[2]) == 12 * 5 + 5


def test_the_default_groups_are_two_in_the_order_of_the_model() -> None:
    model = make_model(layer_weighting="biased", sentence_pair_head=True)
    everything = [name for name, _ in model.named_parameters()]
    groups = parameter_groups(model, SETTINGS)
    assert names_of(model, groups) == [
        [name for name in everything if is_decayed(name)],
        [name for name in everything if not is_decayed(name)],
    ]
    assert [sorted(group) for group in groups] == [["params", "weight_decay"]] * 2
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]


def test_a_tied_embedding_that_counts_as_output_joins_the_matrices_where_the_head_has_no_decay_of_its_own() -> None:
    model = make_model()
    default = names_of(model, parameter_groups(model, SETTINGS))
    decayed, undecayed = names_of(model, parameter_groups(model, replace(SETTINGS, tied_embedding="output")))
    assert set(decayed) == {*default[0], WORD_EMBEDDING} and set(undecayed) == {*default[1]} - {WORD_EMBEDDING}
    everything = [name for name, _ in model.named_parameters()]
    assert decayed == [name for name in everything if name in decayed]


@pytest.mark.parametrize("family", ["ltg", "roberta"])
@pytest.mark.parametrize("reading", ["embedding", "output"])
def test_an_untied_output_matrix_is_decayed_and_its_word_embedding_is_not(family: str, reading: str) -> None:
    model = make_model(family=family, tie_word_embeddings=False)
    settings = replace(SETTINGS, tied_embedding=reading, head_weight_decay=0.3)
    body, head, undecayed = names_of(model, parameter_groups(model, settings))
    assert set(head) == {"head.linear.weight", "head.vocabulary_weight"}
    assert WORD_EMBEDDING in undecayed and WORD_EMBEDDING not in body


@pytest.mark.parametrize(
    ("reading", "head"),
    [("embedding", ["head.linear.weight"]), ("output", [WORD_EMBEDDING, "head.linear.weight"])],
)
def test_the_head_has_its_own_decay_and_the_sentence_pair_head_that_of_the_body(reading: str, head: list[str]) -> None:
    model = make_model(sentence_pair_head=True)
    groups = parameter_groups(model, replace(SETTINGS, tied_embedding=reading, head_weight_decay=0.0))
    names = names_of(model, groups)
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0, 0.0]
    assert names[1] == head
    assert {name for name in names[0] if name.startswith("pair_head.")} == {
        "pair_head.linear.weight",
        "pair_head.output.weight",
    }
    assert {name for name in names[2] if name.startswith("pair_head.")} == {
        "pair_head.linear.bias",
        "pair_head.output.bias",
    }


def test_roberta_decays_its_projections_and_none_of_its_three_embeddings() -> None:
    model = make_model(family="roberta", embedding_size=16, layer_weighting="biased")
    decayed, undecayed = names_of(model, parameter_groups(model, SETTINGS))
    # Each layer has six matrices: query, key, value, output and two of the feed-forward block. The embedding and the
    # head have one each.
    assert len(decayed) == 2 * 6 + 2 and {"encoder.projection.weight", "head.linear.weight"} < set(decayed)
    embeddings = {name for name in undecayed if name.endswith("_embedding.weight")}
    assert len(embeddings) == 3 and "encoder.projection_layer_norm.weight" in undecayed
    assert sum("layer_weights" in name for name in undecayed) == 2


@pytest.mark.parametrize("family", ["ltg", "roberta"])
def test_decay_of_all_reaches_biases_norms_and_embeddings(family: str) -> None:
    model = make_model(family=family, sentence_pair_head=True, layer_weighting="biased")
    everything = [name for name, _ in model.named_parameters()]
    (group,) = parameter_groups(model, replace(SETTINGS, decay="all", weight_decay=0.01))
    assert names_of(model, [group]) == [everything] and group["weight_decay"] == 0.01
    body, head = parameter_groups(model, replace(AS_BNC, decay="all", head_weight_decay=0.5))
    assert head["weight_decay"] == 0.5
    expected = {name for name in everything if name.startswith("head.")} | {WORD_EMBEDDING}
    assert set(names_of(model, [body, head])[1]) == expected


@pytest.mark.parametrize("family", ["ltg", "roberta"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("decay", ["matrices", "all"])
@pytest.mark.parametrize("reading", ["embedding", "output"])
@pytest.mark.parametrize("head_weight_decay", [None, 0.2])
def test_every_parameter_is_in_exactly_one_group(family, tied, decay, reading, head_weight_decay) -> None:
    model = make_model(family=family, tie_word_embeddings=tied, sentence_pair_head=True, layer_weighting="biased")
    settings = replace(SETTINGS, decay=decay, tied_embedding=reading, head_weight_decay=head_weight_decay)
    together = [name for names in names_of(model, parameter_groups(model, settings)) for name in names]
    assert sorted(together) == sorted(name for name, _ in model.named_parameters())


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
    decayed, undecayed = parameter_groups(model, replace(SETTINGS, weight_decay=0.4))
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


@pytest.mark.parametrize("reading", ["embedding", "output"])
def test_the_word_embedding_gets_the_trust_ratio_only_as_an_output_layer(reading: str) -> None:
    model = LanguageModel(model_config(SIZES))
    embedding = model.encoder.word_embedding.weight
    nn.init.constant_(embedding, 0.5)
    before = embedding.detach().clone()
    optimizer = build_optimizer(model, replace(SETTINGS, tied_embedding=reading, head_weight_decay=0.1))
    embedding.grad = torch.ones_like(embedding)
    optimizer.step()
    # Adam's first step moves each value by the learning rate. LAMB multiplies the learning rate by the norm, here of
    # values of 0.5.
    moved = 0.01 if reading == "embedding" else 0.01 * 0.5
    torch.testing.assert_close(before - embedding.detach(), torch.full_like(before, moved), rtol=1e-4, atol=0)


def test_gpt_berts_code_decays_all_but_biases_and_norms(golden_directory: Path) -> None:
    groups = json.loads((golden_directory / "gpt_bert" / "optimiser" / "lamb_steps.json").read_text("utf-8"))
    model = nn.Module()
    for name in (*groups["group_with_decay"]["names"], *groups["group_without_decay"]["names"]):
        model.register_parameter(name.replace(".", "_"), nn.Parameter(torch.zeros(1)))
    found = parameter_groups(model, OptimizerSettings(decay="weights", weight_decay=0.1))
    names = names_of(model, found)
    assert [group["weight_decay"] for group in found] == [0.1, 0.0]
    assert sorted(names[0]) == sorted(name.replace(".", "_") for name in groups["group_with_decay"]["names"])


@pytest.mark.parametrize("family", ["ltg", "roberta"])
def test_decay_of_weights_leaves_out_biases_and_norms_of_our_models_and_nothing_else(family: str) -> None:
    model = make_model(family=family, layer_weighting="biased", sentence_pair_head=True)
    decayed, undecayed = names_of(model, parameter_groups(model, replace(SETTINGS, decay="weights")))
    assert {name.rpartition(".")[2] for name in decayed} >= {"weight"} and WORD_EMBEDDING in decayed
    assert any("layer_weights" in name for name in decayed)
    assert all(name.endswith("bias") or "norm" in name for name in undecayed)
