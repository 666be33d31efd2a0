"""Plain modern transformers against Llama, Qwen3 and ModernBERT of `transformers`, and their options written out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import ConfigError
from hatchery.modeling.families import model_config
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.norm_and_dropout import Dropout

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 64,
}


@pytest.fixture
def make(make_model: Callable[..., LanguageModel]) -> Callable[..., LanguageModel]:
    """A small model of the family."""
    return partial(make_model, family="modern", disturbed=0.1)


def states_and_logits(model: LanguageModel, ids: Tensor, mask: Tensor) -> tuple[list[Tensor], Tensor]:
    states = model.encoder(ids, mask)
    return states, model.logits_at(states[-1])


@pytest.mark.parametrize("kind", ["Llama", "Qwen3"])
def test_causal_models_are_llama_and_with_normalised_heads_qwen3(make: Any, batch: Any, kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    ids, mask, _ = batch
    ours = make(
        causal=True,
        query_key_norm=kind == "Qwen3",
        tie_word_embeddings=False,
        vocabulary_bias=False,
        rotary_base=500.0,
        layer_norm_eps=1e-4,
    ).eval()
    config = getattr(transformers, f"{kind}Config")(
        **SIZES, rms_norm_eps=1e-4, rope_theta=500.0, num_key_value_heads=3, head_dim=8, tie_word_embeddings=False
    )
    # Version 4 of `transformers` reads `rope_theta`; version 5 reads `rope_parameters`.
    if hasattr(config, "rope_parameters"):
        config.rope_parameters = {"rope_type": "default", "rope_theta": 500.0}
    theirs = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    weights = {}
    for name, parameter in ours.named_parameters():
        parameter = parameter.detach()
        if name.endswith("input_projection.weight"):
            up, gate = parameter.chunk(2)
            stem = name.removesuffix("feed_forward.input_projection.weight").replace("encoder.", "model.")
            weights |= {f"{stem}mlp.up_proj.weight": up, f"{stem}mlp.gate_proj.weight": gate}
            continue
        weights[in_llama(name)] = parameter
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected and not [name for name in missing if "rotary" not in name]
    expected = theirs(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
    states, logits = states_and_logits(ours, ids, mask)
    # The last state of `transformers` is normalised.
    for state, reference in zip(states[:-1], expected.hidden_states[:-1], strict=True):
        torch.testing.assert_close(state[mask], reference[mask], atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(logits[mask], expected.logits[mask], atol=2e-5, rtol=1e-5)


def in_llama(name: str) -> str:
    for ours, theirs in (
        ("encoder.embedding.word_embedding", "model.embed_tokens"),
        ("encoder.layers", "model.layers"),
        ("attention.pre_layer_norm", "input_layernorm"),
        ("feed_forward.pre_layer_norm", "post_attention_layernorm"),
        ("feed_forward.output_projection", "mlp.down_proj"),
        ("attention.query_projection", "self_attn.q_proj"),
        ("attention.key_projection", "self_attn.k_proj"),
        ("attention.value_projection", "self_attn.v_proj"),
        ("attention.output_projection", "self_attn.o_proj"),
        ("attention.query_norm", "self_attn.q_norm"),
        ("attention.key_norm", "self_attn.k_norm"),
        ("head.pre_layer_norm", "model.norm"),
        ("head.vocabulary_weight", "lm_head.weight"),
    ):
        name = name.replace(ours, theirs)
    return name


def test_masked_models_are_modernbert(make: Any, batch: Any) -> None:
    transformers = pytest.importorskip("transformers")
    ids, mask, labels = batch
    ours = make(
        normalisation="layer_norm",
        feed_forward_activation="geglu",
        query_key_norm=False,
        embedding_norm=True,
        output_transform=True,
        rotary_base=160_000.0,
    ).eval()
    config = transformers.ModernBertConfig(
        **SIZES,
        norm_eps=1e-5,
        global_attn_every_n_layers=1,
        attention_dropout=0.0,
        pad_token_id=3,
        attn_implementation="eager",
        reference_compile=False,
    )
    theirs = transformers.ModernBertForMaskedLM(config).eval()
    # ModernBERT's first layer has no norm before the attention; this norm is added to match our layers.
    theirs.model.layers[0].attn_norm = torch.nn.LayerNorm(24, eps=1e-5, bias=False)
    values = {name: parameter.detach() for name, parameter in ours.named_parameters()}
    weights = {
        "model.embeddings.tok_embeddings.weight": values["encoder.embedding.word_embedding.weight"],
        "model.embeddings.norm.weight": values["encoder.embedding.layer_norm.weight"],
        "model.final_norm.weight": values["head.pre_layer_norm.weight"],
        "head.dense.weight": values["head.linear.weight"],
        "head.norm.weight": values["head.post_layer_norm.weight"],
        "decoder.bias": values["head.vocabulary_bias"],
    }
    for number in range(3):
        layer, there = f"encoder.layers.{number}", f"model.layers.{number}"
        parts = [values[f"{layer}.attention.{part}_projection.weight"] for part in ("query", "key", "value")]
        up, gate = values[f"{layer}.feed_forward.input_projection.weight"].chunk(2)
        weights |= {
            f"{there}.attn_norm.weight": values[f"{layer}.attention.pre_layer_norm.weight"],
            f"{there}.attn.Wqkv.weight": torch.cat(parts),
            f"{there}.attn.Wo.weight": values[f"{layer}.attention.output_projection.weight"],
            f"{there}.mlp_norm.weight": values[f"{layer}.feed_forward.pre_layer_norm.weight"],
            f"{there}.mlp.Wi.weight": torch.cat([gate, up]),
            f"{there}.mlp.Wo.weight": values[f"{layer}.feed_forward.output_projection.weight"],
        }
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"decoder.weight"}
    theirs.tie_weights()
    expected = theirs(input_ids=ids, attention_mask=mask.long()).logits
    _, logits = states_and_logits(ours, ids, mask)
    torch.testing.assert_close(logits[mask], expected[mask], atol=2e-5, rtol=1e-5)
    output = ours(ids, mask, labels)
    found = torch.autograd.grad(
        output.loss_sum, [dict(ours.named_parameters())["encoder.layers.1.attention.query_projection.weight"]]
    )
    loss = F.cross_entropy(expected.flatten(0, 1), labels.flatten(), reduction="sum")
    reference = torch.autograd.grad(loss, [theirs.model.layers[1].attn.Wqkv.weight])
    torch.testing.assert_close(found[0], reference[0][:24], atol=2e-5, rtol=1e-4)


def written_out(
    model: LanguageModel, ids: list[int], causal: bool, kept: float = 1.0, kept_probabilities: float = 1.0
) -> Tensor:
    """Return the logits [T, V] of one text: complex rotations, one head at a time, all three options on.

    Where dropout acts, the values are multiplied by the probability of keeping an element.
    """
    weights = {name: parameter.double() for name, parameter in model.named_parameters()}
    length, width, layers = len(ids), 8, 3

    def norm(x: Tensor, name: str) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weights[f"{name}.weight"]

    def turned(x: Tensor) -> Tensor:
        pairs = torch.complex(x[:, : width // 2], x[:, width // 2 :])
        wavelengths = 10_000.0 ** (torch.arange(width // 2, dtype=torch.float64) * 2 / width)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / wavelengths
        found = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([found.real, found.imag], dim=1)

    x = kept * weights["encoder.embedding.word_embedding.weight"][ids]
    states, first_values = [x], None
    for number in range(layers):
        layer = f"encoder.layers.{number}"
        if number == 2:  # the third of three layers has a skip connection from the first
            x = x + weights["encoder.skip_residual_scales.0"] * states[1]
        y = norm(x, f"{layer}.attention.pre_layer_norm")
        query, key, value = (
            y @ weights[f"{layer}.attention.{p}_projection.weight"].T for p in ("query", "key", "value")
        )
        if first_values is None:
            first_values = value
        else:
            share = weights[f"{layer}.attention.value_residual_scale"]
            value = (1 - share) * value + share * first_values
        gates = torch.sigmoid(y @ weights[f"{layer}.attention.gate_projection.weight"].T)
        contexts = []
        for head in range(3):
            columns = slice(head * width, (head + 1) * width)
            turned_query = turned(norm(query[:, columns], f"{layer}.attention.query_norm"))
            turned_key = turned(norm(key[:, columns], f"{layer}.attention.key_norm"))
            scores = turned_query @ turned_key.T / width**0.5
            if causal:
                scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
            contexts.append(gates[:, head, None] * (kept_probabilities * scores.softmax(-1) @ value[:, columns]))
        x = x + kept * torch.cat(contexts, dim=1) @ weights[f"{layer}.attention.output_projection.weight"].T
        y = norm(x, f"{layer}.feed_forward.pre_layer_norm")
        up, gate = (y @ weights[f"{layer}.feed_forward.input_projection.weight"].T).chunk(2, dim=-1)
        x = x + kept * (up * gate * torch.sigmoid(gate)) @ weights[f"{layer}.feed_forward.output_projection.weight"].T
        states.append(x)
    features = norm(x, "head.pre_layer_norm")
    return features @ weights["encoder.embedding.word_embedding.weight"].T + weights["head.vocabulary_bias"]


@pytest.mark.parametrize("causal", [False, True])
def test_the_switches_are_their_formulas(make: Any, batch: Any, causal: bool) -> None:
    ids, mask, _ = batch
    model = make(causal=causal, value_residual=True, head_gate=True, unet_skips=True).double().eval()
    _, logits = states_and_logits(model, ids, mask)
    rows = torch.tensor([4, 12 + 3])
    some = model.logits_at(model.encoder.hidden_at(ids, mask, rows, few=True))
    for number, length in enumerate(mask.sum(dim=1).tolist()):
        expected = written_out(model, ids[number, :length].tolist(), causal)
        torch.testing.assert_close(logits[number, :length], expected, atol=1e-6, rtol=1e-6)
        if number < 2:
            torch.testing.assert_close(some[number], expected[int(rows[number]) % 12], atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_what_is_dropped_in_training_is_dropped_where_the_formulas_say_and_at_its_own_rate(
    make: Any, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dropout, "forward", lambda dropout, values: values * (1 - dropout.probability))
    rates = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.6}
    model = make(value_residual=True, head_gate=True, unet_skips=True, **rates).double().train()
    ids = batch[0][0]
    found = model.logits_at(model.encoder(ids[None])[-1])[0]
    torch.testing.assert_close(found, written_out(model, ids.tolist(), False, 0.7, 0.4), atol=1e-6, rtol=1e-6)
    normed = make(embedding_norm=True, normalisation="layer_norm", **rates).double().train()
    words = normed.encoder.embedding.word_embedding.weight[ids]
    gain = normed.encoder.embedding.layer_norm.weight
    expected = 0.7 * gain * (words - words.mean(-1, keepdim=True)) / (words.var(-1, False, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(normed.encoder(ids[None])[0][0], expected)


def test_switches_that_are_off_add_no_parameter(make: Any) -> None:
    plain = {name for name, _ in make().named_parameters()}
    found = {name for name, _ in make(value_residual=True, head_gate=True, unet_skips=True).named_parameters()}
    added = {name.rpartition("layers.")[2] for name in found - plain}
    gates = {f"{number}.attention.gate_projection.weight" for number in range(3)}
    mixes = {f"{number}.attention.value_residual_scale" for number in (1, 2)}
    assert plain < found and added == gates | mixes | {"encoder.skip_residual_scales.0"}


def test_initial_weights_are_truncated_normals_and_smaller_where_they_enter_the_residual_stream() -> None:
    sizes = {**SIZES, "family": "modern", "num_hidden_layers": 8}
    model = LanguageModel(model_config({**sizes, "value_residual": True, "unet_skips": True, "output_transform": True}))
    initialise_(model, 1)
    for name, parameter in ((name, parameter.detach()) for name, parameter in model.named_parameters()):
        if parameter.dim() >= 2:
            # A normal distribution truncated at two standard deviations has 0.8796 of the standard deviation; 8 layers
            # have 16 blocks.
            deviation = 0.02 / (4 if name.endswith("output_projection.weight") else 1)
            assert float(parameter.std()) == pytest.approx(0.8796 * deviation, rel=0.2), name
            assert float(parameter.abs().max()) <= 2 * deviation, name
        else:
            constant = 0.0 if "bias" in name else 0.5 if name.endswith("value_residual_scale") else 1.0
            assert (parameter == constant).all(), name


def test_what_does_not_fit_is_refused() -> None:
    for changes, key in (
        ({"hidden_size": 9, "num_attention_heads": 3}, "num_attention_heads"),
        ({"unet_skips": True, "layer_weighting": "biased"}, "layer_weighting"),
    ):
        with pytest.raises(ConfigError, match=key):
            model_config({**SIZES, "family": "modern", **changes})


def test_sequences_skip_layers_in_training_as_often_as_asked_and_the_mean_is_kept(make: Any) -> None:
    model = make(stochastic_depth=0.6)
    encoder, plain = model.encoder, make().encoder.eval()
    ids = torch.arange(6, 14)[None].expand(600, -1)
    torch.testing.assert_close(encoder.eval()(ids)[-1], plain(ids)[-1])
    torch.manual_seed(0)
    states = encoder.train()(ids)
    for number, probability in enumerate((0.2, 0.4, 0.6)):
        skipped = (states[number + 1] == states[number]).all(dim=2).all(dim=1)
        assert float(skipped.double().mean()) == pytest.approx(probability, abs=0.06)
        # The output of a layer that is not skipped is scaled up, as in the formula.
        given = encoder.layers[number].eval()(states[number], encoder.embed(ids, None)[1]) - states[number]
        expected = states[number] + given / (1 - probability)
        torch.testing.assert_close(states[number + 1][~skipped], expected[~skipped], atol=1e-5, rtol=1e-4)


def test_padding_that_is_left_out_skips_with_its_sequence_and_tasks_skip_nothing(make: Any, batch: Any) -> None:
    ids, mask, _ = batch
    encoder = make(stochastic_depth=0.9).encoder.train()
    rows = mask.flatten().nonzero().squeeze(1)
    torch.manual_seed(3)
    packed = encoder.hidden_at(ids, mask, rows)
    torch.manual_seed(3)
    torch.testing.assert_close(packed, encoder(ids, mask)[-1][mask])
    encoder.set_dropout(0.3)
    assert [(layer.probability, layer.attention.output_dropout.probability) for layer in encoder.layers] == [
        (0.0, 0.3)
    ] * 3
    encoder.set_dropout(0.0)
    torch.testing.assert_close(encoder(ids, mask)[-1], encoder.eval()(ids, mask)[-1])
