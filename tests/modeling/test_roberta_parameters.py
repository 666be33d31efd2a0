"""The formulas for the size of a RoBERTa-like model against models that are built."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS
from hatchery.modeling.roberta.configuration import RobertaConfig
from hatchery.modeling.roberta.parameters import roberta_parameters

STUDY_ROWS = 19_010


def study_model(hidden: int, inner: int, layers: int, embedding: int | None = None) -> RobertaConfig:
    """A model of the study: untied where embeddings have a width of their own."""
    sizes = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": 1}
    tied = embedding is None
    return RobertaConfig(vocab_size=STUDY_ROWS, embedding_size=embedding, tie_word_embeddings=tied, **sizes)


def built(config: RobertaConfig) -> int:
    """Parameters of the model that would be trained; a shared matrix counts once."""
    with torch.device("meta"):
        model = LanguageModel(config)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("sizes", "untied"),
    [
        ((256, 256, 1024, 8), 16_237_122),
        ((256, 256, 128, 8), 12_559_938),
        ((32, 256, 1024, 8), 11_891_522),
        ((256, 32, 1024, 8), 6_105_154),
        ((256, 256, 1024, 1), 10_708_802),
        ((32, 32, 128, 2), 1_267_586),
        ((32, 32, 64, 1), 1_250_722),
    ],
)
def test_the_untied_formula_gives_the_sizes_of_the_study(sizes, untied):
    embedding, hidden, inner, layers = sizes
    assert roberta_parameters(study_model(hidden, inner, layers, embedding)) == untied


@pytest.mark.parametrize(
    ("intermediate_size", "tied"), [(1024, 11_304_258), (128, 7_627_074), (256, 8_152_386), (512, 9_203_010)]
)
def test_the_tied_formula_gives_the_sizes_of_the_study(intermediate_size, tied):
    assert roberta_parameters(study_model(256, intermediate_size, 8)) == tied


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, int]:
    """What all configurations have."""
    heads = draw(st.integers(1, 4))
    return {
        "vocab_size": draw(st.integers(2, 50)),
        "hidden_size": heads * draw(st.integers(2 if heads == 1 else 1, 6)),
        "intermediate_size": draw(st.integers(1, 30)),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": heads,
        "extra_vocabulary_rows": draw(st.integers(0, 12)),
        "max_position_embeddings": draw(st.integers(2, 140)),
        "type_vocab_size": draw(st.integers(1, 3)),
    }


@settings(max_examples=60, deadline=None)
@given(sizes(), st.booleans(), st.none() | st.integers(1, 24), st.data())
def test_the_formula_counts_the_parameters_of_every_configuration_as_built(common, tied, embedding_size, data):
    if tied and embedding_size is not None:
        embedding_size = common["hidden_size"]
    config = RobertaConfig(
        **common,
        embedding_size=embedding_size,
        tie_word_embeddings=tied,
        layer_weighting=data.draw(st.sampled_from(sorted(LAYER_WEIGHTINGS))),
        vocabulary_bias=data.draw(st.booleans()),
        sentence_pair_head=data.draw(st.booleans()),
    )
    assert roberta_parameters(config) == built(config)
