"""FlexAttention with the position tables in its `score_mod` gives the same output as our attention, on the CPU."""

import pytest
import torch
from torch import Tensor, nn

from benchmarks.flex_attention import FlexSelfAttention
from hatchery.modeling.attention import AttentionInputs, with_causal_mask
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.relative_positions import RelativePositions

BATCH, SIZE = 3, 32


def attention_and_inputs(length: int, mask: Tensor | None, **changes: str) -> tuple[nn.Module, Tensor, AttentionInputs]:
    torch.manual_seed(3)
    config = LtgBertConfig(
        vocab_size=1,
        hidden_size=SIZE,
        intermediate_size=1,
        num_hidden_layers=1,
        num_attention_heads=2,
        position_bucket_size=8,
        max_position_embeddings=32,
        **changes,
    )
    attention = DisentangledSelfAttention(config).eval()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.3)
    positions = RelativePositions(config.position_bucket_size, config.max_position_embeddings)(length)
    table = torch.randn(2 * config.position_bucket_size - 1, SIZE)
    return attention, torch.randn(BATCH, length, SIZE), AttentionInputs(table, positions, mask)


def masks(length: int) -> dict[str, Tensor | None]:
    tokens = torch.arange(length) < torch.tensor([length, length // 2, 1])[:, None]
    return {
        "all": None,
        "padding": tokens,
        "past": with_causal_mask(None, True, length, torch.device("cpu")),
        "pieces": tokens[:, :, None] & tokens[:, None, :],
    }


@pytest.mark.parametrize("mask", ["all", "padding", "past", "pieces"])
@pytest.mark.parametrize("length", [5, 48])
def test_its_output_is_that_of_our_attention_for_every_mask(length: int, mask: str) -> None:
    attention, hidden, inputs = attention_and_inputs(length, masks(length)[mask])
    with torch.no_grad():
        ours, flex = attention(hidden, inputs), FlexSelfAttention(attention)(hidden, inputs)
    # For queries that may attend to no key, both outputs are finite but meaningless.
    seen = torch.ones(BATCH, length, dtype=torch.bool) if mask != "pieces" else masks(length)["padding"]
    assert flex.isfinite().all()
    torch.testing.assert_close(flex[seen], ours[seen], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize(
    "changes", [{"position_head_layout": "bnc"}, {"position_to_content_index": "key_minus_query"}], ids=str
)
def test_its_output_is_that_of_our_attention_for_both_readings_of_the_positions(changes: dict[str, str]) -> None:
    attention, hidden, inputs = attention_and_inputs(20, None, **changes)
    with torch.no_grad():
        torch.testing.assert_close(
            FlexSelfAttention(attention)(hidden, inputs), attention(hidden, inputs), atol=2e-6, rtol=1e-5
        )


def test_a_processor_refuses_its_gradients_so_they_are_compared_on_gpus_alone() -> None:
    attention, hidden, inputs = attention_and_inputs(8, None)
    # PyTorch's own error: its FlexAttention has no backward pass on a CPU.
    with pytest.raises(NotImplementedError, match="CPU"):
        FlexSelfAttention(attention)(hidden, inputs)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_its_gradients_are_those_of_our_attention_on_a_gpu() -> None:
    attention, hidden, inputs = attention_and_inputs(128, None)
    attention, hidden = attention.cuda(), hidden.cuda()
    positions = inputs.positions._replace(
        by_query=inputs.positions.by_query.cuda(), by_key=inputs.positions.by_key.cuda()
    )
    inputs = AttentionInputs(inputs.relative_embedding.cuda(), positions)
    flex = FlexSelfAttention(attention, torch.compile(torch.nn.attention.flex_attention.flex_attention))
    gradients = []
    for module in (attention, flex):
        attention.zero_grad()
        module(hidden, inputs).square().sum().backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in attention.named_parameters()})
    for name, gradient in gradients[0].items():
        assert (gradients[1][name] - gradient).norm() <= 1e-3 * gradient.norm(), name
