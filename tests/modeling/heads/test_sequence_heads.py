"""Heads with one vector per sequence: the published heads written out, and pinned results of earlier versions."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from head_cases import PAD

from hatchery.errors import ConfigError, EvaluationError, ModelError
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.heads.registry import build_task_model, read_pooling
from hatchery.modeling.heads.sequence_classifier import (
    ChoiceOptions,
    FirstToken,
    LastToken,
    MeanOverTokens,
    MultipleChoice,
    PositionLinear,
    RegressionOptions,
    SequenceClassifier,
    SequenceOptions,
    SequenceRegressor,
)
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE, Number
from hatchery.modeling.heads.task_model import TRANSFORMS, HeadContext, ScoreHead, TaskModel, initialise_as_pytorch_
from hatchery.modeling.norm_and_dropout import Dropout

# Measured with the first version of the classifier (make_model(), 3 labels, dropout 0.1, seed 5), before heads were
# composed of parts. The digest is computed from the names and bytes of all parameters, in order.
PINNED_DIGEST = "7c3406f36135b84f5bb5db68a4d3bc302e772e4917a9f3f956eb9aca5744dc93"
PINNED_LOGITS = [
    [-0.5605255961418152, 0.40021103620529175, -0.12335183471441269],
    [0.28803762793540955, 0.13046902418136597, -0.10792768001556396],
    [-0.464334636926651, -0.6715291738510132, 0.051945269107818604],
]


def test_names_initial_weights_and_logits_of_the_default_head_have_not_changed(make_model, batch):
    model = SequenceClassifier(make_model().encoder, HeadContext(3, 0.1, 5, PAD), SequenceOptions()).eval()
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().numpy().tobytes())
    assert digest.hexdigest() == PINNED_DIGEST
    torch.testing.assert_close(model(*batch[:2]), torch.tensor(PINNED_LOGITS), atol=1e-6, rtol=0)


def normalised(x):
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-7).sqrt()


def dense(layer, x):
    return x @ layer.weight.T + layer.bias


PLAIN = {
    "ltg_wrapper": lambda head, x: normalised(F.gelu(dense(head.linear, normalised(x)))),
    "ltg_code": lambda head, x: normalised(dense(head.linear, x).clamp(min=0)),
    "roberta": lambda head, x: torch.tanh(dense(head.linear, x)),
    "none": lambda head, x: x,
    "probe": lambda head, x: F.gelu(dense(head.linear, x)),
}


@pytest.mark.parametrize("transform", PLAIN)
def test_transforms_are_the_published_ones(transform):
    torch.manual_seed(0)
    head, x = ScoreHead(16, 4, 1e-7, transform).eval(), torch.randn(5, 16)
    torch.testing.assert_close(head(x), dense(head.output, PLAIN[transform](head, x)), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("transform", "drops"), [("ltg_wrapper", 1), ("ltg_code", 2), ("roberta", 2), ("none", 0), ("probe", 1)]
)
def test_transforms_drop_where_the_published_ones_do(monkeypatch, transform, drops):
    head, widths = ScoreHead(16, 4, 1e-7, transform, hidden_size=8), []
    monkeypatch.setattr(head.dropout, "forward", lambda x: widths.append(x.shape[-1]) or x)
    head(torch.randn(2, 16))
    assert widths == {0: [], 1: [8], 2: [16, 8]}[drops]


def test_the_first_token_is_the_last_state_of_position_0(make_encoder, tokens):
    encoder = make_encoder()
    torch.testing.assert_close(FirstToken()(encoder, *tokens), encoder(*tokens)[-1][:, 0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_the_last_token_is_the_last_state_before_the_padding(make_encoder, tokens, causal):
    encoder, (ids, mask) = make_encoder(causal=causal), tokens
    states = encoder(ids, mask)[-1]
    expected = torch.stack([states[i, n - 1] for i, n in enumerate((12, 9, 5))])
    torch.testing.assert_close(LastToken()(encoder, ids, mask), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(LastToken()(encoder, ids[:1], None), expected[:1], atol=1e-6, rtol=0)


def test_the_last_token_is_the_last_one_where_the_padding_is_in_front(make_encoder, tokens):
    encoder, (ids, mask) = make_encoder(causal=True), (each.flip(1) for each in tokens)
    expected = encoder(ids, mask)[-1][:, -1]
    torch.testing.assert_close(LastToken()(encoder, ids, mask), expected, atol=1e-6, rtol=0)


def test_the_mean_is_over_tokens_alone(make_encoder, tokens):
    encoder, (ids, mask) = make_encoder(), tokens
    states = encoder(ids, mask)[-1]
    expected = torch.stack([states[i, :n].mean(0) for i, n in enumerate((12, 9, 5))])
    torch.testing.assert_close(MeanOverTokens()(encoder, ids, mask), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(MeanOverTokens()(encoder, ids[:1], None), expected[:1], atol=1e-6, rtol=0)


@pytest.mark.parametrize("attend", [True, False])
def test_the_position_layer_weighs_padding_too(make_encoder, tokens, attend):
    """The published head is one linear layer over all positions, without an attention mask."""
    encoder, (ids, mask) = make_encoder(), tokens
    pooling = PositionLinear(16, pad_id=1, attend_padding=attend)
    padded, padded_mask = F.pad(ids, (0, 4), value=1), F.pad(mask, (0, 4))
    states = encoder(padded, None if attend else padded_mask)[-1]
    weights = pooling.position_weights
    expected = sum(weights.weight[0, t] * states[:, t] for t in range(16)) + weights.bias
    torch.testing.assert_close(pooling(encoder, ids, mask), expected, atol=1e-5, rtol=0)
    # The ids at padded positions are not read.
    assert torch.equal(pooling(encoder, ids.where(mask, 40), mask), pooling(encoder, ids, mask))


def test_options_of_pooling_and_epsilon_reach_the_head(make_head, tokens):
    ids, mask = tokens
    options = {"pooling": "position_linear", "n_positions": 14, "attend_padding": False, "layer_norm_eps": 0.5}
    model = make_head("sequence_classification", **options).eval()
    states = model.encoder(F.pad(ids, (0, 2), value=PAD), F.pad(mask, (0, 2)))[-1]
    weights = model.pooling.position_weights
    pooled = torch.einsum("t,btd->bd", weights.weight[0], states) + weights.bias
    norm = partial(F.layer_norm, normalized_shape=(24,), eps=0.5)
    expected = model.head.output(norm(F.gelu(model.head.linear(norm(pooled)))))
    torch.testing.assert_close(model(ids, mask), expected, atol=1e-6, rtol=0)
    again = make_head("sequence_classification", **options).pooling.position_weights
    assert torch.equal(again.weight, weights.weight) and not again.bias.any()
    assert float(again.weight.detach().abs().max()) <= 2 * (2 / (5 * 14)) ** 0.5


def test_marked_words_are_read_in_order_behind_the_first_token_by_a_layer_of_the_models_width(make_head, tokens):
    ids, mask = tokens
    model = make_head("marked_words_classification").eval()
    states = model.encoder(ids, mask)[-1]
    spans = torch.tensor([[[8, 11], [1, 4]], [[0, 2], [3, 4]], [[2, 5], [4, 5]]])
    rows = [
        torch.cat([states[row, 0], *(states[row, start:end].mean(dim=0) for start, end in of_row)])
        for row, of_row in enumerate(spans.tolist())
    ]
    norm = partial(F.layer_norm, eps=1e-7)
    inner = F.gelu(model.head.linear(norm(torch.stack(rows), (72,))))
    torch.testing.assert_close(model(ids, mask, spans=spans), model.head.output(norm(inner, (24,))), atol=1e-5, rtol=0)


def test_pytorchs_initialisation_is_uniform_and_depends_on_the_seed_alone(make_head):
    first, again, other = (
        make_head("sequence_classification", seed=seed, initialisation="pytorch").head for seed in (5, 5, 6)
    )
    state = torch.get_rng_state()
    initialise_as_pytorch_(again, 5)
    assert torch.equal(torch.get_rng_state(), state)
    for layer, same, different in zip(*([head.linear, head.output] for head in (first, again, other)), strict=True):
        # All weights and biases are uniform up to 1 / sqrt(24), because both layers read 24 numbers.
        for name in ("weight", "bias"):
            values = getattr(layer, name)
            assert 0.5 * 24**-0.5 < float(values.abs().max()) <= 24**-0.5
            assert torch.equal(values, getattr(same, name)) and not torch.equal(values, getattr(different, name))
    assert float(first.linear.weight.std()) == pytest.approx((3 * 24) ** -0.5, rel=0.1)


def test_a_trained_encoder_keeps_the_dropout_of_its_pretraining_where_that_is_asked(make_encoder):
    for keeps, expected in ((True, {0.3, 0.2}), (False, {0.25})):
        encoder = make_encoder(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
        context = HeadContext(3, 0.25, 5, PAD, keeps_encoder_dropout=keeps)
        model = build_task_model("sequence_classification", encoder, context)
        assert {child.probability for child in model.encoder.modules() if isinstance(child, Dropout)} == expected
        assert {child.probability for child in model.head.modules() if isinstance(child, Dropout)} == {0.25}


def test_inputs_that_a_pooling_cannot_read_are_refused(make_encoder, tokens):
    encoder, (ids, mask) = make_encoder(), tokens
    with pytest.raises(EvaluationError, match="got 12 positions, expected at most 8"):
        PositionLinear(8, pad_id=1)(encoder, ids, mask)
    with pytest.raises(EvaluationError, match="begins with padding"):
        FirstToken()(encoder, ids.flip(1), mask.flip(1))
    with pytest.raises(ModelError, match="attention_mask: got shape"):
        MeanOverTokens()(encoder, ids, mask.unsqueeze(1).expand(-1, 12, -1))


def test_a_regressor_starts_at_the_given_value(make_encoder, tokens):
    model = SequenceRegressor(make_encoder(), HeadContext(None, 0.0, 1, PAD), RegressionOptions(initial_value=2.5))
    assert float(model.output_layer.bias.detach()) == 2.5
    predictions = model.predictions(model(*tokens))
    assert predictions.shape == (3,) and (predictions - 2.5).abs().max() < 2.5
    with torch.no_grad():
        model.output_layer.weight.zero_()
    assert model.predictions(model(*tokens)).tolist() == [2.5, 2.5, 2.5]


def test_choices_are_scored_one_by_one(make_encoder, cases):
    case = cases["multiple_choice"]
    model = MultipleChoice(make_encoder(), HeadContext(None, 0.0, 1, PAD), ChoiceOptions()).eval()
    scores = model(**case.inputs)
    alone = SequenceClassifier(make_encoder(), HeadContext(1, 0.0, 1, PAD), SequenceOptions()).eval()
    for i in range(2):
        expected = alone(case.inputs["input_ids"][:, i], case.inputs["attention_mask"][:, i])
        torch.testing.assert_close(scores[:, i : i + 1], expected, atol=1e-6, rtol=0)


def test_a_missing_choice_is_never_chosen_and_costs_nothing(make_encoder, cases):
    case = cases["multiple_choice"]
    ids, mask = (F.pad(tensor, (0, 0, 0, 1)) for tensor in case.inputs.values())
    for independent in (False, True):
        options = ChoiceOptions(independent_choices=independent)
        model = MultipleChoice(make_encoder(), HeadContext(None, 0.0, 1, PAD), options).eval()
        two, three = model(**case.inputs), model(ids, mask)
        torch.testing.assert_close(three[:, :2], two, atol=1e-6, rtol=0)
        assert (three[:, 2] == IMPOSSIBLE_SCORE).all()
        assert torch.equal(model.predictions(three), model.predictions(two))
        with_missing, without = model.loss(three, case.labels), model.loss(two, case.labels)
        torch.testing.assert_close(with_missing.loss_sum, without.loss_sum)
        assert int(with_missing.n_labelled) == int(without.n_labelled) == (6 if independent else 3)
        with pytest.raises(EvaluationError, match="the index of a missing choice or of a position outside the input"):
            model.loss(three, torch.tensor([0, 2, 1]))
    with pytest.raises(EvaluationError, match="only choices without tokens"):
        model(ids, mask & torch.tensor([True, False, True])[:, None, None])


def loaded(encoder: LayeredEncoder, name: str = "sequence_classification", **options: Any) -> TaskModel:
    """Return a model as the reduced-vocabulary study's script would load it for fine-tuning."""
    labels = 3 if name == "sequence_classification" else None
    return build_task_model(name, encoder, HeadContext(labels, 0.0, 5, 1), {"loader": "reduced_vocabulary", **options})


