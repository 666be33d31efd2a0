"""Priors in the models' output layers: the parameters they set, the matrix's scale, and the first predictions."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from hatchery.errors import ModelError
from hatchery.modeling.count_distributions import entropy, smoothed_distribution
from hatchery.modeling.heads.sequence_classifier import SequenceClassifier, SequenceOptions
from hatchery.modeling.heads.task_model import HeadContext
from hatchery.modeling.language_model import LanguageModel, initialise_
from hatchery.modeling.layers import VocabularyHead
from hatchery.modeling.output_bias import (
    check_output_bias,
    log_prior,
    marginal_bias,
    output_bias,
    output_weight,
    scale_output_weight_,
    set_output_bias_,
)
from hatchery.modeling.output_report import language_model_measures, output_measures
from hatchery.training.decay_groups import parameter_groups
from hatchery.training.optimizer_settings import OptimizerSettings

VOCAB_SIZE = 2000


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    """Ordinary ids of a toy corpus [20000] with frequencies proportional to 1 / (rank + 10), as in natural language."""
    frequencies = 1 / (np.arange(VOCAB_SIZE - 6) + 10.0)
    return np.random.default_rng(3).choice(VOCAB_SIZE - 6, 20_000, p=frequencies / frequencies.sum()) + 6


@pytest.fixture(scope="module")
def distribution(text: np.ndarray) -> np.ndarray:
    return smoothed_distribution(np.bincount(text, minlength=VOCAB_SIZE))


@pytest.fixture(scope="module")
def masked(text: np.ndarray) -> dict[str, torch.Tensor]:
    """A batch [40, 100] of the toy corpus, with 15 % of the tokens labelled and replaced by id 4."""
    ids = torch.from_numpy(text[:4000].reshape(40, 100))
    labelled = torch.rand(ids.shape, generator=torch.Generator().manual_seed(1)) < 0.15
    mask = torch.ones_like(ids, dtype=torch.bool)
    return {"input_ids": ids.masked_fill(labelled, 4), "attention_mask": mask, "labels": ids.where(labelled, -100)}


@pytest.fixture
def untied(make_model: Callable[..., LanguageModel]) -> Callable[..., LanguageModel]:
    """A small model with an untied output matrix."""

    def make(seed: int = 1, **changes: object) -> LanguageModel:
        sizes = {"vocab_size": VOCAB_SIZE, "hidden_size": 96, "num_hidden_layers": 2}
        return make_model(seed, **{**sizes, "tie_word_embeddings": False, **changes})

    return make


def first_loss(model: LanguageModel, batch: dict[str, torch.Tensor]) -> float:
    with torch.no_grad():
        output = model.eval()(**batch)
    return float(output.loss_sum) / int(output.n_labelled)


# Writing a prior into a model.


def test_the_heads_of_the_language_model_offer_what_a_prior_needs(untied, make_model) -> None:
    tied, own = make_model().head, untied().head
    assert isinstance(tied, VocabularyHead) and isinstance(own, VocabularyHead)
    assert output_weight(tied) is None and output_weight(own).shape == (VOCAB_SIZE, 96)
    assert output_bias(make_model(vocabulary_bias=False).head) is None


def test_a_prior_that_something_undid_is_noticed(untied, distribution) -> None:
    model, bias = untied(), log_prior(distribution)
    set_output_bias_(model.head, bias)
    check_output_bias(model.head, bias)
    assert model.head.vocabulary_bias.requires_grad
    initialise_(model, 1)
    with pytest.raises(ModelError, match="differs from the prior"):
        check_output_bias(model.head, bias)


def test_a_bias_that_does_not_fit_is_refused(make_model) -> None:
    with pytest.raises(ModelError, match="no bias"):
        set_output_bias_(make_model(vocabulary_bias=False).head, torch.zeros(61))
    with pytest.raises(ModelError, match=r"got \(60,\) values, expected \(61,\)"):
        set_output_bias_(make_model().head, torch.zeros(60))
    with pytest.raises(ModelError, match="not finite"):
        set_output_bias_(nn.Linear(3, 2), torch.tensor([0.0, -math.inf]))


@pytest.mark.parametrize("scale", ["unit", "centred", "frobenius", 0.1])
def test_a_tied_matrix_is_never_rescaled(make_model, scale) -> None:
    model = make_model()
    before = model.encoder.word_embedding.weight.clone()
    with pytest.raises(ModelError, match="also the input embedding"):
        scale_output_weight_(model.head, scale, 1, torch.ones(61))
    assert torch.equal(model.encoder.word_embedding.weight, before)
    scale_output_weight_(model.head, "own", 1)
    assert torch.equal(model.encoder.word_embedding.weight, before)


def test_the_scales_of_the_matrix(untied, distribution) -> None:
    bias, weights = log_prior(distribution), {}
    for scale in ("own", "unit", 0.1, "centred", "frobenius"):
        model = untied()
        scale_output_weight_(model.head, scale, 5, bias)
        weights[scale] = model.head.vocabulary_weight.detach()
    assert torch.equal(weights["own"], untied().head.vocabulary_weight)
    unit = weights["unit"]
    assert unit.std().item() == pytest.approx(96**-0.5, rel=0.01)
    torch.testing.assert_close(weights[0.1], 0.1 * unit)
    torch.testing.assert_close(weights["centred"].norm(), (bias - bias.mean()).norm())
    torch.testing.assert_close(weights["frobenius"].norm(), bias.norm())
    torch.testing.assert_close(weights["frobenius"] / weights["frobenius"].norm(), unit / unit.norm())
    scale_output_weight_(model.head, "unit", 6)
    assert not torch.equal(model.head.vocabulary_weight, unit)
    with pytest.raises(ModelError, match="because the norm of the bias is 0"):
        scale_output_weight_(model.head, "frobenius", 1)
    with pytest.raises(ModelError, match="above 0"):
        scale_output_weight_(model.head, -1.0, 1)


def test_a_uniform_matrix_has_the_variance_of_the_normal_one_and_depends_on_the_seed_alone(untied) -> None:
    """Natural bias, Appendix A."""
    weights = []
    for seed in (5, 5, 6):
        model = untied()
        scale_output_weight_(model.head, "unit_uniform", seed)
        weights.append(model.head.vocabulary_weight.detach())
    bound, (first, again, other) = (3 / 96) ** 0.5, weights
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert first.std().item() == pytest.approx(96**-0.5, rel=0.01)
    # A normal distribution with this standard deviation would exceed the bound.
    assert 0.99 * bound < first.max() <= bound and -bound <= first.min() < -0.99 * bound
    # Half of a uniform distribution is within half of the bound.
    assert (first.abs() < bound / 2).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_all_variants_of_a_seed_share_everything_but_the_bias(make_model) -> None:
    zero, none = make_model().state_dict(), make_model(vocabulary_bias=False).state_dict()
    assert zero.keys() - none.keys() == {"head.vocabulary_bias"}
    assert all(torch.equal(zero[name], none[name]) for name in none)


# First predictions.


def test_without_a_matrix_the_loss_is_the_cross_entropy_under_the_prior(untied, text, masked) -> None:
    model = untied()
    nn.init.zeros_(model.head.vocabulary_weight)
    targets = masked["labels"][masked["labels"] != -100].numpy()
    other = smoothed_distribution(np.bincount(text, minlength=VOCAB_SIZE))
    set_output_bias_(model.head, log_prior(other))
    assert first_loss(model, masked) == pytest.approx(-np.log(other[targets]).mean(), abs=1e-5)
    # If the prior is counted on the same targets and hardly smoothed, the loss is the targets' entropy, the minimum
    # without context.
    counts = np.bincount(targets, minlength=VOCAB_SIZE)
    set_output_bias_(model.head, log_prior(smoothed_distribution(counts, 1e-9)))
    assert first_loss(model, masked) == pytest.approx(entropy(counts / counts.sum()), abs=1e-5)


def test_without_a_matrix_the_prediction_is_the_prior_everywhere(untied, distribution, masked) -> None:
    model = untied()
    nn.init.zeros_(model.head.vocabulary_weight)
    set_output_bias_(model.head, log_prior(distribution))
    measures = language_model_measures(model, masked, distribution, distribution)
    assert measures["divergence_from_prior"] == pytest.approx(0, abs=1e-6)
    assert measures["expected_first_loss"] == measures["prior_loss"] == measures["prior_entropy"]
    with torch.no_grad():
        log_p = torch.log_softmax(model.logits_at(model.encoder(masked["input_ids"])[-1]).double(), dim=-1)
    uniform_to_model = (-log_p.mean(dim=-1) - math.log(VOCAB_SIZE)).mean().item()
    uniform_to_prior = -np.log(distribution).mean() - math.log(VOCAB_SIZE)
    assert uniform_to_model == pytest.approx(uniform_to_prior, rel=1e-5)


@pytest.mark.parametrize("scale", [0.1, 0.5, "unit"])
def test_the_first_divergence_is_half_the_variance_of_the_logits(untied, distribution, masked, scale) -> None:
    model, bias = untied(), log_prior(distribution)
    set_output_bias_(model.head, bias)
    scale_output_weight_(model.head, scale, 2, bias)
    measures = language_model_measures(model, masked, distribution)
    sigma = 1.0 if scale == "unit" else scale
    assert measures["features_rms"] == pytest.approx(1, abs=0.01)
    assert measures["divergence_from_prior"] == pytest.approx(sigma**2 / 2, rel=0.2)


def test_the_initialiser_of_a_tied_model_needs_no_scaling(make_model, distribution, masked) -> None:
    """The tied matrix is truncated normal with standard deviation sqrt(2 / (5 D)): logits deviate by 0.56, less than
    the bias."""
    model = make_model(vocab_size=VOCAB_SIZE, hidden_size=96)
    set_output_bias_(model.head, log_prior(distribution))
    measures = language_model_measures(model, masked, distribution)
    assert measures["logit_deviation"] == pytest.approx(0.88 * 0.4**0.5, rel=0.05)
    assert measures["divergence_from_prior"] == pytest.approx(0.155, rel=0.2)


def test_first_losses_of_the_variants_are_those_of_the_reference_table(untied, distribution, masked) -> None:
    """docs/papers/natural-bias.md, "Scale of the output matrix": log V + 1/2, H + 1/2, H + s^2/2, and with the literal
    rule far above all of these losses."""
    bias, losses = log_prior(distribution), {}
    for kind in ("zero", "unigram"):
        for scale in ("unit", 0.1, "centred", "frobenius"):
            model = untied()
            if kind == "unigram":
                set_output_bias_(model.head, bias)
            scale_output_weight_(model.head, scale, 2, bias)
            losses[kind, scale] = first_loss(model, masked)
    targets = masked["labels"][masked["labels"] != -100].numpy()
    under_prior, uniform = -np.log(distribution[targets]).mean(), math.log(VOCAB_SIZE)
    assert losses["zero", "unit"] == pytest.approx(uniform + 0.5, abs=0.15)
    assert losses["zero", 0.1] == pytest.approx(uniform + 0.005, abs=0.03)
    assert losses["unigram", "unit"] == pytest.approx(under_prior + 0.5, abs=0.15)
    assert losses["unigram", 0.1] == pytest.approx(under_prior + 0.005, abs=0.03)
    assert losses["unigram", "frobenius"] > 2 * uniform
    assert losses["unigram", "unit"] < losses["zero", 0.1]


def test_without_a_bias_the_model_learns_as_with_a_bias_of_zero(untied, masked) -> None:
    curves = []
    for has_bias in (True, False):
        model = untied(vocabulary_bias=has_bias)
        scale_output_weight_(model.head, "unit", 2)
        optimizer = torch.optim.AdamW(parameter_groups(model, OptimizerSettings()), lr=1e-3)
        losses = []
        for _ in range(15):
            output = model.train()(**masked)
            loss = output.loss_sum / output.n_labelled
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curves.append(losses)
    zero, none = curves
    assert zero[0] == none[0] and zero[-1] < zero[0] - 0.2
    np.testing.assert_allclose(zero, none, atol=0.02)


def test_dropping_the_bias_and_adding_it_back_gives_the_full_log_probabilities(untied, distribution, masked) -> None:
    model, bias = untied(), log_prior(distribution)
    set_output_bias_(model.head, bias)
    with torch.no_grad():
        hidden = model.encoder(masked["input_ids"][:2])[-1]
        full = torch.log_softmax(model.logits_at(hidden), dim=-1)
        set_output_bias_(model.head, torch.zeros_like(bias))
        dropped = torch.log_softmax(model.logits_at(hidden), dim=-1)
    torch.testing.assert_close(torch.log_softmax(dropped + bias, dim=-1), full, atol=1e-5, rtol=0)
    assert not torch.allclose(dropped, full, atol=0.1)


def test_a_classifier_starts_at_the_shares_of_its_classes(make_model, masked) -> None:
    """The fresh matrix adds logits with a standard deviation of 0.56 to the prior."""
    labels = np.repeat([0, 1, 2], [700, 250, 50])
    encoder = make_model(vocab_size=VOCAB_SIZE).encoder
    model = SequenceClassifier(encoder, HeadContext(3, 0.1, 1, 3), SequenceOptions()).eval()
    set_output_bias_(model.output_layer, marginal_bias("softmax", labels, 3))
    with torch.no_grad():
        probabilities = model(masked["input_ids"], masked["attention_mask"]).softmax(dim=-1).mean(dim=0)
    assert probabilities.argsort().tolist() == [2, 1, 0]
    nn.init.zeros_(model.output_layer.weight)
    with torch.no_grad():
        probabilities = model(masked["input_ids"], masked["attention_mask"]).softmax(dim=-1)
    expected = torch.tensor([701, 251, 51]) / 1003
    torch.testing.assert_close(probabilities, expected.expand_as(probabilities))


# Measures in the report.


def test_the_report_measures_what_it_says() -> None:
    generator = torch.Generator().manual_seed(1)
    weight, features = torch.randn(7, 3, generator=generator), torch.randn(5, 3, generator=generator)
    distribution = smoothed_distribution([5, 4, 3, 2, 1, 0])
    bias = log_prior(distribution, n_rows=7)
    targets = torch.tensor([0, 1, 2, 0, 5])
    frequencies = np.array([3, 2, 2, 0, 0, 1])
    measures = output_measures(weight, bias, features, distribution, frequencies, targets)
    rows, values = weight[:6], bias[:6]
    log_p = torch.log_softmax(features @ weight.T + bias, dim=-1)
    prior = torch.from_numpy(distribution).float()
    divergence = (prior * (prior.log() - log_p[:, :6])).sum(dim=-1).mean()
    expected = {
        "weight_frobenius_norm": torch.linalg.matrix_norm(rows),
        "weight_spectral_norm": torch.linalg.matrix_norm(rows, ord=2),
        # Half the variance of a position's logits, averaged over positions, approximates the divergence.
        "logit_deviation": (features @ rows.T).var(dim=1, correction=0).mean().sqrt(),
        "bias_norm": values.norm(),
        "centred_bias_norm": (values - values.mean()).norm(),
        "features_rms": features.square().mean().sqrt(),
        "prior_entropy": -(prior * prior.log()).sum(),
        "divergence_from_prior": divergence,
        "prior_loss": -(torch.from_numpy(frequencies / 8).float() @ prior.log()),
        "expected_first_loss": -(log_p[:, :6] @ torch.from_numpy(frequencies / 8).float()).mean(),
        "first_loss": F.nll_loss(log_p, targets),
        "uniform_loss": torch.tensor(math.log(6)),
        "bias_divergence_from_prior": torch.tensor(0.0),
    }
    for name, value in expected.items():
        assert measures[name] == pytest.approx(value.item(), rel=1e-3, abs=1e-4), name
    assert measures["predicted_divergence"] == pytest.approx(measures["logit_deviation"] ** 2 / 2, rel=1e-3)
    moved = output_measures(weight, torch.zeros(7), features, distribution)
    assert moved["bias_divergence_from_prior"] == pytest.approx(math.log(7) - entropy(distribution), rel=1e-3)
    with pytest.raises(ModelError, match="no position"):
        output_measures(weight, bias, features[:0])


def test_reporting_leaves_the_model_and_the_random_numbers_alone(make_model, masked) -> None:
    model = make_model(vocab_size=VOCAB_SIZE, hidden_dropout_prob=0.5).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    first = language_model_measures(model, masked)
    assert language_model_measures(model, masked) == first and "divergence_from_prior" not in first
    assert model.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
