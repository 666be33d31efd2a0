"""The fast attention against the plain definition, and properties of the attention core on every code path."""

import pytest
import torch
from plain_attention import PlainAttention, PlainFeedForward
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hatchery.modeling.attention import AttentionInputs, Packing, attend, none_if_all_tokens
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.ltg.encoder import ltg_feed_forward
from hatchery.modeling.norm_and_dropout import Dropout
from hatchery.modeling.relative_positions import RelativePositions

BATCH, SIZE, HEADS = 3, 24, 3
LENGTHS = (1, 2, 17, 63, 130)
MASKS = ("none", "padded", "packed", "pairs")


class Case:
    """Both attentions with the same parameters, and their inputs; lengths 63 and 130 exceed the bucket table of 40."""

    def __init__(self, length: int, mask: str = "none", **choices):
        fields = {"position_bucket_size": 8, "max_position_embeddings": 40, "attention_probs_dropout_prob": 0.0}
        self.config = LtgBertConfig(
            vocab_size=50,
            hidden_size=SIZE,
            intermediate_size=40,
            num_hidden_layers=1,
            num_attention_heads=HEADS,
            **{**fields, **choices},
        )
        generator = torch.Generator().manual_seed(length)
        self.fast = DisentangledSelfAttention(self.config)
        for parameter in self.fast.parameters():
            torch.nn.init.normal_(parameter, std=SIZE**-0.5, generator=generator)
        positions = RelativePositions(8, 40)
        self.plain = PlainAttention(self.fast, self.config, positions.rows(length))
        rows = 2 * self.config.position_bucket_size - 1
        self.relative = torch.randn(rows, SIZE, generator=generator, requires_grad=True)
        hidden = torch.randn(BATCH, length, SIZE, generator=generator)
        keys = torch.arange(length) < torch.tensor([length, max(1, 2 * length // 3), max(1, length // 4)])[:, None]
        attended, packing = None, None
        if mask == "pairs":
            # Two sequences in one row, as packed segments are.
            part = (torch.arange(length) >= length // 2)[None].expand(BATCH, -1)
            attended = part[:, :, None] == part[:, None, :]
        elif mask != "none":
            attended = keys
        if mask == "packed":
            packing = Packing(keys.flatten().nonzero().squeeze(1), BATCH, length)
            hidden = packing.pack(hidden)
        self.hidden = hidden.requires_grad_()
        relative = self.relative if self.config.position_embedding == "relative" else None
        self.inputs = AttentionInputs(relative, positions(length), attended, packing)
        self.weights = torch.randn(hidden.shape, generator=generator) / hidden.numel() ** 0.5

    def results(self, attention) -> dict[str, torch.Tensor]:
        """Return the output, and the gradients of its weighted sum for all tensors that have a gradient."""
        leaves = {"hidden": self.hidden, "relative": self.relative, **dict(self.fast.named_parameters())}
        for leaf in leaves.values():
            leaf.grad = None
        output = attention(self.hidden, self.inputs)
        (output * self.weights).sum().backward()
        return {"output": output.detach(), **{k: v.grad for k, v in leaves.items() if v.grad is not None}}

    def check(self, attention, expected: dict[str, torch.Tensor]) -> None:
        results = self.results(attention)
        assert results.keys() == expected.keys()
        for name, result in results.items():
            torch.testing.assert_close(result, expected[name], atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("index", ["query_minus_key", "key_minus_query"])
@pytest.mark.parametrize("layout", ["bnc", "babylm"])
def test_outputs_and_gradients_are_those_of_the_plain_definition(layout, index, length, mask):
    case = Case(length, mask, position_head_layout=layout, position_to_content_index=index)
    case.check(case.fast, case.results(case.plain))


ABLATIONS = (
    {"normalisation": "pre_norm"},
    {"normalisation": "pre_norm", "block_norm_affine": True},
    {"normalisation": "post_norm"},
    {"position_embedding": "absolute"},
    {"position_embedding": "absolute", "normalisation": "post_norm"},
)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("choices", ABLATIONS, ids=lambda choices: "-".join(map(str, choices.values())))
def test_ablations_are_those_of_the_plain_definition(choices, mask):
    case = Case(17, mask, **choices)
    case.check(case.fast, case.results(case.plain))


def test_layouts_and_readings_differ():
    """If the outputs were equal, the comparisons above could not distinguish layouts and readings."""
    outputs = [
        Case(17, position_head_layout=layout, position_to_content_index=index)
        for layout in ("bnc", "babylm")
        for index in ("query_minus_key", "key_minus_query")
    ]
    outputs = [case.fast(case.hidden, case.inputs).detach() for case in outputs]
    for first in range(4):
        for second in range(first):
            assert not torch.allclose(outputs[first], outputs[second], atol=1e-3)


@pytest.mark.parametrize("mask", ["none", "padded", "pairs"])
def test_compiled_attention_computes_the_same_outputs_and_gradients(mask):
    """aot_eager traces forward and backward as compilers do, but does not need a compiler on the machine."""
    case = Case(17, mask)
    compiled = torch.compile(case.fast, backend="aot_eager", fullgraph=True)
    case.check(compiled, case.results(case.fast))


def test_no_tensor_of_every_pair_times_the_hidden_size_is_made():
    length = 130
    case = Case(length, "padded")
    with LargestTensor() as largest:
        case.results(case.fast)
    assert largest.n_elements <= BATCH * HEADS * length**2 < length**2 * SIZE
    with LargestTensor() as largest:
        case.results(case.plain)
    assert largest.n_elements >= length**2 * SIZE


def test_the_compiled_graphs_hold_no_tensor_of_every_pair_times_the_hidden_size_either():
    length, sizes = 130, []

    def compiler(graph, _):
        values = [node.meta.get("val") for node in graph.graph.nodes]
        sizes.append(max(leaf.numel() for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)))
        return make_boxed_func(graph.forward)

    case = Case(length, "padded")
    case.results(torch.compile(case.fast, backend=aot_autograd(fw_compiler=compiler), fullgraph=True))
    assert len(sizes) == 2, "one forward and one backward graph"
    assert max(sizes) <= BATCH * HEADS * length**2


class LargestTensor(TorchDispatchMode):
    """Record the size of the largest tensor that any operation returns, forward or backward."""

    n_elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.n_elements = max([self.n_elements, *sizes])
        return result


@pytest.mark.parametrize("position_embedding", ["relative", "absolute"])
@pytest.mark.parametrize("mask", MASKS)
def test_inference_computes_what_training_computes(mask, position_embedding):
    """Without gradients, the attention may choose another kernel."""
    case = Case(63, mask, position_embedding=position_embedding)
    expected = case.fast(case.hidden, case.inputs).detach()
    case.fast.eval()
    with torch.no_grad():
        torch.testing.assert_close(case.fast(case.hidden, case.inputs), expected, atol=1e-5, rtol=1e-5)
    with torch.inference_mode():
        torch.testing.assert_close(case.fast(case.hidden, case.inputs), expected, atol=1e-5, rtol=1e-5)


def test_packing_changes_nothing_at_the_tokens():
    padded, packed = Case(17, "padded"), Case(17, "packed")
    packing = packed.inputs.packing
    outputs = padded.fast(padded.hidden, padded.inputs)
    torch.testing.assert_close(packed.fast(packed.hidden, packed.inputs), packing.pack(outputs), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("mask_dimensions", [2, 3])
@pytest.mark.parametrize("position_embedding", ["relative", "absolute"])
@pytest.mark.parametrize("gradients", [False, True])
def test_a_row_that_may_attend_to_nothing_stays_finite(mask_dimensions, position_embedding, gradients):
    case = Case(17, position_embedding=position_embedding)
    mask = torch.ones((BATCH, 17, 17)[:mask_dimensions], dtype=torch.bool)
    mask[1] = False
    case.inputs = case.inputs._replace(mask=mask)
    if gradients:
        assert all(result.isfinite().all() for result in case.results(case.fast).values())
    else:
        with torch.no_grad():
            assert case.fast(case.hidden, case.inputs).isfinite().all()


@pytest.mark.parametrize("keeps", [False, True])
def test_a_query_without_any_key_has_probabilities_and_context_of_zero(keeps):
    """By hand: scores 0 and ln 3 are probabilities of 1/4 and 3/4; the second query sees no key, the third sees the
    first key."""
    query = torch.ones(1, 1, 3, 1)
    key = torch.tensor([1.0, 3.0, 1.0]).log().view(1, 1, 3, 1)
    value = torch.tensor([4.0, 8.0, 100.0]).view(1, 1, 3, 1)
    mask = torch.tensor([[[True, True, False], [False, False, False], [True, False, False]]])
    kept = [] if keeps else None
    context = attend(query, key, value, 1.0, mask, Dropout(0.0), None, kept)
    torch.testing.assert_close(context.flatten(), torch.tensor([0.25 * 4 + 0.75 * 8, 0.0, 4.0]))
    if keeps:
        expected = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        torch.testing.assert_close(kept[0][0, 0], expected)


def test_hidden_keys_and_queries_have_no_influence():
    case = Case(17, "padded")
    tokens = case.inputs.mask
    output = case.fast(case.hidden, case.inputs)
    scrambled = case.hidden.detach().where(tokens[:, :, None], 7.0)
    assert torch.equal(case.fast(scrambled, case.inputs)[tokens], output[tokens])


def test_probabilities_are_dropped_and_keep_their_mean():
    torch.manual_seed(1)
    query, key = torch.randn(2, 2, 4, 40, 8).unbind(0)
    context = attend(query, key, torch.ones(2, 4, 40, 8), 1.0, None, Dropout(0.3))
    assert float(context.std(dim=2).mean()) > 0.05
    assert float(context.mean()) == pytest.approx(1, abs=0.05)
    # The standard error of a share of 0.3 among 40,000 is 0.0023.
    assert float((Dropout(0.3)(torch.ones(200, 200)) == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    torch.testing.assert_close(
        attend(query, key, torch.ones(2, 4, 40, 8), 1.0, None, Dropout(0.3).eval()), torch.ones(2, 4, 40, 8)
    )


def test_the_attention_mask_is_dropped_only_where_it_hides_nothing():
    mask = torch.ones(2, 5, dtype=torch.bool)
    assert none_if_all_tokens(None) is None and none_if_all_tokens(mask) is None
    mask[0, 4] = False
    assert none_if_all_tokens(mask) is mask


def test_packing_and_unpacking_are_inverse():
    packing = Packing(torch.tensor([0, 2, 5]), 2, 3)
    values = torch.randn(3, 4)
    laid_out = packing.unpack(values)
    assert laid_out.shape == (2, 3, 4)
    assert torch.equal(packing.pack(laid_out), values)
    assert not laid_out.flatten(0, 1)[[1, 3, 4]].any()


CHOICES = (
    {},
    {"position_head_layout": "bnc"},
    {"position_to_content_index": "key_minus_query"},
    {"attention_probs_dropout_prob": 0.3},
    *ABLATIONS,
)


def errors(results: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """Return the relative error of each tensor, computed with norms of whole tensors."""
    assert results.keys() == expected.keys()
    return {name: float((results[name] - expected[name]).norm() / expected[name].norm()) for name in expected}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("choices", CHOICES, ids=lambda choices: "-".join(map(str, choices.values())) or "final")
def test_outputs_and_gradients_of_attention_in_bf16_are_those_of_full_precision(choices, mask) -> None:
    """With dropout, both precisions drop the same probabilities."""
    case = Case(63, mask, **choices)
    torch.manual_seed(1)
    expected = case.results(case.fast)
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        results = case.results(case.fast)
    assert results["output"].dtype == expected["output"].dtype or case.fast.post_layer_norm is None
    assert max(errors(results, expected).values()) < 0.03


def test_outputs_and_gradients_of_the_feed_forward_block_are_those_of_the_plain_definition() -> None:
    torch.manual_seed(2)
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3}
    config = LtgBertConfig(vocab_size=9, hidden_dropout_prob=0.0, **sizes)
    module = ltg_feed_forward(config)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    hidden, weights = torch.randn(3, 5, 24, requires_grad=True), torch.randn(3, 5, 24)

    def results(module: nn.Module) -> dict[str, Tensor]:
        hidden.grad = None
        module.zero_grad()
        output = module(hidden)
        (output * weights).sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
        return {"output": output.detach(), "hidden": hidden.grad.clone(), **gradients}

    expected = results(PlainFeedForward(module, config))
    assert max(errors(results(module), expected).values()) < 1e-5
    with torch.autocast("cpu", torch.bfloat16):
        assert max(errors(results(module), expected).values()) < 0.02


@pytest.mark.parametrize("shape", [(3, 5), (4, 64)])
def test_what_is_dropped_does_not_depend_on_the_precision(shape) -> None:
    dropped = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        torch.manual_seed(4)
        dropped.append(Dropout(0.4)(torch.ones(shape, dtype=dtype)) == 0)
    assert all(torch.equal(dropped[0], other) for other in dropped) and dropped[0].any()
