"""Our models against numbers and names of the authors' code: LTG-BERT (BNC and BabyLM) and ELC-BERT."""

import numpy as np
import pytest
import torch

from hatchery.errors import ModelError
from hatchery.modeling.ltg.published_names import from_published, our_name, published_name, to_published

WEIGHTINGS = ("none", "biased", "zero", "normalized", "weighted_output")


def table(model) -> torch.Tensor:
    return model.encoder.relative_positions.rows(64)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_names_survive_the_way_there_and_back(make_model, weighting, pairs):
    model = make_model(layer_weighting=weighting, sentence_pair_head=pairs)
    state = model.state_dict()
    published = to_published(state, table(model))
    back = from_published(published)
    assert back.keys() == state.keys()
    assert all(back[name] is state[name] for name in state)
    for name in state:
        assert our_name(published_name(name, 3), 3) == name


def test_the_golden_names_are_those_that_we_write(load_golden):
    for path, weighting in (("ltg_bert/tiny_eps1e-5", "none"), ("elc_bert/zero", "zero")):
        golden = load_golden(path, layer_weighting=weighting)
        published = {name.removeprefix("state."): a for name, a in golden.arrays.items() if name.startswith("state.")}
        written = to_published(golden.model.state_dict(), golden.model.encoder.relative_positions.rows(64))
        assert written.keys() == published.keys()
        for name, tensor in written.items():
            assert torch.equal(tensor, torch.from_numpy(published[name])), name


def test_a_pair_head_of_another_name_is_known_by_its_shapes(make_model):
    model = make_model(sentence_pair_head=True)
    published = to_published(model.state_dict(), table(model))
    renamed = {name.replace("nsp_classifier.nonlinearity", "order_head.layers"): t for name, t in published.items()}
    assert renamed.keys() != published.keys()
    assert from_published(renamed).keys() == model.state_dict().keys()
    renamed["order_head.layers.5.weight"] = torch.zeros(2, 24)
    with pytest.raises(
        ModelError,
        match=r"order_head\.layers\.\d\.\w+: no tensor of Hatchery's model has this published name, expected the name",
    ):
        from_published(renamed)


@pytest.mark.parametrize(
    "changes",
    [
        {"tie_word_embeddings": False},
        {"position_embedding": "absolute"},
    ],
)
def test_an_ablation_has_no_published_names(make_model, changes):
    with pytest.raises(ModelError, match="no tensor of the published code corresponds to this tensor"):
        to_published(make_model(**changes).state_dict(), torch.zeros(64, 64))


@pytest.mark.parametrize("name", ["transformer.prev_layer_weights", "transformer.layers.0.extra", "head.weight"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(ModelError, match=name):
        our_name(name)


LTG_BERT = ("ltg_bert/tiny_eps1e-5", "ltg_bert/tiny_eps1e-7_T40")
MODELS = (
    *((path, {"position_head_layout": "bnc"}) for path in LTG_BERT),
    ("elc_bert/base", {"layer_weighting": "biased"}),
    ("elc_bert/zero", {"layer_weighting": "zero"}),
)


def close(ours: torch.Tensor, published: np.ndarray, atol: float, rtol: float = 0.0) -> None:
    torch.testing.assert_close(ours.detach(), torch.from_numpy(np.asarray(published)), atol=atol, rtol=rtol)


def check_outputs(golden, outputs) -> None:
    """Compare hidden states, logits at every position and the mean loss with the published `outputs`, which are time
    first."""
    states = golden.model.encoder(golden.input_ids, golden.attention_mask)
    close(torch.stack(states).transpose(1, 2), outputs["hidden_states"], atol=1e-5)
    close(golden.model.logits_at(states[-1]).transpose(0, 1), outputs["logits"], atol=1e-5)
    result = golden.model(golden.input_ids, golden.attention_mask, golden.labels)
    close(result.loss_sum / result.n_labelled, outputs["loss"], atol=5e-6)


@pytest.mark.parametrize(("path", "choices"), MODELS)
def test_hidden_states_logits_and_loss_are_the_published_ones(load_golden, path, choices):
    golden = load_golden(path, **choices)
    check_outputs(golden, golden.arrays)


@pytest.mark.parametrize("path", LTG_BERT)
def test_the_babylm_layout_gives_the_outputs_of_the_babylm_code(load_golden, golden_directory, path):
    golden = load_golden(path, position_head_layout="babylm")
    check_outputs(golden, np.load(golden_directory / f"{path}.babylm_outputs.npz"))


@pytest.mark.parametrize(("path", "choices"), MODELS)
def test_gradients_are_the_published_ones(load_golden, path, choices):
    golden = load_golden(path, **choices)
    golden.model.train()
    result = golden.model(golden.input_ids, golden.attention_mask, golden.labels)
    (result.loss_sum / result.n_labelled).backward()
    parameters = dict(golden.model.named_parameters())
    compared = 0
    for key in golden.arrays:
        if key.startswith("grad."):
            close(parameters[our_name(key.removeprefix("grad."))].grad, golden.arrays[key], atol=5e-6, rtol=1e-4)
            compared += 1
    assert compared >= 3
    norms = golden.facts["grad_l2_norm_float32"]
    assert {our_name(name) for name in norms} == set(parameters)
    for name, norm in norms.items():
        assert float(parameters[our_name(name)].grad.norm()) == pytest.approx(norm, rel=1e-4, abs=5e-6)


@pytest.mark.parametrize("path", LTG_BERT)
def test_relative_embedding_and_attention_scores_are_the_published_ones(load_golden, path):
    golden = load_golden(path, position_head_layout="bnc")
    encoder = golden.model.encoder
    tokens, relative = encoder.embedding(golden.input_ids)
    close(relative, golden.arrays["relative_embedding_normed"], atol=1e-5)
    attention = encoder.layers[0].attention
    positions = encoder.relative_positions(golden.input_ids.shape[1])
    scores = attention.scores(attention.pre_layer_norm(tokens), relative, positions)
    close(scores, golden.arrays["attention_scores_layer0"], atol=1e-5)


@pytest.mark.parametrize(("path", "name"), [("elc_bert/base", "biased"), ("elc_bert/zero", "zero")])
def test_layer_weights_start_and_mix_as_published(load_golden, path, name):
    golden = load_golden(path, layer_weighting=name)
    mixture = golden.model.encoder.mixture
    for layer in range(4):
        key = f"transformer.layers.{layer}.prev_layer_weights"
        close(mixture.alphas(layer + 1), golden.arrays[f"alpha.{key}"], atol=1e-6)
    mixture.reset_parameters()
    for layer in range(4):
        key = f"transformer.layers.{layer}.prev_layer_weights"
        close(mixture.layer_weights[layer], golden.arrays[f"init.{key}"], atol=0.0)