def test_the_studys_loader_gives_models_with_two_widths_its_own_head(
    make_encoder: Callable[..., LayeredEncoder],
) -> None:
    model = loaded(make_encoder("roberta"), transform="roberta")
    assert isinstance(model.pooling, PositionLinear) and model.pooling.n_positions == 128
    assert model.head.steps == () and model.encoder.projection is not None
    assert loaded(make_encoder("roberta"), "regression").target == Number(rectified_loss=True)


@pytest.mark.parametrize("tied", [True, False])
def test_the_studys_loader_gives_models_of_one_width_the_stock_head_and_drops_the_projection(
    make_encoder: Callable[..., LayeredEncoder], tied: bool
) -> None:
    width = make_encoder("roberta").config.hidden_size
    encoder = make_encoder("roberta", tie_word_embeddings=tied, embedding_size=None if tied else width)
    assert (encoder.projection is None) == tied
    model = loaded(encoder)
    assert isinstance(model.pooling, FirstToken) and model.head.steps == TRANSFORMS["roberta"]
    assert model.encoder.projection is None and model.encoder.projection_layer_norm is None
    assert loaded(encoder, "regression").target == Number(rectified_loss=False)
    encoder.first_token_is_blind = True
    assert isinstance(loaded(encoder).pooling, LastToken)


def test_the_reported_pooling_is_that_of_the_model(make_encoder: Callable[..., LayeredEncoder]) -> None:
    wide, narrow, causal = make_encoder("roberta"), make_encoder("roberta", embedding_size=None), make_encoder()
    causal.first_token_is_blind = True
    study = {"loader": "reduced_vocabulary", "pooling": "mean"}
    for encoder, options, expected in (
        (wide, {}, "first_token"),
        (causal, {}, "last_token"),
        (causal, {"pooling": "mean"}, "mean"),
        (wide, study, "position_linear"),
        (narrow, study, "first_token"),
    ):
        assert read_pooling("regression", encoder, options) == expected
    assert read_pooling("span_classification", causal) is None


def test_the_studys_loader_is_for_its_own_family(make_encoder: Callable[..., LayeredEncoder]) -> None:
    with pytest.raises(ConfigError, match="loader: got 'reduced_vocabulary', expected no loader"):
        loaded(make_encoder("ltg"))
