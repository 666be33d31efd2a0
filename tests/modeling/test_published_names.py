"""Names of the published code and ours, both ways."""

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
    with pytest.raises(ModelError, match=r"order_head\.layers\.\d\.\w+: not a tensor of the published"):
        from_published(renamed)


@pytest.mark.parametrize(
    "changes",
    [
        {"tie_word_embeddings": False},
        {"feed_forward_bias": True},
        {"normalisation": "post_norm"},
        {"head_scaling": True},
        {"position_embedding": "absolute"},
    ],
)
def test_an_ablation_has_no_published_names(make_model, changes):
    with pytest.raises(ModelError, match="the published code has no such tensor"):
        to_published(make_model(**changes).state_dict(), torch.zeros(64, 64))


@pytest.mark.parametrize("name", ["transformer.prev_layer_weights", "transformer.layers.0.extra", "head.weight"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(ModelError, match=name):
        our_name(name)
